/*
 * Makes an output file with a complete history: PyTorch's blocks coming and going in segments of
 * cudaMalloc, a thousand or so live at any time, from a few dozen sites, and a mark half-way; the
 * choices are a generator's. Arguments: the file, how many events, the cap in bytes.
 */
#include "../track/drive.h"
#include "store/journal.h"
#include "track/devices.h"
#include "track/driver_allocs.h"
#include "track/marks.h"
#include "track/thread_id.h"
#include "track/torch_blocks.h"
#include "track/track.h"

#include <stdio.h>
#include <stdlib.h>

#define SEGMENTS      8
#define SEGMENT_BYTES (1ull << 30)
#define SLOTS	      (SEGMENTS * 256u)
#define BASE	      0x7f0000000000ull

static uint64_t random_state = 88172645463325252ull;

static uint64_t draw(uint64_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % below;
}

static struct gm_torch_totals totals;

static void take_segments(void)
{
	uint64_t i;

	for (i = 0; i < SEGMENTS; i++) {
		struct gm_event event = drive_event(BASE + i * SEGMENT_BYTES, GM_KIND_DEVICE,
						    GM_SPACE_POINTER, GM_LEVEL_DRIVER);

		event.bytes = SEGMENT_BYTES;
		event.flags = GM_ALLOC_TORCH;
		gm_track_alloc(&event);
		totals.reserved_bytes += SEGMENT_BYTES;
	}
}

/* A block comes where none is, and goes where one is. */
static void toggle(uint64_t slot, uint64_t live[SLOTS])
{
	uint64_t key = BASE + slot * (SEGMENT_BYTES / 256);
	const struct gm_origin no_origin = {GM_NONE, GM_NONE};
	const struct gm_where where = {.thread = gm_calling_thread()};

	if (live[slot]) {
		totals.allocated_bytes -= live[slot];
		live[slot] = 0;
		gm_track_block_free(key, where, totals);
		return;
	}
	live[slot] = 512 * (1 + draw(4096));
	totals.allocated_bytes += live[slot];
	gm_track_block(key, live[slot], where, no_origin, totals);
}

int main(int argc, char **argv)
{
	static uint64_t live[SLOTS];
	uint64_t events, i;

	if (argc < 4 || !drive_open(argv[1], 64 << 20))
		return 2;
	gm_file->pid = 1;
	gm_file->started_realtime_ns = 1700000000000000000ull;
	if (gm_journal_open(gm_file, gm_store_output_path(), strtoull(argv[3], NULL, 10)))
		return 3;
	events = strtoull(argv[2], NULL, 10);
	gm_track_device(0, "made", (const uint8_t[16]){1}, 16ull << 30);
	take_segments();
	for (i = 0; i < events; i++) {
		if (i == events / 2)
			gm_track_mark("half", GM_MARK_PROGRAM);
		toggle(draw(SLOTS), live);
	}
	gm_track_end(GM_END_EXIT, 0);
	return gm_store_finish() ? 4 : 0;
}
