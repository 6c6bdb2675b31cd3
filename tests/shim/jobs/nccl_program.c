/*
 * Three communicators, from two places, of which one is destroyed; and memory of its own.
 */
#include <stddef.h>
#include <stdio.h>

struct communicator;

int cudaMalloc(void **memory, size_t bytes);
int ncclCommInitRank(struct communicator **out, int ranks, int rank);
int ncclCommDestroy(struct communicator *communicator);

__attribute__((noinline)) static struct communicator *init_world(void)
{
	struct communicator *communicator = NULL;

	if (ncclCommInitRank(&communicator, 4, 0))
		puts("init_world failed");
	return communicator;
}

__attribute__((noinline)) static struct communicator *new_group(void)
{
	struct communicator *communicator = NULL;

	if (ncclCommInitRank(&communicator, 2, 0))
		puts("new_group failed");
	return communicator;
}

int main(void)
{
	struct communicator *world = init_world(), *first = new_group();
	void *memory;

	new_group();
	return !world || ncclCommDestroy(first) || cudaMalloc(&memory, 32u << 20);
}
