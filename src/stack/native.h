/*
 * Native return addresses of the calling thread, by whichever unwinder works here. Knows nothing of
 * Python, modules or the file.
 */
#ifndef GM_STACK_NATIVE_H
#define GM_STACK_NATIVE_H

#include "stack/traces.h"
#include "store/hot.h"

#include <stdbool.h>
#include <stdint.h>

/* What is asked of an unwinder, and what it found. */
struct gm_walk {
	uintptr_t *pc; /* return addresses go here, innermost first, beginning inside the shim */
	unsigned max;  /* room for so many */
	uintptr_t stop_start,
		stop_bytes; /* ends at the first one in this range, which it includes */

	/*
	 * Where to begin, if sp is not 0: in the frame that returns to `caller`, as it stood when it
	 * called. Else, and by unwinders that can only begin where they are, inside the shim, whose
	 * `spare` frames come on top of `max`.
	 */
	uintptr_t sp, bp;
	unsigned spare;

	unsigned frames;
	bool incomplete; /* out: the last frame has a caller that could not be found */

	/* Only the reader of unwind tables, see traces.h. */
	struct gm_traces *traces; /* that the caller has taken; NULL: it takes them itself */
	bool anew;	   /* makes nothing of earlier walks */
	bool kept;	   /* out: for later ones, and gm_cfi_note */
	bool brief;	   /* fewer frames than others have */
	unsigned stepped;  /* frames that were stepped from by a rule */
	uintptr_t caller;  /* from this return address on, 0 for all … */
	unsigned from;	   /* … which is probably, and then certainly this one … */
	bool hashed;	   /* … and if this is so … */
	uint64_t hash;	   /* … gm_trace_hash to the end, and … */
	uint64_t but_last; /* … without the last */
};

/* One way to unwind. `walk` fills in `frames`. */
struct gm_unwinder {
	const char *name;
	bool (*init)(void);
	void (*walk)(struct gm_walk *walk);
};

extern const struct gm_unwinder gm_unwinder_tables, gm_unwinder_libunwind, gm_unwinder_libgcc;
extern const struct gm_unwinder gm_unwinder_frame_pointers;

/*
 * Chooses the first unwinder that passes a self-test. Opens libraries: only where that is allowed
 * (at the first driver look-up). `only` names one; NULL for the usual order. False if there is none, then
 * walks have no frames.
 */
bool gm_native_init(const char *only);

/*
 * From now on each walk by the tables is compared with libunwind's, see unwinder_check.h. False if there
 * are no tables or no libunwind here.
 */
bool gm_native_check(void (*log)(const char *line));

/* Code was unloaded: forget what was learnt of it. Any thread. */
void gm_native_code_unloaded(void);

/* In the child of a fork, before its first walk. */
void gm_native_in_child(void);

const char *gm_native_name(void);

/* Whether walks make use of earlier ones, where the unwinder can; at first they do. */
void gm_native_keep_traces(bool keep);

/* They do, and it can. */
extern GM_HIDDEN bool gm_native_traced;

/* As gm_unwinder.walk; no frames without an unwinder. Any thread. */
void gm_native_walk(struct gm_walk *walk);

struct gm_object;

/*
 * A library by name or path, loaded if it is not yet, kept for good, out of everybody's scope. Only
 * where loading is allowed (at the first driver look-up). False if it cannot be had.
 */
bool gm_library_open(const char *name, struct gm_object *object);

/* The shim's own code. */
bool gm_native_is_own(uintptr_t pc);

#endif
