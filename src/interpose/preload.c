/*
 * The tracker's life in the process (preload.h): the constructor, the first event, forks, the end.
 */
#include "interpose/preload.h"
#include "cupti/backend.h"
#include "interpose/ask.h"
#include "interpose/changes.h"
#include "interpose/launcher.h"
#include "interpose/libraries.h"
#include "interpose/nvtx.h"
#include "interpose/nvml.h"
#include "interpose/own_page.h"
#include "interpose/pluggable.h"
#include "interpose/resolve.h"
#include "interpose/settings.h"
#include "interpose/signals.h"
#include "stack/elf_symbols.h"
#include "stack/stack.h"
#include "store/hush.h"
#include "store/journal.h"
#include "store/place.h"
#include "store/writer.h"
#include "track/event.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

#define TEXT_BYTES 16384

static struct {
	uint32_t loaded;		/* the environment was read */
	bool started;			/* here or in an ancestor: a file was asked for */
	bool disabled;
	bool linked;			/* libcuda came with the program, after us */
	char preloads[4096];		/* LD_PRELOAD as it was at the start */
} self;

static void load(void);

GM_HOT uint32_t gm_readiness;

bool gm_find_disabled(void)
{
	load();
	return self.disabled;
}

/* ---- what a new file says of the process ---- */

static uint32_t read_proc(const char *path, char *text, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, bytes - 1);

	if (fd >= 0)
		close(fd);
	if (got < 0)
		got = 0;
	text[got] = '\0';
	return (uint32_t)got;
}

/* Arguments, each ended by a line feed, so that one string holds them all. */
static uint32_t command_string(void)
{
	char raw[TEXT_BYTES / 4], text[TEXT_BYTES / 2];
	uint32_t got = read_proc("/proc/self/cmdline", raw, sizeof(raw)), i, used = 0;

	for (i = 0; i < got && used + 2 < sizeof(text); i++) {
		if (raw[i] == '\0') {
			text[used++] = '\n';
			continue;
		}
		if (raw[i] == '\\' || raw[i] == '\n')
			text[used++] = '\\';
		text[used++] = raw[i] == '\n' ? 'n' : raw[i];
	}
	text[used] = '\0';
	if (!used) /* no /proc: at least the program's name */
		snprintf(text, sizeof(text), "%s\n", program_invocation_name);
	return gm_store_string(text, sizeof(text));
}

static uint32_t environment_string(const char *const *names)
{
	char text[2048];
	size_t used = 0;

	for (; *names; names++) {
		const char *value = getenv(*names);

		if (value && used < sizeof(text) - 1)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s=%s\n", *names,
						 value);
	}
	return used ? gm_store_string(text, sizeof(text)) : GM_NONE;
}

static void describe_job(struct gm_header *header)
{
	gm_launcher_describe(header);
	header->job_string = environment_string(gm_launcher_variables);
}

/* Again once the unwinder was opened: the file can be older than that. */
static void describe_stacks(struct gm_header *header)
{
	header->unwinder_string = gm_store_string(gm_stack_unwinder(), 64);
	header->python_string = gm_store_string(gm_stack_python(), 255);
	if (*gm_stack_python())
		header->features |= GM_FEATURE_PYTHON;
}

void gm_describe_backend(void)
{
	bool cupti = gm_settings.backend == GM_BACKEND_CUPTI;

	if (!gm_file)
		return;
	gm_file->backend_string = gm_store_string(cupti ? "cupti" : "preload", 64);
	if (cupti)
		gm_file->features |= GM_FEATURE_CUPTI;
	else
		gm_file->features &= ~GM_FEATURE_CUPTI;
}

static void describe_process(struct gm_header *header)
{
	static const char *const advice[] = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF",
					     "PYTORCH_NO_CUDA_MEMORY_CACHING", "CUDA_VISIBLE_DEVICES",
					     "XLA_PYTHON_CLIENT_PREALLOCATE",
					     "XLA_PYTHON_CLIENT_MEM_FRACTION",
					     "TF_FORCE_GPU_ALLOW_GROWTH", "CUDA_MODULE_LOADING", NULL};
	char text[4096];
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	header->started_realtime_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	header->pid = (uint32_t)getpid();
	header->ppid = (uint32_t)getppid();
	header->pid_start_ticks = gm_process_start_ticks((int)header->pid);
	header->exit_status = -1;
	header->command_string = command_string();
	header->cwd_string = getcwd(text, sizeof(text)) ? gm_store_string(text, sizeof(text)) : GM_NONE;
	text[0] = '\0';
	gethostname(text, sizeof(text) - 1);
	header->host_string = gm_store_string(text, 255);
	header->program_string = gm_store_string(program_invocation_short_name, 255);
	gm_settings_print(text, sizeof(text));
	header->settings_string = gm_store_string(text, sizeof(text));
	header->environment_string = environment_string(advice);
	header->tracer_version_string = gm_store_string(GM_VERSION, 64);
	gm_describe_backend();
	describe_stacks(header);
	header->heap_limit_bytes = GM_NO_BYTES;
	header->stack_limit_bytes = GM_NO_BYTES;
	describe_job(header);
}

