/*
 * Writes a small real output file, for the fuzzers' corpus: a few records of most tables.
 */
#include "../unit/track/drive.h"
#include "track/devices.h"
#include "track/driver_allocs.h"
#include "track/marks.h"
#include "track/track.h"

int main(int argc, char **argv)
{
	uint64_t i;

	if (argc < 2 || !drive_open(argv[1], 4 << 20))
		return 2;
	for (i = 1; i < 40; i++) {
		unsigned kind = 1 + (unsigned)i % (GM_KINDS - 1);
		struct gm_event event =
			drive_event(i << 20, kind, i % 3 ? GM_SPACE_POINTER : GM_SPACE_HANDLE,
				    i % 5 ? GM_LEVEL_DRIVER : GM_LEVEL_CUSTOM);

		gm_track_alloc(&event);
		if (i % 4 == 0)
			gm_track_mark("step", GM_MARK_PROGRAM);
		if (i % 6 == 0)
			gm_track_alloc_failed(&event);
		event.error = i % 7 == 0;
		if (i % 2)
			gm_track_free_end(gm_track_free_begin(event.space, event.key), &event);
	}
	gm_track_device(0, "seed", (const uint8_t[16]){1}, 1 << 30);
	gm_track_end(GM_END_EXIT, 0);
	return gm_store_finish() ? 3 : 0;
}
