/*
 * The recorder's life in a process that gpumem-report attach loaded the shim into (attached.h).
 */
#include "recorder/process/attached.h"
#include "recorder/process/describe.h"
#include "recorder/process/finish.h"
#include "recorder/process/open_libraries.h"
#include "recorder/process/start.h"
#include "recorder/query/query.h"
#include "recorder/state/captures.h"
#include "recorder/state/fork_page.h"
#include "recorder/state/log.h"
#include "recorder/state/settings.h"
#include "store/attach_point.h"
#include "store/writer.h"
#include "track/recording.h"
#include "track/track.h"

#include <string.h>

/* Written by the thread that attaches or detaches, and read by the one that begins a period. */
static struct {
	bool on;
	uint64_t age_ns; /* at the first attach, which is about time 0 of the file */
	uint32_t slots, table_words;
	uint32_t cupti; /* functions whose calls CUPTI reports */
	const char *why; /* not used, if that is 0 */
} attached;

const char *gm_attached_begin(const char *settings, uint64_t age_ns)
{
	if (gm_find_disabled())
		return "the process was started with GPUMEMTRACE_DISABLE=1, is setuid, or has no "
		       "memory for a recording";
	if (!gm_settings_apply(settings))
		return "the settings are too long";
	gm_settings.asleep = false;
	gm_settings.attached = true;
	gm_captures_may_be_unseen();
	if (!attached.age_ns)
		attached.age_ns = age_ns;
	attached.on = true;
	if (gm_owns_file())
		__atomic_store_n(&gm_file->wanted, GM_WANT_RECORDING, __ATOMIC_RELEASE);
	/* It was ready in a shim that is loaded, and off in one that an attach has left. */
	__atomic_store_n(&gm_readiness, GM_OFF, __ATOMIC_RELEASE);
	return NULL;
}

void gm_attached_routes(uint32_t slots, uint32_t table_words, uint32_t cupti, const char *why)
{
	attached.slots = slots;
	attached.table_words = table_words;
	attached.cupti = cupti;
	attached.why = why;
	__atomic_store_n(&gm_readiness, GM_ASLEEP, __ATOMIC_RELEASE);
}

bool gm_attached_prepare(const char *settings)
{
	struct gm_fork_page *page = gm_fork_page();

	if (gm_find_disabled() || !gm_settings_apply(settings))
		return false;
	gm_lock_acquire(&page->start);
	if (!gm_query_ready())
		gm_open_libraries();
	gm_lock_release(&page->start);
	return true;
}

void gm_attached_end(void)
{
	attached.on = false;
	__atomic_store_n(&gm_readiness, GM_OFF, __ATOMIC_RELEASE);
	if (!gm_owns_file())
		return;
	if (gm_file->periods && !gm_file->period_ended_ns)
		gm_file->period_ended_ns = gm_track_now();
	__atomic_store_n(&gm_file->recording, GM_SLEEPS, __ATOMIC_RELEASE);
	gm_finish_detached();
}

/* Goes on in a new file: an earlier attach has closed the one that is mapped. */
static bool begin_file(void)
{
	char path[GM_PATH_BYTES];
	int error = gm_settings_expand_out(path, sizeof(path));

	if (error == 0)
		error = gm_store_move(path);
	if (error) {
		gm_log(GM_LOG_WARN, "cannot keep a file at %s (%s): the program runs on untraced",
		       path, strerror(-error));
		return false;
	}
	gm_finish_reopen();
	gm_track_resume();
	gm_describe_settings();
	return true;
}

bool gm_attached_describe(void)
{
	if (!attached.on)
		return true;
	if (gm_file->end != GM_END_NONE && !begin_file())
		return false;
	gm_file->features |= GM_FEATURE_ATTACHED;
	gm_file->process_age_ns = attached.age_ns;
	gm_file->slots = attached.slots;
	gm_file->tables_words = attached.table_words;
	gm_file->cupti_functions = attached.cupti;
	gm_file->cupti_string = attached.cupti ? 0 : gm_store_string(attached.why, GM_ATTACH_WHY);
	return true;
}
