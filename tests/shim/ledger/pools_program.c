/*
 * Memory that is held and not in use: pools own|idle|handles. And pools that grow one after another
 * without a pause: pools fast, which prints what the process uses then.
 */
#include "gpumemtrace.h"
#include "sim_api.h"

#include <stdio.h>
#include <string.h>

#define MIB 1048576ul
#define PLACE __attribute__((noinline, noclone))

/* A pool of 8 MiB gives out eight blocks, and three of them stay. */
static void own(void)
{
	char *memory;

	cudaMalloc((void **)&memory, 8 * MIB);
	for (int i = 0; i < 8; i++)
		gpumemtrace_pool_alloc(memory + i * MIB, MIB, 0);
	for (int i = 0; i < 8; i++)
		if (i % 2 || i > 4)
			gpumemtrace_pool_free(memory + i * MIB);
}

/* A block of 1 MiB of a pool, whose reserve is 32 MiB; then a mark, at which the ledger is sampled.
 */
static void idle(void)
{
	void *memory;

	cudaMallocAsync(&memory, MIB, NULL);
	cudaDeviceSynchronize();
	gpumemtrace_mark("sampled");
}

/* 200 pools, each of which takes 32 MiB at its first allocation. */
static void fast(void)
{
	struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
				  .location = {.type = cudaMemLocationTypeDevice}};
	size_t free_bytes, total;
	cudaMemPool_t pool;
	void *memory;

	for (int i = 0; i < 200; i++) {
		cudaMemPoolCreate(&pool, &props);
		cudaMallocFromPoolAsync(&memory, 32 * MIB, pool, NULL);
	}
	cudaMemGetInfo(&free_bytes, &total);
	printf("{\"used\": %zu}\n", total - free_bytes);
}

PLACE static CUmemGenericAllocationHandle create_handle(void)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemGenericAllocationHandle handle = 0;

	cuMemCreate(&handle, 2 * MIB, &prop, 0);
	return handle;
}

/* Of three handles one is mapped. */
static void handles(void)
{
	CUcontext context;
	CUdeviceptr range;

	cuInit(0);
	cuDevicePrimaryCtxRetain(&context, 0);
	cuCtxSetCurrent(context);
	cuMemAddressReserve(&range, 2 * MIB, 0, 0, 0);
	for (volatile int i = 0; i < 3; i++) {
		CUmemGenericAllocationHandle handle = create_handle();

		if (i == 0)
			cuMemMap(range, 2 * MIB, 0, handle, 0);
	}
}

int main(int count, char **arguments)
{
	const char *what = count > 1 ? arguments[1] : "";

	if (strcmp(what, "own") == 0)
		own();
	else if (strcmp(what, "idle") == 0)
		idle();
	else if (strcmp(what, "fast") == 0)
		fast();
	else
		handles();
	return 0;
}
