/*
 * The real functions of the driver, and our wrappers by them: of libcuda, or of a hook library that
 * stands between it and us.
 */
#include "interpose/ask.h"
#include "interpose/captures.h"
#include "interpose/libraries.h"
#include "interpose/preload.h"
#include "interpose/resolve.h"
#include "interpose/resolve_parts.h"
#include "interpose/roles.h"

#include <string.h>

#define REAL_SLOTS 1024 /* power of two, over twice the rows */

void *gm_driver_real[GM_FUNCTIONS];

/* Changed under gm_lock_resolve(); read without it. */
static struct {
	uint16_t by_real[REAL_SLOTS]; /* driver row + 1 by its real address, open addressing */
	uintptr_t start, end;	      /* of libcuda */
	bool seen;
} driver;

static uint32_t hash_address(const void *address)
{
	return (uint32_t)(((uintptr_t)address >> 4) * 0x9e3779b97f4a7c15ull >> 40);
}

static void enter_real(enum gm_function function, void *real)
{
	uint32_t slot;

	__atomic_store_n(&gm_driver_real[function], real, __ATOMIC_RELEASE);
	for (slot = hash_address(real); driver.by_real[slot % REAL_SLOTS]; slot++)
		if (gm_driver_real[driver.by_real[slot % REAL_SLOTS] - 1] == real)
			return; /* an alias: the first row stands for it */
	__atomic_store_n(&driver.by_real[slot % REAL_SLOTS], (uint16_t)(function + 1),
			 __ATOMIC_RELEASE);
}

/* Again when libcuda was unloaded and another took its place. */
bool gm_ready_driver(void)
{
	struct gm_object libcuda;
	bool first;
	unsigned row;

	if (__atomic_load_n(&driver.seen, __ATOMIC_ACQUIRE))
		return true;
	if (!gm_find_libcuda(&libcuda) || !gm_lock_resolve())
		return false;
	first = !driver.seen;
	for (row = 0; row < GM_FUNCTIONS && first; row++) {
		void *real;

		if (gm_rows[row].layer != GM_LAYER_DRIVER)
			continue;
		real = gm_object_symbol(&libcuda, gm_rows[row].name, NULL);
		if (real)
			enter_real((enum gm_function)row, real);
	}
	driver.start = libcuda.start;
	driver.end = libcuda.end;
	__atomic_store_n(&driver.seen, true, __ATOMIC_RELEASE);
	gm_unlock_resolve();
	if (first) /* no other thread waits for this: it opens libraries */
		gm_driver_found();
	return true;
}

static int libcuda_is_there(const struct gm_object *object, void *data)
{
	(void)data;
	return object->start == driver.start && gm_is_libcuda(object);
}

void gm_forget_driver(void)
{
	if (!driver.seen || gm_objects_each(libcuda_is_there, NULL))
		return;
	__atomic_store_n(&driver.seen, false, __ATOMIC_RELEASE);
	memset(driver.by_real, 0, sizeof(driver.by_real));
	memset(gm_driver_real, 0, sizeof(gm_driver_real));
	gm_ask_init();
}

bool gm_driver_seen(void)
{
	return __atomic_load_n(&driver.seen, __ATOMIC_ACQUIRE);
}

/* A program that links libcuda itself, or calls through a hook library between us and it. */
void *gm_driver_search(enum gm_function function)
{
	void *real;

	gm_ready_driver();
	real = gm_driver_real[function];
	/* a signal handler came into the first look-up, whose lock this thread holds */
	return real || !gm_resolving() ? real : gm_libcuda_symbol(gm_rows[function].name);
}

static void *wrapper_by_real(void *real)
{
	uint32_t slot;
	uint16_t row;

	for (slot = hash_address(real); (row = driver.by_real[slot % REAL_SLOTS]) != 0; slot++)
		if (gm_driver_real[row - 1] == real)
			return gm_driver_wrapper[row - 1];
	return NULL;
}

void *gm_adopt(enum gm_function function, void *hook)
{
	if (!gm_driver_wrapper[function] || !gm_lock_resolve())
		return hook;
	enter_real(function, hook);
	gm_unlock_resolve();
	return gm_driver_wrapper[function];
}

bool gm_in_libcuda(const void *address)
{
	return (uintptr_t)address >= driver.start && (uintptr_t)address < driver.end;
}

/* Latest variant of a name as cuGetProcAddress gives it: NAME_v2 before NAME, _ptsz by the flag. */
static enum gm_function latest_variant(const char *symbol, uint64_t flags)
{
	static const char *const versions[] = {"_v4", "_v3", "_v2", ""};
	char name[128];
	unsigned i;

	for (i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		enum gm_function row;
		size_t bytes = strlen(symbol) + strlen(versions[i]);

		if (bytes + sizeof("_ptsz") > sizeof(name))
			return GM_FUNCTIONS;
		strcpy(stpcpy(name, symbol), versions[i]);
		if (flags & 2) { /* CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM */
			strcpy(name + bytes, "_ptsz");
			row = gm_row_named(name, 7);
			if (row < GM_FUNCTIONS && gm_rows[row].layer == GM_LAYER_DRIVER)
				return row;
			name[bytes] = '\0';
		}
		row = gm_row_named(name, 7);
		if (row < GM_FUNCTIONS && gm_rows[row].layer == GM_LAYER_DRIVER)
			return row;
	}
	return GM_FUNCTIONS;
}

void *gm_wrapper_of(void *real, const char *symbol, uint64_t flags)
{
	enum gm_function function;
	void *wrapper;

	if (!real || gm_is_own((uintptr_t)real) || !gm_ready_driver())
		return real;
	wrapper = wrapper_by_real(real);
	if (wrapper)
		return wrapper;
	function = gm_in_libcuda(real) ? GM_FUNCTIONS : latest_variant(symbol, flags);
	if (function < GM_FUNCTIONS)
		return gm_adopt(function, real);
	gm_capture_name(symbol); /* a function that is no row */
	gm_context_name(symbol);
	return real;
}
