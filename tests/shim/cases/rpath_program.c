/*
 * Case 36: a library that only this program's own RPATH finds must be found under the shim too, and
 * dlsym(RTLD_NEXT) must mean what it means to the caller.
 */
#include <dlfcn.h>
#include <stdio.h>

int puts(const char *text)
{
	int (*next)(const char *) = (int (*)(const char *))dlsym(RTLD_NEXT, "puts");

	return next && next != puts ? next(text) : 1;
}

int main(void)
{
	void *library = dlopen("libfound_by_rpath.so", RTLD_NOW);
	const char *(*say)(void) = library ? (const char *(*)(void))dlsym(library, "say") : NULL;

	if (!say)
		return 1;
	printf("%s; ", say());
	puts("RTLD_NEXT is another function");
	return 0;
}
