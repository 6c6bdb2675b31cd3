/*
 * Attaching and detaching (attach.h).
 */
#include "attach/attach.h"
#include "attach/remote_call.h"
#include "attach/refusal.h"
#include "store/attach_point.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SHIM_NAME "libgpumemtrace.so"
#define POLL_US	  500
#define LOAD_MS	  10000u
#define LOOK_MS	   50u	 /* between two looks whether dlopen has returned */
#define MOST_LOOKS 3	 /* that say so in a row: a handler of a signal can look like it */
#define JOIN_MS	  2000u /* for a thread that is outside of CUDA */
#define CLAIM_MS  2000u /* for another tool, which may be about to end */

/* The process, and where the shim is in it. */
struct session {
	const struct gm_attach_request *request;
	struct gm_attach_result *result;
	struct gm_target target;
	struct gm_injector injector;
	uint64_t point, serve; /* addresses of the two symbols; 0: the shim is not loaded */
	int claim;	       /* the process's folder in /proc, locked against other tools; -1 */
};

static enum gm_attach_outcome refuse(struct session *session, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static enum gm_attach_outcome refuse(struct session *session, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(session->result->text, sizeof(session->result->text), format, arguments);
	va_end(arguments);
	return GM_ATTACH_REFUSED;
}

/* Refuses and returns true if the process did nothing of the latest call, which is taken back. */
static bool stands_still(struct session *session)
{
	if (!gm_withdraw(&session->injector))
		return false;
	refuse(session,
	       "process %d does not run: it is stopped or frozen (docker pause, cgroup.freeze) and "
	       "has to go on first",
	       session->request->pid);
	return true;
}

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void pause_us(long us)
{
	const struct timespec time = {.tv_nsec = us * 1000};

	nanosleep(&time, NULL);
}

bool gm_sees_file(pid_t pid, const char *path)
{
	struct stat ours, theirs;
	char *name;
	bool same;

	if (asprintf(&name, "/proc/%d/root%s", pid, path) < 0)
		return false;
	same = stat(path, &ours) == 0 && stat(name, &theirs) == 0 && ours.st_ino == theirs.st_ino &&
	       ours.st_dev == theirs.st_dev;
	free(name);
	return same;
}

/* ---- the shim in the process ---- */

/* Looks for the shim among the objects of the process. */
static bool find_shim(struct session *session)
{
	char error[256];
	const struct gm_target_object *shim;
	const char *file;

	gm_target_close(&session->target);
	if (!gm_target_open(&session->target, session->request->pid, error, sizeof(error)))
		return false;
	shim = gm_target_find(&session->target, SHIM_NAME);
	if (!shim)
		return false;
	/* A file in memory has no path; it holds the bytes of ours. */
	file = strstr(shim->path, "memfd:") ? session->request->shim : NULL;
	session->point = gm_target_symbol(&session->target, shim, file, GM_ATTACH_POINT, NULL);
	session->serve = gm_target_symbol(&session->target, shim, file, GM_ATTACH_SERVE, NULL);
	return session->point && session->serve;
}

static bool read_point(const struct session *session, struct gm_attach_point *point)
{
	return gm_target_read(&session->target, session->point, point,
			      offsetof(struct gm_attach_point, text)) &&
	       memcmp(point->magic, GM_ATTACH_MAGIC, sizeof(point->magic)) == 0 &&
	       point->version == GM_ATTACH_VERSION;
}

static bool inject_within(struct session *session, unsigned wait_ms, uint64_t function,
			  const char *text, uint64_t number, uint64_t argument)
{
	struct gm_attach_result *result = session->result;
	bool made = gm_inject(&session->injector, function, text, number, argument, wait_ms,
			      result->text, sizeof(result->text));

	result->stops = session->injector.stops;
	if (made && session->injector.paused_us > result->paused_us)
		result->paused_us = session->injector.paused_us;
	return made;
}

static bool inject(struct session *session, uint64_t function, const char *text, uint64_t number,
		   uint64_t argument)
{
	return inject_within(session, session->request->wait_ms, function, text, number, argument);
}

static uint64_t symbol_in(const struct session *session, const char *object, const char *name)
{
	const struct gm_target_object *found = gm_target_find(&session->target, object);

	return found ? gm_target_symbol(&session->target, found, NULL, name, NULL) : 0;
}

static uint64_t in_libc(const struct session *session, const char *name)
{
	uint64_t at = symbol_in(session, "libc.so.6", name);

	return at ? at : symbol_in(session, "libc-2.", name);
}

static uint64_t find_dlopen(const struct session *session)
{
	uint64_t at = in_libc(session, "dlopen"); /* from glibc 2.34 on */

	if (!at)
		at = symbol_in(session, "libdl.so.2", "dlopen");
	if (!at)
		at = symbol_in(session, "libdl-2.", "dlopen");
	return at ? at : in_libc(session, "__libc_dlopen_mode");
}

/* ---- the shim's bytes, for a process that does not see its file ---- */

/* The number of the process's descriptor of our memory file, -1 if it has none. */
static int memory_descriptor(const struct session *session)
{
	char path[300], link[300];
	struct dirent *entry;
	int number = -1;
	DIR *list;

	snprintf(path, sizeof(path), "/proc/%d/fd", session->request->pid);
	list = opendir(path);
	while (list && number < 0 && (entry = readdir(list))) {
		ssize_t length;

		snprintf(path, sizeof(path), "/proc/%d/fd/%.64s", session->request->pid,
			 entry->d_name);
		length = readlink(path, link, sizeof(link) - 1);
		if (length <= 0)
			continue;
		link[length] = '\0';
		if (strncmp(link, "/memfd:" SHIM_NAME, strlen("/memfd:" SHIM_NAME)) == 0)
			number = atoi(entry->d_name);
	}
	if (list)
		closedir(list);
	return number;
}

static int copy_bytes(const char *from, const char *to)
{
	char buffer[65536];
	int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CLOEXEC);
	ssize_t got = -1;

	while (in >= 0 && out >= 0 && (got = read(in, buffer, sizeof(buffer))) > 0)
		if (write(out, buffer, (size_t)got) != got) {
			got = -1;
			break;
		}
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	return got == 0 ? 0 : -1;
}

