/*
 * The steps of the accounting that only a reader takes (counters.h). Calls nothing.
 */
#include "account/counters.h"

void gm_count_shift(const struct gm_counters *in, uint64_t bytes, int live, int allocated,
		    int freed)
{
	uint64_t live_count = (uint64_t)live, allocations = (uint64_t)allocated,
		 frees = (uint64_t)freed;

	if (in->site) {
		uint64_t copies = gm_copies(in->extra);

		in->site->live_bytes += live_count * bytes * copies;
		in->site->live_count += live_count * copies;
		in->site->allocated_bytes += allocations * bytes * copies;
		in->site->allocations += allocations * copies;
		in->site->freed_bytes += frees * bytes * copies;
		in->site->frees += frees * copies;
	}
	if (in->usage) {
		in->usage->current_bytes += live_count * bytes;
		in->usage->current_count += live_count;
		in->usage->allocated_bytes += allocations * bytes;
		in->usage->allocations += allocations;
		in->usage->freed_bytes += frees * bytes;
		in->usage->frees += frees;
	}
	if (in->level && in->in_level) {
		in->level->current_bytes += live_count * bytes;
		in->level->current_count += live_count;
		in->level->allocated_bytes += allocations * bytes;
		in->level->allocations += allocations;
		in->level->freed_bytes += frees * bytes;
		in->level->frees += frees;
	}
}

void gm_uncount_failure(const struct gm_counters *in)
{
	if (in->site)
		in->site->failures--;
	if (in->usage)
		in->usage->failures--;
	if (in->level)
		in->level->failures--;
}
