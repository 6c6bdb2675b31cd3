/*
 * Giving equal things equal numbers in the file: strings, frames, stacks. For stack/ only; the
 * public face is gm_stack_intern.
 */
#ifndef GM_STACK_INTERN_H
#define GM_STACK_INTERN_H

#include "stack/map.h"
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
struct gm_trace_note;

/*
 * A number for what is known of code now, for the keys of notes; 0 where something was unloaded that
 * is yet to be looked at, or there is no file.
 */
uint32_t gm_intern_epoch(void);

/* gm_stack_intern, which says in `note` what it knows; note->known is NULL if the stack is new. */
uint32_t gm_intern_noted(const struct gm_raw_stack *raw, struct gm_trace_note *note);

/* Whether the stack of a note of this epoch has these Python frames, of which as many as it keeps count. */
bool gm_intern_same_python(const struct gm_trace_note *note, const uint32_t *python);

/* What was captured for such a note, but for the Python frames themselves. */
void gm_intern_recall(const struct gm_trace_note *note, struct gm_raw_stack *raw);

/* Counts stacks and frames that could not be recorded. */
void gm_intern_count_lost(void);

/* Brings the module table up to date if the loader did something. Lock not held. */
void gm_intern_refresh_modules(void);

void gm_intern_reset(void);

#endif