/* Has the process make a file in memory, and writes the shim into it. Its number, or -1. */
static int give_bytes(struct session *session)
{
	uint64_t make = in_libc(session, "memfd_create");
	double until = now_ms() + LOAD_MS;
	char path[64];
	int number = -1;

	if (!make) {
		refuse(session, "process %d does not see %s and its C library has no memfd_create",
		       session->request->pid, session->request->shim);
		return -1;
	}
	if (!inject(session, make, SHIM_NAME, 0, 0))
		return -1;
	while (number < 0 && now_ms() < until) {
		number = memory_descriptor(session);
		pause_us(POLL_US);
	}
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", session->request->pid, number);
	if (number >= 0 && copy_bytes(session->request->shim, path) == 0)
		return number;
	if (number < 0 && stands_still(session))
		return -1;
	refuse(session, "the shim could not be written into process %d: %s", session->request->pid,
	       strerror(errno));
	return -1;
}

/* ---- loading ---- */

/* Waits until the constructor has run, or dlopen has returned without that. */
static bool await_loaded(struct session *session)
{
	double until = now_ms() + LOAD_MS, look = now_ms() + LOOK_MS;
	struct gm_attach_point point;
	unsigned over = 0;

	while (now_ms() < until && over < MOST_LOOKS) {
		if (now_ms() > look) {
			over = gm_has_returned(&session->injector) ? over + 1 : 0;
			look = now_ms() + LOOK_MS;
		}
		if ((session->point || find_shim(session)) && read_point(session, &point) &&
		    point.loaded)
			return true;
		pause_us(POLL_US);
	}
	return false;
}

static void not_loaded(struct session *session, const char *path)
{
	refuse(session,
	       "process %d could not load the shim: its loader refused %s. Most often its static "
	       "thread-local storage is exhausted (start it with "
	       "GLIBC_TUNABLES=glibc.rtld.optional_static_tls=4096), its memory is limited "
	       "(RLIMIT_AS, mlockall), its C library is older than 2.17, or a security module or "
	       "seccomp forbids it",
	       session->request->pid, path);
}

static bool load(struct session *session)
{
	const char *path = session->request->shim;
	uint64_t dlopen_at = find_dlopen(session), close_at;
	char by_number[64];
	int number = -1;
	bool called;

	if (!dlopen_at) {
		refuse(session, "process %d has no dlopen", session->request->pid);
		return false;
	}
	if (!gm_sees_file(session->request->pid, path)) {
		number = give_bytes(session);
		if (number < 0)
			return false;
		session->result->by_memory = true;
		snprintf(by_number, sizeof(by_number), "/proc/self/fd/%d", number);
		path = by_number;
	}
	called = inject(session, dlopen_at, path, 0, RTLD_NOW);
	if (called && !await_loaded(session)) {
		called = false;
		if (!stands_still(session))
			not_loaded(session, path);
	}
	close_at = number >= 0 ? in_libc(session, "close") : 0;
	if (close_at) {
		char text[sizeof(session->result->text)];

		memcpy(text, session->result->text, sizeof(text)); /* the refusal, if any */
		inject(session, close_at, NULL, (uint64_t)number, 0);
		memcpy(session->result->text, text, sizeof(text));
	}
	return called;
}

