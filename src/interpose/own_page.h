/*
 * One page that the child of a fork finds zeroed, however it was made (fork, a raw clone): "the file is
 * not mine", and no lock held by a thread that the child does not have. A vfork child shares it, so
 * that where it matters the pid is compared.
 */
#ifndef GM_INTERPOSE_OWN_PAGE_H
#define GM_INTERPOSE_OWN_PAGE_H

#include "store/lock.h"
#include <sys/types.h>

struct gm_own_page {
	uint32_t mine;		  /* this process opened the file */
	pid_t pid;		  /* and this is it */
	uint32_t finished;	  /* its books are closed or being closed */
	struct gm_lock start;	  /* preload.c: opening the file */
	struct gm_lock resolve;	  /* resolve.c: the tables of real functions */
	struct gm_lock early;	  /* public.c: marks made before there is a file */
};

/* Never NULL: where no page could be had, static memory that a handler of fork zeroes. */
struct gm_own_page *gm_own_page(void);

/* Maps the page and registers the handler; again: nothing. */
void gm_own_page_init(void);

/* True if the kernel wipes the page; else the pid is to be compared at every call. */
bool gm_own_page_wiped(void);

#endif
