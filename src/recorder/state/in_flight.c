/*
 * This file assigns counters to threads and sums them up (in_flight.h).
 *
 * Plain stores are enough because only an order has to be visible: a thread that sees what a call
 * did to the device also sees that the call had begun, and a thread that sees that the call ended
 * also sees what was recorded of it. A call that is not yet seen to have begun has not done
 * anything yet that could be seen either.
 */
#include "recorder/state/in_flight.h"
#include "store/hot.h"
#include "track/thread_id.h"

#include <unistd.h>

#define OWN_COUNTERS 64u /* the threads beyond these share one pair, by locked instructions */

static struct gm_in_flight counters[OWN_COUNTERS];
static struct gm_in_flight shared;
static int forgotten_in; /* pid of the child of a fork that dropped its parent's counters */

/*
 * Returns free counters, or those of an ended thread that had the calling thread's id. Returns NULL
 * if all are taken.
 */
static struct gm_in_flight *acquire_counters(void)
{
	uint32_t tid = gm_calling_thread(), owner;
	unsigned i;

	for (i = 0; i < OWN_COUNTERS; i++) {
		owner = __atomic_load_n(&counters[i].owner, __ATOMIC_RELAXED);
		if (owner == tid ||
		    (!owner && __atomic_compare_exchange_n(&counters[i].owner, &owner, tid, false,
							   __ATOMIC_RELAXED, __ATOMIC_RELAXED)))
			return &counters[i];
	}
	return NULL;
}

GM_COLD void gm_in_flight_begin_shared(void)
{
	if (!gm_thread.shares) {
		gm_thread.in_flight = acquire_counters();
		gm_thread.shares = !gm_thread.in_flight;
	}
	if (gm_thread.in_flight) {
		gm_in_flight_begin();
	} else if (!gm_thread.in_shared) { /* else a jump left the last call */
		gm_thread.in_shared = 1;
		__atomic_fetch_add(&shared.begun, 1, __ATOMIC_SEQ_CST);
	}
}

GM_COLD void gm_in_flight_end_shared(void)
{
	if (!gm_thread.in_shared)
		return;
	gm_thread.in_shared = 0;
	__atomic_fetch_add(&shared.ended, 1, __ATOMIC_SEQ_CST);
}

bool gm_in_flight_none(uint64_t *begun)
{
	const struct gm_in_flight *own = gm_thread.in_flight;
	uint64_t mine = own ? own->begun - own->ended : gm_thread.in_shared;
	uint64_t ended = __atomic_load_n(&shared.ended, __ATOMIC_ACQUIRE);
	unsigned i;

	/* The ends are read first: a call that begins meanwhile makes the two sums differ. */
	for (i = 0; i < OWN_COUNTERS; i++)
		ended += __atomic_load_n(&counters[i].ended, __ATOMIC_ACQUIRE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*begun = __atomic_load_n(&shared.begun, __ATOMIC_ACQUIRE);
	for (i = 0; i < OWN_COUNTERS; i++)
		*begun += __atomic_load_n(&counters[i].begun, __ATOMIC_ACQUIRE);
	return *begun == ended + mine;
}

void gm_in_flight_forget(void)
{
	struct gm_in_flight *own = gm_thread.in_flight;
	unsigned i;

	if (forgotten_in == getpid())
		return;
	for (i = 0; i < OWN_COUNTERS; i++)
		if (&counters[i] != own)
			counters[i] = (struct gm_in_flight){.owner = 0};
	if (own) /* after a raw clone gm_calling_thread still returns the parent's id */
		own->owner = gm_ask_thread_id();
	shared = (struct gm_in_flight){.begun = gm_thread.in_shared};
	forgotten_in = getpid();
}
