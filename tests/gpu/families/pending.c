/*
 * 256 MiB freed on a stream, trimmed, and never waited for: used 0, reserved 256 MiB: cached,
 * pending, not a leak (executorch#22312).
 */
#include "family.h"

int main(void)
{
	cudaMemPool_t pool;
	cudaStream_t stream;
	void *p;

	OK(cudaFree(0));
	OK(cudaDeviceGetDefaultMemPool(&pool, 0));
	OK(cudaStreamCreate(&stream));
	OK(cudaMallocAsync(&p, 256 * MIB, stream));
	OK(cudaFreeAsync(p, stream));
	OK(cudaMemPoolTrimTo(pool, 0));
	expect("pool.default.0.used_bytes", 0);
	expect("pool.default.0.reserved_bytes", pool_attribute(pool, POOL_RESERVED));
	expect("pool.default.0.pending_free_bytes", pool_attribute(pool, POOL_RESERVED));
	expect("usage.async.0.current_bytes", 0);
	expect("leaks.exit_bytes", 0);
	expect("errors", 0);
	return 0;
}
