/*
 * Whether a stopped thread stands where a call may be made in it: it must hold neither the loader's
 * lock nor malloc's, because what is called takes both. That is found by unwinding its stack: no
 * frame may lie in the loader, in malloc, in fork or in the shim. What calls the driver takes the
 * driver's locks too, and no frame may lie in CUDA then.
 */
#ifndef GM_ATTACH_SAFE_PLACE_H
#define GM_ATTACH_SAFE_PLACE_H

#include "attach/target.h"

struct gm_safe_place;

/* What gm_unsafe returns of a process that has begun another program since it was looked at. */
extern const char gm_other_program[];

/* Prepares the unwinder; takes a while. NULL after a sentence in `error`. */
struct gm_safe_place *gm_safe_place_open(const struct gm_target *target, char *error,
					 size_t error_bytes);
void gm_safe_place_close(struct gm_safe_place *place);

/*
 * Why no call may be made in the thread, which this process has stopped; NULL if one may.
 * `pc` and `sp` are its registers. `outside_cuda`: the call is one that calls the driver.
 */
const char *gm_unsafe(struct gm_safe_place *place, pid_t thread, uint64_t pc, uint64_t sp,
		      bool outside_cuda);

#endif
