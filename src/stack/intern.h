/*
 * Interning: equal strings, frames and stacks get equal indices in the file. With it goes what all
 * of src/stack shares: the lock, the arena, and the epoch of what is known of code. For stack/
 * only; other folders use gm_stack_intern.
 */
#ifndef GM_STACK_INTERN_H
#define GM_STACK_INTERN_H

#include "stack/map.h"
#include "store/hot.h"
#include "store/layout.h"
#include "store/writer.h"

#include <stdbool.h>

/*
 * The one lock of stack/, held while something new is written down, never on a hit. False if this
 * thread holds it already (a signal came in between): then nothing may be written. It guards the
 * arena, all maps' writing, the module table and the tables STRINGS' users below, MODULES, FRAMES,
 * STACK_FRAMES and STACKS of the store. The loader's list lock is never taken under it.
 */
bool gm_intern_enter(void);
void gm_intern_leave(void);

/* Memory that lives until gm_intern_reset. Lock held. */
struct gm_arena *gm_intern_arena(void);

/* False once so much private memory is in use that nothing more is to be cached. Lock held. */
bool gm_intern_may_cache(void);

/* The string's number in GM_TABLE_STRINGS, GM_NONE if the file is full. Lock held. */
uint32_t gm_intern_string(const char *text, size_t bytes);

/* The frame's number in GM_TABLE_FRAMES; unused bytes of `frame` are zero. Lock held. */
uint32_t gm_intern_frame(const struct gm_frame_record *frame);

/*
 * Returns the index in GM_TABLE_STACKS of the stack of these frames, GM_NONE if the file is full.
 * Lock held.
 */
uint32_t gm_intern_stack(const uint32_t *frames, unsigned count, unsigned flags);

/* Private memory in use. */
uint64_t gm_intern_bytes(void);

/*
 * Changes of the code in this process, as far as they were noticed. Private to the functions below.
 */
struct gm_known_code {
	uint32_t changes_asked, changes_done; /* of the loaded objects */
	/* rises when anything that was learnt of code is forgotten; not reset in a forked child */
	uint32_t epoch;
};
extern GM_HIDDEN struct gm_known_code gm_known_code;

static inline bool gm_intern_modules_changed(void)
{
	return __atomic_load_n(&gm_known_code.changes_asked, __ATOMIC_ACQUIRE) !=
	       __atomic_load_n(&gm_known_code.changes_done, __ATOMIC_ACQUIRE);
}

/*
 * Returns a number for the present knowledge of code, for the keys of cached results; 0 if
 * something was unloaded that is yet to be looked at, or if there is no file.
 */
static inline uint32_t gm_intern_epoch(void)
{
	if (__builtin_expect(!gm_file || gm_intern_modules_changed(), 0))
		return 0;
	return __atomic_load_n(&gm_known_code.epoch, __ATOMIC_ACQUIRE);
}

/* Makes all cached results invalid: rules were forgotten, or the interpreter is another. */
static inline void gm_intern_forget_results(void)
{
	__atomic_fetch_add(&gm_known_code.epoch, 1, __ATOMIC_RELEASE);
}

/* Counts stacks and frames that could not be recorded. */
void gm_intern_count_lost(void);

void gm_intern_reset(void);

#endif
