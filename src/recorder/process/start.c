/*
 * The constructor, the first event and the handler at exit (start.h).
 */
#include "recorder/process/start.h"
#include "recorder/process/describe.h"
#include "recorder/process/early_marks.h"
#include "recorder/process/finish.h"
#include "recorder/process/fork.h"
#include "recorder/state/in_flight.h"
#include "recorder/process/injection.h"
#include "recorder/state/libc_functions.h"
#include "recorder/state/libraries.h"
#include "recorder/state/log.h"
#include "recorder/state/sampler.h"
#include "recorder/query/nvml.h"
#include "recorder/torch/pluggable.h"
#include "recorder/query/query.h"
#include "recorder/state/settings.h"
#include "recorder/process/signals.h"
#include "stack/stack.h"
#include "store/syscall_guard.h"
#include "store/journal.h"
#include "store/writer.h"
#include "track/clock.h"
#include "track/track.h"
#include "track/recording.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
	uint32_t loaded; /* the constructor ran (atomic) */
	bool started;	 /* a file was asked for, here or in an ancestor */
	bool disabled;
	uint32_t passed; /* calls that gm_passed_early counted and no file has yet (atomic) */
	bool linked;	 /* libcuda came with the program, after the shim */
	bool late;	 /* the shim came when the program was at work */
} self;

static void load(void);

GM_HOT_HOOK uint32_t gm_readiness;

/*
 * The C library has no environment before it has started: a call that comes so early, from a
 * resolver of an indirect function, is only forwarded, because the C library's functions cannot be
 * used yet.
 */
bool gm_find_disabled(void)
{
	if (!__atomic_load_n(&self.loaded, __ATOMIC_ACQUIRE) && !environ)
		return true;
	load();
	return self.disabled;
}

void gm_start_history(void)
{
	int error = gm_journal_open(gm_file, gm_store_output_path(), gm_settings.max_events_bytes);

	if (error)
		gm_log(GM_LOG_WARN,
		       "GPUMEMTRACE_EVENTS=all: cannot keep a complete history at %s.events "
		       "(%s): the last 65536 events are kept, as with ring",
		       gm_store_path(),
		       error == -EROFS ? "the file itself is in memory" : strerror(-error));
}

/* Only a recording that begins with the process tells a free from one of what it did not see. */
static void start_sampling(void)
{
	uint64_t seed = gm_settings.sample_seed;

	if (gm_settings.sample_bytes && gm_readiness != GM_READY)
		gm_log(GM_LOG_WARN, "GPUMEMTRACE_SAMPLE applies to a recording from the start "
				    "alone: everything is recorded");
	else if (gm_settings.sample_bytes && gm_settings.events == GM_EVENTS_ALL)
		gm_log(GM_LOG_WARN, "GPUMEMTRACE_EVENTS=all needs every allocation: with "
				    "GPUMEMTRACE_SAMPLE no history is kept");
	if (!seed)
		seed = gm_monotonic_ns() ^ (uint64_t)getpid() << 40;
	gm_sampling_start(gm_readiness == GM_READY ? gm_settings.sample_bytes : 0, seed);
}

static bool open_file(void)
{
	static char path[GM_PATH_BYTES]; /* under the start lock; the stack may be small */
	int error = gm_settings_expand_out(path, sizeof(path));

	if (error == 0)
		error = gm_store_create(path, gm_settings.max_file_bytes);
	if (error && gm_file)
		gm_log(GM_LOG_WARN,
		       "cannot keep a file at %s (%s): recording in memory, written only "
		       "at a normal exit; set GPUMEMTRACE_OUT to a writable place",
		       path, strerror(-error));
	if (!gm_file) {
		gm_log(GM_LOG_ERROR, "cannot record (%s): the program runs on untraced; set "
		       "GPUMEMTRACE_OUT to a writable place", strerror(-error));
		return false;
	}
	/* first of all: whoever finds the file may ask for a start at once */
	gm_file->wanted = gm_settings.asleep ? GM_WANT_SLEEP : GM_WANT_RECORDING;
	gm_file->recording = gm_readiness == GM_READY ? GM_RECORDS : GM_SLEEPS;
	gm_file->features |= GM_FEATURE_STARTS;
	start_sampling();
	gm_track_count_blocks(gm_sample_bytes && gm_fork_pages.wiped ? &gm_fork_page()->counted
									: NULL);
	gm_track_start(gm_settings.events != GM_EVENTS_OFF && !gm_sample_bytes);
	gm_file->sample_bytes = gm_sample_bytes;
	gm_describe_process();
	if (gm_settings.events == GM_EVENTS_ALL && gm_readiness == GM_READY && !gm_sample_bytes)
		gm_start_history();
	return true;
}

