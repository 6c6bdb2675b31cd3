/*
 * A program with a dlsym of its own, that everybody's look-ups go through; and one that opens a
 * plug-in RTLD_DEEPBIND (argument 2), whose calls go by the shim.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

void *dlsym(void *handle, const char *name);

static unsigned long seen;

void *dlsym(void *handle, const char *name)
{
	static void *(*real)(void *, const char *);

	if (!real)
		real = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", HOOKED_VERSION);
	seen++;
	return real(handle, name);
}

int main(int argc, char **argv)
{
	void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | (argc > 2 ? RTLD_DEEPBIND : 0)),
	     *memory;
	int (*allocate)(void **, unsigned long);

	if (!library)
		return 2;
	allocate = (int (*)(void **, unsigned long))dlsym(library, "plugin_allocate");
	if (!allocate || allocate(&memory, 6000))
		return 3;
	printf("{\"live\": 6000, \"seen\": %lu}\n", seen);
	return 0;
}