/* ---- asking the shim ---- */

static uint64_t age_ns(pid_t pid)
{
	uint64_t ticks = gm_process_started(pid);
	struct timespec now;

	if (!ticks)
		return 0;
	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec -
	       ticks * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
}

static bool write_request(struct session *session, enum gm_attach_asked asked)
{
	bool begins = asked == GM_ATTACH_ATTACH || asked == GM_ATTACH_JOIN;
	const char *settings = begins ? session->request->settings : "";
	uint64_t age = age_ns(session->request->pid);
	uint32_t word = asked;

	return strlen(settings) < GM_ATTACH_TEXT &&
	       gm_target_write(&session->target,
			       session->point + offsetof(struct gm_attach_point, text), settings,
			       strlen(settings) + 1) &&
	       gm_target_write(&session->target,
			       session->point + offsetof(struct gm_attach_point, age_ns), &age,
			       sizeof(age)) &&
	       gm_target_write(&session->target,
			       session->point + offsetof(struct gm_attach_point, asked), &word,
			       sizeof(word));
}

static bool await_served(struct session *session, uint32_t before, struct gm_attach_point *point)
{
	double until = now_ms() + LOAD_MS;

	while (now_ms() < until) {
		if (!read_point(session, point))
			return false;
		if (__atomic_load_n(&point->served, __ATOMIC_ACQUIRE) != before)
			return true;
		pause_us(POLL_US);
	}
	return false;
}

enum answer { SERVED, NOT_CALLED, NO_ANSWER }; /* but for SERVED there is a sentence */

static enum answer have_served(struct session *session, enum gm_attach_asked asked,
			       unsigned wait_ms, struct gm_attach_point *point)
{
	uint32_t before;

	if (!read_point(session, point)) {
		refuse(session, "process %d has another version of the shim",
		       session->request->pid);
		return NOT_CALLED;
	}
	before = point->served;
	if (!write_request(session, asked)) {
		refuse(session, "the shim in process %d cannot be written to",
		       session->request->pid);
		return NOT_CALLED;
	}
	session->injector.outside_cuda = asked == GM_ATTACH_JOIN || asked == GM_ATTACH_LEAVE;
	if (!inject_within(session, wait_ms, session->serve, NULL, 0, 0))
		return NOT_CALLED;
	if (await_served(session, before, point))
		return SERVED;
	if (stands_still(session))
		return NOT_CALLED;
	refuse(session,
	       "process %d did not answer within %u s; whether it did what was asked is not known",
	       session->request->pid, LOAD_MS / 1000);
	return NO_ANSWER;
}

static enum gm_attach_outcome ask(struct session *session, enum gm_attach_asked asked)
{
	struct gm_attach_result *result = session->result;
	struct gm_attach_point point;

	if (have_served(session, asked, session->request->wait_ms, &point) != SERVED)
		return GM_ATTACH_REFUSED;
	result->cupti = point.cupti;
	memcpy(result->why, point.why, sizeof(result->why));
	result->why[point.cupti ? 0 : sizeof(result->why) - 1] = '\0';
	result->slots = point.slots;
	result->table_words = point.table_words;
	result->failed = point.failed;
	result->lost = point.lost;
	if (!point.refused)
		return GM_ATTACH_DONE;
	if (!gm_target_read(&session->target,
			    session->point + offsetof(struct gm_attach_point, text), result->text,
			    sizeof(result->text)))
		result->text[0] = '\0';
	result->text[sizeof(result->text) - 1] = '\0';
	return GM_ATTACH_REFUSED;
}

/* ---- the two commands ---- */

/*
 * Two tools would overwrite each other's requests. The kernel drops the claim of a tool that was
 * killed, but only some time after its parent has gone on: therefore a claim is waited for.
 */
