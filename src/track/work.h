/*
 * The end of the work (store/layout.h): what a program frees after its last allocation, launch or
 * refused allocation belongs to its end, whether destructors free it, the interpreter's teardown or
 * an exception that nobody catches.
 */
#ifndef GM_TRACK_WORK_H
#define GM_TRACK_WORK_H

#include "store/writer.h"

/*
 * The program works: frees so far are not part of its end. For work that no record tells of: a
 * kernel's or a graph's launch, an allocation that was refused. Allocations that are recorded tell
 * of it themselves. Any thread, any context, with the tracker's lock or without it; before the file
 * is open it does nothing.
 */
static inline void gm_track_worked(void)
{
	if (gm_file && !__atomic_load_n(&gm_file->worked, __ATOMIC_RELAXED))
		__atomic_store_n(&gm_file->worked, 1, __ATOMIC_RELAXED);
}

#endif
