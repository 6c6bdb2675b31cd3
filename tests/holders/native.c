/*
 * A native program that keeps device memory in a few ways, and waits until its standard input ends:
 * the test holders.py has what is said of each size. An argument is a path, which gets a copy of
 * the output file.
 */
#include <gpumemtrace.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

typedef uint64_t address;
int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(address *pointer, size_t bytes);

#define KIB  1024
#define PAGE 4096

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
address *array_on_heap, *mapped_by_malloc;
struct node *of_thread;
char zeroed[4 * PAGE];
extern char _end[]; /* after the zeroed data: the linker's */

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

/* A page that the kernel shows as one mapping with the program's zeroed data. */
static address *page_after_data(void)
{
	uintptr_t after = ((uintptr_t)_end + PAGE - 1) / PAGE * PAGE;
	void *page = mmap((void *)after, PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	return page == MAP_FAILED ? NULL : page;
}

/* The node lies in the thread's own arena. */
static void *in_thread(void *context)
{
	if (cuCtxSetCurrent(context) == 0)
		of_thread = push(NULL, 10);
	return NULL;
}

int main(int count, char **arguments)
{
	address *neighbour = page_after_data();
	pthread_t thread;
	void *context;

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
		return 1;
	one_global = block(1);
	table_of_four.entries[2] = block(2);
	list_head = push(push(push(NULL, 11), 4), 3);
	array_on_heap = calloc(100, sizeof(*array_on_heap));
	mapped_by_malloc = calloc(1 << 20, sizeof(*mapped_by_malloc));
	if (!array_on_heap || !mapped_by_malloc || !list_head ||
	    pthread_create(&thread, NULL, in_thread, context) || pthread_join(thread, NULL))
		return 1;
	array_on_heap[50] = block(5);
	array_on_heap[51] = block(8);
	mapped_by_malloc[1000] = block(9);
	block(6); /* lost: its address is nowhere */
	if (!neighbour)
		return 1;
	neighbour[9] = block(7); /* held by what is no variable of the program */
	if (count > 1 && gpumemtrace_snapshot(arguments[1]) != 0)
		return 1;
	puts("ready");
	fflush(stdout);
	return getchar() == 'x';
}
