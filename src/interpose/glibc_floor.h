/*
 * Put before every source of the shim, so that it runs with an old C library wherever it was built:
 * names for which the headers of a new glibc would choose a newer version have their older meaning
 * here. tests/package reads the versions in the built library; a name that raises them is added
 * here.
 */
#if !defined(GM_INTERPOSE_GLIBC_FLOOR_H) && !defined(__ASSEMBLER__)
#define GM_INTERPOSE_GLIBC_FLOOR_H

#include <features.h>

/* 2.38: strtol and sscanf of C23 that take binary numbers, under names of their own. */
#undef __GLIBC_USE_C2X_STRTOL
#define __GLIBC_USE_C2X_STRTOL 0
#undef __GLIBC_USE_C23_STRTOL
#define __GLIBC_USE_C23_STRTOL 0

#include <sys/stat.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * 2.33: before it these were inline. The kernel's struct stat is the C library's on 64-bit
 * machines.
 */
static inline int gm_fstat(int fd, struct stat *status)
{
	return (int)syscall(SYS_fstat, fd, status);
}

static inline int gm_fstatat(int directory, const char *path, struct stat *status, int flags)
{
	return (int)syscall(SYS_newfstatat, directory, path, status, flags);
}

#define fstat(fd, status) gm_fstat(fd, status)
#define stat(path, status) gm_fstatat(AT_FDCWD, path, status, 0)
#define lstat(path, status) gm_fstatat(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW)

#endif
