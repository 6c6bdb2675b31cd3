/*
 * Copies of the process for finding holders (held_copy.h).
 *
 * The copy is made by the system call itself, without the C library's fork: no handler of
 * pthread_atfork runs, and no other thread's lock matters, since the copy makes system calls only.
 * Its exit signal is 0: the program gets no SIGCHLD, and its wait() does not see it. The copy
 * closes all descriptors first, because a descriptor of the driver's would keep the memory of a
 * process that has ended. It starts the tool, lets this one process read it (PR_SET_PTRACER, where
 * Yama asks for that), and ends with it, after a minute in any case.
 *
 * What is live at that moment is in a consistent copy of the output file, OUT.holders<n>.new, which
 * the tool replaces by its result.
 */
#include "recorder/process/held_copy.h"
#include "recorder/process/copy_refusal.h"
#include "recorder/state/fork_page.h"
#include "recorder/state/log.h"
#include "store/lock.h"
#include "store/output_path.h"
#include "store/writer.h"
#include "track/marks.h"
#include "track/sites.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST_COPIES   8u
#define MOST_SECONDS  60
#define TOOL_BYTES    (2ull << 30) /* of the tool's address space */
#define STEP_NS	      10000000

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef PR_SET_PTRACER
#define PR_SET_PTRACER 0x59616d61
#endif

static struct {
	struct gm_lock lock; /* guards what follows; it is only ever tried */
	unsigned copies;
	int pid;	     /* of the copy that may still live */
	int owner;	     /* the process that all this is of */
	uint64_t grown_from; /* GPUMEMTRACE_HOLDERS=grow: bytes of a site that make the next copy */
	char tool[PATH_MAX], file[GM_PATH_BYTES + 32];
} held;

static const char *const moment_names[] = {"oom", "mark", "signal", "grow"};

/* ---- whether a copy can be afforded ---- */

static size_t read_text(const char *path, char *text, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, bytes - 1) : -1;

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

/* The number in a file, or after a word in it; UINT64_MAX if there is none ("max"). */
static uint64_t read_number(const char *path, const char *word)
{
	char text[4096], *at = text, *end;
	uint64_t number;

	if (!read_text(path, text, sizeof(text)))
		return UINT64_MAX;
	if (word) {
		at = strstr(text, word);
		if (!at)
			return UINT64_MAX;
		at += strlen(word);
	}
	number = strtoull(at, &end, 10);
	return end == at ? UINT64_MAX : number;
}

/*
 * Returns the bytes that the control group may still use; its own files lie at the root in a
 * container.
 */
static uint64_t group_headroom(void)
{
	char text[4096], path[4200] = "/sys/fs/cgroup", *at, *end;
	size_t base = strlen(path), length;
	uint64_t most, used;

	if (read_text("/proc/self/cgroup", text, sizeof(text)) && (at = strstr(text, "0::"))) {
		end = strchr(at, '\n');
		length = end ? (size_t)(end - at) - 3 : strlen(at) - 3;
		if (base + length + 32 < sizeof(path)) {
			memcpy(path + base, at + 3, length);
			path[base + length] = '\0';
		}
	}
	length = strlen(path);
	strcpy(path + length, "/memory.max");
	most = read_number(path, NULL);
	strcpy(path + length, "/memory.current");
	used = read_number(path, NULL);
	if (most == UINT64_MAX) {
		most = read_number("/sys/fs/cgroup/memory.max", NULL);
		used = read_number("/sys/fs/cgroup/memory.current", NULL);
	}
	return most == UINT64_MAX || used == UINT64_MAX ? UINT64_MAX
	       : used < most				? most - used
							: 0;
}

