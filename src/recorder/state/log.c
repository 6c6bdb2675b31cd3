/*
 * Messages on stderr (log.h).
 */
#include "recorder/state/log.h"
#include "store/syscall_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_WAIT_MS 1000 /* for a reader of stderr that does not read, once in a process */

enum gm_log gm_log_level = GM_LOG_WARN;

static struct stat stderr_at_start; /* st_ino 0: it was closed */
static int wait_ms = MOST_WAIT_MS;

void gm_log_init(void)
{
	if (fstat(STDERR_FILENO, &stderr_at_start) < 0)
		memset(&stderr_at_start, 0, sizeof(stderr_at_start));
}

/*
 * True if descriptor 2 is still somewhere to write messages to. A program that closed it may have a
 * file or a connection of its own under that number: then only what was opened to append, or a
 * terminal, is taken for a log. False also when nobody reads what is written for a while.
 */
static bool may_write(void)
{
	struct pollfd writable = {.fd = STDERR_FILENO, .events = POLLOUT};
	struct stat now;
	int ready;

	if (fstat(STDERR_FILENO, &now) < 0)
		return false;
	if ((now.st_dev != stderr_at_start.st_dev || now.st_ino != stderr_at_start.st_ino) &&
	    !S_ISCHR(now.st_mode) && !(fcntl(STDERR_FILENO, F_GETFL) & O_APPEND))
		return false;
	ready = poll(&writable, 1, __atomic_load_n(&wait_ms, __ATOMIC_RELAXED));
	if (ready == 0)
		__atomic_store_n(&wait_ms, 0, __ATOMIC_RELAXED);
	return ready > 0 && (writable.revents & POLLOUT);
}

static void write_line(const char *line, size_t bytes)
{
	struct gm_syscall_guard guard;

	gm_syscall_guard_enter(&guard);
	while (bytes && may_write()) {
		ssize_t done = write(STDERR_FILENO, line, bytes);

		if (done <= 0 && errno != EINTR)
			break;
		if (done > 0) {
			line += done;
			bytes -= (size_t)done;
		}
	}
	gm_syscall_guard_leave(&guard);
}

void gm_log(enum gm_log level, const char *format, ...)
{
	char line[1024];
	int used, more, saved = errno;
	va_list arguments;

	if (level > gm_log_level)
		return;
	used = snprintf(line, sizeof(line), "gpumemtrace: ");
	va_start(arguments, format);
	more = vsnprintf(line + used, sizeof(line) - (size_t)used - 1, format, arguments);
	va_end(arguments);
	if (more > 0)
		used += more;
	if (used > (int)sizeof(line) - 2)
		used = (int)sizeof(line) - 2;
	line[used++] = '\n';
	write_line(line, (size_t)used);
	errno = saved;
}
