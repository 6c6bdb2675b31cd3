/*
 * Memory for which a handle for other processes was taken.
 */
#include "track/exports.h"
#include "track/live.h"
#include "track/update.h"

static uint32_t oldest; /* the record to be replaced next, once the table has all it may have */

void gm_track_exported(uint8_t space, uint64_t key, uint32_t ipc)
{
	struct gm_alloc_record *record;
	uint32_t index;

	if (!gm_file)
		return;
	gm_update_begin();
	record = gm_live_find(space, key, &index);
	if (!record && space == GM_SPACE_POINTER)
		record = gm_live_find_containing(space, key); /* IPC takes any address inside */
	if (record) {
		record->flags |= GM_ALLOC_EXPORTED;
		record->ipc = ipc ? ipc : record->ipc;
	}
	gm_update_end();
}

void gm_export_freed(const struct gm_alloc_record *record, uint32_t stack)
{
	struct gm_freed_export_record *freed;
	uint32_t index;

	if (!(record->flags & GM_ALLOC_EXPORTED))
		return;
	if (gm_file->tables[GM_TABLE_FREED_EXPORTS].count < GM_FREED_EXPORTS_KEPT)
		freed = gm_store_append(GM_TABLE_FREED_EXPORTS, 1, &index);
	else
		freed = gm_store_record(GM_TABLE_FREED_EXPORTS,
					oldest++ % GM_FREED_EXPORTS_KEPT);
	if (!freed)
		return;
	freed->block = *record;
	freed->freed_ns = gm_track.now_ns;
	freed->serial = gm_file->serial;
	freed->stack = stack;
	gm_store_publish(GM_TABLE_FREED_EXPORTS);
}
