/*
 * Creating files (new_file.h).
 */
#include "store/new_file.h"
#include "store/descriptor.h"
#include "store/journal_code.h"
#include "store/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Not /proc/self, which is empty when the main thread has ended. Linux 3.17. */
#define OWN_DESCRIPTORS "/proc/thread-self/fd"

#define MAX_KEPT	 9999 /* NAME.old1 to NAME.old9999 */
#define MAX_TEMPORARY	 99
#define MAX_TRIES	 8
#define MOST_YIELDS	 1000u
#define NAME_BYTES	 255u /* NAME_MAX */

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1 /* linux/fs.h; in the C library's header since 2.28 */
#endif

/*
 * The buffers are static because files are also created in signal handlers, which can run on a few
 * KiB of stack.
 */
static struct {
	struct gm_lock lock;		/* guards the rest */
	char temporary[GM_PATH_BYTES];	/* of the file that was begun; "": it has no name */
	bool locked;			/* the file that was begun */
	char target[GM_PATH_BYTES];	/* of a pointer */
	char kept[GM_PATH_BYTES + 32];
	char history[GM_PATH_BYTES + 32];
	char kept_history[GM_PATH_BYTES + 64];
	union {
		struct gm_header header;
		char text[GM_PATH_BYTES + 64];
	} file;
} files;

bool gm_files_lock(bool wait)
{
	unsigned i;

	for (i = 0; !gm_lock_try(&files.lock); i++) {
		if (!wait || i == MOST_YIELDS)
			return false;
		sched_yield();
	}
	return true;
}

void gm_files_unlock(void)
{
	gm_lock_release(&files.lock);
}

void gm_files_forget(void)
{
	gm_lock_reset(&files.lock);
}

/* ---- names ---- */

void gm_numbered(char *out, const char *prefix, unsigned number)
{
	char digits[12];
	size_t used = strlen(prefix), count = 0;

	do {
		digits[count++] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	memcpy(out, prefix, used);
	while (count)
		out[used++] = digits[--count];
	out[used] = '\0';
}

bool gm_path_with_suffix(char *out, size_t bytes, const char *path, const char *suffix)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t length = strlen(name), added = strlen(suffix);

	if (length + added > NAME_BYTES) {
		length = NAME_BYTES - added;
		while (length && ((unsigned char)name[length] & 0xc0) == 0x80)
			length--;
	}
	length += (size_t)(name - path);
	if (length + added >= bytes)
		return false;
	memcpy(out, path, length);
	memcpy(out + length, suffix, added + 1);
	return true;
}

/* Writes the directory of `path`, with a slash at its end or empty, and the name. */
static bool path_beside(char *out, const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');
	size_t length = slash ? (size_t)(slash + 1 - path) : 0, added = strlen(name);

	if (length + added >= GM_PATH_BYTES)
		return false;
	memcpy(out, path, length);
	memcpy(out + length, name, added + 1);
	return true;
}

/* ---- new files ---- */

/*
 * Begins a file without a name. The name comes later by way of /proc; without that, only a process
 * with CAP_DAC_READ_SEARCH can give one.
 */
static int begin_unnamed(const char *path)
{
	files.temporary[0] = '\0';
	if (!path_beside(files.target, path, ".") || access(OWN_DESCRIPTORS, X_OK) < 0)
		return -EOPNOTSUPP;
	return gm_open(files.target, O_TMPFILE | O_RDWR, 0600);
}

