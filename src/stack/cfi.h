/*
 * Unwinding by rules learnt from the objects' own tables (cfi.c).
 */
#ifndef GM_STACK_CFI_H
#define GM_STACK_CFI_H

#include <stdbool.h>
#include <stdint.h>

struct gm_trace_note;
struct gm_traces;
struct gm_walk;

/* libgcc's _Unwind_Find_FDE: the table entry of an address; `bases` gets three words. */
typedef const void *gm_find_entry(void *pc, void *bases);

/*
 * Must come after gm_thread_stack_init. `find_registered` finds the tables of code that belongs to no
 * object; NULL: such code ends a walk. False if this processor is not supported.
 */
bool gm_cfi_init(gm_find_entry *find_registered);

/*
 * Walks the calling thread's stack. True if it came to the end, the room's end or the range; false
 * if it met a frame whose caller cannot be found or not be read: then `frames` are right, but not all.
 * Reads nothing that may not be there, whatever the stack holds. Any thread, any context.
 */
bool gm_cfi_walk(struct gm_walk *walk);

/*
 * What the stack of a walk turned out to be, for one that is expected at the same place after the same
 * stacks. Of a walk by traces that its caller had taken (walk->traces).
 */
void gm_cfi_note(const struct gm_walk *walk, const struct gm_trace_note *note);

/* Code may have changed under its addresses (something was unloaded): learn everything anew. */
void gm_cfi_forget(void);

/* Whether walks are remembered to shorten later ones (traces.h); at first they are. For measuring.
 */
void gm_cfi_keep_traces(bool keep);

/* In the child of a fork: threads that were in a walk are not there any more. */
void gm_cfi_reset(void);

#endif
