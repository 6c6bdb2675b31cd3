/*
 * The end of the process (finish.h).
 */
#include "recorder/process/finish.h"
#include "recorder/state/fork_page.h"
#include "recorder/state/libraries.h"
#include "recorder/state/log.h"
#include "recorder/state/settings.h"
#include "recorder/state/thread.h"
#include "recorder/process/signals.h"
#include "store/syscall_guard.h"
#include "store/output_path.h"
#include "store/writer.h"
#include "track/recording.h"
#include "track/track.h"
#include "track/work.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
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

/*
 * The state goes from open to closing to closed, and back only where a process that was detached is
 * attached to again. While it is open, threads can be
 * in calls of exec, which `execs` of the fork page counts: the first of them writes the end "exec"
 * into the file, and the last one that fails removes it. The file itself stays as it is until the
 * state is closing, and only the thread that set that state changes the file.
 */
enum end_state { OPEN, CLOSING, CLOSED };

#define WAIT_STEP_NS 10000000
#define WAIT_STEPS   200

/*
 * Holds the lock `ending` with GM_ALL_SIGNALS blocked. A handler of one of the signals that are
 * left may end the process or call exec while the thread that it interrupted has the lock; it uses
 * the lock that its thread has.
 */
struct ending {
	struct gm_fork_page *page;
	uint64_t mask;
	bool held_before;
};

static struct ending lock_end(void)
{
	struct ending ending = {.page = gm_fork_page()};
	uint64_t all = GM_ALL_SIGNALS;
	pid_t self = (pid_t)syscall(SYS_gettid);

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &ending.mask, sizeof(all));
	ending.held_before = __atomic_load_n(&ending.page->ending_owner, __ATOMIC_RELAXED) == self;
	if (!ending.held_before) {
		gm_lock_acquire(&ending.page->ending);
		__atomic_store_n(&ending.page->ending_owner, self, __ATOMIC_RELAXED);
	}
	return ending;
}

static void unlock_end(const struct ending *ending)
{
	if (!ending->held_before) {
		__atomic_store_n(&ending->page->ending_owner, 0, __ATOMIC_RELAXED);
		gm_lock_release(&ending->page->ending);
	}
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &ending->mask, NULL, sizeof(ending->mask));
}

/*
 * Waits until another thread of this process has opened the file, since the caller is about to end
 * that thread. Not for a child of vfork, which shares the page with its parent.
 */
static void wait_until_opened(struct gm_fork_page *page)
{
	const struct timespec step = {.tv_nsec = WAIT_STEP_NS};
	uint32_t opener, self = (uint32_t)syscall(SYS_gettid);
	unsigned i;

	for (i = 0; i < WAIT_STEPS; i++) {
		opener = __atomic_load_n(&page->opener, __ATOMIC_ACQUIRE);
		if (!opener || opener == self || syscall(SYS_tgkill, getpid(), opener, 0) < 0)
			return;
		syscall(SYS_futex, &page->opener, FUTEX_WAIT_PRIVATE, opener, &step, NULL, 0);
	}
}

void gm_finish_opened(void)
{
	struct gm_fork_page *page = gm_fork_page();

	__atomic_store_n(&page->opener, 0, __ATOMIC_RELEASE);
	syscall(SYS_futex, &page->opener, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

static bool own_open_file(void)
{
	int saved = errno;

	wait_until_opened(gm_fork_page());
	errno = saved;
	return gm_owns_file() && gm_fork_page()->pid == getpid() && gm_file;
}

/*
 * Waits until another thread has completed the file, since the caller is about to end that thread.
 * The thread that completes the file may itself be the caller, in a signal handler.
 */
static void wait_until_closed(struct gm_fork_page *page)
{
	const struct timespec step = {.tv_nsec = WAIT_STEP_NS};
	unsigned i;

	if (page->closer == (pid_t)syscall(SYS_gettid))
		return;
	for (i = 0; i < WAIT_STEPS; i++) {
		if (__atomic_load_n(&page->end_state, __ATOMIC_ACQUIRE) != CLOSING)
			return;
		syscall(SYS_futex, &page->end_state, FUTEX_WAIT_PRIVATE, CLOSING, &step, NULL, 0);
	}
}

static void complete_file(enum gm_end end, int status, bool print)
{
	int error;

	gm_signals_finish();
	gm_track_other_libcudas(gm_libcudas_elsewhere());
	gm_track_launched(gm_launches_since());
	gm_track_end(end, status);
	if (gm_file->recording == GM_SLEEPS && !gm_file->periods) {
		gm_store_discard(); /* it slept to the end, and nobody woke it */
		return;
	}
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

static void close_file(struct gm_fork_page *page, enum gm_end end, int status, bool print)
{
	struct ending ending = lock_end();
	bool first = page->end_state == OPEN;

	if (first) {
		page->closer = (pid_t)syscall(SYS_gettid);
		__atomic_store_n(&page->end_state, CLOSING, __ATOMIC_RELEASE);
	}
	unlock_end(&ending);
	if (!first) {
		wait_until_closed(page);
		return;
	}
	complete_file(end, status, print);
	__atomic_store_n(&page->end_state, CLOSED, __ATOMIC_RELEASE);
	syscall(SYS_futex, &page->end_state, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

void gm_finish(int status, bool print)
{
	struct gm_syscall_guard guard;

	if (!own_open_file())
		return;
	gm_syscall_guard_enter(&guard);
	close_file(gm_fork_page(), GM_END_EXIT, status, print);
	gm_syscall_guard_leave(&guard);
}

void gm_finish_detached(void)
{
	struct gm_syscall_guard guard;

	if (!own_open_file())
		return;
	gm_syscall_guard_enter(&guard);
	close_file(gm_fork_page(), GM_END_DETACHED, -1, false);
	gm_store_release();
	gm_syscall_guard_leave(&guard);
}

void gm_finish_reopen(void)
{
	__atomic_store_n(&gm_fork_page()->end_state, OPEN, __ATOMIC_RELEASE);
}

bool gm_exec_begin(void)
{
	struct gm_syscall_guard guard;
	struct ending ending;
	int error = 0;
	bool counted;

	if (!own_open_file())
		return false;
	gm_syscall_guard_enter(&guard);
	gm_signals_finish();
	ending = lock_end();
	counted = ending.page->end_state == OPEN;
	if (counted) {
		if (ending.page->execs++ == 0)
			gm_track_end(GM_END_EXEC, -1);
		error = gm_store_before_exec();
	}
	unlock_end(&ending);
	if (!counted)
		wait_until_closed(ending.page);
	if (error)
		report_unfinished(error);
	gm_syscall_guard_leave(&guard);
	return counted;
}

void gm_exec_failed(void)
{
	int saved = errno;
	struct ending ending = lock_end();

	if (--ending.page->execs == 0 && ending.page->end_state == OPEN)
		gm_track_resume();
	unlock_end(&ending);
	errno = saved;
}
