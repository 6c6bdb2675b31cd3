/*
 * Tells whether a stopped thread stands where a call may be made in it: the thread must hold
 * neither the loader's lock nor malloc's, because the called code takes both. The answer is found
 * by unwinding the thread's stack: no frame may lie in the loader, in malloc, in fork or in the
 * shim; and by the word of the lock of the threads' stacks. Called code that calls the driver takes
 * the driver's locks too, and no frame may lie in CUDA then.
 */
#ifndef GM_ATTACH_SAFE_PLACE_H
#define GM_ATTACH_SAFE_PLACE_H

#include "attach/target.h"

struct gm_safe_place;

/* The answer of gm_unsafe for a process that has begun another program since it was opened. */
extern const char gm_other_program[];

/* Prepares the unwinder; takes a while. NULL after a sentence in `error`. */
struct gm_safe_place *gm_safe_place_open(const struct gm_target *target, char *error,
					 size_t error_bytes);
void gm_safe_place_close(struct gm_safe_place *place);

/*
 * Returns the reason why no call may be made in the thread, which this process has stopped; NULL if
 * a call may be made. `pc` and `sp` are the thread's registers. `outside_cuda`: the called code
 * calls the driver.
 */
const char *gm_unsafe(struct gm_safe_place *place, pid_t thread, uint64_t pc, uint64_t sp,
		      bool outside_cuda);

#endif
