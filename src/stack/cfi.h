/*
 * Unwinding by rules learnt from the objects' own tables (cfi.c).
 */
#ifndef GM_STACK_CFI_H
#define GM_STACK_CFI_H

#include <stdbool.h>
#include <stdint.h>

struct gm_cached_result;
struct gm_walk_cache;
struct gm_walk;

/* libgcc's _Unwind_Find_FDE: the table entry of an address; `bases` gets three words. */
typedef const void *gm_find_entry(void *pc, void *bases);

/*
 * Must come after gm_thread_stack_init. `find_registered` finds the tables of code that belongs to
 * no object; NULL: such code ends a walk. False if this processor is not supported.
 */
bool gm_cfi_init(gm_find_entry *find_registered);

/*
 * Walks the calling thread's stack. True if it came to the end, the room's end or the range; false
 * if it met a frame whose caller cannot be found or not be read: then `frames` are right, but not
 * all. Reads nothing that may not be there, whatever the stack holds. Any thread, any context.
 */
bool gm_cfi_walk(struct gm_walk *walk);

/*
 * Keeps the result of a walk whose caller had taken the cache (walk->cache), if the walk was kept.
 */
void gm_cfi_set_result(const struct gm_walk *walk, const struct gm_cached_result *result);

/* Code may have changed under its addresses (something was unloaded): learn everything anew. */
void gm_cfi_forget(void);

/* Sets whether walks use the walk cache, which they do at first. For measuring. */
void gm_cfi_use_cache(bool keep);

/* In the child of a fork: threads that were in a walk are not there any more. */
void gm_cfi_reset(void);

#endif