/* Returns the value that gm_fast_path_open() is to have from now on. */
static bool may_take_fast_path(void)
{
	return gm_fork_pages.wiped && !gm_settings.refuses && !gm_settings.holders_grow_bytes &&
	       gm_settings.backend == GM_BACKEND_PRELOAD;
}

/* Holds the start lock. In the child of a fork everything of the parent's is dropped first. */
static bool start_locked(struct gm_fork_page *page)
{
	uint32_t passed;
	bool open;

	gm_settings_report();
	if (self.started) {
		gm_store_forget();
		gm_stack_reset();
		gm_pluggable_forget();
		gm_nvml_forget();
		gm_in_flight_forget();
	}
	self.started = true;
	open = open_file();
	if (open) {
		page->pid = getpid();
		__atomic_store_n(&page->mine, 1, __ATOMIC_RELEASE);
		__atomic_store_n(&page->fast_path, may_take_fast_path(), __ATOMIC_RELEASE);
		gm_query_forget_devices();
		gm_early_marks_record();
		for (passed = __atomic_exchange_n(&self.passed, 0, __ATOMIC_RELAXED); passed;
		     passed--)
			gm_track_passed_call();
		gm_signals_start();
		gm_injection_report();
	} else {
		self.disabled = true;
		__atomic_store_n(&gm_readiness, GM_OFF, __ATOMIC_RELEASE);
	}
	return open;
}

void gm_passed_early(void)
{
	__atomic_fetch_add(&self.passed, 1, __ATOMIC_RELAXED);
}

bool gm_start(void)
{
	struct gm_fork_page *page = gm_fork_page();
	struct gm_syscall_guard guard;
	bool open;

	if (gm_disabled())
		return false;
	gm_syscall_guard_enter(&guard);
	gm_lock_acquire(&page->start);
	open = page->mine && page->pid == getpid();
	if (!open && !self.disabled) {
		__atomic_store_n(&page->opener, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
		open = start_locked(page);
		gm_finish_opened();
	}
	gm_lock_release(&page->start);
	gm_syscall_guard_leave(&guard);
	return open;
}

/*
 * Says that the program used libcuda, if no call came through the shim. A program that is linked
 * against libcuda reaches the shim first, so it just did not call it.
 */
static void report_bypassed(void)
{
	if (self.disabled || self.started || self.late || gm_query_ready())
		return;
	if (!self.linked && gm_libcuda_loaded())
		gm_log(GM_LOG_WARN,
		       "libcuda was loaded but none of its calls came by here (private "
		       "linking or RTLD_DEEPBIND); GPUMEMTRACE_BACKEND=cupti sees them");
	else if (gm_libcudas_elsewhere())
		gm_log(GM_LOG_WARN,
		       "libcuda was loaded in a linker namespace of its own (dlmopen), which no "
		       "preload reaches: its calls are not recorded");
}

/*
 * Registered without a DSO handle, by a constructor that ran before the loader registered its own
 * finaliser. It therefore runs after every other library's destructors, and what they free is still
 * seen.
 */
static void at_exit(void *unused)
{
	(void)unused;
	if (!gm_settings.quiet)
		report_bypassed();
	gm_finish(-1, true);
}

extern int __cxa_atexit(void (*function)(void *), void *argument, void *dso);

/*
 * The constructor. Constructors of other libraries run before it and may call CUDA or end the
 * process, so gm_find_disabled calls it too.
 */
static void __attribute__((constructor)) load(void)
{
	int error = errno;

	if (__atomic_exchange_n(&self.loaded, 1, __ATOMIC_ACQ_REL))
		return;
	gm_settings_read();
	self.disabled = gm_settings.disable || getauxval(AT_SECURE) || gm_is_second_copy();
	gm_preloads_init();
	gm_libc_init();
	gm_fork_page_init();
	gm_fork_init();
	if (!self.disabled) {
		self.linked = gm_libcuda_linked();
		self.late = gm_loaded_late();
		__cxa_atexit(at_exit, NULL, NULL);
		gm_injection_init();
	}
	__atomic_store_n(&gm_readiness,
			 self.disabled	    ? GM_OFF
			 : gm_settings.asleep ? GM_ASLEEP
					      : GM_READY,
			 __ATOMIC_RELEASE);
	errno = error;
}
