/*
 * Giving equal things equal numbers in the file: strings, frames, stacks. For stack/ only; the
 * public face is gm_stack_intern.
 */
#ifndef GM_STACK_INTERN_H
#define GM_STACK_INTERN_H

#include "stack/map.h"
#include "stack/traces.h"
#include "store/layout.h"

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
struct gm_python_place;

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

static inline uint32_t gm_note_epoch(const struct gm_trace_note *note)
{
	return note->key >> 32;
}

static inline unsigned gm_note_pythons(const struct gm_trace_note *note)
{
	return note->key >> 8 & 0xfff;
}

/*
 * A number for what is known of code now, for the keys of notes; 0 where something was unloaded that
 * is yet to be looked at, or there is no file.
 */
uint32_t gm_intern_epoch(void);

/* gm_stack_intern, which says in `note` what it knows; note->known is NULL if the stack is new. */
uint32_t gm_intern_noted(const struct gm_raw_stack *raw, struct gm_trace_note *note);

/* Whether the stack of a note of this epoch has these Python frames, of which as many as it keeps count. */
bool gm_intern_same_python(const struct gm_trace_note *note, const uint32_t *python);

/* Of a note that gm_intern_noted has just made: remembers where its Python frames stand. */
void gm_intern_note_places(struct gm_trace_note *note);

/* The places of its Python frames, NULL if they are not known. */
const struct gm_python_place *gm_intern_places(const struct gm_trace_note *note);

/* Counts stacks and frames that could not be recorded. */
void gm_intern_count_lost(void);

/* Brings the module table up to date if the loader did something. Lock not held. */
void gm_intern_refresh_modules(void);

void gm_intern_reset(void);

#endif
