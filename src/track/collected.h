/*
 * Frees by CPython's garbage collector: memory that only reference cycles kept. For track/, under
 * the lock.
 */
#ifndef GM_TRACK_COLLECTED_H
#define GM_TRACK_COLLECTED_H

#include "account/counters.h"
#include "stack/python.h"

/*
 * The slow path of gm_count_if_collected. It takes a copy, member by member, so that the caller's
 * counters need not lie in memory.
 */
void gm_count_collection(struct gm_counters in, const struct gm_alloc_record *alloc);

/*
 * Counts a free in the records `in` of its allocation if the calling thread's interpreter is
 * collecting. To be called at each free, before the record is emptied.
 */
static inline void gm_count_if_collected(const struct gm_counters *in,
					 const struct gm_alloc_record *alloc)
{
	if (__atomic_load_n(&gm_python_present, __ATOMIC_RELAXED) &&
	    __builtin_expect(gm_python_collecting(), 0))
		gm_count_collection((struct gm_counters){in->site, in->level, in->usage,
							 in->in_level, in->extra},
				    alloc);
}

#endif
