/*
 * The clock of events: when the time stamp counter is used, and its rate.
 */
#include "track/clock.h"
#include "store/descriptor.h"

#include <sys/syscall.h>
#include <unistd.h>

#ifdef __x86_64__
#include <cpuid.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#endif

GM_HOT_EVENT struct gm_clock gm_clock;
GM_HOT_HOOK bool gm_clock_counts;

#ifdef __x86_64__
static GM_COLD bool ask_whether_allowed(int *known)
{
	int mode = 0;
	bool allowed = prctl(PR_GET_TSC, &mode) != 0 || mode != PR_TSC_SIGSEGV;

	__atomic_store_n(known, allowed ? 1 : -1, __ATOMIC_RELAXED);
	return allowed;
}
#endif

/*
 * Returns whether the time stamp counter may be read: a program can have its threads killed for
 * that, and for calls of clock_gettime, which the C library answers by the counter.
 */
static inline bool is_allowed(void)
{
#ifdef __x86_64__
	static int known; /* 0: not asked yet, 1: allowed, -1: forbidden (atomic) */
	int answer = __atomic_load_n(&known, __ATOMIC_RELAXED);

	return __builtin_expect(answer > 0, 1) || (!answer && ask_whether_allowed(&known));
#else
	return true;
#endif
}

static int (*source)(clockid_t, struct timespec *) = clock_gettime;

void gm_clock_source(int (*own)(clockid_t, struct timespec *))
{
	if (own)
		source = own;
}

uint64_t gm_monotonic_ns(void)
{
	struct timespec now;

	if (is_allowed())
		source(CLOCK_MONOTONIC, &now);
	else
		syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#ifdef __x86_64__

/* Two readings of the counter that are further apart were interrupted. */
#define INTERRUPTED_TICKS 1000u

/*
 * The rate is measured over at least 10 ms, in which an error of 50 ns is one of 5 ns in a
 * millisecond, and over a second or more from a new start, because it follows what disciplines
 * CLOCK_MONOTONIC. Over 30 s the product below does not overflow; it would over twice as many.
 */
#define LEAST_NS  10000000u
#define ENOUGH_NS 1000000000u
#define MOST_NS	  30000000000u

#define VALID_NS 1000000u /* after each reading of CLOCK_MONOTONIC */

static struct {
	uint64_t start_ns;
	uint64_t ticks, ns; /* the start of the measurement; 0: not begun */
} self;

/* Returns whether the counter runs at one rate whatever the processor does. */
static int is_invariant(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && d & 1u << 8;
}

/* Returns whether Linux uses the counter. It does only if the counters of all processors agree. */
static int is_clocksource(void)
{
	char name[8] = "";
	int fd = gm_open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
			 O_RDONLY, 0);
	ssize_t got = fd < 0 ? -1 : read(fd, name, sizeof(name) - 1);

	if (fd >= 0)
		close(fd);
	return got == 4 && !memcmp(name, "tsc\n", 4);
}

void gm_clock_start(uint64_t start_ns)
{
	self.start_ns = start_ns;
	gm_clock = (struct gm_clock){0};
	gm_clock_counts = is_invariant() && is_clocksource() && is_allowed();
	self.ticks = self.ns = 0;
}

static void measure_from(uint64_t ticks, uint64_t ns)
{
	self.ticks = ticks;
	self.ns = ns;
}

/*
 * Returns whether a rate can be right. It changes by a thousandth only if the machine was suspended
 * or moved.
 */
static int is_plausible(uint64_t rate, uint64_t before)
{
	uint64_t change = rate > before ? rate - before : before - rate;

	return rate < UINT32_MAX && (!before || change < before / 1024);
}

/* Measures the rate from the start of the measurement to this moment. */
static void measure(struct gm_clock *clock, uint64_t ticks, uint64_t ns)
{
	uint64_t past_ticks = ticks - self.ticks, past_ns = ns - self.ns, rate;

	if (self.ns && past_ns < LEAST_NS)
		return;
	if (!self.ns || past_ns > MOST_NS || !past_ticks) {
		measure_from(ticks, ns);
		return;
	}
	rate = (past_ns << GM_CLOCK_BITS) / past_ticks;
	clock->ns_per_tick = is_plausible(rate, clock->ns_per_tick) ? (uint32_t)rate : 0;
	if (past_ns > ENOUGH_NS || !clock->ns_per_tick)
		measure_from(ticks, ns);
}

uint64_t gm_clock_read(struct gm_clock *clock)
{
	uint64_t before, after, ns;

	clock->valid_ticks = 0;
	if (!gm_clock_counts)
		return gm_monotonic_ns() - self.start_ns;
	before = __builtin_ia32_rdtsc();
	ns = gm_monotonic_ns() - self.start_ns;
	after = __builtin_ia32_rdtsc();
	if (after - before >= INTERRUPTED_TICKS)
		return ns;
	clock->base_ticks = before + (after - before) / 2;
	clock->base_ns = ns;
	measure(clock, clock->base_ticks, ns);
	if (clock->ns_per_tick)
		clock->valid_ticks =
			(uint32_t)(((uint64_t)VALID_NS << GM_CLOCK_BITS) / clock->ns_per_tick);
	return ns;
}

uint64_t gm_clock_ns_slow(struct gm_clock *clock, uint64_t since)
{
	uint64_t before = -since;
	uint64_t ns = before < clock->valid_ticks ? before * clock->ns_per_tick >> GM_CLOCK_BITS
						  : UINT64_MAX;

	return ns < clock->base_ns ? clock->base_ns - ns : gm_clock_read(clock);
}

#else

static uint64_t started_ns;

void gm_clock_start(uint64_t start_ns)
{
	gm_clock = (struct gm_clock){0};
	started_ns = start_ns;
}

uint64_t gm_clock_read(struct gm_clock *clock)
{
	(void)clock;
	return gm_monotonic_ns() - started_ns;
}

uint64_t gm_clock_ns_slow(struct gm_clock *clock, uint64_t since)
{
	(void)since;
	return gm_clock_read(clock);
}

#endif
