/*
 * A PyTorch snapshot as typed records: what the values of its pickle mean, for schemas from 2023 to
 * now. Its stacks are in an image already (image.h); everything else lives in a zone.
 */
#ifndef GM_REPORT_IMPORT_SNAPSHOT_H
#define GM_REPORT_IMPORT_SNAPSHOT_H

#include "report/import/image.h"
#include "report/import/pickle_reader.h"
#include "report/support/numbering.h"

#define GM_SNAPSHOT_DEVICES 4096

enum gm_snapshot_state { GM_BLOCK_INACTIVE, GM_BLOCK_PENDING, GM_BLOCK_ALLOCATED };

struct gm_snapshot_block {
	uint64_t start, bytes;
	uint64_t requested_bytes; /* GM_NO_BYTES: the schema has none */
	enum gm_snapshot_state state;
	uint32_t stack; /* in the image, GM_NONE */
};

struct gm_snapshot_segment {
	int device;
	uint64_t start, bytes, stream;
	bool expandable;
	bool small;	/* of the pool for small blocks */
	uint64_t pool;	/* a private one: of a graph if even, of the program's if odd; 0 the
			   allocator's own */
	uint32_t stack;
	struct gm_snapshot_block *blocks; /* in order of address, within the segment */
	unsigned blocks_count;
};

enum gm_snapshot_action {
	GM_ACTION_ALLOC,
	GM_ACTION_FREE_REQUESTED,
	GM_ACTION_FREE_COMPLETED,
	GM_ACTION_SEGMENT_ALLOC,
	GM_ACTION_SEGMENT_FREE,
	GM_ACTION_SEGMENT_MAP,
	GM_ACTION_SEGMENT_UNMAP,
	GM_ACTION_OOM,
	GM_ACTIONS
};

struct gm_snapshot_event {
	enum gm_snapshot_action action;
	uint64_t start, bytes, stream; /* start of an OOM: the device's free bytes, GM_NO_BYTES */
	uint64_t time_us;
	uint32_t stack;
};

struct gm_snapshot_trace {
	struct gm_snapshot_event *events;
	unsigned count;
};

struct gm_snapshot {
	struct gm_zone *zone;
	struct gm_image *image;
	struct gm_snapshot_segment *segments;
	unsigned segments_count;
	struct gm_snapshot_trace *traces; /* by device */
	unsigned traces_count;
	const struct gm_value *settings; /* allocator_settings, NULL */
	unsigned odd;			 /* entries that made no sense and were left out */
	uint64_t budget; /* entries that may still be read: a list may be met again and again */

	/* the records that were put into the image already */
	struct gm_numbering lists, stacks, frames, texts;
	uint32_t *stack_of_list, *string_of_text;
};

/*
 * Reads the values of a pickle. False if they are no snapshot; `error` then says why, half a
 * sentence. The image must have been begun;
 * `pickle_bytes` bounds how many entries there can be.
 */
bool gm_snapshot_read(struct gm_snapshot *snapshot, struct gm_zone *zone, struct gm_image *image,
		      const struct gm_value *values, uint64_t pickle_bytes, char *error,
		      size_t error_bytes);
void gm_snapshot_end(struct gm_snapshot *snapshot);

#endif