/* Returns the reason why no copy is made; NULL if a copy may be made. */
static const char *refusal(void)
{
	struct gm_copy_surroundings now = {
		.available_bytes = read_number("/proc/meminfo", "MemAvailable:"),
		.group_bytes = group_headroom(),
		.overcommit = read_number("/proc/sys/vm/overcommit_memory", NULL)};
	struct utsname name;
	char text[128], *at;

	if (uname(&name) == 0)
		now.release = name.release;
	if (now.available_bytes != UINT64_MAX)
		now.available_bytes *= 1024;
	now.resident_bytes = UINT64_MAX;
	if (read_text("/proc/self/statm", text, sizeof(text)) && (at = strchr(text, ' ')))
		now.resident_bytes = strtoull(at, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
	return gm_copy_refusal(&now);
}

/* ---- the tool ---- */

/* The shim's own path, by what is mapped where this function lies. */
static bool own_path(char *path, size_t bytes)
{
	static char text[1 << 16];
	uintptr_t here = (uintptr_t)moment_names;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	ssize_t n;
	bool found = false;

	while (fd >= 0 && !found && (n = read(fd, text + used, sizeof(text) - 1 - used)) > 0) {
		char *line = text, *end;

		used += (size_t)n;
		text[used] = '\0';
		while (!found && (end = strchr(line, '\n'))) {
			char *at, *slash;
			uintptr_t from = strtoull(line, &at, 16),
				  to = *at == '-' ? strtoull(at + 1, NULL, 16) : 0;

			*end = '\0';
			slash = strchr(line, '/');
			if (from <= here && here < to && slash && strlen(slash) < bytes) {
				strcpy(path, slash);
				found = true;
			}
			line = end + 1;
		}
		used -= (size_t)(line - text);
		memmove(text, line, used);
	}
	if (fd >= 0)
		close(fd);
	return found;
}

static bool try_tool(const char *directory, size_t length, const char *rest)
{
	if (length + strlen(rest) + 1 > sizeof(held.tool))
		return false;
	memcpy(held.tool, directory, length);
	strcpy(held.tool + length, rest);
	return access(held.tool, X_OK) == 0;
}

/* Beside the shim, as it is built or installed; then by PATH. */
static bool find_tool(void)
{
	static const char *const places[] = {"/../bin/gpumem-report", "/../../bin/gpumem-report",
					     "/../../tools/gpumem-report/gpumem-report",
					     "/gpumem-report"};
	const char *list = getenv("PATH");
	char path[PATH_MAX];

	if (held.tool[0])
		return true;
	if (own_path(path, sizeof(path)))
		for (unsigned i = 0; i < sizeof(places) / sizeof(*places); i++)
			if (try_tool(path, (size_t)(strrchr(path, '/') - path), places[i]))
				return true;
	while (list && *list) {
		size_t length = strcspn(list, ":");

		if (length && try_tool(list, length, "/gpumem-report"))
			return true;
		list += length + (list[length] == ':');
	}
	held.tool[0] = '\0';
	return false;
}

/* ---- the copy: system calls only ---- */

static void put_number(char *text, unsigned number)
{
	char digits[12];
	unsigned count = 0;

	do {
		digits[count++] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	while (count)
		*text++ = digits[--count];
	*text = '\0';
}

static void run_tool(enum gm_holders_moment moment, int gate)
{
	char pid[16], byte, *const environment[] = {"LC_ALL=C.UTF-8", NULL};
	const char *const arguments[] = {"gpumem-report",      "holders", "--copy", pid, "--moment",
					 moment_names[moment], held.file, NULL};
	struct rlimit seconds = {MOST_SECONDS, MOST_SECONDS}, bytes = {TOOL_BYTES, TOOL_BYTES};

	put_number(pid, (unsigned)syscall(SYS_getppid));
	if (syscall(SYS_read, gate, &byte, 1) != 1)
		syscall(SYS_exit_group, 1);
	syscall(SYS_close, gate);
	for (int fd = 0; fd < 3; fd++)
		syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR, 0);
	syscall(SYS_prlimit64, 0, RLIMIT_CPU, &seconds, NULL);
	syscall(SYS_prlimit64, 0, RLIMIT_AS, &bytes, NULL);
	syscall(SYS_execve, held.tool, arguments, environment);
	syscall(SYS_exit_group, 127);
}

static void live_as_copy(enum gm_holders_moment moment)
{
	const struct timespec step = {0, STEP_NS};
	int gate[2];
	long tool;

	if (syscall(SYS_close_range, 0u, ~0u, 0u) != 0)
		for (unsigned fd = 0; fd < 1u << 16; fd++)
			syscall(SYS_close, fd);
	syscall(SYS_setsid);
	syscall(SYS_setpriority, PRIO_PROCESS, 0, 10);
	if (syscall(SYS_pipe2, gate, 0) != 0)
		syscall(SYS_exit_group, 1);
	tool = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (tool == 0) {
		syscall(SYS_close, gate[1]);
		run_tool(moment, gate[0]);
	}
	syscall(SYS_prctl, PR_SET_PTRACER, tool, 0, 0, 0);
	syscall(SYS_write, gate[1], "", 1);
	for (long i = 0; tool > 0 && i < MOST_SECONDS * (1000000000l / STEP_NS); i++) {
		if (syscall(SYS_wait4, tool, NULL, WNOHANG, NULL) != 0)
			syscall(SYS_exit_group, 0);
		syscall(SYS_nanosleep, &step, NULL);
	}
	if (tool > 0)
		syscall(SYS_kill, tool, SIGKILL);
	syscall(SYS_exit_group, 0);
}

/* ---- making it ---- */

/* True while the last copy lives. One that has ended is taken off the process table. */
static bool is_busy(void)
{
	if (held.pid <= 0)
		return false;
	if (syscall(SYS_wait4, held.pid, NULL, WNOHANG | __WCLONE, NULL) == 0)
		return true;
	held.pid = 0;
	return false;
}

static int clone_process(enum gm_holders_moment moment)
{
	uint64_t all = ~0ull, mask;
	long pid;

	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &mask, sizeof(all));
	pid = syscall(SYS_clone, 0, 0, 0, 0, 0);
	if (pid == 0)
		live_as_copy(moment);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask));
	return (int)pid;
}

