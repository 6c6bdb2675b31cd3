/*
 * Stream-ordered memory: default and explicit pools, what they hold and what is used, by their own
 * attributes. 256 MiB freed on a stream but not waited for: trimming recovers nothing, a wait
 * everything (executorch#22312); kept by a threshold it is cached, no leak.
 */
#include "family.h"

NAMED void *async(size_t bytes)
{
	void *p = NULL;

	OK(cudaMallocAsync(&p, bytes, 0));
	return p;
}

NAMED void *pooled(cudaMemPool_t pool, size_t bytes)
{
	void *p = NULL;

	OK(cudaMallocFromPoolAsync(&p, bytes, pool, 0));
	return p;
}

static cudaMemPool_t make_pool(void)
{
	struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
					 .location = {cudaMemLocationTypeDevice, 0}};
	cudaMemPool_t pool;

	OK(cudaMemPoolCreate(&pool, &props));
	return pool;
}

int main(void)
{
	cudaMemPool_t ordinary, cached, dying;
	uint64_t all = UINT64_MAX;
	unsigned long long before;
	void *p, *plain, *zero = (void *)1;

	OK(cudaFree(0));
	before = free_bytes();
	OK(cudaDeviceGetDefaultMemPool(&ordinary, 0));

	OK(cudaMallocAsync(&zero, 0, 0));
	FAILS(cudaMallocAsync(&zero, 1ull << 50, 0), 2);
	cudaGetLastError();
	async(100 * MIB + 1000);
	p = async(10 * MIB);
	OK(cudaFree(p)); /* legal */
	OK(cudaMalloc(&plain, MIB));
	OK(cudaFreeAsync(plain, 0)); /* legal too */

	cached = make_pool();
	OK(cudaMemPoolSetAttribute(cached, (enum cudaMemPoolAttr)POOL_THRESHOLD, &all));
	p = pooled(cached, 256 * MIB);
	OK(cudaFreeAsync(p, 0));
	OK(cudaDeviceSynchronize());

	dying = make_pool();
	p = pooled(dying, 64 * MIB);
	OK(cudaMemPoolDestroy(dying));
	printf("fact a destroyed pool with 64 MiB allocated leaves %llu MiB taken\n",
	       (before - free_bytes()) / MIB);
	OK(cudaFreeAsync(p, 0));

	p = async(256 * MIB);
	OK(cudaFreeAsync(p, 0));
	OK(cudaMemPoolTrimTo(ordinary, 0));
	printf("fact after trimming without a wait the default pool holds %llu MiB\n",
	       pool_attribute(ordinary, POOL_RESERVED) / MIB);
	OK(cudaDeviceSynchronize());

	expect("usage.async.0.current_bytes", 100 * MIB + 1000);
	expect("usage.async.0.current_count", 1);
	expect("usage.async.0.allocations", 5);
	expect("usage.async.0.frees", 4);
	expect("usage.async.0.failures", 1);
	expect("usage.device.0.frees", 1);
	expect("pool.default.0.used_bytes", 100 * MIB + 1000);
	expect("pool.default.0.reserved_bytes", pool_attribute(ordinary, POOL_RESERVED));
	expect("pool.default.0.reserved_peak_bytes", pool_attribute(ordinary, POOL_RESERVED_HIGH));
	expect("pool.default.0.used_peak_bytes", 356 * MIB + 1000);
	expect("pool.default.0.pending_free_bytes", 0);
	expect("pool.explicit.0.used_bytes", 0);
	expect("pool.explicit.0.reserved_bytes", pool_attribute(cached, POOL_RESERVED));
	expect("site.async.live_bytes", 100 * MIB + 1000);
	expect("site.pooled.live_bytes", 0);
	expect("leaks.exit_bytes", 100 * MIB + 1000);
	expect("implicit", 0);
	expect("errors", 0);
	expect_physical(before, 1);
	return 0;
}
