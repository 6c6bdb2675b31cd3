/* See store_double.h. */
#include "store_double.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#define TABLE_BYTES (64ull << 20)

struct gm_header *gm_file;

static struct {
	char *memory[GM_TABLES_NOW];
	uint32_t next[GM_TABLES_NOW], published[GM_TABLES_NOW];
	struct gm_header header;
	bool full;
	pthread_mutex_t strings;
} double_store = {.strings = PTHREAD_MUTEX_INITIALIZER};

static size_t record_bytes(enum gm_table_id table)
{
	switch (table) {
	case GM_TABLE_STRINGS:
		return 1;
	case GM_TABLE_MODULES:
		return sizeof(struct gm_module_record);
	case GM_TABLE_FRAMES:
		return sizeof(struct gm_frame_record);
	case GM_TABLE_STACK_FRAMES:
		return sizeof(uint32_t);
	case GM_TABLE_STACKS:
		return sizeof(struct gm_stack_record);
	default:
		return 0;
	}
}

void store_double_reset(void)
{
	for (int i = 0; i < GM_TABLES_NOW; i++) {
		if (double_store.memory[i])
			munmap(double_store.memory[i], TABLE_BYTES);
		double_store.memory[i] = NULL;
		double_store.next[i] = double_store.published[i] = 0;
		if (record_bytes(i))
			double_store.memory[i] =
				mmap(NULL, TABLE_BYTES, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	}
	memset(&double_store.header, 0, sizeof(double_store.header));
	double_store.full = false;
	gm_file = &double_store.header;
}

uint32_t store_double_count(enum gm_table_id table)
{
	return double_store.published[table];
}

void store_double_fill(bool full)
{
	double_store.full = full;
}

void *gm_store_append(enum gm_table_id table, uint32_t count, uint32_t *index)
{
	if (double_store.full ||
	    (double_store.next[table] + count) * record_bytes(table) > TABLE_BYTES) {
		double_store.header.dropped_records++;
		return NULL;
	}
	*index = double_store.next[table];
	double_store.next[table] += count;
	return double_store.memory[table] + *index * record_bytes(table);
}

void gm_store_publish(enum gm_table_id table)
{
	__atomic_store_n(&double_store.published[table], double_store.next[table],
			 __ATOMIC_RELEASE);
}

void *gm_store_record(enum gm_table_id table, uint32_t index)
{
	if (index >= double_store.next[table])
		return NULL;
	return double_store.memory[table] + index * record_bytes(table);
}

uint32_t gm_store_string(const char *text, size_t max)
{
	size_t bytes = strnlen(text, max);
	uint32_t index = GM_NONE;
	char *at;

	pthread_mutex_lock(&double_store.strings);
	at = gm_store_append(GM_TABLE_STRINGS, (uint32_t)bytes + 1, &index);
	if (at) {
		memcpy(at, text, bytes);
		at[bytes] = '\0';
		gm_store_publish(GM_TABLE_STRINGS);
	}
	pthread_mutex_unlock(&double_store.strings);
	return at ? index : GM_NONE;
}

const char *store_double_string(uint32_t string)
{
	return string == GM_NONE ? "" : gm_store_record(GM_TABLE_STRINGS, string);
}
