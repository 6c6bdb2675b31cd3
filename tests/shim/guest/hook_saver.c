/*
 * A preload in the manner of torch_memory_saver: cudaMalloc reserves addresses and maps physical
 * memory into them, so that pausing gives the memory back and resuming puts it under the same
 * addresses.
 */
#include "cuda_calls.h"

#include <stdlib.h>
#include <unistd.h>

#define MOST 64
#define GRAIN (2ull << 20)

int saver_pause(void);
int saver_resume(void);

static struct block {
	CUdeviceptr address;
	size_t bytes;
	CUmemGenericAllocationHandle handle;
} blocks[MOST];

static int back(struct block *block)
{
	CUmemAllocationProp prop = {.type = 1, .location = {.type = 1, .id = 0}};

	return cuMemCreate(&block->handle, block->bytes, &prop, 0) ||
	       cuMemMap(block->address, block->bytes, 0, block->handle, 0);
}

static int unback(struct block *block)
{
	return cuMemUnmap(block->address, block->bytes) || cuMemRelease(block->handle);
}

static int each(int (*act)(struct block *block))
{
	for (int i = 0; i < MOST; i++)
		if (blocks[i].address && act(&blocks[i]))
			return -1;
	return 0;
}

int saver_pause(void)
{
	return each(unback);
}

int saver_resume(void)
{
	return each(back);
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
	CUcontext context;

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
		return 3;
	for (int i = 0; i < MOST; i++) {
		struct block *block = &blocks[i];

		if (block->address)
			continue;
		block->bytes = (bytes + GRAIN - 1) / GRAIN * GRAIN;
		if (cuMemAddressReserve(&block->address, block->bytes, 0, 0, 0) || back(block))
			return 2;
		*memory = (void *)block->address;
		return 0;
	}
	return 2;
}

cudaError_t cudaFree(void *memory)
{
	for (int i = 0; memory && i < MOST; i++)
		if (blocks[i].address == (CUdeviceptr)memory) {
			struct block block = blocks[i];

			blocks[i].address = 0;
			return unback(&block) || cuMemAddressFree(block.address, block.bytes) ? 1
											      : 0;
		}
	return 0;
}

static void __attribute__((destructor)) tell(void)
{
	if (getenv("HOOK_TELLS") && write(STDERR_FILENO, "saver hook used\n", 16) < 0)
		abort();
}
