/*
 * The per-thread-stream variants of the runtime's calls, as programs built with
 * CUDA_API_PER_THREAD_DEFAULT_STREAM make them: pending frees are those of the thread's own stream.
 */
#include "family.h"

cudaError_t cudaMallocAsync_ptsz(void **p, size_t size, cudaStream_t stream);
cudaError_t cudaFreeAsync_ptsz(void *p, cudaStream_t stream);
cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream);

int main(void)
{
	cudaMemPool_t pool;
	void *own, *legacy;

	OK(cudaFree(0));
	OK(cudaDeviceGetDefaultMemPool(&pool, 0));
	OK(cudaMallocAsync_ptsz(&own, 64 * MIB, 0));
	OK(cudaMallocAsync(&legacy, 32 * MIB, 0));
	OK(cudaFreeAsync(legacy, 0));
	OK(cudaFreeAsync_ptsz(own, 0));
	OK(cudaStreamSynchronize_ptsz(0)); /* the legacy stream's free stays pending */
	expect("usage.async.0.allocations", 2);
	expect("usage.async.0.frees", 2);
	expect("pool.default.0.reserved_bytes", pool_attribute(pool, POOL_RESERVED));
	expect("pool.default.0.pending_free_bytes", 32 * MIB);
	expect("pool.default.0.used_bytes", 0);
	expect("errors", 0);
	return 0;
}