/* ---- start ---- */

static void open_history(void)
{
	int error = gm_journal_open(gm_settings.max_events_bytes);

	if (error)
		gm_log(GM_LOG_WARN, "GPUMEMTRACE_EVENTS=all: cannot keep a complete history at %s.events "
		       "(%s): the last 65536 events are kept, as with ring", gm_store_path(),
		       error == -EROFS ? "the file itself is in memory" : strerror(-error));
}

static bool open_file(void)
{
	char path[GM_PATH_BYTES];
	int error = gm_settings_expand_out(path, sizeof(path));

	if (error == 0)
		error = gm_store_create(path, gm_settings.max_file_bytes);
	if (error && gm_file)
		gm_log(GM_LOG_WARN, "cannot keep a file at %s (%s): recording in memory, written only "
		       "at a normal exit; set GPUMEMTRACE_OUT to a writable place", path,
		       strerror(-error));
	if (!gm_file) {
		gm_log(GM_LOG_ERROR, "cannot record (%s): the program runs on untraced; set "
		       "GPUMEMTRACE_OUT to a writable place", strerror(-error));
		return false;
	}
	gm_track_start(gm_settings.events != GM_EVENTS_OFF);
	describe_process(gm_file);
	if (gm_settings.events == GM_EVENTS_ALL)
		open_history();
	return true;
}

/* Whether gm_goes_straight() is to be true from now on. */
static bool may_go_straight(void)
{
	return gm_own.wiped && !gm_settings.refuses && gm_settings.backend == GM_BACKEND_PRELOAD;
}

/* Under the start lock: in the child of a fork everything of the parent's is forgotten first. */
static bool start_locked(struct gm_own_page *page)
{
	bool open;

	gm_settings_report();
	if (self.started) {
		gm_store_forget();
		gm_stack_reset();
		gm_pluggable_forget();
		gm_nvml_forget();
		gm_changes_forget();
	}
	self.started = true;
	open = open_file();
	if (open) {
		page->pid = getpid();
		__atomic_store_n(&page->mine, 1, __ATOMIC_RELEASE);
		__atomic_store_n(&page->straight, may_go_straight(), __ATOMIC_RELEASE);
		gm_ask_forget_devices();
		gm_public_start();
		gm_signals_start();
		gm_nvtx_start();
	} else {
		self.disabled = true;
		__atomic_store_n(&gm_readiness, GM_OFF, __ATOMIC_RELEASE);
	}
	return open;
}

bool gm_start(void)
{
	struct gm_own_page *page = gm_own_page();
	struct gm_hush hush;
	bool open;

	if (gm_disabled())
		return false;
	gm_hush_begin(&hush);
	gm_lock_acquire(&page->start);
	open = page->mine && page->pid == getpid();
	if (!open && !self.disabled)
		open = start_locked(page);
	gm_lock_release(&page->start);
	gm_hush_end(&hush);
	return open;
}

void gm_driver_found(void)
{
	gm_ask_init();
	gm_nvml_open();
	gm_stack_init((enum gm_stack_mode)gm_settings.stacks, gm_settings.depth);
	gm_stack_cache(!gm_settings.no_stack_cache);
	if (gm_owns_file())
		describe_stacks(gm_file);
}

/* ---- the end ---- */

static void print_peaks(void)
{
	char line[256];
	size_t used = 0;
	uint32_t i, count = gm_file->tables[GM_TABLE_LEVELS].count;

	for (i = 0; i < count && used < sizeof(line); i++) {
		const struct gm_level_record *level = gm_store_record(GM_TABLE_LEVELS, i);

		if (level->level == GM_LEVEL_DRIVER && level->device >= 0)
			used += (size_t)snprintf(line + used, sizeof(line) - used,
						 "%sdevice %d %.1f MiB", used ? ", " : "",
						 level->device, (double)level->peak_bytes / 1048576);
	}
	gm_log(GM_LOG_ERROR, "peak: %s", used ? line : "no device memory allocated");
}

