/*
 * A native program that keeps device memory in a few ways, and waits until its standard input ends:
 * the test holders.py has what it says of each size.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef uint64_t address;
int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(address *pointer, size_t bytes);

#define KIB 1024

struct node {
	struct node *next;
	address memory;
};

address one_global;
struct table {
	int number;
	address entries[4];
} table_of_four;
struct node *list_head;
address *array_on_heap;

static address block(size_t kib)
{
	address pointer = 0;

	return cuMemAlloc_v2(&pointer, kib * KIB) == 0 ? pointer : 0;
}

static struct node *push(struct node *next, size_t kib)
{
	struct node *node = malloc(sizeof(*node));

	if (node)
		*node = (struct node){next, block(kib)};
	return node;
}

int main(void)
{
	void *context;

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
		return 1;
	one_global = block(1);
	table_of_four.entries[2] = block(2);
	list_head = push(push(NULL, 4), 3);
	array_on_heap = calloc(100, sizeof(*array_on_heap));
	if (!array_on_heap || !list_head)
		return 1;
	array_on_heap[50] = block(5);
	block(6); /* lost: its address is nowhere */
	puts("ready");
	fflush(stdout);
	return getchar() == 'x';
}
