/*
 * A lock that one thread takes and gives back by plain stores as long as no other thread comes for it
 * (owned.h). Then it is as any (lock.h), and so it is at first: it belongs to the thread that takes it
 * GM_OWNED_LOCK_ROW times in a row, for often one thread makes a context and another one does the work.
 */
#ifndef GM_STORE_OWNED_LOCK_H
#define GM_STORE_OWNED_LOCK_H

#include "store/lock.h"
#include "store/owned.h"

#define GM_OWNED_LOCK_ROW 64u

/* Zero-initialised: free. The child of a fork zeroes it: the thread that held it is not there. */
struct gm_owned_lock {
	struct gm_owned owned; /* `busy`: it is held by `lock`, written by who holds it */
	struct gm_lock lock;   /* of all, while it has no owner */
	uintptr_t latest;      /* until it has one: the thread that took it last, `owned.row` times in a row */
};

/* It has no owner: not yet, or not any more. */
static inline bool gm_owned_lock_is_common(const struct gm_owned_lock *lock)
{
	uintptr_t owner = __atomic_load_n(&lock->owned.owner, __ATOMIC_ACQUIRE);

	return !owner || owner == GM_OWNED_SHARED;
}

/*
 * `lock` is held: true if that is all it takes. An owner comes about only while it holds `lock`, so who holds
 * it next sees that there is one; one that was taken the ownership away may hold it still.
 */
static inline bool gm_owned_lock_is_left(struct gm_owned_lock *lock)
{
	if (__builtin_expect(!gm_owned_lock_is_common(lock) ||
				     __atomic_load_n(&lock->owned.held, __ATOMIC_ACQUIRE), 0))
		return false;
	lock->owned.busy = true;
	return true;
}

/*
 * It never had an owner, and whoever held it is about to give it back: no earlier, or a signal's handler that
 * came while it is held would take it as the owner. errno stays.
 */
static __attribute__((noinline, cold, unused)) void gm_owned_lock_count(struct gm_owned_lock *lock)
{
	uintptr_t thread = gm_thread_pointer();

	lock->owned.row = lock->latest == thread ? lock->owned.row + 1 : 1;
	lock->latest = thread;
	if (lock->owned.row == GM_OWNED_LOCK_ROW)
		gm_owned_claim(&lock->owned, thread);
}

/* Where it has no owner and nobody holds it. */
static inline bool gm_owned_lock_share(struct gm_owned_lock *lock)
{
	if (!gm_owned_lock_is_common(lock) || !gm_lock_try(&lock->lock))
		return false;
	if (__builtin_expect(gm_owned_lock_is_left(lock), 1))
		return true;
	gm_lock_release(&lock->lock);
	return false;
}

/* Apart from the rest, and rarely called: errno stays as it was. */
static __attribute__((noinline, cold, unused)) void gm_owned_lock_wait(struct gm_owned_lock *lock)
{
	enum gm_owned_by by;

	for (;;) {
		if (gm_owned_lock_is_common(lock)) {
			gm_lock_acquire(&lock->lock);
			if (gm_owned_lock_is_left(lock))
				return;
			gm_lock_release(&lock->lock);
		} else {
			by = gm_owned_come(&lock->owned, gm_thread_pointer());
			if (by == GM_OWNED_BY_THIS)
				return;
			if (by == GM_OWNED_BY_ALL)
				continue;
		}
		/* one is at sharing it, or at giving it back as the owner that it was: once in a process's life */
		gm_owned_pause();
	}
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
	if (__builtin_expect(!__atomic_load_n(&lock->owned.owner, __ATOMIC_RELAXED), 0))
		gm_owned_lock_count(lock);
	gm_lock_release(&lock->lock);
}

#endif
