/*
 * What a wrapper asks before all else: whether its call is only to be forwarded. Answered from a few
 * words of memory, for programs launch kernels and wait for them far more often than they allocate,
 * and one that records nothing should not be able to tell that the shim is there.
 */
#ifndef GM_INTERPOSE_PASS_H
#define GM_INTERPOSE_PASS_H

#include "interpose/preload.h"
#include "interpose/signals.h"
#include "track/event.h"

/* Kernels seen (role_cost.c): 256 KiB that only programs which launch touch. */
#define GM_LAUNCH_SLOTS 32768u
extern uint64_t gm_launches[GM_LAUNCH_SLOTS] __attribute__((visibility("hidden")));

/* Number of the first slot where a kernel is looked for. */
static inline uint32_t gm_launch_slot(uint64_t function)
{
	return (uint32_t)(function * 0x9e3779b97f4a7c15ull >> 40) % GM_LAUNCH_SLOTS;
}

/* Deeper than this inside one CUDA call is no nesting but a mark left by a jump that jumps.c could not tell. */
#define GM_MOST_NESTED_BYTES (1u << 20)

/* Roles whose events count wherever they happen: cudart makes contexts inside the first cudaMalloc. */
static inline bool gm_seen_when_nested(unsigned role)
{
	switch (role) {
	case GM_ROLE_CTX_CREATE:
	case GM_ROLE_CTX_RETAIN:
	case GM_ROLE_CTX_RELEASE:
	case GM_ROLE_CTX_DESTROY:
	case GM_ROLE_GREEN_CREATE:
	case GM_ROLE_GREEN_DESTROY:
	case GM_ROLE_GRAPH_INSTANTIATE:
	case GM_ROLE_CAPTURE_BEGIN:
	case GM_ROLE_CAPTURE_END:
	case GM_ROLE_DEVICE_RESET:
	case GM_ROLE_MODULE_LOAD:
	case GM_ROLE_MODULE_UNLOAD:
	case GM_ROLE_MODULE_USE:
	case GM_ROLE_STREAM_CREATE:
	case GM_ROLE_LAUNCH:
	case GM_ROLE_LIMIT:
		return true;
	default:
		return false;
	}
}

/* Stacks grow downwards: what is called from inside lies below. */
static inline bool gm_is_nested(uintptr_t here)
{
	return gm_thread.outermost && here < gm_thread.outermost &&
	       gm_thread.outermost - here < GM_MOST_NESTED_BYTES;
}

/*
 * True for a driver's call of a row with that role (a constant) and key that needs nothing but
 * forwarding: recording is off; what cudart calls for a call of its own that is recorded; a kernel
 * that was launched before; a wait with nothing to wait for.
 */
static inline bool gm_passes(enum gm_role role, uint64_t key)
{
	if (gm_off())
		return true;
	if (role != GM_ROLE_SYNC && !gm_seen_when_nested(role))
		return gm_is_nested((uintptr_t)__builtin_frame_address(0)) && !gm_thread.busy &&
		       !gm_thread.refusing;
	if (role != GM_ROLE_LAUNCH && role != GM_ROLE_SYNC)
		return false;
	if (__atomic_load_n(&gm_signals_waiting, __ATOMIC_RELAXED)) /* served after a call */
		return false;
	if (role == GM_ROLE_SYNC)
		return !gm_track_pools_waiting();
	/* one that lies elsewhere, or was never launched, takes the long way */
	return __atomic_load_n(&gm_launches[gm_launch_slot(key)], __ATOMIC_RELAXED) == key;
}

#endif
