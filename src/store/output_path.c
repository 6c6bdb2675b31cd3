/*
 * The path of the output file. The functions call libc's system call wrappers only and no malloc,
 * because they run inside the program's first CUDA call.
 */
#include "store/output_path.h"
#include "store/descriptor.h"
#include "store/header.h"
#include "store/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define MAX_LOCAL 9999
#define MAX_LIVE  9999
#define MAX_TRIES 8

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

/* Buffers for paths, guarded by gm_files_lock. */
static struct {
	char part[GM_PATH_BYTES];
	char pointer[GM_PATH_BYTES + 64];
} scratch;

/*
 * Writes the text of a pointer file that leads to output->path into scratch.pointer, and returns
 * its length.
 */
static size_t pointer_text(const struct gm_output_path *output)
{
	return (size_t)snprintf(scratch.pointer, sizeof(scratch.pointer),
				"%s%s\n" GM_MACHINE_LINE "%" PRIx64 "\n", GM_POINTER_MAGIC,
				output->path, gm_machine());
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

/*
 * Creates the file at `path`, a buffer of GM_PATH_BYTES, after moving an old file away or changing
 * the name as output_path.h says.
 */
static int claim(char *path, const struct gm_content *content)
{
	int tries = 0, live = 0, error, fd;
	char name[64] = "", number[32] = "";

	strcpy(scratch.part, path);
	for (;;) {
		fd = gm_file_create(path, content);
		if (fd != -EEXIST || tries == MAX_TRIES || live > MAX_LIVE)
			return fd;
		error = gm_file_keep_old(path);
		if (error == -EBUSY) {
			gm_numbered(name, ".", (unsigned)getpid());
			if (live)
				gm_numbered(number, "-", (unsigned)live);
			live++;
			if (!gm_path_with_suffix(path, GM_PATH_BYTES, scratch.part,
						 strcat(name, number)))
				return -ENAMETOOLONG;
		} else if (error < 0 && error != -ENOENT) {
			return error;
		} else {
			tries++;
		}
	}
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
			   const struct gm_content *content)
{
	int i, fd = -EEXIST;

	for (i = 0; fd == -EEXIST && i <= MAX_LOCAL; i++) {
		char number[16] = "";

		if (i)
			snprintf(number, sizeof(number), "-%d", i);
		if ((size_t)snprintf(output->path, sizeof(output->path),
				     "%s/gpumemtrace-%u-%d%s.gmt", directory, (unsigned)getuid(),
				     getpid(), number) >= sizeof(output->path) - 16)
			return -ENAMETOOLONG;
		fd = disk_of(output->path) != DISK_LOCAL ? -EXDEV
							 : gm_file_create(output->path, content);
	}
	return fd;
}

/*
 * Closes a pointer file. Its lock lasts as long as a mapping of it, which is never used, as the
 * live file's does (new_file.h).
 */
static void close_pointer(int fd)
{
	void *page = mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0);

	if (page != MAP_FAILED)
		madvise(page, 1, MADV_DONTFORK);
	close(fd);
}

