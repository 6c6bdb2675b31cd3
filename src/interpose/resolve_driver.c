/*
 * The real functions of the driver (internal.h): those of libcuda, or of a hook library that stands
 * between it and the shim.
 */
#include "interpose/internal.h"
#include "interpose/resolve_driver.h"
#include "recorder/process/open_libraries.h"
#include "recorder/query/query.h"
#include "recorder/state/libraries.h"

#include <string.h>

#define REAL_SLOTS 1024 /* a power of two, over twice the rows */

void *gm_driver_real[GM_FUNCTIONS];

/* Changed under gm_lock_resolve; read without it. */
static struct {
	uint16_t by_real[REAL_SLOTS]; /* a driver's row + 1 by its real address, open addressing */
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
			return; /* it is an alias: the first row stands for it */
	__atomic_store_n(&driver.by_real[slot % REAL_SLOTS], (uint16_t)(function + 1),
			 __ATOMIC_RELEASE);
}

/* Returns true if it found the driver at this call. */
static bool find_rows(const struct gm_object *libcuda)
{
	bool first = !driver.seen;
	unsigned row;

	for (row = 0; row < GM_FUNCTIONS && first; row++) {
		void *real;

		if (gm_rows[row].layer != GM_LAYER_DRIVER)
			continue;
		real = gm_object_symbol(libcuda, gm_rows[row].name, NULL);
		if (real)
			enter_real((enum gm_function)row, real);
	}
	driver.start = libcuda->start;
	driver.end = libcuda->end;
	__atomic_store_n(&driver.seen, true, __ATOMIC_RELEASE);
	return first;
}

static bool find_driver(bool *first)
{
	struct gm_object libcuda;

	*first = false;
	if (__atomic_load_n(&driver.seen, __ATOMIC_ACQUIRE))
		return true;
	if (!gm_find_libcuda(&libcuda) || !gm_lock_resolve())
		return false;
	*first = find_rows(&libcuda);
	gm_unlock_resolve();
	return true;
}

/* This happens again when libcuda was unloaded and another took its place. */
bool gm_ready_driver(void)
{
	bool first, found = find_driver(&first);

	if (first)
		gm_open_libraries();
	return found;
}

bool gm_find_driver(void)
{
	bool first;

	return find_driver(&first);
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
	gm_query_init();
}

bool gm_driver_seen(void)
{
	return __atomic_load_n(&driver.seen, __ATOMIC_ACQUIRE);
}

/* For programs that link libcuda, and calls through a hook library between the shim and libcuda. */
void *gm_driver_search(enum gm_function function)
{
	void *real;

	gm_ready_driver();
	real = gm_driver_real[function];
	/*
	 * A signal handler may have interrupted the first look-up, whose lock this thread then
	 * holds.
	 */
	return real || !gm_resolving() ? real : gm_libcuda_symbol(gm_rows[function].name);
}

enum gm_function gm_driver_row_of(const void *real)
{
	uint32_t slot;
	uint16_t row;

	for (slot = hash_address(real); (row = driver.by_real[slot % REAL_SLOTS]) != 0; slot++)
		if (gm_driver_real[row - 1] == real)
			return (enum gm_function)(row - 1);
	return GM_FUNCTIONS;
}

bool gm_driver_adopt(enum gm_function function, void *hook)
{
	if (!gm_lock_resolve())
		return false;
	enter_real(function, hook);
	gm_unlock_resolve();
	return true;
}

bool gm_in_libcuda(const void *address)
{
	return (uintptr_t)address >= driver.start && (uintptr_t)address < driver.end;
}
