/*
 * GPUMEMTRACE_UNWINDER=check: each walk by the tables is compared with libunwind's of the same
 * stack.
 */
#ifndef GM_STACK_UNWINDER_CHECK_H
#define GM_STACK_UNWINDER_CHECK_H

#include <stdbool.h>

struct gm_object;
struct gm_walk;

/*
 * `libunwind` is the library, which must stay loaded. `log` is called with lines for the user,
 * without prefix or line end. False if the library lacks what is needed. Once, before the first
 * walk.
 */
bool gm_unwinder_check_init(const struct gm_object *libunwind, void (*log)(const char *line));

/*
 * Compares a walk that was just made, from its frame `first` outwards, which is the first outside
 * the shim. To be called by the calling thread from further inside. Counts in the file's header;
 * each distinct difference is logged once with both stacks, up to GM_MOST_DIFFERENCES of them.
 * errno is kept. Any thread, any context.
 */
void gm_unwinder_check(const struct gm_walk *walk, unsigned first);

#define GM_MOST_DIFFERENCES 32u

#endif