/* Creates the live file on a local disk, and a pointer to it at output->wanted. */
static int create_local(struct gm_output_path *output, const struct gm_content *content)
{
	const char *directory = getenv("TMPDIR");
	int fd = -EXDEV, pointer;

	if (directory && directory[0] == '/')
		fd = create_local_in(output, directory, content);
	if (fd < 0)
		fd = create_local_in(output, "/tmp", content);
	if (fd < 0)
		return fd;
	pointer = claim(output->wanted,
			&(struct gm_content){scratch.pointer, pointer_text(output), NULL});
	if (pointer < 0) {
		close(fd);
		unlink(output->path);
		return pointer;
	}
	close_pointer(pointer);
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

static int create(struct gm_output_path *output, const char *path)
{
	struct gm_header header = owner_header();
	struct gm_content content = {&header, sizeof(header), &header};
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

int gm_output_create(struct gm_output_path *output, const char *path)
{
	int fd;

	if (!gm_files_lock(true))
		return -EBUSY;
	fd = create(output, path);
	gm_files_unlock();
	return fd;
}

static int create_new(const char *path, const struct gm_content *content)
{
	int fd = gm_file_create(path, content), error;

	if (fd != -EEXIST)
		return fd;
	error = gm_file_keep_old(path);
	return error ? error : gm_file_create(path, content);
}

static bool append(char *out, const char *path, const char *suffix)
{
	return snprintf(out, GM_PATH_BYTES, "%s%s", path, suffix) < GM_PATH_BYTES - 16;
}

static int create_beside(struct gm_output_path *output, const struct gm_output_path *main,
			 const char *suffix, const void *data, size_t bytes)
{
	struct gm_content content = {data, bytes, NULL};
	int fd, pointer;

	if (!append(output->path, main->path, suffix) ||
	    !append(output->wanted, main->wanted, main->wanted[0] ? suffix : ""))
		return -ENAMETOOLONG;
	fd = create_new(output->path, &content);
	if (fd < 0 || !output->wanted[0])
		return fd;
	pointer = create_new(output->wanted,
			     &(struct gm_content){scratch.pointer, pointer_text(output), NULL});
	if (pointer < 0) {
		close(fd);
		unlink(output->path);
		return pointer;
	}
	close_pointer(pointer);
	return fd;
}

int gm_output_create_beside(struct gm_output_path *output, const struct gm_output_path *main,
			    const char *suffix, const void *data, size_t bytes)
{
	int fd;

	if (!gm_files_lock(true))
		return -EBUSY;
	fd = create_beside(output, main, suffix, data, bytes);
	gm_files_unlock();
	return fd;
}

void gm_output_remove(const struct gm_output_path *output)
{
	unlink(output->path);
	if (output->wanted[0])
		unlink(output->wanted);
}

static int copy(int to, int from)
{
	struct stat st;
	off_t done = 0;

	if (fstat(from, &st) < 0)
		return -errno;
	while (done < st.st_size) {
		ssize_t sent = sendfile(to, from, &done, (size_t)(st.st_size - done));

		if (sent < 0 && errno != EINTR)
			return -errno;
		if (sent == 0)
			return -EIO;
	}
	return 0;
}

/* Copies a file to a new one, which takes the place of what is at `to`. */
static int copy_over(const char *from, const char *to)
{
	int in = gm_open(from, O_RDONLY | O_NOFOLLOW, 0), out, error;

	if (in < 0)
		return in;
	out = gm_file_begin(to, true);
	error = out < 0 ? out : copy(out, in);
	close(in);
	if (out >= 0 && close(out) < 0 && !error)
		error = -errno;
	if (!error)
		error = gm_file_replace(to);
	if (error)
		gm_file_abandon();
	return error;
}

/* Returns whether the pointer at output->wanted still leads to this process's file. */
static bool pointer_is_ours(const struct gm_output_path *output)
{
	size_t bytes = pointer_text(output);
	int fd = gm_open(output->wanted, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	ssize_t got;

	if (fd < 0)
		return false;
	got = read(fd, scratch.part, sizeof(scratch.part));
	close(fd);
	return got == (ssize_t)bytes && !memcmp(scratch.part, scratch.pointer, bytes);
}

static int settle(struct gm_output_path *output)
{
	int error;

	if (!pointer_is_ours(output))
		return -ESTALE; /* the live file stays where it is */
	error = copy_over(output->path, output->wanted);
	if (error) /* the pointer stays, and so does the live file */
		return error;
	unlink(output->path);
	strcpy(output->path, output->wanted);
	output->wanted[0] = '\0';
	return 0;
}

int gm_output_settle(struct gm_output_path *output)
{
	int error = -EBUSY;

	if (!output->wanted[0])
		return 0;
	if (gm_files_lock(true)) {
		error = settle(output);
		gm_files_unlock();
	}
	return error;
}