static bool claim(struct session *session)
{
	uint64_t wait_ms = session->request->wait_ms;
	uint64_t polls = 1 + (wait_ms < CLAIM_MS ? wait_ms : CLAIM_MS) * 1000 / POLL_US;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", session->request->pid);
	session->claim = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (session->claim < 0)
		return true;
	while (polls--) {
		if (flock(session->claim, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
			return true;
		pause_us(POLL_US);
	}
	refuse(session, "another gpumem-report is attaching to process %d or detaching from it",
	       session->request->pid);
	return false;
}

static bool open_session(struct session *session)
{
	struct gm_attach_result *result = session->result;
	pid_t pid = session->request->pid;

	*result = (struct gm_attach_result){0};
	session->claim = -1;
	/* First of all, because the other tool's stops make it the tracer of a thread at times. */
	if (!claim(session) ||
	    !gm_may_attach("/proc", pid, result->text, sizeof(result->text)) ||
	    !gm_target_open(&session->target, pid, result->text, sizeof(result->text)) ||
	    !gm_can_load("/proc", &session->target, result->text, sizeof(result->text)))
		return false;
	find_shim(session);
	if (!gm_injector_open(&session->injector, &session->target, result->text,
			      sizeof(result->text)))
		return false;
	session->injector.interrupt = session->request->interrupt;
	return true;
}

static void close_session(struct session *session)
{
	gm_injector_close(&session->injector);
	gm_target_close(&session->target);
	if (session->claim >= 0)
		close(session->claim);
}

static void write_why(const struct session *session, const char *why)
{
	char text[GM_ATTACH_WHY] = "";

	snprintf(text, sizeof(text), "%.*s", (int)sizeof(text) - 1, why);
	gm_target_write(&session->target, session->point + offsetof(struct gm_attach_point, why),
			text, sizeof(text));
}

/*
 * Has the shim subscribe to CUPTI, if it can be had. False, after a sentence, where the process did
 * not answer: then a second call might meet the first.
 */
static bool join_cupti(struct session *session)
{
	const struct gm_attach_request *request = session->request;
	unsigned wait_ms = request->wait_ms < JOIN_MS ? request->wait_ms : JOIN_MS;
	struct gm_attach_point point;
	enum answer answer;

	if (!request->cupti) {
		write_why(session, "GPUMEMTRACE_BACKEND=preload was asked for");
		return true;
	}
	write_why(session, "");
	answer = have_served(session, GM_ATTACH_JOIN, wait_ms, &point);
	if (answer == NOT_CALLED)
		write_why(session, session->result->text);
	return answer != NO_ANSWER;
}

/*
 * Leaves CUPTI first, which may have to be tried again. A tool that was killed while it attached
 * may have left a subscription without slots.
 */
static bool leave_cupti(struct session *session, const struct gm_attach_point *point)
{
	return !point->cupti || ask(session, GM_ATTACH_LEAVE) == GM_ATTACH_DONE;
}

static enum gm_attach_outcome attach(struct session *session)
{
	pid_t pid = session->request->pid;
	struct gm_attach_point point;

	if (!session->point) {
		if (!load(session))
			return GM_ATTACH_REFUSED;
	} else if (!read_point(session, &point)) {
		return refuse(session, "process %d has another version of the shim", pid);
	} else if (!point.late) {
		return GM_ATTACH_PRELOADED;
	} else if (point.state == GM_ATTACH_ATTACHED) {
		return refuse(session, "process %d is attached already", pid);
	}
	if (!join_cupti(session))
		return GM_ATTACH_REFUSED;
	return ask(session, GM_ATTACH_ATTACH);
}

enum gm_attach_outcome gm_attach(const struct gm_attach_request *request,
				 struct gm_attach_result *result)
{
	struct session session = {.request = request, .result = result};
	enum gm_attach_outcome outcome =
		open_session(&session) ? attach(&session) : GM_ATTACH_REFUSED;

	close_session(&session);
	return outcome;
}

static enum gm_attach_outcome detach(struct session *session)
{
	pid_t pid = session->request->pid;
	struct gm_attach_point point;

	if (!session->point)
		return refuse(session, "process %d is not attached", pid);
	if (!read_point(session, &point))
		return refuse(session, "process %d has another version of the shim", pid);
	if (!point.late)
		return GM_ATTACH_PRELOADED;
	if (!leave_cupti(session, &point))
		return GM_ATTACH_REFUSED;
	if (point.state != GM_ATTACH_ATTACHED)
		return refuse(session, "process %d is not attached", pid);
	return ask(session, GM_ATTACH_DETACH);
}

enum gm_attach_outcome gm_detach(const struct gm_attach_request *request,
				 struct gm_attach_result *result)
{
	struct session session = {.request = request, .result = result};
	enum gm_attach_outcome outcome =
		open_session(&session) ? detach(&session) : GM_ATTACH_REFUSED;

	close_session(&session);
	return outcome;
}
