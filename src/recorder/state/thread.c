/*
 * The time of a thread's work (thread.h).
 */
#include "recorder/state/thread.h"
#include "recorder/state/fork_page.h"
#include "store/hot.h"
#include "track/recording.h"

GM_COLD void gm_time_begin(void)
{
	gm_thread.works = 0;
	if (gm_owns_file())
		gm_thread.started_ns = gm_track_now();
}

GM_COLD void gm_time_end(void)
{
	if (gm_owns_file())
		gm_track_overhead((gm_track_now() - gm_thread.started_ns) * GM_TIMED);
	gm_thread.started_ns = 0;
}
