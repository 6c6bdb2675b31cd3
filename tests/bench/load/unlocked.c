/*
 * A CUDA runtime whose threads share nothing: each hands out one address of its own, and PyTorch's
 * hook does nothing. What threads wait for under the shim is then the shim's. The driver behind it
 * is the simulated one, which makes the context.
 */
#include "../../sim/sim_api.h"
#include "../../sim/torch/c10.h"

#define ADDRESSES  (1ull << 32) /* of a thread */
#define POOL_BYTES (1ull << 30) /* that the default pool holds in reserve, more than is in use */

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device);
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value);
CUresult cuMemAllocAsync(CUdeviceptr *memory, size_t bytes, CUstream stream);
CUresult cuMemFreeAsync(CUdeviceptr memory, CUstream stream);

static uint64_t threads;
static __thread uint64_t address;

static cudaError_t hand_out(void **pointer)
{
	if (!address)
		address = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED) * ADDRESSES;
	*pointer = (void *)(uintptr_t)address;
	return cudaSuccess;
}

cudaError_t cudaMalloc(void **pointer, size_t bytes)
{
	(void)bytes;
	return hand_out(pointer);
}

cudaError_t cudaMallocAsync(void **pointer, size_t bytes, cudaStream_t stream)
{
	(void)bytes;
	(void)stream;
	return hand_out(pointer);
}

static CUresult fill_pool(void)
{
	uint64_t threshold = UINT64_MAX;
	CUdeviceptr memory;
	CUmemoryPool pool;
	CUresult result = cuDeviceGetDefaultMemPool(&pool, 0);

	if (!result)
		result = cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
	if (!result)
		result = cuMemAllocAsync(&memory, POOL_BYTES, NULL);
	return result ? result : cuMemFreeAsync(memory, NULL);
}

/* The free of NULL is how programs make the context. */
cudaError_t cudaFree(void *pointer)
{
	CUcontext context;

	if (pointer)
		return cudaSuccess;
	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
	    fill_pool())
		return cudaErrorUnknown;
	return cudaSuccess;
}

cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream)
{
	(void)pointer;
	(void)stream;
	return cudaSuccess;
}

void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *block, int64_t bytes,
							   uint64_t allocated, uint64_t reserved,
							   struct c10_device device)
{
	(void)block;
	(void)bytes;
	(void)allocated;
	(void)reserved;
	(void)device;
}
