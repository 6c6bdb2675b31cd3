/*
 * The state that the shim keeps of a thread. It is one variable, because every event reads some of
 * it: the address of each variable of a thread lies in a cache line of the table of global offsets,
 * and the variable in another. What events of all kinds use is the first line.
 */
#ifndef GM_STORE_THREAD_STATE_H
#define GM_STORE_THREAD_STATE_H

#include "store/hot.h"

#include <stddef.h>
#include <stdint.h>

struct gm_in_flight;

/* The place of the next sampled allocation of a thread, or of a device (sampler.h). */
struct gm_sample_points {
	int64_t left;	/* bytes up to the next point */
	uint64_t state; /* of the points' random numbers */
	uint32_t start; /* that the points are of; 0: there are none yet */
};

struct gm_thread {
	uint32_t works; /* stretches of work since the last timed one (recorder/state/thread.h) */
	uint32_t launches;   /* so far, modulo 2^32 */
	uint64_t started_ns; /* start of the stretch under way if that is timed, else 0 */
	uint32_t id;	     /* as gettid gives it; 0: not asked yet (track/thread_id.h) */
	uint8_t busy;	     /* the thread is at work in the recorder */
	uint8_t refusing;    /* the call under way is to be refused by the driver's wrapper */
	uint8_t shares; /* all counters of in_flight.h are taken: the thread uses the shared ones */
	uintptr_t stack_low, stack_end; /* its own stack as far as that is known (thread_stack.h) */
	const uint32_t *range; /* the number of the innermost range plus 1 (named_ranges.h), or NULL
				*/
	uintptr_t outermost;   /* stack address of the outermost call under way, 0: none */
	struct gm_in_flight *in_flight; /* the thread's own counters (in_flight.h), NULL: none */

	uintptr_t interrupted; /* the outermost call whose thread runs a signal handler on another
				  stack, which is in a call of its own; 0: none */
	uint32_t launches_before;	/* the thread's latest allocation that was recorded */
	uintptr_t other_low, other_end; /* bounds of another stack (thread_stack.h) */
	struct gm_sample_points points;
	uint8_t in_shared; /* a call of this thread is counted in the shared counters */
} __attribute__((aligned(64)));

_Static_assert(offsetof(struct gm_thread, interrupted) == 64, "one line of what all events use");

extern GM_HIDDEN __thread struct gm_thread gm_thread __attribute__((tls_model("initial-exec")));

#endif
