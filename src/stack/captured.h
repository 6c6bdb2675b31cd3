/*
 * Stacks as they were captured, and the stack of the file that each became. For stack.c.
 */
#ifndef GM_STACK_CAPTURED_H
#define GM_STACK_CAPTURED_H

#include <stdbool.h>
#include <stdint.h>

struct gm_raw_stack;
struct gm_cached_result;

/*
 * Interns a stack: fills in `result` but for its key and its Python places, and returns
 * result->stack, as gm_stack_intern does. result->known is NULL if the stack is new or cannot be
 * remembered.
 */
uint32_t gm_captured_intern(const struct gm_raw_stack *raw, struct gm_cached_result *result);

/*
 * Returns whether the stack of a result of this epoch has these Python frames, of which as many as
 * the stack keeps count.
 */
bool gm_captured_same_python(const struct gm_cached_result *result, const uint32_t *python);

/* Fills in the Python places of a result that gm_captured_intern has just made, and keeps them. */
void gm_captured_find_places(struct gm_cached_result *result);

/*
 * Brings the module table up to date if the loader did something. Any thread; takes the stack lock.
 */
void gm_captured_refresh_modules(void);

/* gm_stack_modules_changed. */
void gm_captured_check_unloads(void);

/* Forgets all of them; gm_intern_reset must follow. */
void gm_captured_reset(void);

#endif
