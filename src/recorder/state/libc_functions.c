/*
 * Finding the functions of the C library (libc_functions.h).
 */
#include "recorder/state/libc_functions.h"
#include "recorder/state/libraries.h"
#include "track/clock.h"

#define NAME(name) #name,
static const char *const names[GM_LIBC_FUNCTIONS] = {GM_LIBC_FUNCTION_LIST(NAME)};

static void *found[GM_LIBC_FUNCTIONS]; /* every thread would write the same (atomic) */

void gm_libc_init(void)
{
	struct gm_object libc;

	gm_next_symbols(names, found, GM_LIBC_FUNCTIONS);
	if (gm_objects_symbol("gnu_get_libc_version", &libc))
		gm_clock_source((int (*)(clockid_t, struct timespec *))gm_object_symbol(
			&libc, "clock_gettime", NULL));
}

void *gm_libc_known(enum gm_libc_function function)
{
	return __atomic_load_n(&found[function], __ATOMIC_ACQUIRE);
}

void *gm_libc_find(enum gm_libc_function function)
{
	void *known = gm_libc_known(function);

	if (!known) {
		known = gm_next_symbol(names[function]);
		__atomic_store_n(&found[function], known, __ATOMIC_RELEASE);
	}
	return known;
}
