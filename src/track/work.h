/*
 * The end of the work (layout.h): what a program frees after its last allocation, launch or refused
 * allocation belongs to its end, whether destructors free it, the interpreter's teardown or an
 * exception that nothing catches.
 */
#ifndef GM_TRACK_WORK_H
#define GM_TRACK_WORK_H

#include "store/writer.h"

#include <stdbool.h>

/*
 * The program works: what was freed so far is not part of its end. To be called for work that no
 * record shows: a kernel's or a graph's launch, an allocation that was refused; an allocation that
 * is recorded shows it by itself. Any thread, any context, with the tracker's lock or without it.
 * Does nothing before a file is open.
 */
static inline void gm_track_worked(void)
{
	if (gm_file && !__atomic_load_n(&gm_file->worked, __ATOMIC_RELAXED))
		__atomic_store_n(&gm_file->worked, 1, __ATOMIC_RELAXED);
}

/*
 * The calling thread has launched `count` kernels and graphs since it last allocated. As
 * gm_track_worked.
 */
static inline void gm_track_launched(uint32_t count)
{
	if (gm_file && __atomic_load_n(&gm_file->launched, __ATOMIC_RELAXED) < count)
		__atomic_store_n(&gm_file->launched, count, __ATOMIC_RELAXED);
}

#endif
