/*
 * A preload under which files below $QUOTA_DIRECTORY have $QUOTA_BYTES of space each, as a user's
 * quota gives them: a page beyond is SIGBUS, asking for its blocks EDQUOT. The kernel does the
 * first by itself when the file really ends there, so ftruncate tells of more than it does.
 * $OLD_KERNEL: one without MADV_POPULATE_WRITE (before 5.14), where blocks are asked for by
 * posix_fallocate.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define POPULATE_WRITE 23

/* Without their headers, which make one name of both where files are 64 bits wide. */
int ftruncate64(int fd, off_t bytes);
int posix_fallocate64(int fd, off_t offset, off_t bytes);
int madvise(void *start, size_t bytes, int advice);

static bool limited(int fd)
{
	const char *directory = getenv("QUOTA_DIRECTORY");
	char link[64], path[4096];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path) - 1);
	return directory && length > 0 && !strncmp(path, directory, strlen(directory));
}

static off_t limit(void)
{
	const char *bytes = getenv("QUOTA_BYTES");

	return bytes ? atol(bytes) : 0;
}

int ftruncate64(int fd, off_t bytes)
{
	int (*real)(int, off_t) = (int (*)(int, off_t))dlsym(RTLD_NEXT, "ftruncate64");

	return real(fd, limited(fd) && bytes > limit() ? limit() : bytes);
}

int posix_fallocate64(int fd, off_t offset, off_t bytes)
{
	int (*real)(int, off_t, off_t) =
		(int (*)(int, off_t, off_t))dlsym(RTLD_NEXT, "posix_fallocate64");

	return limited(fd) && offset + bytes > limit() ? EDQUOT : real(fd, offset, bytes);
}

ssize_t write(int fd, const void *data, size_t bytes)
{
	ssize_t (*real)(int, const void *, size_t) =
		(ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
	off_t at = lseek(fd, 0, SEEK_CUR);

	if (at >= 0 && limited(fd) && at + (off_t)bytes > limit()) {
		if (at >= limit()) {
			errno = EDQUOT;
			return -1;
		}
		bytes = (size_t)(limit() - at);
	}
	return real(fd, data, bytes);
}

int madvise(void *start, size_t bytes, int advice)
{
	int (*real)(void *, size_t, int) =
		(int (*)(void *, size_t, int))dlsym(RTLD_NEXT, "madvise");

	if (advice == POPULATE_WRITE && getenv("OLD_KERNEL")) {
		errno = EINVAL;
		return -1;
	}
	return real(start, bytes, advice);
}
