/*
 * C++ names by the C++ runtime's own demangler. It is opened when the first mangled name is met, so
 * that the tool is built and runs without a C++ runtime; names then stay as they are.
 */
#include "report/symbolize.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

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

const char *gm_demangle(struct gm_arena *arena, const char *name)
{
	demangler *demangle;
	const char *copy = name;
	char *text;
	int status;

	if (!name || strncmp(name, "_Z", 2) != 0)
		return name;
	demangle = find_demangler();
	text = demangle ? demangle(name, NULL, NULL, &status) : NULL;
	if (text && status == 0)
		copy = gm_arena_strdup(arena, text);
	free(text);
	return copy;
}
