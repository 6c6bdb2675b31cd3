/*
 * The clock of events: CLOCK_MONOTONIC, carried on by the processor's time stamp counter for a millisecond
 * at a time, for a PyTorch block's event costs little more than a look at the clock. Under the tracker's lock.
 *
 * Only where Linux itself takes the time from that counter (clock.c), so that all processors' agree; its
 * rate is measured against CLOCK_MONOTONIC over and over. Off by a few hundredths of a microsecond at most.
 */
#ifndef GM_TRACK_CLOCK_H
#define GM_TRACK_CLOCK_H

#include <stdint.h>

#define GM_CLOCK_BITS 28 /* of the fraction of ns_per_tick: a counter runs faster than 1/16 GHz */

/* Zero-initialised: every reading asks the system. */
struct gm_clock {
	uint64_t base_ticks, base_ns;
	uint32_t most_ticks;  /* past base_ticks that are told by ns_per_tick; 0: none */
	uint32_t ns_per_tick; /* << GM_CLOCK_BITS */
};

/* CLOCK_MONOTONIC in nanoseconds. Any context. */
uint64_t gm_monotonic_ns(void);

/* Time 0 of the clock, on CLOCK_MONOTONIC; decides whether the counter may be used. */
void gm_clock_start(uint64_t start_ns);

/* Asks the system, and lets the counter go on from there. */
uint64_t gm_clock_ask(struct gm_clock *clock);

/* Nanoseconds since time 0; a reading may lie a little before the last. */
static inline uint64_t gm_clock_ns(struct gm_clock *clock)
{
#ifdef __x86_64__
	uint64_t ticks = __builtin_ia32_rdtsc() - clock->base_ticks;

	if (__builtin_expect(ticks < clock->most_ticks, 1))
		return clock->base_ns + (ticks * clock->ns_per_tick >> GM_CLOCK_BITS);
#endif
	return gm_clock_ask(clock);
}

#endif