static void print_live(void)
{
	uint64_t count = 0, bytes = 0;
	uint32_t i, rows = gm_file->tables[GM_TABLE_USAGE].count;

	for (i = 0; i < rows; i++) {
		const struct gm_usage_record *usage = gm_store_record(GM_TABLE_USAGE, i);

		count += usage->current_count;
		bytes += usage->current_bytes;
	}
	gm_log(GM_LOG_ERROR, "live at exit: %llu allocations, %.1f MiB", (unsigned long long)count,
	       (double)bytes / 1048576);
}

/* A file that could not be moved from $TMPDIR to where it was wanted is whole all the same. */
static void report_unfinished(int error)
{
	const struct gm_place *place = gm_store_place();

	if (place && place->wanted[0])
		gm_log(GM_LOG_ERROR, "could not finish %s (%s): the file is %s", place->wanted,
		       strerror(-error), place->path);
	else
		gm_log(GM_LOG_ERROR, "could not finish %s: %s", gm_store_path(), strerror(-error));
}

static void close_books(unsigned end, int status, bool print)
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
	struct gm_own_page *page = gm_own_page();
	struct gm_hush hush;

	if (!gm_owns_file() || page->pid != getpid() || !gm_file)
		return;
	if (__atomic_exchange_n(&page->finished, 1, __ATOMIC_ACQ_REL))
		return;
	gm_hush_begin(&hush);
	close_books(end, status, print);
	gm_hush_end(&hush);
}

void gm_finish_undone(void)
{
	struct gm_own_page *page = gm_own_page();
	struct gm_hush hush;

	if (!gm_owns_file() || page->pid != getpid() || gm_file->end != GM_END_EXEC)
		return;
	gm_hush_begin(&hush);
	gm_store_resume();
	gm_track_resume();
	__atomic_store_n(&page->finished, 0, __ATOMIC_RELEASE);
	gm_hush_end(&hush);
}

/* What is linked against libcuda and does not call it is silent; what opens it later may go by us. */
static bool went_by_us(void)
{
	return !self.disabled && !self.started && !self.linked && !gm_driver_seen() && gm_libcuda_loaded();
}

/*
 * Registered with no DSO handle by a constructor that ran before the loader's own finaliser was: runs
 * after every other library's destructors, so what they free is still seen.
 */
static void at_exit(void *unused)
{
	(void)unused;
	if (!gm_settings.quiet && went_by_us())
		gm_log(GM_LOG_WARN, "libcuda was loaded but none of its calls came by here (private "
		       "linking or RTLD_DEEPBIND); GPUMEMTRACE_BACKEND=cupti sees them");
	gm_finish(GM_END_EXIT, -1, true);
}

extern int __cxa_atexit(void (*function)(void *), void *argument, void *dso);

/*
 * The constructor; other libraries' constructors run before ours and may call CUDA or end the process,
 * so whoever needs the settings calls it too. Finds the real ends of the process now: in the child of
 * a fork another thread may have held the loader's lock.
 */
static void __attribute__((constructor)) load(void)
{
	const char *preloads = getenv("LD_PRELOAD");
	int error = errno;

	if (__atomic_exchange_n(&self.loaded, 1, __ATOMIC_ACQ_REL))
		return;
	gm_settings_read();
	self.disabled = gm_settings.disable || getauxval(AT_SECURE);
	if (preloads)
		snprintf(self.preloads, sizeof(self.preloads), "%s", preloads);
	gm_ends_init();
	gm_jumps_init();
	gm_resolve_init();
	gm_own_page_init();
	if (!self.disabled) {
		self.linked = gm_libcuda_linked();
		__cxa_atexit(at_exit, NULL, NULL);
		gm_cupti_prepare();
	}
	gm_nvtx_load();
	__atomic_store_n(&gm_readiness, self.disabled ? GM_OFF : GM_READY, __ATOMIC_RELEASE);
	errno = error;
}

bool gm_preloaded(const struct gm_object *object)
{
	const char *name = gm_object_basename(object), *at = self.preloads;
	size_t bytes = strlen(name);

	while (bytes && (at = strstr(at, name)) != NULL) {
		bool starts = at == self.preloads || strchr("/: ", at[-1]);

		if (starts && (!at[bytes] || strchr(": ", at[bytes])))
			return true;
		at += bytes;
	}
	return false;
}
