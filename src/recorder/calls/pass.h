/*
 * A wrapper first decides whether it only forwards its call. It reads a few words of memory for
 * that, because programs launch kernels and wait for them far more often than they allocate, and
 * because a program that is not recorded should not notice the shim.
 */
#ifndef GM_RECORDER_PASS_H
#define GM_RECORDER_PASS_H

#include "recorder/calls/code_seen.h"
#include "recorder/calls/roles.h"
#include "recorder/calls/sleep.h"
#include "recorder/process/signals.h"
#include "recorder/state/thread.h"
#include "track/pools.h"
#include "track/work.h"

/* One launch in so many is looked at for the time. */
#define GM_TIMED_LAUNCHES 64u

/*
 * True while the shim sleeps for a call that is recorded even then: contexts, so that what they
 * cost is known on waking, and captures, which are counted from their beginning to their end.
 */
static inline bool gm_counts_asleep(enum gm_role role)
{
	switch (role) {
	case GM_ROLE_CTX_CREATE:
	case GM_ROLE_CTX_RETAIN:
	case GM_ROLE_CTX_RELEASE:
	case GM_ROLE_CTX_DESTROY:
	case GM_ROLE_GREEN_CREATE:
	case GM_ROLE_GREEN_DESTROY:
	case GM_ROLE_DEVICE_RESET:
	case GM_ROLE_CAPTURE_BEGIN:
	case GM_ROLE_CAPTURE_END:
		return __atomic_load_n(&gm_readiness, __ATOMIC_RELAXED) == GM_ASLEEP;
	default:
		return false;
	}
}

/*
 * Returns true for a call of a driver's row with this role (a constant) and key that is only to be
 * forwarded: recording is off, or cudart makes the call as part of one that is recorded, or the
 * kernel was launched before, or no pool has anything to give back after the wait.
 */
static inline __attribute__((always_inline)) bool gm_passes(enum gm_role role, uint64_t key)
{
	if (role != GM_ROLE_SYNC && !gm_role_nests(role) &&
	    gm_is_nested((uintptr_t)__builtin_frame_address(0)) && !gm_thread.busy &&
	    !gm_thread.refusing)
		return true;
	if (gm_off())
		return !gm_counts_asleep(role);
	if (role != GM_ROLE_LAUNCH && role != GM_ROLE_SYNC)
		return false;
	/* Signals that wait are served after a call that is not only forwarded. */
	if (__atomic_load_n(&gm_signals_waiting, __ATOMIC_RELAXED))
		return false;
	if (role == GM_ROLE_SYNC)
		return !gm_track_pools_waiting();
	gm_track_worked();
	if (__builtin_expect(!(++gm_thread.launches % GM_TIMED_LAUNCHES), 0))
		return false; /* the slow path looks whether the ledger is to be sampled */
	/* a kernel that lies in another slot, or was never launched, takes the slow path */
	return gm_launch_is_known(key);
}

#endif
