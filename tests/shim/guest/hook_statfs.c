/*
 * A preload under which directories below $NETWORK_DIRECTORY lie on NFS, or on what has the number
 * $DISK_TYPE, and no file can be made whose path, or the directory where it has none, begins with
 * $READ_ONLY.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Without their header, which makes one name of both where files are 64 bits wide. */
int statfs(const char *path, void *fs);
int statfs64(const char *path, void *fs);
int open(const char *path, int flags, ...);
int open64(const char *path, int flags, ...);

#define NFS   0x6969
#define CREAT 020000100 /* O_CREAT and O_TMPFILE of Linux on x86-64 and AArch64 */

static int answer(const char *path, void *fs, const char *name)
{
	const char *network = getenv("NETWORK_DIRECTORY"), *type = getenv("DISK_TYPE");
	int (*real)(const char *, void *) = (int (*)(const char *, void *))dlsym(RTLD_NEXT, name);
	int result = real(path, fs);

	/* f_type is the first member of both */
	if (result == 0 && network && !strncmp(path, network, strlen(network)))
		*(long *)fs = type ? strtol(type, NULL, 0) : NFS;
	return result;
}

int statfs(const char *path, void *fs)
{
	return answer(path, fs, "statfs");
}

int statfs64(const char *path, void *fs)
{
	return answer(path, fs, "statfs64");
}

static int open_as(const char *name, const char *path, int flags, unsigned mode)
{
	const char *read_only = getenv("READ_ONLY");
	int (*real)(const char *, int, ...) =
		(int (*)(const char *, int, ...))dlsym(RTLD_NEXT, name);

	if (read_only && flags & CREAT && !strncmp(path, read_only, strlen(read_only))) {
		errno = EROFS;
		return -1;
	}
	return real(path, flags, mode);
}

#define OPEN(name)                                                                                 \
	int name(const char *path, int flags, ...)                                                 \
	{                                                                                          \
		unsigned mode = 0;                                                                 \
		va_list arguments;                                                                 \
                                                                                                   \
		va_start(arguments, flags);                                                        \
		if (flags & CREAT)                                                                 \
			mode = va_arg(arguments, unsigned);                                        \
		va_end(arguments);                                                                 \
		return open_as(#name, path, flags, mode);                                          \
	}

OPEN(open)
OPEN(open64)
