/*
 * GPUMEMTRACE_SIGNAL: on that signal a mark named "signal" and a copy OUT.snap<n> of the file.
 *
 * The handler is installed when the file is opened. A handler that the program had by then runs
 * after ours, with its own flags and mask; a handler that it installs later replaces ours, as it
 * would any other, because the program's wishes come first. Where the program had none, the default
 * action, such as the end of the process, does not happen, because the user asked for the signal.
 *
 * The handler waits for nothing. Where a lock of the tracker's is held, perhaps by the very thread
 * that the signal interrupted, the handler leaves the work to the next call or the end of the
 * process.
 */
#include "recorder/process/held_copy.h"
#include "recorder/process/signals.h"
#include "recorder/state/fork_page.h"
#include "recorder/state/log.h"
#include "recorder/state/settings.h"
#include "store/lock.h"
#include "store/output_path.h"
#include "store/writer.h"
#include "track/marks.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>

uint32_t gm_signals_waiting;

static struct {
	struct gm_lock lock;	 /* guards what follows; it is only ever tried */
	uint32_t name_string;	 /* "signal" in the open file */
	unsigned copies;	 /* numbered from 1 */
	int error;		 /* of the last copy that failed, reported at the end */
	struct sigaction before; /* the program's handler */
	bool installed;
} signals;

/* Writes OUT.snap<n>, without snprintf, which is not promised to be async-signal-safe. */
static bool snapshot_path(char *path, size_t bytes, unsigned number)
{
	char suffix[32];

	gm_numbered(suffix, ".snap", number);
	return *gm_store_path() && gm_path_with_suffix(path, bytes, gm_store_path(), suffix);
}

void gm_signals_serve(void)
{
	char path[GM_PATH_BYTES + 32];

	if (!gm_owns_file() || !gm_lock_try(&signals.lock))
		return;
	while (__atomic_load_n(&gm_signals_waiting, __ATOMIC_ACQUIRE)) {
		int error = snapshot_path(path, sizeof(path), signals.copies + 1)
				    ? gm_track_signal(signals.name_string, path)
				    : -ENAMETOOLONG;

		if (error == -EAGAIN)
			break;
		if (error)
			signals.error = error;
		signals.copies++; /* a name that is taken by another's file stays taken */
		__atomic_fetch_sub(&gm_signals_waiting, 1, __ATOMIC_RELEASE);
		gm_holders_moment(GM_HOLDERS_SIGNAL);
	}
	gm_lock_release(&signals.lock);
}

static void handler(int number, siginfo_t *info, void *context)
{
	int saved = errno;

	if (gm_owns_file()) {
		__atomic_fetch_add(&gm_signals_waiting, 1, __ATOMIC_RELEASE);
		gm_signals_serve();
	}
	errno = saved;
	if (signals.before.sa_flags & SA_SIGINFO)
		signals.before.sa_sigaction(number, info, context);
	else if (signals.before.sa_handler != SIG_DFL && signals.before.sa_handler != SIG_IGN)
		signals.before.sa_handler(number);
}

static void install(void)
{
	struct sigaction ours = {.sa_flags = SA_RESTART};

	if (sigaction(gm_settings.signal, NULL, &signals.before) < 0)
		return;
	if (signals.before.sa_flags & SA_RESETHAND) {
		gm_log(GM_LOG_WARN,
		       "the program handles the signal of GPUMEMTRACE_SIGNAL once only: "
		       "it is left alone; choose another");
		return;
	}
	if (signals.before.sa_handler != SIG_DFL && signals.before.sa_handler != SIG_IGN) {
		ours.sa_flags = signals.before.sa_flags;
		ours.sa_mask = signals.before.sa_mask;
	}
	ours.sa_flags |= SA_SIGINFO;
	ours.sa_sigaction = handler;
	signals.installed = sigaction(gm_settings.signal, &ours, NULL) == 0;
}

void gm_signals_start(void)
{
	if (!gm_settings.signal)
		return;
	/* The child of a fork inherits the handler, and may inherit a held lock. */
	gm_lock_reset(&signals.lock);
	signals.copies = 0;
	__atomic_store_n(&gm_signals_waiting, 0, __ATOMIC_RELEASE);
	signals.name_string = gm_store_string("signal", 16);
	if (!signals.installed)
		install();
}

void gm_signals_finish(void)
{
	if (gm_signals_waiting)
		gm_signals_serve();
	if (signals.error)
		gm_log(GM_LOG_ERROR, "a copy on a signal could not be written beside %s: %s",
		       gm_store_path(), strerror(-signals.error));
	signals.error = 0;
}
