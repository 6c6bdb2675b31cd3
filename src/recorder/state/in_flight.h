/*
 * Calls in flight: calls that may change what a device holds and that have begun and not ended.
 * Each thread counts its own without a locked instruction, because programs make such calls most
 * often, while the sum is wanted only where the cost of another call is measured
 * (calls/role_cost.c).
 */
#ifndef GM_RECORDER_IN_FLIGHT_H
#define GM_RECORDER_IN_FLIGHT_H

#include "recorder/state/thread.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * A thread has these counters. At most one call is in flight, and `begun` is then one more than
 * `ended`.
 */
struct gm_in_flight {
	uint64_t begun, ended; /* calls so far (atomic, written by the owner alone) */
	uint32_t owner;	       /* thread id of the owner, 0: the counters are free (atomic) */
} __attribute__((aligned(64)));

/* The functions for a thread without counters of its own, which do as the functions below. */
void gm_in_flight_begin_shared(void);
void gm_in_flight_end_shared(void);

/*
 * A call of the calling thread begins. An earlier call that was left by a jump, and so never ended,
 * does not count twice.
 */
static inline void gm_in_flight_begin(void)
{
	struct gm_in_flight *own = gm_thread.in_flight;

	if (__builtin_expect(!own, 0)) {
		gm_in_flight_begin_shared();
		return;
	}
	__atomic_store_n(&own->begun, own->ended + 1, __ATOMIC_RELAXED);
	/* The count becomes visible before anything that the call does. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

/* The call has ended and is recorded. Does nothing if no call is in flight. Async-signal-safe. */
static inline void gm_in_flight_end(void)
{
	struct gm_in_flight *own = gm_thread.in_flight;

	if (__builtin_expect(!own, 0))
		gm_in_flight_end_shared();
	else
		__atomic_store_n(&own->ended, own->begun, __ATOMIC_RELEASE);
}

/*
 * Returns true when no other thread has a call in flight, and stores in *begun how many calls have
 * begun so far. If two calls of this function return true with the same count, no other thread
 * changed what a device holds between them. Takes no lock.
 */
bool gm_in_flight_none(uint64_t *begun);

/*
 * Drops the counters of the parent's other threads, whose calls will not end here. For the child of
 * a fork: at once where the fork is seen, and else before the child opens its file.
 */
void gm_in_flight_forget(void);

#endif
