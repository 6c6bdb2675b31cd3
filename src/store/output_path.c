/*
 * The path of the output file. The functions call libc's system call wrappers only and no malloc,
 * because they run inside the program's first CUDA call.
 */
#include "store/output_path.h"
#include "store/header.h"
#include "store/journal_code.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define MAX_KEPT 9999 /* NAME.old1 to NAME.old9999 */

/* The last line of a pointer file says on which machine its target lies, by gm_machine's number. */
#define MACHINE	     "machine "
#define MACHINE_LINE MACHINE "%" PRIx64 "\n"

/* Filesystems whose page write-back waits for a server. The numbers are those of statfs(2). */
static const uint32_t network_filesystems[] = {
	0x6969,	    /* NFS */
	0x517b,	    /* SMB */
	0xfe534d42, /* SMB2 */
	0xff534d42, /* CIFS */
	0x00c36400, /* Ceph */
	0x0bd00bd0, /* Lustre */
	0x47504653, /* GPFS */
	0x19830326, /* BeeGFS */
	0xaad7aaea, /* PanFS */
	0x5346414f, /* AFS */
	0x01021997, /* 9p */
	0x65735546, /* FUSE: sshfs, s3fs, gcsfuse and the like */
	0x01161970, /* GFS2 */
	0x7461636f, /* OCFS2 */
};

/*
 * Filesystems that write a page to another block each time. A page that has its block needs a new
 * one when it is touched after a write-back, and if the disk or a quota is full then, the store
 * raises SIGBUS.
 */
static const uint32_t copying_filesystems[] = {
	0x9123683e, /* btrfs */
	0xca451a4e, /* bcachefs */
	0x3434,	    /* NILFS2 */
};

/*
 * Buffers for paths. They are static because a process may end in a signal handler that runs on a
 * few KiB of stack. There is one user at a time: the start lock guards the creation, and the end
 * happens once.
 */
static struct {
	char part[GM_PATH_BYTES];
	char kept[GM_PATH_BYTES + 32];
	char history[GM_PATH_BYTES + 32];
	char pointer[GM_PATH_BYTES + 64];
} scratch;

/*
 * Writes the text of a pointer file that leads to output->path into scratch.pointer, and returns
 * its length.
 */
static size_t pointer_text(const struct gm_output_path *output)
{
	return (size_t)snprintf(scratch.pointer, sizeof(scratch.pointer), "%s%s\n" MACHINE_LINE,
				GM_POINTER_MAGIC, output->path, gm_machine());
}

static int read_file(const char *path, char *buffer, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t got;

	if (fd < 0)
		return -errno;
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

static int make_directories(const char *path)
{
	char *part = scratch.part, *slash;

	if (strlen(path) >= GM_PATH_BYTES)
		return -ENAMETOOLONG;
	strcpy(part, path);
	for (slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(part, 0700) < 0 && errno != EEXIST && access(part, F_OK) < 0)
			return -errno;
		*slash = '/';
	}
	return 0;
}

/* Returns whether a file's process still runs, or may still run on another machine. */
static bool is_live(const struct gm_header *header)
{
	if (header->end != GM_END_NONE || header->pid == 0 || header->pid > INT32_MAX)
		return false;
	if (header->machine && header->machine != gm_machine())
		return true;
	if (kill((pid_t)header->pid, 0) < 0 && errno == ESRCH)
		return false;
	return (pid_t)header->pid != getpid() &&
	       gm_process_start_ticks((int)header->pid) == header->pid_start_ticks;
}

/*
 * Returns whether the last line of a pointer file says that its target lies on another machine's
 * disk.
 */
static bool is_elsewhere(const char *line)
{
	return strncmp(line, MACHINE, strlen(MACHINE)) == 0 &&
	       strtoull(line + strlen(MACHINE), NULL, 16) != gm_machine();
}

enum found { FOUND_LIVE, FOUND_OLD, FOUND_FOREIGN };

/*
 * Returns what exists at a path: a live process's output file, a finished one, or a file of another
 * kind.
 */
