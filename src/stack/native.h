/*
 * Native return addresses of the calling thread, by whichever unwinder works here. Knows nothing of
 * Python, modules or the file.
 */
#ifndef GM_STACK_NATIVE_H
#define GM_STACK_NATIVE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * One way to unwind. `walk` writes return addresses, innermost first, beginning anywhere inside the
 * shim, and returns how many; it may stop early at the first one in [stop_start, stop_end), which
 * it then includes.
 */
struct gm_unwinder {
	const char *name;
	bool (*init)(void);
	unsigned (*walk)(uintptr_t *pc, unsigned max, uintptr_t stop_start, uintptr_t stop_end);
};

extern const struct gm_unwinder gm_unwinder_tables, gm_unwinder_libunwind, gm_unwinder_libgcc;
extern const struct gm_unwinder gm_unwinder_frame_pointers;

/*
 * Chooses the first unwinder that passes a self-test. Opens libraries: only where that is allowed
 * (at the first driver look-up). `only` names one, for tests; NULL for the usual order.
 */
void gm_native_init(const char *only);

/* Code was unloaded: forget what was learnt of it. Any thread. */
void gm_native_code_unloaded(void);

const char *gm_native_name(void);

/* As gm_unwinder.walk; 0 without an unwinder. Any thread. */
unsigned gm_native_walk(uintptr_t *pc, unsigned max, uintptr_t stop_start, uintptr_t stop_end);

struct gm_object;

/*
 * A library by name or path, loaded if it is not yet, kept for good, out of everybody's scope. Only
 * where loading is allowed (at the first driver look-up). False if it cannot be had.
 */
bool gm_library_open(const char *name, struct gm_object *object);

/* The shim's own code. */
bool gm_native_is_own(uintptr_t pc);

#endif