static int begin_named(const char *path)
{
	int i, fd = -EEXIST;

	for (i = 0; i <= MAX_TEMPORARY && fd == -EEXIST; i++) {
		char name[64], number[32];

		gm_numbered(name, ".gpumemtrace-", (unsigned)getpid());
		gm_numbered(number, "-", (unsigned)i);
		strcat(strcat(name, number), ".new");
		if (!path_beside(files.temporary, path, name))
			return -ENAMETOOLONG;
		fd = gm_open(files.temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	}
	if (fd < 0)
		files.temporary[0] = '\0';
	return fd;
}

int gm_file_begin(const char *path, bool named)
{
	int fd = named ? -EOPNOTSUPP : begin_unnamed(path);

	if (fd < 0)
		fd = begin_named(path);
	files.locked = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
	return fd;
}

static int publish_unnamed(int fd, const char *path)
{
	char link[48];

	gm_numbered(link, OWN_DESCRIPTORS "/", (unsigned)fd);
	return linkat(AT_FDCWD, link, AT_FDCWD, path, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

/* In one step if the filesystem knows of one. */
static int publish_named(const char *path)
{
	struct stat st;

	if (syscall(SYS_renameat2, AT_FDCWD, files.temporary, AT_FDCWD, path, RENAME_NOREPLACE) ==
	    0)
		return 0;
	if (errno == EEXIST)
		return -EEXIST;
	if (link(files.temporary, path) == 0)
		return unlink(files.temporary) < 0 ? -errno : 0;
	if (errno == EEXIST || lstat(path, &st) == 0)
		return -EEXIST;
	return rename(files.temporary, path) < 0 ? -errno : 0;
}

int gm_file_publish(int fd, const char *path)
{
	int error = files.temporary[0] ? publish_named(path) : publish_unnamed(fd, path);

	if (!error)
		files.temporary[0] = '\0';
	return error;
}

int gm_file_replace(const char *path)
{
	if (rename(files.temporary, path) < 0)
		return -errno;
	files.temporary[0] = '\0';
	return 0;
}

void gm_file_abandon(void)
{
	if (files.temporary[0])
		unlink(files.temporary);
	files.temporary[0] = '\0';
}

static int create_by(const char *path, const struct gm_content *content, bool named)
{
	int fd = gm_file_begin(path, named), error = 0;

	if (fd < 0)
		return fd;
	if (content->header && files.locked)
		content->header->features |= GM_FEATURE_LOCKED;
	if (write(fd, content->data, content->bytes) != (ssize_t)content->bytes)
		error = -ENOSPC;
	if (!error)
		error = gm_file_publish(fd, path);
	if (!error)
		return fd;
	gm_file_abandon();
	close(fd);
	return error;
}

int gm_file_create(const char *path, const struct gm_content *content)
{
	int fd = create_by(path, content, false);

	/* a sandbox may not allow to name a file that has no name */
	return fd < 0 && fd != -EEXIST ? create_by(path, content, true) : fd;
}

/* ---- what is there ---- */

static int read_file(const char *path, char *buffer, size_t bytes)
{
	int fd = gm_open(path, O_RDONLY | O_NOFOLLOW, 0);
	ssize_t got;

	if (fd < 0)
		return fd;
	got = read(fd, buffer, bytes - 1);
	close(fd);
	if (got < 0)
		return -EIO;
	buffer[got] = '\0';
	return (int)got;
}

uint64_t gm_process_start_ticks(int pid)
{
	char path[64], text[1024];
	char *field;
	int i;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (read_file(path, text, sizeof(text)) <= 0)
		return 0;
	field = strrchr(text, ')'); /* ends the process's name, which may contain spaces */
	for (i = 2; field && i < 22; i++) {
		field = strchr(field, ' ');
		if (field)
			field++;
	}
	return field ? strtoull(field, NULL, 10) : 0;
}

uint64_t gm_machine(void)
{
	uint64_t hash = 14695981039346656037u; /* FNV-1a */
	char name[256] = "";

	gethostname(name, sizeof(name) - 1);
	for (const char *at = name; *at; at++)
		hash = (hash ^ (unsigned char)*at) * 1099511628211u;
	return hash ? hash : 1;
}

/* Tries a shared lock, which processes that look at the same time can all get. */
bool gm_file_is_locked(int fd)
{
	return flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

/* Returns whether the file's process runs on this machine and is not the calling one. */
static bool another_runs(const struct gm_header *header)
{
	if (kill((pid_t)header->pid, 0) < 0 && errno == ESRCH)
		return false;
	return (pid_t)header->pid != getpid() &&
	       gm_process_start_ticks((int)header->pid) == header->pid_start_ticks;
}

/* Returns whether a file's process still runs, or may still run on another machine. */
static bool is_live(const struct gm_header *header)
{
	if (header->end != GM_END_NONE || header->pid == 0 || header->pid > INT32_MAX ||
	    header->features & GM_FEATURE_COPY)
		return false;
	if (header->machine && header->machine != gm_machine())
		return true;
	if (header->features & GM_FEATURE_LOCKED)
		return false; /* the file has no lock any more */
	return another_runs(header);
}

/*
 * Returns whether the last line of a pointer file says that its target lies on another machine's
 * disk.
 */
static bool is_elsewhere(const char *line)
{
	size_t prefix = strlen(GM_MACHINE_LINE);

	return strncmp(line, GM_MACHINE_LINE, prefix) == 0 &&
	       strtoull(line + prefix, NULL, 16) != gm_machine();
}

/* Reads the start of the file into files.file. Returns its length or -errno; sets *locked. */
static ssize_t read_start(const char *path, bool *locked)
{
	int fd = gm_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	struct stat st;
	ssize_t got = -EINVAL;

	if (fd < 0)
		return fd;
	memset(&files.file, 0, sizeof(files.file));
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		got = pread(fd, files.file.text, sizeof(files.file.text) - 1, 0);
	*locked = gm_file_is_locked(fd);
	close(fd);
	return got;
}

static enum gm_found pointer_found(bool follow)
{
	char *text = files.file.text;
	size_t magic = strlen(GM_POINTER_MAGIC), line = magic + strcspn(text + magic, "\n");

	if (text[line] == '\n' && is_elsewhere(text + line + 1))
		return GM_FOUND_LIVE; /* this machine cannot find out whether its process runs */
	text[line] = '\0';
	if (!follow)
		return GM_FOUND_OLD;
	if (strlen(text + magic) >= sizeof(files.target))
		return GM_FOUND_FOREIGN;
	strcpy(files.target, text + magic);
	return gm_file_found(files.target, false) == GM_FOUND_LIVE ? GM_FOUND_LIVE : GM_FOUND_OLD;
}

enum gm_found gm_file_found(const char *path, bool follow)
{
	bool locked = false;
	ssize_t got = read_start(path, &locked);
	const char *text = files.file.text;

	if (got < 0)
		return GM_FOUND_FOREIGN;
	if (got == 0) /* its process was killed before it wrote anything */
		return locked ? GM_FOUND_LIVE : GM_FOUND_OLD;
	if (got >= (ssize_t)sizeof(files.file.header) &&
	    !memcmp(text, GM_MAGIC, sizeof(files.file.header.magic))) {
		/*
		 * A child that the process forked may hold the lock of a file that has ended. A
		 * process that is about to end still has to cut its file to its length.
		 */
		locked = locked &&
			 (files.file.header.end == GM_END_NONE || another_runs(&files.file.header));
		return locked || is_live(&files.file.header) ? GM_FOUND_LIVE : GM_FOUND_OLD;
	}
	if (got >= (ssize_t)sizeof(GM_JOURNAL_MAGIC) &&
	    !memcmp(text, GM_JOURNAL_MAGIC, sizeof(GM_JOURNAL_MAGIC)))
		return locked ? GM_FOUND_LIVE : GM_FOUND_OLD;
	if (strncmp(text, GM_POINTER_MAGIC, strlen(GM_POINTER_MAGIC)))
		return GM_FOUND_FOREIGN;
	return locked ? GM_FOUND_LIVE : pointer_found(follow);
}

/* ---- earlier files ---- */

/*
 * Renames the history beside a file that was kept under another name. Its reader checks that they
 * belong together.
 */
static void keep_history(const char *path)
{
	char *kept = files.kept_history, *history = files.history;

	if ((size_t)snprintf(history, sizeof(files.history), "%s" GM_HISTORY_SUFFIX, path) >=
		    sizeof(files.history) ||
	    gm_file_found(history, false) != GM_FOUND_OLD)
		return;
	snprintf(kept, sizeof(files.kept_history), "%s" GM_HISTORY_SUFFIX, files.kept);
	if (link(history, kept) == 0)
		unlink(history);
	else if (errno != EEXIST && access(kept, F_OK) < 0)
		rename(history, kept);
}

static int may_be_kept(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode)) /* links and devices are not moved */
		return S_ISDIR(st.st_mode) ? -EISDIR : S_ISLNK(st.st_mode) ? -ELOOP : -ENOTSUP;
	switch (gm_file_found(path, true)) {
	case GM_FOUND_OLD:
		return 0;
	case GM_FOUND_LIVE:
		return -EBUSY;
	default:
		return -EEXIST;
	}
}

/*
 * Locks an earlier file, so that one process alone moves it: a second could move, or remove, what
 * a third has put in its place. Returns a descriptor; -EBUSY if another process has the file;
 * -ENOENT if the name leads elsewhere by now. A child of this process can have the lock.
 */
static int hold_old(const char *path)
{
	int fd = gm_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0), error;
	bool own = (pid_t)files.file.header.pid == getpid();
	struct stat held, named;

	if (fd < 0)
		return fd;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK && !own)
		error = -EBUSY;
	else if (fstat(fd, &held) < 0 || lstat(path, &named) < 0 || held.st_dev != named.st_dev ||
		 held.st_ino != named.st_ino)
		error = -ENOENT;
	else
		return fd;
	close(fd);
	return error;
}