static enum found what_is(const char *path, bool follow)
{
	static union {
		struct gm_header header;
		char text[GM_PATH_BYTES + 64];
	} file; /* under the caller's start lock */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	size_t magic = strlen(GM_POINTER_MAGIC), line;
	ssize_t got;

	if (fd < 0)
		return FOUND_FOREIGN;
	memset(&file, 0, sizeof(file));
	got = pread(fd, file.text, sizeof(file.text) - 1, 0);
	close(fd);
	if (got == 0)
		return FOUND_OLD; /* its process was killed before it wrote anything */
	if (got >= (ssize_t)sizeof(file.header) &&
	    !memcmp(file.header.magic, GM_MAGIC, sizeof(file.header.magic)))
		return is_live(&file.header) ? FOUND_LIVE : FOUND_OLD;
	if (got >= (ssize_t)sizeof(GM_JOURNAL_MAGIC) &&
	    !memcmp(file.text, GM_JOURNAL_MAGIC, sizeof(GM_JOURNAL_MAGIC)))
		return FOUND_OLD;
	if (strncmp(file.text, GM_POINTER_MAGIC, magic))
		return FOUND_FOREIGN;
	line = magic + strcspn(file.text + magic, "\n");
	if (file.text[line] == '\n' && is_elsewhere(file.text + line + 1))
		return FOUND_LIVE; /* this machine cannot find out whether its process still runs */
	file.text[line] = '\0';
	if (!follow)
		return FOUND_OLD;
	if (strlen(file.text + magic) >= sizeof(scratch.part))
		return FOUND_FOREIGN;
	strcpy(scratch.part, file.text + magic);
	return what_is(scratch.part, false) == FOUND_LIVE ? FOUND_LIVE : FOUND_OLD;
}

/*
 * Renames the history beside a file that was kept under another name. Its reader checks that they
 * belong together.
 */
static void keep_history(const char *path)
{
	char *kept = scratch.kept, *history = scratch.history;

	if ((size_t)snprintf(history, sizeof(scratch.history), "%s" GM_HISTORY_SUFFIX, path) >=
		    sizeof(scratch.history) ||
	    what_is(history, false) != FOUND_OLD)
		return;
	strcat(kept, GM_HISTORY_SUFFIX);
	if (link(history, kept) == 0)
		unlink(history);
	else if (errno != EEXIST && access(kept, F_OK) < 0)
		rename(history, kept);
}

/*
 * Renames a finished file to the first free NAME.oldN. link() makes the claim on the new name
 * atomic.
 */