/* "OUT.holders<n>.new" */
static bool name_file(unsigned number)
{
	const char *path = gm_store_path();
	size_t length = strlen(path);

	if (!length || length + sizeof(".holders1.new") > sizeof(held.file))
		return false;
	memcpy(held.file, path, length);
	strcpy(held.file + length, ".holders");
	put_number(held.file + strlen(held.file), number);
	strcat(held.file, ".new");
	return true;
}

/* A site has to grow by the amount again for the next copy. */
static bool has_grown(void)
{
	if (!held.grown_from)
		held.grown_from = gm_settings.holders_grow_bytes;
	if (gm_sites_most_live_bytes() < held.grown_from)
		return false;
	held.grown_from = gm_sites_most_live_bytes() + gm_settings.holders_grow_bytes;
	return true;
}

static void make_copy(enum gm_holders_moment moment)
{
	const char *reason;
	int error;

	if (is_busy() || held.copies >= MOST_COPIES || (moment == GM_HOLDERS_OOM && held.copies) ||
	    (moment == GM_HOLDERS_GROW && !has_grown()))
		return;
	reason = find_tool() ? refusal() : "gpumem-report was not found beside it or by PATH";
	if (reason) {
		held.copies = MOST_COPIES;
		gm_log(GM_LOG_WARN, "GPUMEMTRACE_HOLDERS: no copy of the process is made: %s",
		       reason);
		return;
	}
	error = name_file(held.copies + 1) ? gm_track_copy(held.file) : -ENAMETOOLONG;
	if (error) {
		gm_log(GM_LOG_WARN, "GPUMEMTRACE_HOLDERS: %s could not be written: %s", held.file,
		       strerror(-error));
		return;
	}
	held.copies++;
	held.pid = clone_process(moment);
	if (held.pid < 0)
		unlink(held.file);
}

void gm_copy_for_holders(enum gm_holders_moment moment)
{
	int saved = errno, pid = (int)syscall(SYS_getpid);

	if (!gm_owns_file())
		return;
	if (held.owner != pid) { /* the child of a fork may have inherited a held lock */
		gm_lock_reset(&held.lock);
		held.owner = pid;
		held.copies = 0;
		held.pid = 0;
		held.grown_from = 0;
	}
	if (gm_lock_try(&held.lock)) {
		make_copy(moment);
		gm_lock_release(&held.lock);
	}
	errno = saved;
}
