/*
 * Numbered keys (numbering.h): a hash table of uthash.
 */
#include "report/support/numbering.h"
#include "report/support/memory.h"
#define uthash_fatal(message) gm_no_memory() /* its only error */
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct gm_numbered {
	UT_hash_handle hh;
	unsigned number;
	unsigned char bytes[];
};

unsigned gm_number_of(struct gm_numbering *table, const void *bytes, size_t count, bool *added)
{
	struct gm_numbered *entry;

	HASH_FIND(hh, table->head, bytes, count, entry);
	*added = !entry;
	if (entry)
		return entry->number;
	entry = gm_realloc(NULL, sizeof(*entry) + count);
	entry->number = table->count++;
	memcpy(entry->bytes, bytes, count);
	HASH_ADD_KEYPTR(hh, table->head, entry->bytes, count, entry);
	return entry->number;
}

bool gm_is_numbered(const struct gm_numbering *table, const void *bytes, size_t count)
{
	const struct gm_numbered *entry;

	HASH_FIND(hh, table->head, bytes, count, entry);
	return entry;
}

void gm_numbering_free(struct gm_numbering *table)
{
	struct gm_numbered *entry = table->head, *next;

	HASH_CLEAR(hh, table->head);
	for (; entry; entry = next) {
		next = entry->hh.next;
		free(entry);
	}
	*table = (struct gm_numbering){0};
}
