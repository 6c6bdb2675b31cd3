/*
 * See recount.h. Calls nothing.
 */
#include "account/recount.h"
#include "account/sizes.h"

void gm_recount_begin(const struct gm_counters *in)
{
	if (in->site)
		in->site->live_bytes = in->site->live_count = in->site->stray_bytes =
			in->site->stray_count = 0;
	if (in->usage)
		in->usage->current_bytes = in->usage->current_count = 0;
	if (in->level)
		in->level->current_bytes = in->level->current_count = 0;
}

void gm_recount_add(const struct gm_counters *in, const struct gm_alloc_record *alloc)
{
	gm_count_shift(in, alloc->bytes, 1, 0, 0);
	if (in->site && alloc->flags & GM_ALLOC_BEFORE_MARK)
		gm_site_add_stray(&in->site->figures, alloc->bytes, gm_copies(alloc->extra));
}

/*
 * Makes a total of additions less a total of removals equal the live amount. Totals only rise:
 * where more is live than they say, an allocation was not counted yet, where less is, a free. So
 * parts and wholes, each of which may or may not have counted the update that was cut short, are
 * equal afterwards.
 */
static void fit(uint64_t live, uint64_t *in, uint64_t *out)
{
	if (*in < *out + live)
		*in = *out + live;
	else
		*out = *in - live;
}

static void raise(uint64_t *peak, uint64_t now)
{
	if (*peak < now)
		*peak = now;
}

void gm_recount_end(const struct gm_counters *in)
{
	if (in->site) {
		fit(in->site->live_bytes, &in->site->allocated_bytes, &in->site->freed_bytes);
		fit(in->site->live_count, &in->site->allocations, &in->site->frees);
		raise(&in->site->peak_bytes, in->site->live_bytes);
		raise(&in->site->last_ns, in->site->first_ns);
		gm_site_note_window(in->site);
	}
	if (in->usage) {
		fit(in->usage->current_bytes, &in->usage->allocated_bytes, &in->usage->freed_bytes);
		fit(in->usage->current_count, &in->usage->allocations, &in->usage->frees);
		raise(&in->usage->peak_bytes, in->usage->current_bytes);
	}
	if (in->level) {
		fit(in->level->current_bytes, &in->level->allocated_bytes, &in->level->freed_bytes);
		fit(in->level->current_count, &in->level->allocations, &in->level->frees);
		if (in->level->current_bytes > in->level->peak_bytes)
			gm_level_raise_peak(in->level, in->level->peak_at_ns);
	}
}

void gm_torch_recount(struct gm_torch_record *record, uint64_t reserved_bytes)
{
	record->reserved_bytes = reserved_bytes;
	fit(reserved_bytes, &record->reserved_total_bytes, &record->released_total_bytes);
	gm_torch_raise_peaks(record);
}

void gm_vmm_recount_begin(struct gm_vmm_record *vmm)
{
	vmm->created_bytes = vmm->mapped_bytes = vmm->reserved_va_bytes = vmm->handles = 0;
}

void gm_physical_sum_add(struct gm_physical_sum *sum, const struct gm_alloc_record *alloc)
{
	if (alloc->level != GM_LEVEL_DRIVER || !gm_kind_owned(alloc->kind) || gm_in_pool(alloc))
		return;
	if (!gm_in_slab(alloc)) {
		sum->bytes += alloc->physical_bytes;
	} else if (alloc->key >= sum->slab_end) {
		sum->bytes += GM_SLAB_BYTES;
		sum->slab_end = gm_slab_of(alloc->key) + GM_SLAB_BYTES;
	}
}
