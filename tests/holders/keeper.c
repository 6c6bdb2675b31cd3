/*
 * A library that allocates device memory and keeps it in a few ways, under the name of a CUDA
 * library: what planted.py says of each function is the test's expectation.
 */
#include <stdint.h>
#include <stdlib.h>

typedef uint64_t address;
int cuMemAlloc_v2(address *pointer, size_t bytes);
void keep_in_global(size_t bytes);
void keep_in_table(size_t bytes);
void keep_hidden(size_t bytes);
void keep_object(void *object);

struct entry {
	struct entry *next;
	uint64_t key;
	address memory;
};

address kept_global;
struct entry *kept_table;
void *kept_object;
volatile address hidden;

static address allocate(size_t bytes)
{
	address pointer = 0;

	return cuMemAlloc_v2(&pointer, bytes) == 0 ? pointer : 0;
}

void keep_in_global(size_t bytes)
{
	kept_global = allocate(bytes);
}

void keep_in_table(size_t bytes)
{
	struct entry *entry = malloc(sizeof(*entry));

	if (!entry)
		return;
	*entry = (struct entry){kept_table, 1, allocate(bytes)};
	kept_table = entry;
}

/* The address is nowhere in memory as it is. */
void keep_hidden(size_t bytes)
{
	hidden = ~allocate(bytes);
}

void keep_object(void *object)
{
	kept_object = object;
}
