/*
 * C++ names by the C++ runtime's own demangler, opened when the first mangled name is met, so that
 * the tool is built and runs without a C++ runtime. Rust's names, both manglings, by libiberty
 * where the build found it; without it a legacy name loses its hash and a v0 name stays as it is.
 */
#include "report/symbols/demangle.h"
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#ifdef GM_HAVE_LIBIBERTY
#include <libiberty/demangle.h>
#endif

#define HASH "::h0123456789abcdef" /* what ends a legacy Rust name, by its length */

typedef char *demangler(const char *name, char *buffer, size_t *bytes, int *status);

static demangler *find_demangler(void)
{
	static demangler *found;
	static bool looked;
	void *library;

	if (looked)
		return found;
	looked = true;
	library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		library = dlopen("libc++abi.so.1", RTLD_NOW | RTLD_LOCAL);
	if (library)
		found = (demangler *)dlsym(library, "__cxa_demangle");
	return found;
}

/* "core::f::h0123456789abcdef", as a C++ demangler leaves a legacy Rust name. */
static bool has_rust_hash(const char *text)
{
	size_t length = strlen(text), hash = strlen(HASH);

	return length > hash && strncmp(text + length - hash, "::h", 3) == 0 &&
	       strspn(text + length - 16, "0123456789abcdef") == 16;
}

/* A Rust name from malloc, NULL if it is none or cannot be read. */
static char *demangle_rust(const char *name)
{
#ifdef GM_HAVE_LIBIBERTY
	return rust_demangle(name, DMGL_PARAMS);
#else
	(void)name;
	return NULL;
#endif
}

static char *demangle_cxx(const char *name)
{
	demangler *demangle = find_demangler();
	int status = -1;
	char *text = demangle ? demangle(name, NULL, NULL, &status) : NULL;

#ifdef GM_HAVE_LIBIBERTY
	if (!demangle)
		return cplus_demangle_v3(name, DMGL_PARAMS | DMGL_ANSI);
#endif
	if (text && status == 0)
		return text;
	free(text);
	return NULL;
}

const char *gm_demangle(struct gm_zone *zone, const char *name)
{
	const char *copy = name;
	char *text;

	if (!name || (strncmp(name, "_Z", 2) != 0 && strncmp(name, "_R", 2) != 0))
		return name;
	text = demangle_rust(name);
	if (!text && name[1] == 'Z') {
		text = demangle_cxx(name);
		if (text && has_rust_hash(text))
			text[strlen(text) - strlen(HASH)] = '\0';
	}
	if (text)
		copy = gm_zone_strdup(zone, text);
	free(text);
	return copy;
}
