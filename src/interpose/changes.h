/*
 * Calls under way that may change what a device holds. Each thread counts its own, without a locked
 * instruction: such calls are what programs make most, and who asks for them (role_cost.c) does so rarely.
 */
#ifndef GM_INTERPOSE_CHANGES_H
#define GM_INTERPOSE_CHANGES_H

#include "interpose/preload.h"

#include <stdbool.h>
#include <stdint.h>

/* One thread's: at most one is under way, then `begun` is one more than `ended`. */
struct gm_changes {
	uint64_t begun, ended; /* so far (atomic, written by the owner alone) */
	uint32_t owner;	       /* its tid; 0: nobody's (atomic) */
} __attribute__((aligned(64)));

/* Of a thread that has none of its own, or not yet. */
void gm_shared_change_begins(void);
void gm_shared_change_ends(void);

/* A call of the calling thread begins; no matter if one did that was left by a jump. */
static inline void gm_change_begins(void)
{
	struct gm_changes *own = gm_thread.changes;

	if (__builtin_expect(!own, 0)) {
		gm_shared_change_begins();
		return;
	}
	__atomic_store_n(&own->begun, own->ended + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE); /* before what the call does */
}

/* It is over and in the books; no matter if there is none. Async-signal-safe. */
static inline void gm_change_ends(void)
{
	struct gm_changes *own = gm_thread.changes;

	if (__builtin_expect(!own, 0))
		gm_shared_change_ends();
	else
		__atomic_store_n(&own->ended, own->begun, __ATOMIC_RELEASE);
}

/*
 * True when no other thread is in a call that may change what a device holds; `begun`: how many such
 * calls there were so far. Two looks that are true and give the same count: none came between that changed
 * what was seen between them. No lock.
 */
bool gm_calls_quiet(uint64_t *begun);

/*
 * In the child of a fork, at once where that can be and else before it opens its file: the other threads'
 * calls are not going to end here.
 */
void gm_changes_forget(void);

#endif
