/*
 * Code that the program launched or asked for before. Only the first launch of a kernel and the
 * first look at lazily loaded code take memory, so only those are measured. Lock-free, bounded,
 * without allocation; any thread.
 */
#ifndef GM_RECORDER_CODE_SEEN_H
#define GM_RECORDER_CODE_SEEN_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The kernels launched so far, by open addressing (atomic): 256 KiB that only programs which launch
 * touch.
 */
#define GM_LAUNCH_SLOTS 32768u
extern uint64_t gm_launches[GM_LAUNCH_SLOTS] __attribute__((visibility("hidden")));

/* The first slot in which a kernel is looked for. */
static inline uint32_t gm_launch_slot(uint64_t function)
{
	return (uint32_t)(function * 0x9e3779b97f4a7c15ull >> 40) % GM_LAUNCH_SLOTS;
}

/* True only if the kernel was launched before; a look at its first slot alone. */
static inline bool gm_launch_is_known(uint64_t function)
{
	return __atomic_load_n(&gm_launches[gm_launch_slot(function)], __ATOMIC_RELAXED) ==
	       function;
}

/* True the first time a kernel is launched, and again after it was forgotten. */
bool gm_first_launch(uint64_t function);

/* The next launch of this kernel, or of any, is to be measured again. */
void gm_forget_launch(uint64_t function);
void gm_forget_launches(void);

/*
 * True the first time code (a kernel, or a name in a module) is asked for on the current device,
 * and again after code was unloaded or when many others were asked for in between. cuBLAS asks for
 * its kernels' functions before every launch.
 */
bool gm_first_use(uint64_t code);

/* Code was unloaded: a handle that is asked for from now on may be other code's. */
void gm_forget_uses(void);

/*
 * A context is gone: what is launched and asked for from now on may be other code of the same
 * handles.
 */
void gm_forget_code(void);

#endif
