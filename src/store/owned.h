/*
 * What belongs to one thread until another one comes for it, and is shared from then on.
 * The owner takes it and gives it back by plain stores: a locked instruction costs more than most of what
 * is done in between.
 *
 * The owner sets `held` and then looks whether it is still the owner. Another thread that comes takes the
 * ownership away and has the kernel put a barrier into every running thread of the process (membarrier):
 * after that either the owner's `held` is seen here, or the owner sees that it is the owner no more. From
 * then on whoever wants it takes it by other means, the owner too, and waits while `held` is still set.
 * That an owner has ended is not noticed and need not be. Where the kernel has no such barrier, it is
 * shared from the start; where it refuses it later (a sandbox that was entered meanwhile), whoever takes
 * the ownership away sleeps for GM_OWNED_WAIT_NS, in which every processor has long made its stores seen.
 */
#ifndef GM_STORE_OWNED_H
#define GM_STORE_OWNED_H

#include "store/hot.h"

#include <stdbool.h>
#include <stdint.h>

/* Zero-initialised: nobody came yet. */
struct gm_owned {
	uintptr_t owner; /* its gm_thread_pointer, or one of the below (atomic) */
	bool held;	 /* by the owner (atomic) */
	/* the business of who uses this: */
	bool busy;    /* held by one of those that share it */
	uint16_t row; /* how often one thread took it in a row, until it has an owner */
};

/* In the place of an owner. Thread pointers are even. */
#define GM_OWNED_SHARED 1u /* there are several */
#define GM_OWNED_CLOSED 3u /* about to be shared */

#define GM_OWNED_WAIT_NS  20000000
#define GM_OWNED_PAUSE_NS 50000

/* The address of the calling thread's control block: its own for as long as it lives. */
static inline uintptr_t gm_thread_pointer(void)
{
	uintptr_t thread;

#if defined(__x86_64__) /* compilers that are not new do not know the other there */
	__asm__("mov %%fs:0, %0" : "=r"(thread));
#else
	thread = (uintptr_t)__builtin_thread_pointer();
#endif
	return thread;
}

/* True if `thread`, the calling one, owns it and did not hold it: now it does. */
static inline bool gm_owned_hold(struct gm_owned *owned, uintptr_t thread)
{
	if (__builtin_expect(__atomic_load_n(&owned->owner, __ATOMIC_ACQUIRE) != thread ||
				     __atomic_load_n(&owned->held, __ATOMIC_RELAXED), 0))
		return false;
	__atomic_store_n(&owned->held, true, __ATOMIC_RELAXED);
	/* in this order: who takes the ownership away then sees `held`, or else this sees it gone */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__builtin_expect(__atomic_load_n(&owned->owner, __ATOMIC_ACQUIRE) == thread, 1))
		return true;
	__atomic_store_n(&owned->held, false, __ATOMIC_RELEASE);
	return false;
}

/* Its owner gives it back. */
static inline void gm_owned_give(struct gm_owned *owned)
{
	__atomic_store_n(&owned->held, false, __ATOMIC_RELEASE);
}

enum gm_owned_by {
	GM_OWNED_BY_THIS, /* the calling thread, which holds it now */
	GM_OWNED_BY_ALL,  /* it is shared, since now or before; its owner may hold it still */
	GM_OWNED_NOT_NOW  /* there was no owner yet; another thread is at sharing it; or the calling one, which
			   * a signal interrupted, holds it already */
};

/*
 * Waits a little for a thread that has nobody woken. It sleeps, so that one of a lower priority comes to run,
 * and cannot be cancelled meanwhile. Any thread, any context; errno stays.
 */
void gm_owned_pause(void);

/*
 * Takes it where gm_owned_hold did not, and takes the ownership away from another thread. Any thread, any
 * context; errno stays. Does not wait but for the kernel's barrier.
 */
enum gm_owned_by gm_owned_come(struct gm_owned *owned, uintptr_t thread);

/* Makes the calling thread the owner if there was none yet. Any context; errno stays. */
void gm_owned_claim(struct gm_owned *owned, uintptr_t thread);

#endif
