/*
 * The guard around the recorder's own work in a thread. A signal handler of the program may
 * interrupt a thread at work in the recorder and call CUDA. Such a call is let through unrecorded,
 * because the handler came between two steps of an update.
 */
#ifndef GM_RECORDER_THREAD_H
#define GM_RECORDER_THREAD_H

#include "store/thread_state.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * One stretch of work in so many is timed, for the report's figure of the overhead. The number is
 * odd: an allocation and its free are two stretches, and both are to be timed.
 */
#define GM_TIMED 63
_Static_assert(GM_TIMED % 2 == 1, "allocations and frees take turns");

/* Returns how many kernels and graphs the thread launched since it last allocated. */
static inline uint32_t gm_launches_since(void)
{
	return gm_thread.launches - gm_thread.launches_before;
}

/* Begin and end the timing of a stretch of work. The functions below call them. */
void gm_time_begin(void);
void gm_time_end(void);

/* Begins a stretch of work on a thread that is known not to be at work. */
static inline void gm_begin_work(void)
{
	gm_thread.busy = 1;
	if (__builtin_expect(++gm_thread.works == GM_TIMED, 0))
		gm_time_begin();
}

/*
 * Begins a stretch of work. Returns false if the thread is at work already, which means that the
 * caller runs in a signal handler: it must then record nothing. Async-signal-safe.
 */
static inline bool gm_enter_tracker(void)
{
	if (gm_thread.busy)
		return false;
	gm_begin_work();
	return true;
}

static inline void gm_leave_tracker(void)
{
	if (__builtin_expect(gm_thread.started_ns != 0, 0))
		gm_time_end();
	gm_thread.busy = 0;
}

/*
 * A call that lies further below the outermost one on the stack is not nested in it: the mark of
 * the outermost call was then left behind by a jump that interpose/jumps.c could not recognise.
 */
#define GM_MOST_NESTED_BYTES (1u << 20)

/*
 * True if the thread's outermost call is on another stack than `here`: a signal handler with a
 * stack of its own interrupted it, and it goes on afterwards.
 */
static inline bool gm_is_interrupted(uintptr_t here)
{
	uintptr_t call = gm_thread.outermost;

	return call && (call > here ? call - here : here - call) >= GM_MOST_NESTED_BYTES;
}

/* True for a stack address inside the thread's outermost call. Stacks grow downwards. */
static inline bool gm_is_nested(uintptr_t here)
{
	return gm_thread.outermost && here < gm_thread.outermost &&
	       gm_thread.outermost - here < GM_MOST_NESTED_BYTES;
}

#endif
