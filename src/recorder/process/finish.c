/*
 * The end of the process (finish.h).
 */
#include "recorder/process/finish.h"
#include "recorder/state/fork_page.h"
#include "recorder/state/log.h"
#include "recorder/state/settings.h"
#include "recorder/process/signals.h"
#include "store/syscall_guard.h"
#include "store/output_path.h"
#include "store/writer.h"
#include "track/recording.h"
#include "track/track.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void print_peaks(void)
{
	char line[256];
	size_t used = 0;
	uint32_t next = 0;
	uint64_t bytes;
	int device;

	while (used < sizeof(line) && gm_track_next_peak(&next, &device, &bytes))
		used += (size_t)snprintf(line + used, sizeof(line) - used, "%sdevice %d %.1f MiB",
					 used ? ", " : "", device, (double)bytes / 1048576);
	gm_log(GM_LOG_ERROR, "peak: %s", used ? line : "no device memory allocated");
}

static void print_live(void)
{
	uint64_t count, bytes;

	gm_track_live(&count, &bytes);
	gm_log(GM_LOG_ERROR, "live at exit: %llu allocations, %.1f MiB", (unsigned long long)count,
	       (double)bytes / 1048576);
}

/* A file that could not be moved from $TMPDIR to its place is complete all the same. */
static void report_unfinished(int error)
{
	const struct gm_output_path *place = gm_store_output_path();

	if (place && place->wanted[0])
		gm_log(GM_LOG_ERROR, "could not finish %s (%s): the file is %s", place->wanted,
		       strerror(-error), place->path);
	else
		gm_log(GM_LOG_ERROR, "could not finish %s: %s", gm_store_path(), strerror(-error));
}

static void complete_file(unsigned end, int status, bool print)
{
	int error;

	gm_signals_finish();
	gm_track_end(end, status);
	error = gm_store_finish();
	if (print && !gm_settings.quiet) {
		print_peaks();
		print_live();
		if (error == 0)
			gm_log(GM_LOG_ERROR, "written to %s", gm_store_path());
	}
	if (error)
		report_unfinished(error);
}

void gm_finish(unsigned end, int status, bool print)
{
	struct gm_fork_page *page = gm_fork_page();
	struct gm_syscall_guard guard;

	if (!gm_owns_file() || page->pid != getpid() || !gm_file)
		return;
	if (__atomic_exchange_n(&page->finished, 1, __ATOMIC_ACQ_REL))
		return;
	gm_syscall_guard_enter(&guard);
	complete_file(end, status, print);
	gm_syscall_guard_leave(&guard);
}

void gm_finish_undone(void)
{
	struct gm_fork_page *page = gm_fork_page();
	struct gm_syscall_guard guard;

	if (!gm_owns_file() || page->pid != getpid() || gm_file->end != GM_END_EXEC)
		return;
	gm_syscall_guard_enter(&guard);
	gm_store_resume();
	gm_track_resume();
	__atomic_store_n(&page->finished, 0, __ATOMIC_RELEASE);
	gm_syscall_guard_leave(&guard);
}