/* link() makes the claim on the new name atomic. */
static int rename_old(const char *path)
{
	char *kept = files.kept, suffix[32];
	int i, error;

	for (i = 1; i <= MAX_KEPT; i++) {
		gm_numbered(suffix, ".old", (unsigned)i);
		if (!gm_path_with_suffix(kept, sizeof(files.kept), path, suffix))
			return -ENAMETOOLONG;
		if (link(path, kept) == 0)
			error = unlink(path) < 0 ? -errno : 0;
		else if (errno == EEXIST || access(kept, F_OK) == 0)
			continue;
		else /* no hard links here */
			error = rename(path, kept) < 0 ? -errno : 0;
		if (error == 0)
			keep_history(path);
		return error;
	}
	return -EEXIST;
}

int gm_file_keep_old(const char *path)
{
	int error = may_be_kept(path), fd;

	if (error)
		return error == -ENOENT ? 0 : error;
	fd = hold_old(path);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	error = rename_old(path);
	close(fd);
	return error;
}

int gm_file_publish_keeping(int fd, const char *path)
{
	int tries, error = -EEXIST;

	for (tries = 0; tries < MAX_TRIES && error == -EEXIST; tries++) {
		error = gm_file_publish(fd, path);
		if (error == -EEXIST) {
			int kept = gm_file_keep_old(path);

			if (kept && kept != -ENOENT)
				return kept;
		}
	}
	return error;
}
