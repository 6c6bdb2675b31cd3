/*
 * The exported dlsym, by way of trampoline.S, and dlclose.
 */
#include "interpose/internal.h"
#include "interpose/route.h"
#include "interpose/runtime.h"
#include "interpose/slots.h"
#include "recorder/state/libc_functions.h"
#include "recorder/state/libraries.h"
#include "recorder/process/start.h"
#include "recorder/calls/unlisted.h"
#include "stack/stack.h"

#include <dlfcn.h>
#include <errno.h>

#define RTLD_DEFAULT_HANDLE ((void *)0)
#define RTLD_NEXT_HANDLE    ((void *)-1l)

#if defined(__x86_64__)
#define FIRST_GLIBC "GLIBC_2.2.5"
#else
#define FIRST_GLIBC "GLIBC_2.17"
#endif

/*
 * dlvsym is weak and has its first version, because before glibc 2.34 it was in libdl, which may be
 * missing.
 */
extern void *first_dlvsym(void *handle, const char *name, const char *version)
	__attribute__((weak));
__asm__(".symver first_dlvsym, dlvsym@" FIRST_GLIBC);

typedef void *dlsym_fn(void *handle, const char *name);

/*
 * For the trampoline (trampoline.S): the dlsym that callers would reach without the shim. The
 * thread sanitizer calls dlsym before its own dl_iterate_phdr can be called, which gm_libc_find
 * needs; dlvsym answers it. NULL if there is no dlsym.
 */
void *gm_real_dlsym(void);
void *gm_real_dlsym(void)
{
	static void *early; /* (atomic) */
	void *real = gm_libc_known(GM_LIBC_dlsym);

	if (!real)
		real = __atomic_load_n(&early, __ATOMIC_RELAXED);
	if (!real && first_dlvsym) {
		real = first_dlvsym(RTLD_NEXT, "dlsym", FIRST_GLIBC);
		__atomic_store_n(&early, real, __ATOMIC_RELAXED);
	}
	return real ? real : gm_libc_find(GM_LIBC_dlsym); /* libc may come before the shim */
}

static void *wrap_symbol(const char *name, void *real)
{
	struct gm_object object;
	enum gm_function function;

	if (!real || gm_is_own((uintptr_t)real) || !gm_object_at((uintptr_t)real, &object))
		return real;
	if (name[2] == 'd' && gm_is_cudart(&object)) { /* cuda... */
		unsigned major = gm_cudart_major(&object);

		function = gm_row_named(name, major >= 13 ? 4 : major == 12 ? 2 : 1);
		return function < GM_FUNCTIONS ? gm_runtime_wrapper_of(function, real, &object)
					       : real;
	}
	function = gm_row_named(name, 7);
	if (function == GM_FUNCTIONS || gm_rows[function].layer != GM_LAYER_DRIVER)
		return real;
	return gm_driver_wrapper_of(function, real);
}

/*
 * For the trampoline. Answers a look-up of one of the table's names in a real handle by *result and
 * true. False means that the trampoline is to jump to the real dlsym from the caller's place,
 * because the results for RTLD_NEXT and RTLD_DEFAULT depend on the caller; the latter finds our
 * exports by itself.
 */
bool gm_dlsym_hook(void *handle, const char *name, void **result);
bool gm_dlsym_hook(void *handle, const char *name, void **result)
{
	dlsym_fn *real;

	gm_slots_refresh();
	if (!name || name[0] != 'c' || name[1] != 'u' || handle == RTLD_DEFAULT_HANDLE ||
	    handle == RTLD_NEXT_HANDLE || gm_disabled())
		return false;
	if (gm_row_named(name, 7) == GM_FUNCTIONS) {
		gm_unlisted_function(name);
		return false;
	}
	real = (dlsym_fn *)gm_real_dlsym();
	if (!real)
		return false;
	*result = wrap_symbol(name, real(handle, name));
	return true;
}

/* ---- dlclose ---- */

/*
 * After an unloading nothing may be kept of a libcuda or cudart that is gone. Called for one loaded
 * object, and so under the lock of the loader's list: a thread that calls CUDA in a callback of
 * dl_iterate_phdr has that lock before it takes the one here.
 */
static int forget_unloaded(const struct gm_object *object, void *unused)
{
	(void)object, (void)unused;
	if (!gm_lock_resolve())
		return 1;
	gm_forget_driver();
	gm_forget_runtimes();
	gm_unlock_resolve();
	return 1;
}

/* After an unloading, what is remembered of call sites and modules is to be looked up again. */
__attribute__((visibility("default"))) int dlclose(void *handle)
{
	int (*real)(void *) = (int (*)(void *))gm_libc_find(GM_LIBC_dlclose);
	int result, error;

	if (!real)
		return -1;
	result = real(handle);
	error = errno;
	gm_note_unload();
	gm_slots_refresh();
	if (gm_driver_seen() || gm_has_runtime_instances())
		gm_objects_each(forget_unloaded, NULL);
	gm_stack_modules_changed();
	errno = error;
	return result;
}
