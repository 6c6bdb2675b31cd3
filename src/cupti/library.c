/*
 * The search for libcupti (library.h).
 */
#include "cupti/library.h"
#include "stack/native.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool gm_cupti_is_library(const struct gm_object *object, const char *name)
{
	const char *base = gm_object_basename(object);
	size_t length = strlen(name);

	return !strncmp(base, name, length) && (base[length] == '.' || base[length] == '-') &&
	       strstr(base + length, ".so");
}

/* The soname of libcupti, which has the major version alone from CUDA 12 on. */
static const char *soname_of(unsigned major)
{
	return major >= 13 ? "libcupti.so.13" : major == 12 ? "libcupti.so.12" : "libcupti.so.11.8";
}

static int loaded_cupti(const struct gm_object *object, void *data)
{
	if (!gm_cupti_is_library(object, "libcupti"))
		return 0;
	*(struct gm_object *)data = *object;
	return 1;
}

static bool open_in(const char *directory, const char *below, unsigned major,
		    struct gm_object *library)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s%s/%s", directory, below, soname_of(major)) <
		       (int)sizeof(path) &&
	       gm_library_open(path, library);
}

static bool open_of_toolkit(const char *root, unsigned major, struct gm_object *library)
{
	return root && (open_in(root, "/lib64", major, library) ||
			open_in(root, "/extras/CUPTI/lib64", major, library));
}

/*
 * ---- wheels: beside the loaded cudart, or in the site-packages that loaded objects come from ----
 */

static int beside_cudart(const struct gm_object *object, void *data)
{
	const char *slash = strrchr(object->path, '/');

	if (!slash || !gm_cupti_is_library(object, "libcudart"))
		return 0;
	return snprintf(data, PATH_MAX, "%.*s", (int)(slash - object->path), object->path) <
	       PATH_MAX;
}

static int site_of(const struct gm_object *object, void *data)
{
	static const char *const sites[] = {"/site-packages/", "/dist-packages/"};
	size_t i;

	for (i = 0; i < sizeof(sites) / sizeof(*sites); i++) {
		const char *site = strstr(object->path, sites[i]);

		if (site)
			return snprintf(data, PATH_MAX, "%.*s",
					(int)(site - object->path + (long)strlen(sites[i]) - 1),
					object->path) < PATH_MAX;
	}
	return 0;
}

static bool open_of_wheel(unsigned major, struct gm_object *library)
{
	static const char *const below[] = {"/nvidia/cu13/lib", "/nvidia/cuda_cupti/lib"};
	char directory[PATH_MAX];
	size_t i;

	if (gm_objects_each(beside_cudart, directory) && open_in(directory, "", major, library))
		return true;
	if (!gm_objects_each(site_of, directory))
		return false;
	for (i = 0; i < sizeof(below) / sizeof(*below); i++)
		if (open_in(directory, below[i], major, library))
			return true;
	return false;
}

bool gm_cupti_find(unsigned major, struct gm_object *library)
{
	/* Two copies of libcupti would compete for the driver's hooks. */
	if (gm_objects_each(loaded_cupti, library))
		return true;
	for (major = major > 13 ? 13 : major; major >= 11; major--)
		if (open_of_toolkit(getenv("CUDA_HOME"), major, library) ||
		    open_of_toolkit(getenv("CUDA_PATH"), major, library) ||
		    open_of_wheel(major, library) ||
		    gm_library_open(soname_of(major), library) ||
		    open_of_toolkit("/usr/local/cuda", major, library))
			return true;
	return false;
}
