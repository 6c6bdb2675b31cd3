/*
 * Finds libcuda, the cudarts and the shim among the loaded objects, and the functions behind their
 * names (libraries.h).
 */
#include "recorder/state/libraries.h"

#include "store/hot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

GM_HOT_HOOK uint32_t gm_unload_count;

static char preloads[4096]; /* LD_PRELOAD as it was at the start */

static struct {
	uintptr_t start, end;
} own; /* the shim's own object; every thread would write the same */

static void own_range(void)
{
	struct gm_object object;

	if (!own.end && gm_object_at((uintptr_t)&own_range, &object)) {
		own.start = object.start;
		__atomic_store_n(&own.end, object.end, __ATOMIC_RELEASE);
	}
}

bool gm_is_own(uintptr_t address)
{
	own_range();
	return address >= own.start && address < own.end;
}

/* True for "libcuda.so", "libcuda.so.1" and "libcuda.so.580.159.04", false for libcuda_stub.so. */
static bool named(const char *name, const char *library)
{
	size_t bytes = strlen(library);

	if (!name || strncmp(name, library, bytes))
		return false;
	for (name += bytes; *name; name++)
		if (*name != '.' && (*name < '0' || *name > '9'))
			return false;
	return true;
}

bool gm_is_libcuda(const struct gm_object *object)
{
	return named(gm_object_basename(object), "libcuda.so") ||
	       named(gm_object_soname(object), "libcuda.so");
}

/*
 * Wheels rename libraries: libcudart-d9f3.so.12, libcudart.d9f3.so.12. libcudart_stub.so is no
 * cudart.
 */
bool gm_is_cudart(const struct gm_object *object)
{
	const char *name = gm_object_basename(object), *soname = gm_object_soname(object);

	if (soname && !strncmp(soname, "libcudart.so", 12))
		return true;
	return !strncmp(name, "libcudart", 9) && (name[9] == '.' || name[9] == '-') &&
	       strstr(name, ".so") != NULL;
}

void gm_preloads_init(void)
{
	const char *names = getenv("LD_PRELOAD");

	if (names)
		snprintf(preloads, sizeof(preloads), "%s", names);
}

bool gm_preloaded(const struct gm_object *object)
{
	const char *name = gm_object_basename(object), *at = preloads;
	size_t bytes = strlen(name);

	while (bytes && (at = strstr(at, name)) != NULL) {
		bool starts = at == preloads || strchr("/: ", at[-1]);

		if (starts && (!at[bytes] || strchr(": ", at[bytes])))
			return true;
		at += bytes;
	}
	return false;
}

bool gm_pass_shims(const struct gm_object *object, bool *passed_own)
{
	const char *soname;

	if (gm_is_own(object->start)) {
		*passed_own = true;
		return true;
	}
	soname = gm_object_soname(object);
	return soname && !strcmp(soname, "libgpumemtrace.so");
}

static int find_first_shim(const struct gm_object *object, void *data)
{
	return gm_pass_shims(object, data);
}

bool gm_is_second_copy(void)
{
	bool is_own = false;

	return gm_objects_each(find_first_shim, &is_own) && !is_own;
}

static int find_libcuda(const struct gm_object *object, void *data)
{
	if (gm_is_own(object->start) || !gm_is_libcuda(object))
		return 0;
	*(struct gm_object *)data = *object;
	return 1;
}

bool gm_find_libcuda(struct gm_object *libcuda)
{
	return gm_objects_each(find_libcuda, libcuda) != 0;
}

bool gm_libcuda_loaded(void)
{
	struct gm_object object;

	return gm_find_libcuda(&object);
}

static bool is_libcuda_path(const char *path)
{
	const char *slash = strrchr(path, '/');

	return named(slash ? slash + 1 : path, "libcuda.so");
}

unsigned gm_libcudas_elsewhere(void)
{
	return gm_objects_elsewhere(is_libcuda_path);
}

static int find_libcuda_after(const struct gm_object *object, void *data)
{
	bool *passed_own = data;

	if (gm_is_own(object->start))
		*passed_own = true;
	else if (*passed_own && gm_is_libcuda(object))
		return 1;
	return 0;
}

bool gm_libcuda_linked(void)
{
	bool passed_own = false;

	return gm_objects_each(find_libcuda_after, &passed_own) != 0;
}

static int find_libc_or_own(const struct gm_object *object, void *data)
{
	(void)data;
	if (gm_is_own(object->start))
		return 1;
	return strncmp(gm_object_basename(object), "libc.so.", 8) == 0 ||
			       strncmp(gm_object_basename(object), "libc-2.", 7) == 0
		       ? 2
		       : 0;
}

bool gm_loaded_late(void)
{
	return gm_objects_each(find_libc_or_own, NULL) == 2;
}

void *gm_libcuda_symbol(const char *name)
{
	struct gm_object object;

	if (!gm_find_libcuda(&object))
		return NULL;
	return gm_object_symbol(&object, name, NULL);
}

struct next_search {
	const char *const *names;
	void **found;
	unsigned count;
	bool passed_own;
};

static int next_definitions(const struct gm_object *object, void *data)
{
	struct next_search *search = data;

	if (gm_pass_shims(object, &search->passed_own))
		return 0;
	return search->passed_own && gm_object_symbols(object, search->names, search->found,
						       search->count) == 0;
}

void gm_next_symbols(const char *const *names, void **found, unsigned count)
{
	struct next_search search = {.names = names, .found = found, .count = count};

	if (gm_objects_each(next_definitions, &search))
		return;
	/* The shim was loaded late: libc came before it. */
	search.passed_own = true;
	gm_objects_each(next_definitions, &search);
}

void *gm_next_symbol(const char *name)
{
	void *found = NULL;

	gm_next_symbols(&name, &found, 1);
	return found;
}

void gm_note_unload(void)
{
	__atomic_fetch_add(&gm_unload_count, 1, __ATOMIC_RELEASE);
}
