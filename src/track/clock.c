/*
 * When the time stamp counter stands in for the system's clock (clock.h), and at which rate.
 */
#include "track/clock.h"
#include "store/descriptor.h"

#include <time.h>

#ifdef __x86_64__
#include <cpuid.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#endif

GM_HOT_COUNTERS struct gm_clock gm_clock;
GM_HOT bool gm_clock_counts;

uint64_t gm_monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#ifdef __x86_64__

#define TOGETHER_TICKS 1000u /* two readings that are further apart were interrupted */
#define LEAST_NS       10000000u /* to measure the rate over: 50 ns in them are 5 in a millisecond */
#define ENOUGH_NS      1000000000u /* the rate follows what disciplines the clock */
#define MOST_NS	       30000000000u /* of them the sum below has room for twice as many */
#define CARRIED_NS     1000000u

static struct {
	uint64_t start_ns;
	uint64_t ticks, ns; /* where the rate is measured from; 0: not yet */
} self;

/* The counter runs at one rate whatever the processor does. */
static int invariant(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && d & 1u << 8;
}

/* Linux found all processors' counters to agree, or it would use another source. */
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

/* A program may have its threads killed for reading it. */
static int allowed(void)
{
	int mode = 0;

	return prctl(PR_GET_TSC, &mode) == 0 && mode == PR_TSC_ENABLE;
}

void gm_clock_start(uint64_t start_ns)
{
	self.start_ns = start_ns;
	gm_clock = (struct gm_clock){0};
	gm_clock_counts = invariant() && is_clocksource() && allowed();
	self.ticks = self.ns = 0;
}

static void measure_from(uint64_t ticks, uint64_t ns)
{
	self.ticks = ticks;
	self.ns = ns;
}

/* Nothing but a machine that was suspended or moved changes the rate by a thousandth. */
static int plausible(uint64_t rate, uint64_t before)
{
	uint64_t change = rate > before ? rate - before : before - rate;

	return rate < UINT32_MAX && (!before || change < before / 1024);
}

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
	clock->ns_per_tick = plausible(rate, clock->ns_per_tick) ? (uint32_t)rate : 0;
	if (past_ns > ENOUGH_NS || !clock->ns_per_tick)
		measure_from(ticks, ns);
}

uint64_t gm_clock_ask(struct gm_clock *clock)
{
	uint64_t before, after, ns;

	clock->most_ticks = 0;
	if (!gm_clock_counts)
		return gm_monotonic_ns() - self.start_ns;
	before = __builtin_ia32_rdtsc();
	ns = gm_monotonic_ns() - self.start_ns;
	after = __builtin_ia32_rdtsc();
	if (after - before >= TOGETHER_TICKS)
		return ns;
	clock->base_ticks = before + (after - before) / 2;
	clock->base_ns = ns;
	measure(clock, clock->base_ticks, ns);
	if (clock->ns_per_tick)
		clock->most_ticks = (uint32_t)(((uint64_t)CARRIED_NS << GM_CLOCK_BITS) / clock->ns_per_tick);
	return ns;
}

uint64_t gm_clock_ns_beyond(struct gm_clock *clock, uint64_t since)
{
	uint64_t before = -since;
	uint64_t ns = before < clock->most_ticks ? before * clock->ns_per_tick >> GM_CLOCK_BITS : UINT64_MAX;

	return ns < clock->base_ns ? clock->base_ns - ns : gm_clock_ask(clock);
}

#else

static uint64_t started_ns;

void gm_clock_start(uint64_t start_ns)
{
	gm_clock = (struct gm_clock){0};
	started_ns = start_ns;
}

uint64_t gm_clock_ask(struct gm_clock *clock)
{
	(void)clock;
	return gm_monotonic_ns() - started_ns;
}

uint64_t gm_clock_ns_beyond(struct gm_clock *clock, uint64_t since)
{
	(void)since;
	return gm_clock_ask(clock);
}

#endif
