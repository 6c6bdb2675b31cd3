/*
 * The records of totals: of each device and level, and of each device and kind.
 */
#ifndef GM_TRACK_LEVELS_H
#define GM_TRACK_LEVELS_H

#include "account/counters.h"

#include <stdbool.h>

/*
 * Return the bytes that a device's driver level holds right now, as the driver lays them out and
 * without managed memory; and the bytes of managed memory. Any thread, without the lock.
 */
uint64_t gm_track_physical_bytes(int device);
uint64_t gm_track_managed_bytes(int device);

/* ---- for track/, under the lock ---- */

/*
 * The records, by device slot; NULL where there is none yet (atomic for readers without the lock).
 */
struct gm_totals {
	struct gm_level_record *levels[GM_SLOTS][GM_LEVELS];
	struct gm_usage_record *usage[GM_SLOTS][GM_KINDS];
};
extern struct gm_totals gm_totals __attribute__((visibility("hidden")));

void gm_levels_reset(void);

/* The slow paths of gm_level_of and gm_usage_of. */
struct gm_level_record *gm_add_level(int device, unsigned level);
struct gm_usage_record *gm_add_usage(int device, unsigned kind);

/* Return a record, made at its first use; NULL if the file is full. */
static inline struct gm_level_record *gm_level_of(int device, unsigned level)
{
	struct gm_level_record *record = gm_totals.levels[gm_slot(device)][level];

	return __builtin_expect(record != NULL, 1) ? record : gm_add_level(device, level);
}

static inline struct gm_usage_record *gm_usage_of(int device, unsigned kind)
{
	struct gm_usage_record *record = gm_totals.usage[gm_slot(device)][kind];

	return __builtin_expect(record != NULL, 1) ? record : gm_add_usage(device, kind);
}

/* For the ledger, which sets the limits. */
struct gm_physical_watch {
	bool reached; /* a device may have reached its limit (atomic) */
	uint64_t limit_bytes[GM_SLOTS];
};
extern struct gm_physical_watch gm_physical_watch __attribute__((visibility("hidden")));

/* To be called after what the driver holds for its level has become more. */
static inline void gm_note_growth(int device, const struct gm_level_record *level)
{
	uint64_t limit_bytes = gm_physical_watch.limit_bytes[gm_slot(device)];

	if (__builtin_expect(level->physical_bytes >= limit_bytes, 0))
		__atomic_store_n(&gm_physical_watch.reached, true, __ATOMIC_RELAXED);
}

/*
 * Adds to the driver level's physical bytes what belongs to no single allocation (a pool's
 * reserve).
 */
void gm_add_physical_bytes(int device, int64_t change);

#endif
