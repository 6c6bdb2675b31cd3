/*
 * Totals per device and level, and per device and kind. Called under the tracker's lock.
 */
#include "track/collected.h"
#include "track/physical.h"
#include "track/state.h"

struct gm_level_record *gm_make_level(int device, unsigned level)
{
	struct gm_level_record *record;
	uint32_t number;

	record = gm_store_append(GM_TABLE_LEVELS, 1, &number);
	if (!record)
		return NULL;
	record->device = (int16_t)device;
	record->level = (uint8_t)level;
	gm_store_publish(GM_TABLE_LEVELS);
	__atomic_store_n(&gm_totals.levels[gm_slot(device)][level], record, __ATOMIC_RELEASE);
	return record;
}

struct gm_usage_record *gm_make_usage(int device, unsigned kind)
{
	struct gm_usage_record *record;
	uint32_t number;

	record = gm_store_append(GM_TABLE_USAGE, 1, &number);
	if (!record)
		return NULL;
	record->device = (int16_t)device;
	record->kind = (uint8_t)kind;
	gm_store_publish(GM_TABLE_USAGE);
	__atomic_store_n(&gm_totals.usage[gm_slot(device)][kind], record, __ATOMIC_RELEASE);
	return record;
}

static struct gm_counters counters_of(int device, unsigned level, unsigned kind,
				      struct gm_site_record *site)
{
	return (struct gm_counters){
		.site = site,
		.level = gm_level(device, level),
		.usage = gm_in_usage(level, kind) ? gm_usage(device, kind) : NULL,
		.in_level = gm_in_level(level, kind),
	};
}

/* The level's total changed, and with it by `physical_change` what the driver holds. */
static void note_level(const struct gm_alloc_record *alloc, struct gm_level_record *level,
		       int64_t physical_change)
{
	if (alloc->level == GM_LEVEL_DRIVER)
		gm_level_physical(level, (uint64_t)physical_change);
	gm_timeline(alloc->device, gm_level_series(alloc->level, alloc->device),
		    level->current_bytes);
}

void gm_account_alloc(const struct gm_alloc_record *alloc, struct gm_site_record *site)
{
	const struct gm_counters in = counters_of(alloc->device, alloc->level, alloc->kind, site);

	if (site)
		gm_site_windows(site);
	gm_count_alloc(&in, alloc->bytes, alloc->serial, gm_track.now_ns);
	if (in.level && in.in_level)
		note_level(alloc, in.level, gm_physical_add(alloc));
	if (gm_kind_in_pool(alloc->kind))
		gm_pool_add(alloc);
}

void gm_account_free(const struct gm_alloc_record *alloc, struct gm_site_record *site)
{
	const struct gm_counters in = counters_of(alloc->device, alloc->level, alloc->kind, site);

	if (site)
		gm_site_windows(site);
	gm_count_free(&in, alloc->bytes, 1, alloc->flags & GM_ALLOC_BEFORE_MARK);
	gm_note_collected(&in, alloc);
	if (in.level && in.in_level)
		note_level(alloc, in.level, gm_physical_remove(alloc));
	if (gm_kind_in_pool(alloc->kind))
		gm_pool_remove(alloc);
}

void gm_account_resize(const struct gm_alloc_record *alloc, struct gm_site_record *site,
		       uint64_t more_bytes)
{
	const struct gm_counters in = counters_of(alloc->device, alloc->level, alloc->kind, site);

	if (site)
		gm_site_windows(site);
	gm_count_resize(&in, more_bytes, gm_track.now_ns);
}

void gm_account_failure(int device, unsigned level, unsigned kind, struct gm_site_record *site)
{
	const struct gm_counters in = counters_of(device, level, kind, site);

	gm_count_failure(&in);
}

void gm_levels_physical(int device, int64_t change)
{
	struct gm_level_record *level = gm_level(device, GM_LEVEL_DRIVER);

	if (level)
		gm_level_physical(level, (uint64_t)change);
}
