/*
 * A lock that its first thread takes and gives back by plain stores as long as no other thread comes for it
 * (owned.h); then it is as any (lock.h).
 */
#ifndef GM_STORE_OWNED_LOCK_H
#define GM_STORE_OWNED_LOCK_H

#include "store/lock.h"
#include "store/owned.h"

/* Zero-initialised: free. The child of a fork zeroes it: the thread that held it is not there. */
struct gm_owned_lock {
	struct gm_owned owned; /* `busy`: it is held by `lock`, written by who holds it */
	struct gm_lock lock;   /* of those that share it */
};

/* `lock` is held: true if the one that was the owner does not hold it any more. */
static inline bool gm_owned_lock_is_left(struct gm_owned_lock *lock)
{
	if (__builtin_expect(__atomic_load_n(&lock->owned.held, __ATOMIC_ACQUIRE), 0))
		return false;
	lock->owned.busy = true;
	return true;
}

/* Where it is shared already and nobody holds it. */
static inline bool gm_owned_lock_share(struct gm_owned_lock *lock)
{
	if (__atomic_load_n(&lock->owned.owner, __ATOMIC_ACQUIRE) != GM_OWNED_SHARED ||
	    !gm_lock_try(&lock->lock))
		return false;
	if (gm_owned_lock_is_left(lock))
		return true;
	gm_lock_release(&lock->lock);
	return false;
}

/* Apart from the rest, and rarely called: errno stays as it was. */
static __attribute__((noinline, cold, unused)) void gm_owned_lock_wait(struct gm_owned_lock *lock)
{
	enum gm_owned_by by;

	while ((by = gm_owned_come(&lock->owned, gm_thread_pointer())) != GM_OWNED_BY_ALL) {
		if (by == GM_OWNED_BY_THIS)
			return;
		gm_owned_pause(); /* another one is at sharing it, once in a process's life */
	}
	gm_lock_acquire(&lock->lock);
	while (!gm_owned_lock_is_left(lock))
		gm_owned_pause(); /* the same */
}

/* Not from a signal's handler. */
static inline void gm_owned_lock_acquire(struct gm_owned_lock *lock)
{
	if (__builtin_expect(!gm_owned_hold(&lock->owned, gm_thread_pointer()), 0) &&
	    __builtin_expect(!gm_owned_lock_share(lock), 0))
		gm_owned_lock_wait(lock);
}

/* False where it is held, or about to be shared. Any context. */
static inline bool gm_owned_lock_try(struct gm_owned_lock *lock)
{
	enum gm_owned_by by;

	if (gm_owned_hold(&lock->owned, gm_thread_pointer()) || gm_owned_lock_share(lock))
		return true;
	by = gm_owned_come(&lock->owned, gm_thread_pointer());
	return by == GM_OWNED_BY_THIS || (by == GM_OWNED_BY_ALL && gm_owned_lock_share(lock));
}

static inline void gm_owned_lock_release(struct gm_owned_lock *lock)
{
	if (!lock->owned.busy) {
		gm_owned_give(&lock->owned);
		return;
	}
	lock->owned.busy = false;
	gm_lock_release(&lock->lock);
}

#endif
