/*
 * Frees that CPython's garbage collector makes (collected.h).
 */
#include "track/collected.h"

#include "store/hot.h"

/*
 * An interpreter that ends collects what its modules held, whether in cycles or not, and tells
 * nothing of garbage by that. But where the program had switched the collector off, cycles may be
 * why the memory was there to the end.
 */
GM_COLD void gm_collected(const struct gm_counters *in, const struct gm_alloc_record *alloc)
{
	if (!gm_python_ending())
		gm_count_collected(in, alloc->bytes, alloc->time_ns);
	else if (in->site && gm_python_collector_off())
		in->site->flags |= GM_SITE_COLLECTOR_OFF;
}
