/*
 * Where the output file lies (place.h). Calls libc's system call wrappers only; no malloc, because
 * this runs inside the program's first CUDA call.
 */
#include "store/place.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define MAX_KEPT 9999 /* NAME.old1 to NAME.old9999 */

/* Filesystems whose page write-back waits for a server; numbers from statfs(2). */
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
	field = strrchr(text, ')'); /* the name may hold spaces; what follows it may not */
	for (i = 2; field && i < 22; i++) {
		field = strchr(field, ' ');
		if (field)
			field++;
	}
	return field ? strtoull(field, NULL, 10) : 0;
}

static int make_directories(const char *path)
{
	char part[GM_PATH_BYTES];
	char *slash;

	if (strlen(path) >= sizeof(part))
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

/* Whether the file at `path` is the live file of a process that still runs on this machine. */
static bool owned_by_live_process(const char *path)
{
	struct gm_header header;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ssize_t got;

	if (fd < 0)
		return false;
	got = pread(fd, &header, sizeof(header), 0);
	close(fd);
	if (got != (ssize_t)sizeof(header) || memcmp(header.magic, GM_MAGIC, sizeof(header.magic)))
		return false;
	if (header.end != GM_END_NONE || kill((pid_t)header.pid, 0) < 0)
		return false;
	return (pid_t)header.pid != getpid() &&
	       gm_process_start_ticks((int)header.pid) == header.pid_start_ticks;
}

/* Renames an existing file to the first free NAME.oldN; link() makes the claim on the name atomic. */
static int keep_old(const char *path)
{
	char kept[GM_PATH_BYTES + 16];
	struct stat st;
	int i;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	for (i = 1; i <= MAX_KEPT; i++) {
		snprintf(kept, sizeof(kept), "%s.old%d", path, i);
		if (S_ISREG(st.st_mode) && link(path, kept) == 0)
			return unlink(path) < 0 ? -errno : 0;
		if (S_ISREG(st.st_mode) && errno == EEXIST)
			continue;
		if (access(kept, F_OK) < 0) /* no hard links here, or not a regular file */
			return rename(path, kept) < 0 ? -errno : 0;
	}
	return -EEXIST;
}

static int create_exclusive(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

/* Claims `path` (GM_PATH_BYTES of room), changing the name or moving an old file as place.h says. */
static int claim(char *path)
{
	int tries, fd = -EEXIST;

	for (tries = 0; tries < 8; tries++) {
		fd = create_exclusive(path);
		if (fd != -EEXIST)
			return fd;
		if (owned_by_live_process(path)) {
			size_t used = strlen(path);

			if ((size_t)snprintf(path + used, GM_PATH_BYTES - used, ".%d", getpid()) >=
			    GM_PATH_BYTES - used)
				return -ENAMETOOLONG;
			continue;
		}
		int error = keep_old(path);

		if (error < 0 && error != -ENOENT)
			return error;
	}
	return fd;
}

static bool on_network_filesystem(const char *path)
{
	char directory[GM_PATH_BYTES];
	struct statfs fs;
	char *slash;
	size_t i;

	strcpy(directory, path);
	slash = strrchr(directory, '/');
	if (!slash)
		strcpy(directory, ".");
	else if (slash == directory)
		slash[1] = '\0';
	else
		*slash = '\0';
	if (statfs(directory, &fs) < 0)
		return false;
	for (i = 0; i < sizeof(network_filesystems) / sizeof(*network_filesystems); i++)
		if ((uint32_t)fs.f_type == network_filesystems[i])
			return true;
	return false;
}

/* The live file on local disk, and a pointer to it at `place->wanted`. */
static int create_local(struct gm_place *place)
{
	const char *directory = getenv("TMPDIR");
	int fd, pointer;

	if (!directory || directory[0] != '/')
		directory = "/tmp";
	if ((size_t)snprintf(place->path, sizeof(place->path), "%s/gpumemtrace-%u-%d.gmt", directory,
			     (unsigned)getuid(), getpid()) >= sizeof(place->path))
		return -ENAMETOOLONG;
	if (on_network_filesystem(place->path))
		snprintf(place->path, sizeof(place->path), "/tmp/gpumemtrace-%u-%d.gmt",
			 (unsigned)getuid(), getpid());
	pointer = claim(place->wanted);
	if (pointer < 0)
		return pointer;
	fd = claim(place->path);
	if (fd < 0 || dprintf(pointer, "%s%s\n", GM_POINTER_MAGIC, place->path) < 0) {
		int error = fd < 0 ? fd : -EIO;

		if (fd >= 0)
			close(fd);
		close(pointer);
		unlink(place->wanted);
		return error;
	}
	close(pointer);
	return fd;
}

/* Relative names are made absolute: the program may change its directory. */
static int make_absolute(char *out, const char *path)
{
	char directory[GM_PATH_BYTES];
	int written;

	if (path[0] == '/')
		written = snprintf(out, GM_PATH_BYTES, "%s", path);
	else if (!getcwd(directory, sizeof(directory)))
		return -errno;
	else
		written = snprintf(out, GM_PATH_BYTES, "%s/%s", directory, path);
	return written >= GM_PATH_BYTES - 16 ? -ENAMETOOLONG : 0;
}

int gm_place_create(struct gm_place *place, const char *path)
{
	int error;

	place->wanted[0] = '\0';
	error = make_absolute(place->path, path);
	if (error < 0)
		return error;
	error = make_directories(place->path);
	if (error < 0)
		return error;
	if (!on_network_filesystem(place->path))
		return claim(place->path);
	strcpy(place->wanted, place->path);
	return create_local(place);
}

static int copy_file(const char *from, const char *to)
{
	int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), out, error = 0;
	struct stat st;
	off_t done = 0;

	if (in < 0)
		return -errno;
	out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (out < 0 || fstat(in, &st) < 0)
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
	return error;
}

int gm_place_settle(struct gm_place *place)
{
	char partial[GM_PATH_BYTES + 8];
	int error;

	if (!place->wanted[0])
		return 0;
	snprintf(partial, sizeof(partial), "%s.tmp", place->wanted);
	error = copy_file(place->path, partial);
	if (!error && rename(partial, place->wanted) < 0)
		error = -errno;
	if (error) {
		unlink(partial); /* the pointer stays, and so does the live file */
		return error;
	}
	unlink(place->path);
	strcpy(place->path, place->wanted);
	place->wanted[0] = '\0';
	return 0;
}
