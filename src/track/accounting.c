/*
 * The accounting of an allocation.
 */
#include "track/accounting.h"
#include "track/collected.h"
#include "track/levels.h"
#include "track/pools.h"
#include "track/slabs.h"
#include "track/timeline.h"
#include "track/windows.h"

static struct gm_counters counters_of(int device, unsigned level, unsigned kind,
				      struct gm_site_record *site, int32_t extra)
{
	return (struct gm_counters){
		.site = site,
		.extra = extra,
		.level = gm_level_of(device, level),
		.usage = gm_in_usage(level, kind) ? gm_usage_of(device, kind) : NULL,
		.in_level = gm_in_level(level, kind),
	};
}

/* The level's total changed, and with it by `physical_change` what the driver holds. */
static void note_level(const struct gm_alloc_record *alloc, struct gm_level_record *level,
		       int64_t physical_change)
{
	if (alloc->level == GM_LEVEL_DRIVER)
		gm_add_physical_bytes(alloc->device, physical_change);
	gm_timeline_set(alloc->device, gm_level_series(alloc->level, alloc->device),
			level->current_bytes);
}

void gm_account_alloc(const struct gm_alloc_record *alloc, struct gm_site_record *site)
{
	const struct gm_counters in = counters_of(alloc->device, alloc->level, alloc->kind, site,
						  alloc->extra);

	if (site)
		gm_site_catch_up(site);
	gm_count_alloc(&in, alloc->bytes, alloc->serial, gm_track.now_ns);
	if (in.level && in.in_level)
		note_level(alloc, in.level, gm_physical_add(alloc));
	if (gm_kind_in_pool(alloc->kind))
		gm_pool_add(alloc);
}

void gm_account_free(const struct gm_alloc_record *alloc, struct gm_site_record *site)
{
	const struct gm_counters in = counters_of(alloc->device, alloc->level, alloc->kind, site,
						  alloc->extra);

	if (site)
		gm_site_catch_up(site);
	gm_count_free(&in, alloc->bytes, 1, alloc->flags & GM_ALLOC_BEFORE_MARK);
	gm_count_if_collected(&in, alloc);
	if (in.level && in.in_level)
		note_level(alloc, in.level, gm_physical_remove(alloc));
	if (gm_kind_in_pool(alloc->kind))
		gm_pool_remove(alloc);
}

void gm_account_resize(const struct gm_alloc_record *alloc, struct gm_site_record *site,
		       uint64_t more_bytes)
{
	const struct gm_counters in = counters_of(alloc->device, alloc->level, alloc->kind, site,
						  alloc->extra);

	if (site)
		gm_site_catch_up(site);
	gm_count_resize(&in, more_bytes, gm_track.now_ns);
}

void gm_account_failure(int device, unsigned level, unsigned kind, struct gm_site_record *site)
{
	const struct gm_counters in = counters_of(device, level, kind, site, 0);

	gm_count_failure(&in);
}