static int keep_old(const char *path)
{
	char *kept = scratch.kept;
	struct stat st;
	int i, error;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISREG(st.st_mode)) /* links and devices are not moved */
		return S_ISDIR(st.st_mode) ? -EISDIR : S_ISLNK(st.st_mode) ? -ELOOP : -ENOTSUP;
	if (what_is(path, false) == FOUND_FOREIGN)
		return -EEXIST;
	for (i = 1; i <= MAX_KEPT; i++) {
		snprintf(kept, sizeof(scratch.kept), "%s.old%d", path, i);
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

static int create_exclusive(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

/*
 * What is written before the file has its name: the header that names its owner, or a pointer's
 * text.
 */
struct content {
	const void *data;
	size_t bytes;
};

static int create_filled(const char *path, const struct content *content)
{
	int fd = create_exclusive(path);

	if (fd >= 0 && write(fd, content->data, content->bytes) != (ssize_t)content->bytes) {
		close(fd);
		unlink(path);
		return -ENOSPC;
	}
	return fd;
}

/*
 * Creates `path` with its content in one step, so that no other process finds a file without an
 * owner. Without hard links it takes two steps.
 */
static int create_owned(const char *path, const struct content *content)
{
	int fd, error;

	snprintf(scratch.kept, sizeof(scratch.kept), "%s.%d.new", path, getpid());
	fd = create_filled(scratch.kept, content);
	if (fd < 0)
		return fd == -EEXIST ? create_filled(path, content) : fd;
	error = link(scratch.kept, path) < 0 ? errno : 0;
	unlink(scratch.kept);
	if (!error)
		return fd;
	close(fd);
	return error == EEXIST ? -EEXIST : create_filled(path, content);
}

/*
 * Creates the file at `path`, a buffer of GM_PATH_BYTES, after moving an old file away or changing
 * the name as output_path.h says.
 */
static int claim(char *path, const struct content *content)
{
	int tries, error, fd = -EEXIST;

	for (tries = 0; tries < 8; tries++) {
		fd = create_owned(path, content);
		if (fd != -EEXIST)
			return fd;
		if (what_is(path, true) == FOUND_LIVE) {
			size_t used = strlen(path);

			if ((size_t)snprintf(path + used, GM_PATH_BYTES - used, ".%d", getpid()) >=
			    GM_PATH_BYTES - used)
				return -ENAMETOOLONG;
			continue;
		}
		error = keep_old(path);
		if (error < 0 && error != -ENOENT)
			return error;
	}
	return fd;
}

static struct gm_header owner_header(void)
{
	struct gm_header header = {.pid = (uint32_t)getpid()};

	gm_header_identify(&header);
	header.pid_start_ticks = gm_process_start_ticks((int)header.pid);
	header.machine = gm_machine();
	return header;
}

enum disk { DISK_LOCAL, DISK_COPYING, DISK_NETWORK };

static bool is_one_of(uint32_t type, const uint32_t *types, size_t count)
{
	while (count)
		if (types[--count] == type)
			return true;
	return false;
}

#define IS_ONE_OF(type, types) is_one_of(type, types, sizeof(types) / sizeof(*types))

static enum disk disk_of(const char *path)
{
	char *directory = scratch.part, *slash;
	struct statfs fs;

	strcpy(directory, path);
	slash = strrchr(directory, '/');
	if (!slash)
		strcpy(directory, ".");
	else if (slash == directory)
		slash[1] = '\0';
	else
		*slash = '\0';
	if (statfs(directory, &fs) < 0)
		return DISK_LOCAL;
	if (IS_ONE_OF((uint32_t)fs.f_type, network_filesystems))
		return DISK_NETWORK;
	return IS_ONE_OF((uint32_t)fs.f_type, copying_filesystems) ? DISK_COPYING : DISK_LOCAL;
}

/*
 * Creates a new file in a directory on a local disk. A name that is taken is left alone, because a
 * pointer on another filesystem may lead to it.
 */
static int create_local_in(struct gm_output_path *output, const char *directory,
			   const struct content *content)
{
	int i, fd = -EEXIST;

	for (i = 0; fd == -EEXIST && i <= MAX_KEPT; i++) {
		char number[16] = "";

		if (i)
			snprintf(number, sizeof(number), "-%d", i);
		if ((size_t)snprintf(output->path, sizeof(output->path),
				     "%s/gpumemtrace-%u-%d%s.gmt", directory, (unsigned)getuid(),
				     getpid(), number) >= sizeof(output->path) - 16)
			return -ENAMETOOLONG;
		fd = disk_of(output->path) != DISK_LOCAL ? -EXDEV
							 : create_owned(output->path, content);
	}
	return fd;
}

/* Creates the live file on a local disk, and a pointer to it at output->wanted. */
static int create_local(struct gm_output_path *output, const struct content *content)
{
	const char *directory = getenv("TMPDIR");
	int fd = -EXDEV, pointer;

	if (directory && directory[0] == '/')
		fd = create_local_in(output, directory, content);
	if (fd < 0)
		fd = create_local_in(output, "/tmp", content);
	if (fd < 0)
		return fd;
	pointer = claim(output->wanted, &(struct content){scratch.pointer, pointer_text(output)});
	if (pointer < 0) {
		close(fd);
		unlink(output->path);
		return pointer;
	}
	close(pointer);
	return fd;
}

/* Makes a relative path absolute, because the program may change its directory. */
static int make_absolute(char *out, const char *path)
{
	char *directory = scratch.part;
	int written;

	if (path[0] == '/')
		written = snprintf(out, GM_PATH_BYTES, "%s", path);
	else if (!getcwd(directory, sizeof(scratch.part)))
		return -errno;
	else
		written = snprintf(out, GM_PATH_BYTES, "%s/%s", directory, path);
	return written >= GM_PATH_BYTES - 16 ? -ENAMETOOLONG : 0;
}

int gm_output_create(struct gm_output_path *output, const char *path)
{
	struct gm_header header = owner_header();
	struct content content = {&header, sizeof(header)};
	enum disk disk;
	int fd;

	output->wanted[0] = '\0';
	fd = make_absolute(output->path, path);
	if (fd >= 0)
		fd = make_directories(output->path);
	if (fd < 0)
		return fd;
	disk = disk_of(output->path);
	if (disk == DISK_LOCAL)
		return claim(output->path, &content);
	strcpy(output->wanted, output->path);
	fd = create_local(output, &content);
	if (fd >= 0 || disk == DISK_NETWORK)
		return fd;
	/* no local disk takes the file; on this filesystem it works as long as there is space */
	strcpy(output->path, output->wanted);
	output->wanted[0] = '\0';
	return claim(output->path, &content);
}

static int create_new(const char *path, const struct content *content)
{
	int fd = create_owned(path, content), error;

	if (fd != -EEXIST)
		return fd;
	error = keep_old(path);
	return error ? error : create_owned(path, content);
}

static bool append(char *out, const char *path, const char *suffix)
{
	return snprintf(out, GM_PATH_BYTES, "%s%s", path, suffix) < GM_PATH_BYTES - 16;
}

int gm_output_create_beside(struct gm_output_path *output, const struct gm_output_path *main,
			    const char *suffix, const void *data, size_t bytes)
{
	struct content content = {data, bytes};
	int fd, pointer;

	if (!append(output->path, main->path, suffix) ||
	    !append(output->wanted, main->wanted, main->wanted[0] ? suffix : ""))
		return -ENAMETOOLONG;
	fd = create_new(output->path, &content);
	if (fd < 0 || !output->wanted[0])
		return fd;
	pointer = create_new(output->wanted,
			     &(struct content){scratch.pointer, pointer_text(output)});
	if (pointer < 0) {
		close(fd);
		unlink(output->path);
		return pointer;
	}
	close(pointer);
	return fd;
}

void gm_output_remove(const struct gm_output_path *output)
{
	unlink(output->path);
	if (output->wanted[0])
		unlink(output->wanted);
}

/* Copies a file to a new name; an existing file of that name is left alone. */
static int copy_file(const char *from, const char *to)
{
	int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), out, error = 0;
	struct stat st;
	off_t done = 0;

	if (in < 0)
		return -errno;
	out = create_exclusive(to);
	if (out < 0)
		error = out;
	else if (fstat(in, &st) < 0)
		error = -errno;
	while (!error && done < st.st_size) {
		ssize_t sent = sendfile(out, in, &done, (size_t)(st.st_size - done));

		if (sent < 0 && errno != EINTR)
			error = -errno;
		else if (sent == 0)
			error = -EIO;
	}
	close(in);
	if (out >= 0 && close(out) < 0 && !error)
		error = -errno;
	if (out >= 0 && error)
		unlink(to);
	return error;
}

/* Returns whether the pointer at output->wanted still leads to this process's file. */
static bool pointer_is_ours(const struct gm_output_path *output)
{
	char *text = scratch.part;
	size_t bytes = pointer_text(output);
	int got = read_file(output->wanted, text, sizeof(scratch.part));

	return got == (int)bytes && !memcmp(text, scratch.pointer, bytes);
}

int gm_output_settle(struct gm_output_path *output)
{
	int error;

	if (!output->wanted[0])
		return 0;
	if (!pointer_is_ours(output))
		return -ESTALE; /* the live file stays where it is */
	snprintf(scratch.kept, sizeof(scratch.kept), "%s.%d.new", output->wanted, getpid());
	error = copy_file(output->path, scratch.kept);
	if (error) /* the pointer stays, and so does the live file */
		return error;
	if (rename(scratch.kept, output->wanted) < 0) {
		error = -errno;
		unlink(scratch.kept);
		return error;
	}
	unlink(output->path);
	strcpy(output->path, output->wanted);
	output->wanted[0] = '\0';
	return 0;
}
