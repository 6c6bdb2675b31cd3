/*
 * Frees by CPython's garbage collector.
 */
#include "track/collected.h"

#include "store/hot.h"

/*
 * An interpreter that ends collects what its modules held, whether in cycles or not, so that this
 * says nothing of garbage. But if the program had switched the collector off, cycles may be the
 * reason why the memory was live to the end.
 */
GM_COLD void gm_count_collection(struct gm_counters in, const struct gm_alloc_record *alloc)
{
	if (!gm_python_ending())
		gm_count_collected(&in, alloc->bytes, alloc->time_ns);
	else if (in.site && gm_python_collector_off())
		in.site->flags |= GM_SITE_COLLECTOR_OFF;
}
