/*
 * Sleep: the shim forwards every call and keeps nothing but the contexts, until gpumem-report asks
 * it to record. The tool writes `wanted` in the header of the mapped file, and the next call reads
 * it: no signal, no ptrace, no thread.
 *
 * Falling asleep leaves the tables as they are, so that the file tells of the period that has
 * ended. Waking empties them (track/period.h), because what was freed meanwhile is not known.
 */
#ifndef GM_RECORDER_SLEEP_H
#define GM_RECORDER_SLEEP_H

#include "recorder/process/start.h"
#include "store/writer.h"

/*
 * The slow path of gm_off: false where the shim was asleep and this call has woken it. Opens the
 * file of a process that is asleep, so that the tool finds it.
 */
bool gm_stays_off(void);

/*
 * True when the call is only to be forwarded: recording is off, or asleep and nobody wants it
 * otherwise. False where the environment is yet to be read. It costs one load while awake.
 */
static inline bool gm_off(void)
{
	return __builtin_expect(__atomic_load_n(&gm_readiness, __ATOMIC_RELAXED) >= GM_OFF, 0) &&
	       gm_stays_off();
}

/*
 * True when gm_off would be, but wakes nothing: for hooks that run under a lock of the program's.
 */
static inline bool gm_idle(void)
{
	return __builtin_expect(__atomic_load_n(&gm_readiness, __ATOMIC_RELAXED) >= GM_OFF, 0);
}

/* Nothing more is recorded, but for calls that have begun. Any context. A file is open. */
void gm_fall_asleep(void);

/*
 * The program asks for recording or sleep itself. Returns 0, or -ENOSYS where nothing is to be
 * recorded in this process. Any thread.
 */
int gm_want(enum gm_wanted wanted);

/* Falls asleep if the tool asked for it. For the end of each event. A file is open. */
static inline void gm_sleep_if_asked(void)
{
	if (__builtin_expect(__atomic_load_n(&gm_file->wanted, __ATOMIC_RELAXED) == GM_WANT_SLEEP,
			     0))
		gm_fall_asleep();
}

#endif
