/*
 * gm_safe_read copies by process_vm_readv or, where a seccomp filter forbids that, through a pipe:
 * write() answers EFAULT for memory that is not there. gm_safe_pages asks madvise to map the pages
 * for reading (Linux 5.14), one system call for a whole range, and else reads a byte of each page.
 */
#include "stack/safe_read.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE 4096u
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

static bool through_pipe(void *to, uintptr_t from, size_t bytes)
{
	bool whole = false;
	int ends[2];

	if (bytes > PIPE_BUF || syscall(SYS_pipe2, ends, O_CLOEXEC | O_NONBLOCK))
		return false;
	if (syscall(SYS_write, ends[1], from, bytes) == (long)bytes)
		whole = syscall(SYS_read, ends[0], to, bytes) == (long)bytes;
	syscall(SYS_close, ends[0]);
	syscall(SYS_close, ends[1]);
	return whole;
}

bool gm_safe_read(void *to, uintptr_t from, size_t bytes)
{
	struct iovec here = {to, bytes}, there = {(void *)from, bytes};
	int saved = errno;
	bool whole;

	whole = syscall(SYS_process_vm_readv, (int)syscall(SYS_getpid), &here, 1, &there, 1, 0) ==
		(long)bytes;
	if (!whole && (errno == EPERM || errno == ENOSYS))
		whole = through_pipe(to, from, bytes);
	errno = saved;
	return whole;
}

static bool pages_one_by_one(uintptr_t from, uintptr_t to)
{
	char byte;

	while (from < to && gm_safe_read(&byte, from, 1))
		from += PAGE;
	return from >= to;
}

bool gm_safe_pages(uintptr_t from, uintptr_t to)
{
	int saved = errno;
	bool readable = !madvise((void *)from, to - from, MADV_POPULATE_READ);

	/* EINVAL is a kernel that does not know the advice, and also a page that cannot be read */
	if (!readable && errno != ENOMEM && errno != EFAULT)
		readable = pages_one_by_one(from, to);
	errno = saved;
	return readable;
}
