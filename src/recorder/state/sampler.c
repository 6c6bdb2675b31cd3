/*
 * The choice of the allocations that are sampled.
 */
#include "recorder/state/sampler.h"
#include "account/sampling.h"
#include "store/hot.h"

/* The first variable of this section that is linked: the others follow it in its cache line. */
GM_HOT_EVENT __attribute__((aligned(64))) uint64_t gm_sample_bytes;

/*
 * The floating-point environment as functions find it by the ABI. A program may have another: one
 * in which an exception is a signal (feenableexcept, -ffpe-trap), or other rounding. It also reads
 * which exceptions there were.
 */
#if defined(__x86_64__)
#define DEFAULT_MXCSR 0x1f80u

static inline uint64_t enter_arithmetic(void)
{
	uint32_t mxcsr = __builtin_ia32_stmxcsr();

	__builtin_ia32_ldmxcsr(DEFAULT_MXCSR);
	return mxcsr;
}

static inline void leave_arithmetic(uint64_t environment)
{
	__builtin_ia32_ldmxcsr((uint32_t)environment);
}
#elif defined(__aarch64__)
static inline uint64_t enter_arithmetic(void)
{
	uint64_t control, status;

	__asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(control), "=r"(status));
	__asm__ volatile("msr fpcr, xzr");
	return control << 32 | (uint32_t)status;
}

static inline void leave_arithmetic(uint64_t environment)
{
	__asm__ volatile("msr fpcr, %0\n\tmsr fpsr, %1"
			 :
			 : "r"(environment >> 32), "r"(environment & UINT32_MAX));
}
#endif

static struct {
	uint64_t seed;
	uint32_t starts;    /* of the sampling (atomic) */
	uint32_t sequences; /* of points that were begun since the start (atomic) */
} sampling;

void gm_sampling_start(uint64_t mean_bytes, uint64_t seed)
{
	sampling.seed = seed;
	__atomic_store_n(&sampling.sequences, 0, __ATOMIC_RELAXED);
	__atomic_add_fetch(&sampling.starts, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&gm_sample_bytes, mean_bytes, __ATOMIC_RELEASE);
}

static void draw_point(struct gm_sample_points *points)
{
	uint64_t environment = enter_arithmetic();

	points->left = gm_sample_distance(gm_sample_bytes, &points->state);
	leave_arithmetic(environment);
}

/* Draws the first point. Each thread and device has another sequence of random numbers. */
static void begin(struct gm_sample_points *points, uint32_t start)
{
	uint64_t sequence = __atomic_add_fetch(&sampling.sequences, 1, __ATOMIC_RELAXED);

	points->start = start;
	points->state = sampling.seed + sequence * 0xd1342543de82ef95ull;
	draw_point(points);
}

int32_t gm_sample_point(struct gm_sample_points *points, int64_t bytes)
{
	uint32_t start = __atomic_load_n(&sampling.starts, __ATOMIC_RELAXED);
	uint64_t environment;
	int32_t extra;

	if (points->start != start) {
		begin(points, start);
		if (gm_passes_sample(points, bytes))
			return -1;
	}
	/* Distances have no memory: the next point lies as far behind this allocation. */
	draw_point(points);
	environment = enter_arithmetic();
	extra = gm_sample_extra((uint64_t)bytes, gm_sample_bytes, &points->state);
	leave_arithmetic(environment);
	return extra;
}
