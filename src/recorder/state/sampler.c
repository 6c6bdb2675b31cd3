/*
 * The choice of the allocations that are sampled.
 */
#include "recorder/state/sampler.h"
#include "account/sampling.h"
#include "store/hot.h"

GM_HOT uint64_t gm_sample_bytes;

static struct {
	uint64_t seed;
	uint32_t starts;  /* of the sampling (atomic) */
	uint32_t threads; /* that have drawn points since the start (atomic) */
} sampling;

void gm_sampling_start(uint64_t mean_bytes, uint64_t seed)
{
	sampling.seed = seed;
	__atomic_store_n(&sampling.threads, 0, __ATOMIC_RELAXED);
	__atomic_add_fetch(&sampling.starts, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&gm_sample_bytes, mean_bytes, __ATOMIC_RELEASE);
}

/* The thread's first point. Each thread of a process has another sequence of random numbers. */
static void begin_thread(uint32_t start)
{
	uint64_t thread = __atomic_add_fetch(&sampling.threads, 1, __ATOMIC_RELAXED);

	gm_thread.sample_start = start;
	gm_thread.sample_state = sampling.seed + thread * 0xd1342543de82ef95ull;
	gm_thread.sample_left = gm_sample_distance(gm_sample_bytes, &gm_thread.sample_state);
}

int32_t gm_sample_point(uint64_t bytes)
{
	uint32_t start = __atomic_load_n(&sampling.starts, __ATOMIC_RELAXED);

	if (gm_thread.sample_start != start) {
		begin_thread(start);
		gm_thread.sample_left -= (int64_t)bytes;
		if (gm_thread.sample_left > 0)
			return -1;
	}
	/* Distances have no memory: the next point lies as far behind this allocation. */
	gm_thread.sample_left = gm_sample_distance(gm_sample_bytes, &gm_thread.sample_state);
	return gm_sample_extra(bytes, gm_sample_bytes, &gm_thread.sample_state);
}
