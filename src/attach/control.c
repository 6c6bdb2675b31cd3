/*
 * Asking a recorded process to sleep and to wake (control.h).
 */
#include "attach/control.h"
#include "attach/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define POLL_MS	 1
#define YOUNG_MS 5000

static void sleep_ms(unsigned ms)
{
	const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	nanosleep(&time, NULL);
}

/* Follows a pointer file to the live file. False where the path cannot be opened. */
static bool follow(struct gm_control *control, const char *path)
{
	char text[sizeof(control->path)] = "";
	const size_t magic = sizeof(GM_POINTER_MAGIC) - 1;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	if (got < 0)
		return false;
	if (strncmp(text, GM_POINTER_MAGIC, magic) == 0) {
		text[magic + strcspn(text + magic, "\n")] = '\0';
		path = text + magic;
	}
	snprintf(control->path, sizeof(control->path), "%s", path);
	return true;
}

bool gm_control_alive(const struct gm_control *control)
{
	return control->header->end == GM_END_NONE && control->started &&
	       gm_process_started(control->pid) == control->started;
}

static bool has_magic(const struct gm_header *header)
{
	return memcmp(header->magic, GM_MAGIC, sizeof(header->magic)) == 0;
}

/* A file that has just been made gets its first words once its process has the processor again. */
static void await_header(const struct gm_control *control)
{
	const struct gm_header *header = control->header;
	unsigned waited;

	for (waited = 0; waited < YOUNG_MS; waited += POLL_MS) {
		if (__atomic_load_n(&header->features, __ATOMIC_ACQUIRE) & GM_FEATURE_STARTS ||
		    (header->magic[0] && !has_magic(header)))
			return;
		sleep_ms(POLL_MS);
	}
}

static bool can_ask(const struct gm_control *control, char *error, size_t bytes)
{
	const struct gm_header *header = control->header;

	if (!has_magic(header) || header->byte_order != GM_BYTE_ORDER)
		snprintf(error, bytes, "%s is no file of gpumemtrace on this machine",
			 control->path);
	else if (!(header->features & GM_FEATURE_STARTS))
		snprintf(error, bytes,
			 "%s was written by a shim that cannot be started and stopped; restart the "
			 "process with this version",
			 control->path);
	else if (header->features & GM_FEATURE_COPY)
		snprintf(error, bytes, "%s is a copy; name the process or its live file",
			 control->path);
	else if (!gm_control_alive(control))
		snprintf(error, bytes, "process %d, which wrote %s, %s", control->pid,
			 control->path,
			 header->end == GM_END_DETACHED ? "is not recorded any more (detached)"
							: "has ended");
	else
		return true;
	return false;
}

bool gm_control_open(struct gm_control *control, const char *path, int pid, char *error,
		     size_t error_bytes)
{
	void *mapped;
	int fd;

	*control = (struct gm_control){0};
	if (!follow(control, path)) {
		snprintf(error, error_bytes, "%s: %s", path, strerror(errno));
		return false;
	}
	fd = open(control->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0) {
		snprintf(error, error_bytes, "%s cannot be written: %s", control->path,
			 strerror(errno));
		return false;
	}
	mapped = lseek(fd, 0, SEEK_END) < (off_t)GM_HEADER_BYTES
			 ? MAP_FAILED
			 : mmap(NULL, GM_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (mapped == MAP_FAILED) {
		snprintf(error, error_bytes, "%s is no file of gpumemtrace", control->path);
		return false;
	}
	control->header = mapped;
	await_header(control);
	control->pid = pid ? pid : (int)control->header->pid;
	control->started = gm_process_started(control->pid);
	if (can_ask(control, error, error_bytes))
		return true;
	gm_control_close(control);
	return false;
}

void gm_control_close(struct gm_control *control)
{
	if (control->header)
		munmap(control->header, GM_HEADER_BYTES);
	control->header = NULL;
}

enum gm_control_answer gm_control_await(struct gm_control *control, enum gm_recording recording,
					unsigned wait_ms)
{
	unsigned waited;

	for (waited = 0;; waited += POLL_MS) {
		if (__atomic_load_n(&control->header->recording, __ATOMIC_ACQUIRE) == recording)
			return GM_CONTROL_DONE;
		if (!gm_control_alive(control))
			return GM_CONTROL_ENDED;
		if (waited >= wait_ms)
			return GM_CONTROL_WAITING;
		sleep_ms(POLL_MS);
	}
}

enum gm_control_answer gm_control_ask(struct gm_control *control, enum gm_wanted wanted,
				      unsigned wait_ms)
{
	enum gm_recording goal = wanted == GM_WANT_SLEEP ? GM_SLEEPS : GM_RECORDS;

	if (__atomic_load_n(&control->header->recording, __ATOMIC_ACQUIRE) == goal &&
	    __atomic_load_n(&control->header->wanted, __ATOMIC_ACQUIRE) == wanted)
		return GM_CONTROL_ALREADY;
	__atomic_store_n(&control->header->wanted, (uint16_t)wanted, __ATOMIC_RELEASE);
	return gm_control_await(control, goal, wait_ms);
}
