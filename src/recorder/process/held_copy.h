/*
 * GPUMEMTRACE_HOLDERS: what keeps memory alive at one moment of the run. A copy of the process is
 * made with the system call clone, so that the program goes on at once; gpumem-report looks for the
 * holders in the copy and writes them beside the output file, as OUT.holders<n>.
 */
#ifndef GM_RECORDER_HELD_COPY_H
#define GM_RECORDER_HELD_COPY_H

#include "recorder/state/settings.h"

/*
 * Makes a copy if the settings ask for one at this moment, at most eight in a process and one at a
 * time. No lock of the tracker's may be held. Safe in signal handlers; it returns before anything
 * is looked at.
 */
void gm_copy_for_holders(enum gm_holders_moment moment);

/* Makes the copy if it is due at this moment; as a rule nothing is to be done. */
static inline void gm_holders_moment(enum gm_holders_moment moment)
{
	if (__builtin_expect(gm_settings.holders >> moment & 1, 0))
		gm_copy_for_holders(moment);
}

#endif
