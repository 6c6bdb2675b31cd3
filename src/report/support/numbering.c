/*
 * Numbered keys (numbering.h): libc's balanced tree.
 */
#include "report/support/numbering.h"
#include "report/support/memory.h"
#include <search.h>
#include <stdlib.h>
#include <string.h>

struct interned {
	unsigned number;
	size_t count;
	const void *key;       /* while looked for: the caller's bytes */
	unsigned char bytes[]; /* kept */
};

static int compare(const void *a, const void *b)
{
	const struct interned *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? -1 : 1;
	return memcmp(x->key, y->key, x->count);
}

unsigned gm_number_of(struct gm_numbering *table, const void *bytes, size_t count, bool *added)
{
	struct interned wanted = {.count = count, .key = bytes}, *entry;
	struct interned **found = tfind(&wanted, &table->root, compare);

	*added = !found;
	if (found)
		return (*found)->number;
	entry = gm_realloc(NULL, sizeof(*entry) + count);
	entry->count = count;
	entry->number = table->count++;
	memcpy(entry->bytes, bytes, count);
	entry->key = entry->bytes;
	if (!tsearch(entry, &table->root, compare))
		abort(); /* as gm_realloc: no memory */
	return entry->number;
}

void gm_numbering_free(struct gm_numbering *table)
{
	tdestroy(table->root, free);
	*table = (struct gm_numbering){0};
}
