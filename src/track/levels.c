/*
 * Totals per device and level, and per device and kind. Called under the tracker's lock.
 */
#include "track/book.h"
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

static enum gm_series series_of(const struct gm_alloc_record *alloc)
{
	if (alloc->level == GM_LEVEL_TORCH)
		return GM_SERIES_TORCH_ALLOCATED;
	if (alloc->level == GM_LEVEL_CUSTOM)
		return GM_SERIES_CUSTOM;
	return alloc->device < 0 ? GM_SERIES_PINNED : GM_SERIES_TRACKED;
}

static void usage_add(const struct gm_alloc_record *alloc)
{
	struct gm_usage_record *usage = gm_usage(alloc->device, alloc->kind);

	if (usage)
		gm_usage_add(usage, alloc->bytes);
}

static void level_add(const struct gm_alloc_record *alloc, struct gm_site_record *site,
		      struct gm_level_record *level)
{
	gm_level_add(level, alloc->bytes, site);
	if (alloc->level == GM_LEVEL_DRIVER)
		gm_level_physical(level, (uint64_t)gm_physical_add(alloc));
	gm_timeline(alloc->device, series_of(alloc), level->current_bytes);
}

void gm_levels_physical(int device, int64_t change)
{
	struct gm_level_record *level = gm_level(device, GM_LEVEL_DRIVER);

	if (level)
		gm_level_physical(level, (uint64_t)change);
}

void gm_levels_add(const struct gm_alloc_record *alloc, struct gm_site_record *site,
		   struct gm_level_record *level)
{
	if (gm_in_usage(alloc->level, alloc->kind))
		usage_add(alloc);
	if (level && gm_in_level(alloc->level, alloc->kind))
		level_add(alloc, site, level);
	if (gm_kind_in_pool(alloc->kind))
		gm_pool_add(alloc);
}

static void usage_remove(const struct gm_alloc_record *alloc)
{
	struct gm_usage_record *usage = gm_usage(alloc->device, alloc->kind);

	if (usage)
		gm_usage_remove(usage, alloc->bytes);
}

void gm_levels_remove(const struct gm_alloc_record *alloc, struct gm_level_record *level)
{
	if (gm_in_usage(alloc->level, alloc->kind))
		usage_remove(alloc);
	if (!level || !gm_in_level(alloc->level, alloc->kind))
		return;
	gm_level_remove(level, alloc->bytes);
	if (alloc->level == GM_LEVEL_DRIVER)
		gm_level_physical(level, (uint64_t)gm_physical_remove(alloc));
	if (gm_kind_in_pool(alloc->kind))
		gm_pool_remove(alloc);
	gm_timeline(alloc->device, series_of(alloc), level->current_bytes);
}

void gm_levels_failed(int device, unsigned level, unsigned kind)
{
	struct gm_usage_record *usage;
	struct gm_level_record *record;

	if (gm_in_usage(level, kind)) {
		usage = gm_usage(device, kind);
		if (usage)
			usage->failures++;
	}
	record = gm_level(device, level);
	if (record)
		record->failures++;
}
