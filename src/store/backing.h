/*
 * A sparse file that is mapped whole and given its blocks piece by piece before each piece is touched,
 * so that a full disk is an error code and not a SIGBUS. No descriptor is kept: the program could
 * close it and reuse its number. Not thread-safe: the owner's lock guards it. No malloc.
 */
#ifndef GM_STORE_BACKING_H
#define GM_STORE_BACKING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct gm_backing {
	char *base;	  /* where the file is mapped */
	const char *path; /* its name now; the owner's storage */
	dev_t device;
	ino_t inode;
	bool by_descriptor; /* MADV_POPULATE_WRITE does not work here */
};

/* Gives `fd`, new and empty, `bytes` of length and maps it shared. 0 or -errno. */
int gm_backing_map(struct gm_backing *backing, int fd, uint64_t bytes);

/* Blocks for a stretch of the file. 0; -ENOSPC on a full disk, of the first stretch -EDQUOT where it is a
 * quota; another -errno. */
int gm_backing_grow(struct gm_backing *backing, uint64_t offset, uint64_t bytes);

/* A descriptor of the file, or -errno: -ESTALE where another has its name now. */
int gm_backing_open(const struct gm_backing *backing);

/* The soft limit of a resource, UINT64_MAX for none. */
uint64_t gm_limit_of(int resource);

#endif
