/*
 * Frees that CPython's garbage collector makes: memory that only reference cycles kept. Private to
 * track/, under the lock.
 */
#ifndef GM_TRACK_COLLECTED_H
#define GM_TRACK_COLLECTED_H

#include "account/counters.h"
#include "stack/python.h"

/* Counts that the collector frees `alloc`, whose records are `in`. */
void gm_collected(const struct gm_counters *in, const struct gm_alloc_record *alloc);

/* The same if the calling thread's interpreter collects now. At each free, before the record is
 * emptied. */
static inline void gm_note_collected(const struct gm_counters *in,
				     const struct gm_alloc_record *alloc)
{
	if (__builtin_expect(gm_python_collecting(), 0))
		gm_collected(in, alloc);
}

#endif
