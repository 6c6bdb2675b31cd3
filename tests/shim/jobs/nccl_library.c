/*
 * Stands for libnccl.so.2: a communicator takes device memory by a runtime of its own, some of it
 * in a helper that the caller does not see.
 */
#include <stdlib.h>

int cudaMalloc(void **memory, size_t bytes);
int cudaFree(void *memory);

struct communicator {
	void *channels, *buffers;
};

int ncclCommInitRank(struct communicator **out, int ranks, int rank);
int ncclCommInitRankConfig(struct communicator **out, int ranks, int rank);
int ncclCommDestroy(struct communicator *communicator);

__attribute__((noinline)) static int connect_channels(struct communicator *communicator, int ranks)
{
	return cudaMalloc(&communicator->channels, (size_t)ranks << 21);
}

int ncclCommInitRankConfig(struct communicator **out, int ranks, int rank)
{
	struct communicator *communicator = calloc(1, sizeof(*communicator));

	(void)rank;
	if (!communicator || cudaMalloc(&communicator->buffers, 10u << 20) ||
	    connect_channels(communicator, ranks))
		return 1;
	*out = communicator;
	return 0;
}

/* Not a tail call, as in NCCL: both entry points stand in the stack. */
int ncclCommInitRank(struct communicator **out, int ranks, int rank)
{
	int result = ncclCommInitRankConfig(out, ranks, rank);

	return result ? 2 : 0;
}

int ncclCommDestroy(struct communicator *communicator)
{
	int result = cudaFree(communicator->channels) | cudaFree(communicator->buffers);

	free(communicator);
	return result;
}
