/*
 * Finding the real functions (resolve.h): rows by their names, look-ups by dlsym, unloadings.
 */
#include "interpose/resolve.h"
#include "interpose/captures.h"
#include "interpose/libraries.h"
#include "interpose/own_page.h"
#include "interpose/preload.h"
#include "interpose/resolve_parts.h"
#include "interpose/roles.h"
#include "stack/stack.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#define NAME_SLOTS	    1024 /* power of two, over twice the rows */
#define RTLD_DEFAULT_HANDLE ((void *)0)
#define RTLD_NEXT_HANDLE    ((void *)-1l)

/* Changed under gm_lock_resolve(); read without it. */
static struct {
	uint16_t by_name[NAME_SLOTS]; /* row + 1, open addressing */
	bool ready;
} names;

GM_HOT uint32_t gm_generation; /* raised by every dlclose */

/* This thread holds the lock: a signal handler that comes between must not wait for it. */
static __thread uint8_t resolving __attribute__((tls_model("initial-exec")));

bool gm_lock_resolve(void)
{
	if (resolving)
		return false;
	resolving = 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	gm_lock_acquire(&gm_own_page()->resolve);
	return true;
}

void gm_unlock_resolve(void)
{
	gm_lock_release(&gm_own_page()->resolve);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	resolving = 0;
}

bool gm_resolving(void)
{
	return resolving;
}

/* ---- rows by name ---- */

static uint32_t hash_name(const char *name)
{
	uint32_t hash = 2166136261u;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619u;
	return hash;
}

static void ready_names(void)
{
	unsigned row;

	if (__atomic_load_n(&names.ready, __ATOMIC_ACQUIRE) || !gm_lock_resolve())
		return;
	for (row = 0; row < GM_FUNCTIONS && !names.ready; row++) {
		uint32_t slot = hash_name(gm_rows[row].name);
		uint16_t taken;

		/* a fork can have come between: what is there already stays */
		while ((taken = names.by_name[slot % NAME_SLOTS]) != 0 && taken != row + 1)
			slot++;
		names.by_name[slot % NAME_SLOTS] = (uint16_t)(row + 1);
	}
	__atomic_store_n(&names.ready, true, __ATOMIC_RELEASE);
	gm_unlock_resolve();
}

enum gm_function gm_row_named(const char *name, unsigned majors)
{
	uint32_t slot;

	ready_names();
	for (slot = hash_name(name); names.by_name[slot % NAME_SLOTS]; slot++) {
		const struct gm_row *row = &gm_rows[names.by_name[slot % NAME_SLOTS] - 1];

		if (!strcmp(row->name, name) && (!row->majors || (row->majors & majors)))
			return (enum gm_function)(row - gm_rows);
	}
	return GM_FUNCTIONS;
}

/* ---- dlsym ---- */

#if defined(__x86_64__)
#define FIRST_GLIBC "GLIBC_2.2.5"
#else
#define FIRST_GLIBC "GLIBC_2.17"
#endif

/* Weak, and by its first version: before 2.34 it was in libdl, which a program may not have. */
extern void *first_dlvsym(void *handle, const char *name, const char *version) __attribute__((weak));
__asm__(".symver first_dlvsym, dlvsym@" FIRST_GLIBC);

typedef void *dlsym_fn(void *handle, const char *name);

static dlsym_fn *real_dlsym;

/* For the trampoline (trampoline.S): the dlsym that callers would reach without us. */
void *gm_real_dlsym(void);
void *gm_real_dlsym(void)
{
	dlsym_fn *real = __atomic_load_n(&real_dlsym, __ATOMIC_ACQUIRE);

	if (!real) {
		/* The thread sanitizer asks before its own dl_iterate_phdr, which ours needs, can be called. */
		if (first_dlvsym)
			real = (dlsym_fn *)first_dlvsym(RTLD_NEXT, "dlsym", FIRST_GLIBC);
		if (!real) /* or libc came before us */
			real = (dlsym_fn *)gm_next_symbol("dlsym");
		__atomic_store_n(&real_dlsym, real, __ATOMIC_RELEASE);
	}
	return (void *)real;
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
		return function < GM_FUNCTIONS ? gm_wrap_runtime(function, real, &object) : real;
	}
	function = gm_row_named(name, 7);
	if (function == GM_FUNCTIONS || gm_rows[function].layer != GM_LAYER_DRIVER ||
	    !gm_ready_driver())
		return real;
	if (real == gm_driver_real[function])
		return gm_driver_wrapper[function] ? gm_driver_wrapper[function] : real;
	return gm_in_libcuda(real) ? real : gm_adopt(function, real);
}

/*
 * For the trampoline: answers a look-up of one of our names in a real handle by `*result` and true;
 * false means that the caller's own jump to the real dlsym is to be made, from the caller's place.
 * RTLD_NEXT and RTLD_DEFAULT depend on who asks; the latter finds our exports by itself.
 */
bool gm_dlsym_hook(void *handle, const char *name, void **result);
bool gm_dlsym_hook(void *handle, const char *name, void **result)
{
	dlsym_fn *real;

	if (!name || name[0] != 'c' || name[1] != 'u' || handle == RTLD_DEFAULT_HANDLE ||
	    handle == RTLD_NEXT_HANDLE || gm_disabled())
		return false;
	if (gm_row_named(name, 7) == GM_FUNCTIONS) {
		gm_capture_name(name);
		gm_context_name(name);
		return false;
	}
	real = (dlsym_fn *)gm_real_dlsym();
	if (!real)
		return false;
	*result = wrap_symbol(name, real(handle, name));
	return true;
}

/* ---- dlclose ---- */

static int (*real_dlclose)(void *);

/* After an unloading: nothing may be kept of a libcuda or cudart that is gone. */
static void forget_unloaded(void)
{
	if ((!gm_driver_seen() && !gm_runtimes_handed_out()) || !gm_lock_resolve())
		return;
	gm_forget_driver();
	gm_forget_runtimes();
	gm_unlock_resolve();
}

/* Raises the generation after each unloading: call sites and modules are to be looked at again. */
__attribute__((visibility("default"))) int dlclose(void *handle)
{
	int result, error;

	if (!real_dlclose)
		gm_resolve_init();
	if (!real_dlclose)
		return -1;
	result = real_dlclose(handle);
	error = errno;
	__atomic_fetch_add(&gm_generation, 1, __ATOMIC_RELEASE);
	forget_unloaded();
	gm_stack_modules_changed();
	errno = error;
	return result;
}

void gm_resolve_init(void)
{
	static const char *const wanted[] = {"dlsym", "dlclose"};
	void *found[2] = {NULL};

	gm_next_symbols(wanted, found, 2);
	__atomic_store_n(&real_dlsym, (dlsym_fn *)found[0], __ATOMIC_RELEASE);
	real_dlclose = (int (*)(void *))found[1];
	ready_names();
}
