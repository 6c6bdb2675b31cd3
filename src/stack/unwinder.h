/*
 * An unwinder, and a walk over the calling thread's native frames: what is asked of an unwinder,
 * and what it found.
 */
#ifndef GM_STACK_UNWINDER_H
#define GM_STACK_UNWINDER_H

#include <stdbool.h>
#include <stdint.h>

/* A request to an unwinder, and its answer. */
struct gm_walk {
	uintptr_t *pc; /* return addresses go here, innermost first, beginning inside the shim */
	unsigned max;  /* room for so many */
	uintptr_t stop_start,
		stop_bytes; /* ends at the first one in this range, which it includes */

	/*
	 * The place to begin at, if sp is not 0: the frame that returns to `caller`, as it stood
	 * when it called. Else, and by unwinders that can only begin where they are, inside the
	 * shim, whose `spare` frames come on top of `max`.
	 */
	uintptr_t sp, bp;
	unsigned spare;

	unsigned frames;
	bool incomplete; /* out: the last frame has a caller that could not be found */

	/* Only for the reader of unwind tables; see walk_cache.h. */
	struct gm_walk_cache *cache; /* that the caller has taken; NULL: the reader takes one */
	bool anew;	   /* makes nothing of earlier walks */
	bool kept;	   /* out: for later ones, and gm_cfi_set_result */
	bool brief;	   /* fewer frames than others have */
	unsigned stepped;  /* frames that were stepped from by a rule */
	uintptr_t caller;  /* from this return address on, 0 for all … */
	unsigned from;	   /* … which is probably, and then certainly this one … */
	bool hashed;	   /* … and if this is so … */
	uint64_t hash;	   /* … gm_pcs_hash to the end, and … */
	uint64_t but_last; /* … without the last */
};

/* One way to unwind. `walk` fills in `frames`. */
struct gm_unwinder {
	const char *name;
	bool (*init)(void);
	void (*walk)(struct gm_walk *walk);
};

#endif
