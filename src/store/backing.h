/*
 * A sparse file that is mapped as a whole. Each part gets its disk blocks before it is touched for
 * the first time, so that a full disk is an error code and not a SIGBUS. No descriptor is kept,
 * because the program could close it and reuse its number. The functions are not thread-safe (the
 * owner's lock guards them) and use no malloc.
 */
#ifndef GM_STORE_BACKING_H
#define GM_STORE_BACKING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct gm_backing {
	char *base;	  /* address of the mapped file */
	const char *path; /* the file's present name, in the owner's storage */
	dev_t device;
	ino_t inode;
	bool by_descriptor; /* MADV_POPULATE_WRITE does not work on this kernel or filesystem */
};

/*
 * Maps `bytes` bytes, which are more than will be used, to be read and written, as mmap does. After
 * mlockall(MCL_FUTURE) mmap brings all of them into memory, or fails by the limit of locked memory.
 * Therefore one page is mapped and unlocked, and grows: what grows from unlocked memory is not
 * locked.
 */
void *gm_map_unlocked(uint64_t bytes, int flags, int fd);

/*
 * Sets the length of the new, empty file `fd` to `bytes` and maps it shared, in the place of what
 * is mapped at `at` if that is not NULL. Returns 0 or -errno.
 */
int gm_backing_map(struct gm_backing *backing, int fd, uint64_t bytes, void *at);

/*
 * Allocates disk blocks for a part of the file. Returns 0, -ENOSPC if the disk is full, for the
 * part at offset 0 -EDQUOT if a quota is exhausted, or another -errno.
 */
int gm_backing_grow(struct gm_backing *backing, uint64_t offset, uint64_t bytes);

/* Returns a descriptor of the file or -errno; -ESTALE if its name leads to another file now. */
int gm_backing_open(const struct gm_backing *backing);

/* Returns the soft limit of a resource of getrlimit, UINT64_MAX if there is none. */
uint64_t gm_limit_of(int resource);

#endif
