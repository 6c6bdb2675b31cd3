/*
 * Memory from before the period (before.h).
 */
#include "track/before.h"
#include "track/index.h"
#include "track/live.h"
#include "track/state.h"
#include "track/update.h"

/* A size is kept in units of this, which no granularity of virtual memory goes below. */
#define UNIT_BYTES 4096u

/* By handle: the index's value is the size in units. */
static struct gm_index handles;

void gm_before_reset(void)
{
	handles = (struct gm_index){0}; /* the arena was freed as a whole */
}

void gm_track_before_freed(int device, uint64_t bytes)
{
	struct gm_device_record *record;

	if (!gm_file || device < 0)
		return;
	gm_update_begin();
	record = gm_store_record(GM_TABLE_DEVICES, (uint32_t)device);
	if (record && record->before_bytes != GM_NO_BYTES) {
		record->before_bytes -= bytes < record->before_bytes ? bytes : record->before_bytes;
		gm_file->before_frees++;
		gm_file->before_freed_bytes += bytes;
	}
	gm_update_end();
}

void gm_track_before_handle(uint64_t handle, uint64_t bytes, int device)
{
	if (!gm_file || bytes < UNIT_BYTES || bytes / UNIT_BYTES >= GM_INDEX_VALUES)
		return;
	gm_track_lock();
	if (!gm_index_find(&handles, GM_SPACE_HANDLE, handle))
		gm_index_add(&handles, &gm_track_arena, GM_SPACE_HANDLE, handle,
			     (uint32_t)(bytes / UNIT_BYTES), (uint32_t)device);
	gm_track_unlock();
}

uint64_t gm_track_before_handle_bytes(uint64_t handle, int *device)
{
	const struct gm_index_slot *slot;
	uint64_t bytes = 0;
	uint32_t index;

	if (!gm_file)
		return 0;
	gm_track_lock();
	slot = gm_index_find(&handles, GM_SPACE_HANDLE, handle);
	if (slot && !gm_live_find(GM_SPACE_HANDLE, handle, &index)) {
		bytes = (uint64_t)gm_index_value(slot) * UNIT_BYTES;
		*device = (int)slot->site;
	}
	gm_track_unlock();
	return bytes;
}

void gm_track_before_handle_ended(uint64_t handle)
{
	struct gm_index_slot *slot;

	if (!gm_file)
		return;
	gm_track_lock();
	slot = gm_index_find(&handles, GM_SPACE_HANDLE, handle);
	if (slot)
		gm_index_clear(&handles, slot);
	gm_track_unlock();
}
