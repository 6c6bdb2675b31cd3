/*
 * The state that all files of track/ share.
 */
#include "track/state.h"

#include <string.h>

GM_HOT_COUNTERS __attribute__((aligned(64))) struct gm_track gm_track;
struct gm_arena gm_track_arena;

void gm_state_reset(void)
{
	gm_arena_reset(&gm_track_arena);
	memset(&gm_track, 0, sizeof(gm_track));
}
