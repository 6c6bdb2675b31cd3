/*
 * The clock of events: CLOCK_MONOTONIC, which the processor's time stamp counter carries on for a
 * millisecond at a time, because recording a block costs little more than reading the clock. Under
 * the tracker's lock.
 *
 * The counter is used only where Linux itself takes the time from it (clock.c), so that the
 * counters of all processors agree. Its rate is measured against CLOCK_MONOTONIC again and again.
 * The two differ by a few hundredths of a microsecond at most.
 */
#ifndef GM_TRACK_CLOCK_H
#define GM_TRACK_CLOCK_H

#include "store/hot.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define GM_CLOCK_BITS                                                                              \
	28 /* the fraction's bits of ns_per_tick; a counter runs faster than 1/16 GHz */

/*
 * The last reading of CLOCK_MONOTONIC, and the counter's rate. A zero-initialised clock reads
 * CLOCK_MONOTONIC each time.
 */
struct gm_clock {
	uint64_t base_ticks, base_ns; /* the counter and the time at that reading */
	uint32_t valid_ticks; /* for so many ticks the rate gives the time; 0: it is not known */
	uint32_t ns_per_tick; /* << GM_CLOCK_BITS */
};

extern GM_HIDDEN struct gm_clock gm_clock; /* the clock of events */

/* True if the counter may be read and agrees with CLOCK_MONOTONIC. */
extern GM_HIDDEN bool gm_clock_counts;

/*
 * Has the C library's own clock_gettime read the clock. The name leads to a preload's
 * (libfaketime), which gives another time, and which may not be called any more once the
 * destructors of that library have run. NULL changes nothing. Called once; single thread.
 */
void gm_clock_source(int (*own)(clockid_t, struct timespec *));

/* Returns CLOCK_MONOTONIC in nanoseconds. Safe in signal handlers. */
uint64_t gm_monotonic_ns(void);

/* Sets time 0 of the clock, on CLOCK_MONOTONIC, and decides whether the counter may be used. */
void gm_clock_start(uint64_t start_ns);

/* Reads CLOCK_MONOTONIC, from where the counter goes on, and returns the time. */
uint64_t gm_clock_read(struct gm_clock *clock);

/*
 * The slow path of gm_clock_ns_at: the counter was read `since` ticks after the last reading of
 * CLOCK_MONOTONIC, which is too long ago, or shortly before it (modulo 2^64). In the second case it
 * returns the time before that reading. If it read CLOCK_MONOTONIC instead, the calls of several
 * threads that overlap would each do so, because each reading makes the next call one that began
 * before it.
 */
uint64_t gm_clock_ns_slow(struct gm_clock *clock, uint64_t since);

/*
 * Returns the counter for gm_clock_ns_at; 0 if it is not to be read. Reading it waits for the
 * instructions that the processor has under way, so it is best done at the start of a call. Any
 * thread, without the lock.
 */
static inline uint64_t gm_clock_ticks(void)
{
#ifdef __x86_64__
	if (__builtin_expect(gm_clock_counts, 1))
		return __builtin_ia32_rdtsc();
#endif
	return 0;
}

/*
 * Returns the nanoseconds from time 0 to the moment at which the counter was `ticks`; to now if
 * that was over a millisecond after CLOCK_MONOTONIC was last read, or if the counter was not read.
 * A time may lie a little before the one that was returned last.
 */
static inline uint64_t gm_clock_ns_at(struct gm_clock *clock, uint64_t ticks)
{
	ticks -= clock->base_ticks;
	if (__builtin_expect(ticks < clock->valid_ticks, 1))
		return clock->base_ns + (ticks * clock->ns_per_tick >> GM_CLOCK_BITS);
	return gm_clock_ns_slow(clock, ticks);
}

/*
 * Returns the counter's value `ns` from now; one of the past if it is not read or its rate is not
 * known.
 */
static inline uint64_t gm_clock_ticks_in(const struct gm_clock *clock, uint64_t ns)
{
	if (!clock->valid_ticks)
		return 0;
	return gm_clock_ticks() + (ns << GM_CLOCK_BITS) / clock->ns_per_tick;
}

static inline uint64_t gm_clock_ns(struct gm_clock *clock)
{
	return gm_clock_ns_at(clock, gm_clock_ticks());
}

#endif
