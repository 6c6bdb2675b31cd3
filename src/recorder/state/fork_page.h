/*
 * The kernel zeroes the wipe-on-fork page in the child of a fork, however the fork was made (fork,
 * a raw clone). Zero means that the file is not this process's own, and that no lock is held by a
 * thread that the child does not have. A child of vfork shares the page with its parent; where that
 * matters the pid is compared too.
 */
#ifndef GM_RECORDER_FORK_PAGE_H
#define GM_RECORDER_FORK_PAGE_H

#include "store/lock.h"
#include "track/block_counts.h"

#include <stdbool.h>
#include <sys/types.h>
#include <unistd.h>

struct gm_fork_page {
	uint32_t mine;		/* this process opened the file (atomic) */
	uint32_t fast_path; /* it did, and the fast path is open, see gm_fast_path_open (atomic) */
	pid_t pid;		/* the process that opened the file */
	uint32_t opener;	/* the thread that opens the file, or 0 (atomic) */
	uint32_t end_state;	/* enum end_state of finish.c (atomic) */
	uint32_t execs; /* calls of exec that have begun and not failed yet; under `ending` */
	pid_t closer;		/* the thread that completes the file; under `ending` */
	pid_t ending_owner;	/* the thread that holds `ending`, or 0 (atomic) */
	uint32_t lockable; /* the loader's list may be locked: no raw clone (elf_symbols.h) */
	struct gm_lock ending;	/* guards the end of the file (finish.c) */
	struct gm_lock start;	/* guards the opening of the file (start.c) */
	struct gm_lock resolve; /* guards the tables of real functions (interpose/resolve_*.c) */
	struct gm_lock slots;	/* guards the relocation slots (interpose/slots.c) */
	struct gm_lock early;	/* guards the marks made before there is a file (early_marks.c) */
	struct gm_counted counted; /* by the tracker */
};

struct gm_fork_pages {
	struct gm_fork_page *page;
	bool wiped; /* the kernel zeroes it; else every call compares the pid */
};
extern struct gm_fork_pages gm_fork_pages __attribute__((visibility("hidden")));

/*
 * Returns the page, never NULL: without the kernel's help it is static memory, which fork.c zeroes.
 */
static inline struct gm_fork_page *gm_fork_page(void)
{
	return __atomic_load_n(&gm_fork_pages.page, __ATOMIC_ACQUIRE);
}

/* Returns true when a file is open and is this process's own. It opens none. Async-signal-safe. */
static inline bool gm_owns_file(void)
{
	struct gm_fork_page *page = gm_fork_page();

	return __builtin_expect(__atomic_load_n(&page->mine, __ATOMIC_ACQUIRE), 1) &&
	       (__builtin_expect(gm_fork_pages.wiped, 1) || page->pid == getpid());
}

/*
 * Returns true when this process owns its file and no setting needs the slow path
 * (interpose/wrap.c).
 */
static inline bool gm_fast_path_open(void)
{
	return __atomic_load_n(&gm_fork_page()->fast_path, __ATOMIC_ACQUIRE);
}

/* Maps the page. Later calls do nothing. Single thread. */
void gm_fork_page_init(void);

#endif
