/*
 * One page that the child of a fork finds zeroed, however it was made (fork, a raw clone): "the file is
 * not mine", and no lock held by a thread that the child does not have. A vfork child shares it, so
 * that where it matters the pid is compared.
 */
#ifndef GM_INTERPOSE_OWN_PAGE_H
#define GM_INTERPOSE_OWN_PAGE_H

#include "store/lock.h"
#include <stdbool.h>
#include <sys/types.h>
#include <unistd.h>

struct gm_own_page {
	uint32_t mine;		  /* this process opened the file */
	uint32_t straight;	  /* and its allocations and frees may go the short way */
	pid_t pid;		  /* it is this one */
	uint32_t finished;	  /* its books are closed or being closed */
	struct gm_lock start;	  /* preload.c: opening the file */
	struct gm_lock resolve;	  /* resolve*.c: the tables of real functions */
	struct gm_lock early;	  /* public.c: marks made before there is a file */
};

struct gm_own {
	struct gm_own_page *page;
	bool wiped; /* by the kernel; else the pid is to be compared at every call */
};
extern struct gm_own gm_own __attribute__((visibility("hidden")));

/* Never NULL: where no page could be had, static memory that a handler of fork zeroes. */
static inline struct gm_own_page *gm_own_page(void)
{
	return __atomic_load_n(&gm_own.page, __ATOMIC_ACQUIRE);
}

/* True when a file is open and is this process's own; opens nothing. Safe in any context. */
static inline bool gm_owns_file(void)
{
	struct gm_own_page *page = gm_own_page();

	return __builtin_expect(__atomic_load_n(&page->mine, __ATOMIC_ACQUIRE), 1) &&
	       (__builtin_expect(gm_own.wiped, 1) || page->pid == getpid());
}

/* True when it is and nothing else is to be asked before an allocation or a free (call.c). */
static inline bool gm_goes_straight(void)
{
	return __atomic_load_n(&gm_own_page()->straight, __ATOMIC_ACQUIRE);
}

/* Maps the page and registers the handler; again: nothing. */
void gm_own_page_init(void);

#endif
