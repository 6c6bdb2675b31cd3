/*
 * The records of totals.
 */
#include "track/levels.h"
#include "store/writer.h"

#include <string.h>

struct gm_totals gm_totals;
struct gm_physical_watch gm_physical_watch;

void gm_levels_reset(void)
{
	memset(&gm_totals, 0, sizeof(gm_totals));
}

struct gm_level_record *gm_add_level(int device, unsigned level)
{
	uint32_t index;
	struct gm_level_record *record = gm_store_append(GM_TABLE_LEVELS, 1, &index);

	if (!record)
		return NULL;
	record->device = (int16_t)device;
	record->level = (uint8_t)level;
	gm_store_publish(GM_TABLE_LEVELS);
	__atomic_store_n(&gm_totals.levels[gm_slot(device)][level], record, __ATOMIC_RELEASE);
	return record;
}

struct gm_usage_record *gm_add_usage(int device, unsigned kind)
{
	uint32_t index;
	struct gm_usage_record *record = gm_store_append(GM_TABLE_USAGE, 1, &index);

	if (!record)
		return NULL;
	record->device = (int16_t)device;
	record->kind = (uint8_t)kind;
	gm_store_publish(GM_TABLE_USAGE);
	__atomic_store_n(&gm_totals.usage[gm_slot(device)][kind], record, __ATOMIC_RELEASE);
	return record;
}

void gm_add_physical_bytes(int device, int64_t change)
{
	struct gm_level_record *level = gm_level_of(device, GM_LEVEL_DRIVER);

	if (!level)
		return;
	gm_level_physical(level, (uint64_t)change);
	gm_note_growth(device, level);
}

uint64_t gm_track_physical_bytes(int device)
{
	const struct gm_level_record *level;

	if (!gm_file)
		return 0;
	level = __atomic_load_n(&gm_totals.levels[gm_slot(device)][GM_LEVEL_DRIVER],
				__ATOMIC_ACQUIRE);
	return level ? level->physical_bytes : 0;
}

uint64_t gm_track_managed_bytes(int device)
{
	const struct gm_usage_record *usage = __atomic_load_n(
		&gm_totals.usage[gm_slot(device)][GM_KIND_MANAGED], __ATOMIC_ACQUIRE);

	return usage ? usage->current_bytes : 0;
}
