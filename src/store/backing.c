/*
 * Files that are mapped before they have disk blocks.
 */
#include "store/backing.h"
#include "store/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

void *gm_map_unlocked(uint64_t bytes, int flags, int fd)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *first = mmap(NULL, page, PROT_READ | PROT_WRITE, flags, fd, 0), *all;

	if (first == MAP_FAILED)
		return first;
	munlock(first, page);
	all = mremap(first, page, bytes, MREMAP_MAYMOVE);
	if (all != MAP_FAILED)
		return all;
	munmap(first, page);
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
}

int gm_backing_map(struct gm_backing *backing, int fd, uint64_t bytes, void *at)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || ftruncate(fd, (off_t)bytes) < 0)
		return -errno;
	backing->device = st.st_dev;
	backing->inode = st.st_ino;
	backing->base = at ? mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0)
			   : gm_map_unlocked(bytes, MAP_SHARED, fd);
	if (backing->base == MAP_FAILED) {
		backing->base = at;
		return -errno;
	}
	/* a page fault reads no pages around it, which are holes and would be zeroed one by one */
	madvise(backing->base, bytes, MADV_RANDOM);
	return 0;
}

int gm_backing_open(const struct gm_backing *backing)
{
	int fd = gm_open(backing->path, O_RDWR | O_NOFOLLOW, 0);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) == 0 && st.st_dev == backing->device && st.st_ino == backing->inode)
		return fd;
	close(fd);
	return -ESTALE;
}

/*
 * Allocates blocks as before Linux 5.14, by posix_fallocate on a descriptor that is opened for this
 * call.
 */
static int grow_by_descriptor(const struct gm_backing *backing, uint64_t offset, uint64_t bytes)
{
	int fd = gm_backing_open(backing), error;

	if (fd < 0)
		return fd;
	error = -posix_fallocate(fd, (off_t)offset, (off_t)bytes);
	close(fd);
	return error;
}

/*
 * Finds out why a page could not be populated: posix_fallocate tells a full disk from a quota,
 * madvise does not.
 */
static int populate_error(const struct gm_backing *backing, uint64_t bytes)
{
	int error = grow_by_descriptor(backing, 0, bytes);

	return error ? error : -ENOSPC;
}

int gm_backing_grow(struct gm_backing *backing, uint64_t offset, uint64_t bytes)
{
	if (!backing->by_descriptor) {
		if (madvise(backing->base + offset, bytes, MADV_POPULATE_WRITE) == 0)
			return 0;
		if (errno == EFAULT) /* a store would raise SIGBUS; the user is told the cause at
					the start */
			return offset ? -ENOSPC : populate_error(backing, bytes);
		if (errno != EINVAL && errno != EPERM && errno != ENOSYS)
			return -errno;
		backing->by_descriptor = true;
	}
	return grow_by_descriptor(backing, offset, bytes);
}

uint64_t gm_limit_of(int resource)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur;
}
