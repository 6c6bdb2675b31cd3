/*
 * Threads that allocate and free at once, from a pool they share and pools of their own, plain and
 * on streams: the sums must come out to the byte.
 */
#include "family.h"

#include <pthread.h>

#define THREADS 4
#define ROUNDS 300
#define KEPT 7 /* every seventh round's blocks stay */

static unsigned long long kept(void)
{
	unsigned long long count = 0;
	int round;

	for (round = 0; round < ROUNDS; round++)
		count += round % KEPT == 0;
	return count;
}

NAMED void one_round(int round, cudaStream_t stream, cudaMemPool_t pool)
{
	void *plain, *shared, *own;

	OK(cudaMalloc(&plain, 1000));
	OK(cudaMallocAsync(&shared, 2000, stream));
	OK(cudaMallocFromPoolAsync(&own, 3000, pool, stream));
	if (round % KEPT == 0)
		return;
	OK(cudaFreeAsync(own, stream));
	OK(cudaFreeAsync(shared, stream));
	OK(cudaFree(plain));
	if (round % 50 == 1)
		OK(cudaStreamSynchronize(stream));
}

static void *work(void *unused)
{
	struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
					 .location = {cudaMemLocationTypeDevice, 0}};
	cudaMemPool_t pool;
	cudaStream_t stream;
	int round;

	(void)unused;
	OK(cudaStreamCreate(&stream));
	OK(cudaMemPoolCreate(&pool, &props));
	for (round = 0; round < ROUNDS; round++)
		one_round(round, stream, pool);
	OK(cudaStreamSynchronize(stream));
	return NULL;
}

int main(void)
{
	unsigned long long before, each = kept(), all = THREADS * ROUNDS;
	pthread_t threads[THREADS];
	int i;

	OK(cudaFree(0));
	before = free_bytes();
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, NULL))
			return 2;
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	OK(cudaDeviceSynchronize());
	expect("usage.device.0.current_bytes", THREADS * each * 1000);
	expect("usage.device.0.allocations", all);
	expect("usage.device.0.frees", all - THREADS * each);
	expect("usage.async.0.current_bytes", THREADS * each * 5000);
	expect("usage.async.0.allocations", 2 * all);
	expect("usage.async.0.frees", 2 * all - 2 * THREADS * each);
	expect("pool.default.0.used_bytes", THREADS * each * 2000);
	expect("pool.explicit.0.used_bytes", THREADS * each * 3000);
	expect("pool.explicit.0.pending_free_bytes", 0);
	expect("site.one_round.live_count", 3 * THREADS * each);
	expect("errors", 0);
	expect_physical(before, 4);
	return 0;
}
