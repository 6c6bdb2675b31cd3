/*
 * The clock of events: CLOCK_MONOTONIC, carried on by the processor's time stamp counter for a millisecond
 * at a time, for a PyTorch block's event costs little more than a look at the clock. Under the tracker's lock.
 *
 * Only where Linux itself takes the time from that counter (clock.c), so that all processors' agree; its
 * rate is measured against CLOCK_MONOTONIC over and over. Off by a few hundredths of a microsecond at most.
 */
#ifndef GM_TRACK_CLOCK_H
#define GM_TRACK_CLOCK_H

#include "store/hot.h"

#include <stdbool.h>
#include <stdint.h>

#define GM_CLOCK_BITS 28 /* of the fraction of ns_per_tick: a counter runs faster than 1/16 GHz */

/* Zero-initialised: every reading asks the system. */
struct gm_clock {
	uint64_t base_ticks, base_ns;
	uint32_t most_ticks;  /* past base_ticks that are told by ns_per_tick; 0: none */
	uint32_t ns_per_tick; /* << GM_CLOCK_BITS */
};

extern GM_HIDDEN struct gm_clock gm_clock; /* that of events */
extern GM_HIDDEN bool gm_clock_counts;	   /* the counter may be read, and agrees with the system's clock */

/* CLOCK_MONOTONIC in nanoseconds. Any context. */
uint64_t gm_monotonic_ns(void);

/* Time 0 of the clock, on CLOCK_MONOTONIC; decides whether the counter may be used. */
void gm_clock_start(uint64_t start_ns);

/* Asks the system, and lets the counter go on from there. */
uint64_t gm_clock_ask(struct gm_clock *clock);

/*
 * gm_clock_ns_at of what the counter does not carry on to, `since` ticks from where it does: of what began
 * shortly before the system was asked, the time before that. (Else of several threads whose calls overlap
 * each would ask it, and so make the next one's be begun before.)
 */
uint64_t gm_clock_ns_beyond(struct gm_clock *clock, uint64_t since);

/*
 * The counter, which gm_clock_ns_at makes a time of; 0 where it is not to be read. Reading it waits for what
 * the processor has under way, so that it is best read where we begin. Any thread, no lock.
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
 * Nanoseconds from time 0 to when the counter was read, or to now where that was over a millisecond from when the
 * system was asked last, or not done at all; a time may lie a little before the last.
 */
static inline uint64_t gm_clock_ns_at(struct gm_clock *clock, uint64_t ticks)
{
	ticks -= clock->base_ticks;
	if (__builtin_expect(ticks < clock->most_ticks, 1))
		return clock->base_ns + (ticks * clock->ns_per_tick >> GM_CLOCK_BITS);
	return gm_clock_ns_beyond(clock, ticks);
}

static inline uint64_t gm_clock_ns(struct gm_clock *clock)
{
	return gm_clock_ns_at(clock, gm_clock_ticks());
}

#endif
