/*
 * A preload that hooks dlsym, as profilers and fakes do: by dlvsym, since dlsym is itself. Counts
 * what comes by and passes everything on; RTLD_NEXT and RTLD_DEFAULT it can only answer from its
 * own place.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

void *dlsym(void *handle, const char *name);

static unsigned long seen;

void *dlsym(void *handle, const char *name)
{
	static void *(*real)(void *, const char *);

	if (!real)
		real = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", HOOKED_VERSION);
	__atomic_fetch_add(&seen, 1, __ATOMIC_RELAXED);
	return real(handle, name);
}

static void __attribute__((destructor)) tell(void)
{
	if (getenv("HOOK_TELLS") && seen && write(STDERR_FILENO, "dlsym hook used\n", 16) < 0)
		abort();
}
