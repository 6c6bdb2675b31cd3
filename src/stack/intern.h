/*
 * Giving equal things equal numbers in the file: strings, frames, stacks. For stack/ only; the
 * public face is gm_stack_intern.
 */
#ifndef GM_STACK_INTERN_H
#define GM_STACK_INTERN_H

#include "stack/map.h"
#include "stack/traces.h"
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

/* Private memory in use. */
uint64_t gm_intern_bytes(void);

struct gm_raw_stack;

/*
 * The key of a note: what makes a stack out of a native walk, beside the walk itself. A note under the
 * same key is of the same stack, if its Python frames are the same. 0: none is to be made.
 */
static inline uint64_t gm_note_key(uint32_t epoch, unsigned depth, unsigned pythons, unsigned flags)
{
	_Static_assert(GM_MAX_DEPTH < 1 << 12 && GM_STACK_PYTHON_UNREADABLE < 1 << 8,
		       "two of them and the flags fit below the epoch");
	return epoch ? (uint64_t)epoch << 32 | depth << 20 | pythons << 8 | flags : 0;
}

/* Whether a note was made in this epoch, of a stack of this depth. None is made in epoch 0. */
static inline bool gm_note_asks(const struct gm_trace_note *note, uint32_t epoch, unsigned depth)
{
	return note->key >> 20 == ((uint64_t)epoch << 12 | depth);
}

static inline unsigned gm_note_pythons(const struct gm_trace_note *note)
{
	return note->key >> 8 & 0xfff;
}

static inline unsigned gm_note_flags(const struct gm_trace_note *note)
{
	return note->key & 0xff;
}

/* Changes of the code in this process, as far as they were noticed. For what stands here below. */
struct gm_known_code {
	uint32_t changes_asked, changes_done; /* of the loaded objects */
	/* Rises when anything that was learnt of code is forgotten; the child of a fork goes on counting. */
	uint32_t epoch;
};
extern GM_HIDDEN struct gm_known_code gm_known_code;

static inline bool gm_intern_modules_changed(void)
{
	return __atomic_load_n(&gm_known_code.changes_asked, __ATOMIC_ACQUIRE) !=
	       __atomic_load_n(&gm_known_code.changes_done, __ATOMIC_ACQUIRE);
}

/*
 * A number for what is known of code now, for the keys of notes; 0 where something was unloaded that
 * is yet to be looked at, or there is no file.
 */
static inline uint32_t gm_intern_epoch(void)
{
	if (__builtin_expect(!gm_file || gm_intern_modules_changed(), 0))
		return 0;
	return __atomic_load_n(&gm_known_code.epoch, __ATOMIC_ACQUIRE);
}

/* From now on no note that was made holds: rules were forgotten, or the interpreter is another. */
static inline void gm_intern_forget_notes(void)
{
	__atomic_fetch_add(&gm_known_code.epoch, 1, __ATOMIC_RELEASE);
}

/* gm_stack_intern, which says in `note` what it knows; note->known is NULL if the stack is new. */
uint32_t gm_intern_noted(const struct gm_raw_stack *raw, struct gm_trace_note *note);

/* Whether the stack of a note of this epoch has these Python frames, of which as many as it keeps count. */
bool gm_intern_same_python(const struct gm_trace_note *note, const uint32_t *python);

/* Of a note that gm_intern_noted has just made: remembers where its Python frames stand. */
void gm_intern_note_places(struct gm_trace_note *note);

/* Counts stacks and frames that could not be recorded. */
void gm_intern_count_lost(void);

/* Brings the module table up to date if the loader did something. Lock not held. */
void gm_intern_refresh_modules(void);

void gm_intern_reset(void);

#endif
