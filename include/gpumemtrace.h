/*
 * gpumemtrace: marks, snapshots and the program's own pools.
 *
 * Nothing to link: a program that includes this runs with and without the shim
 * (LD_PRELOAD=libgpumemtrace.so); without it every call here does nothing. From other languages, look
 * the same names up in the running process (Python: ctypes.CDLL(None).gpumemtrace_mark(b"step")).
 * All functions are safe from any thread; none may be called from a signal handler.
 */
#ifndef GPUMEMTRACE_H
#define GPUMEMTRACE_H

#include <stddef.h>

#ifdef GPUMEMTRACE_IMPLEMENTATION /* the shim itself */

int gpumemtrace_active(void);
void gpumemtrace_mark(const char *name);
void gpumemtrace_pool_alloc(const void *ptr, size_t bytes, int device);
void gpumemtrace_pool_free(const void *ptr);
int gpumemtrace_snapshot(const char *path);

#else

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The functions are looked up, once each: a plain weak reference is fixed to "absent" by the linker in
 * programs that are not position-independent. Weak, because before glibc 2.34 dlsym is in libdl, which
 * the program may not link; then these calls do nothing.
 */
extern void *dlsym(void *handle, const char *name)
#ifdef __cplusplus
	noexcept(true)
#endif
	__attribute__((weak));

#ifdef __cplusplus
}
#endif

static inline void *gpumemtrace_find_(void **cache, const char *name)
{
	static char absent;
	void *found = __atomic_load_n(cache, __ATOMIC_ACQUIRE);

	if (!found) {
		found = dlsym ? dlsym((void *)0, name) : (void *)0;
		if (!found)
			found = &absent;
		__atomic_store_n(cache, found, __ATOMIC_RELEASE);
	}
	return found == (void *)&absent ? (void *)0 : found;
}

/* 1 when the shim is loaded and recording, else 0. */
static inline int gpumemtrace_active(void)
{
	static void *cache;
	int (*function)(void) = (int (*)(void))gpumemtrace_find_(&cache, "gpumemtrace_active");

	return function ? function() : 0;
}

/* A point in time with a name (copied, at most 255 bytes); closes the current window of the report. */
static inline void gpumemtrace_mark(const char *name)
{
	static void *cache;
	void (*function)(const char *) =
		(void (*)(const char *))gpumemtrace_find_(&cache, "gpumemtrace_mark");

	if (function)
		function(name);
}

/* A block of `bytes` at `ptr` on `device` was handed out by the program's own pool (level custom). */
static inline void gpumemtrace_pool_alloc(const void *ptr, size_t bytes, int device)
{
	static void *cache;
	void (*function)(const void *, size_t, int) =
		(void (*)(const void *, size_t, int))gpumemtrace_find_(&cache,
								       "gpumemtrace_pool_alloc");

	if (function)
		function(ptr, bytes, device);
}

/* The block came back to the pool. */
static inline void gpumemtrace_pool_free(const void *ptr)
{
	static void *cache;
	void (*function)(const void *) =
		(void (*)(const void *))gpumemtrace_find_(&cache, "gpumemtrace_pool_free");

	if (function)
		function(ptr);
}

/* A consistent copy of the output file as it stands now, to `path`. 0, or -errno (-ENOSYS: no shim). */
static inline int gpumemtrace_snapshot(const char *path)
{
	static void *cache;
	int (*function)(const char *) =
		(int (*)(const char *))gpumemtrace_find_(&cache, "gpumemtrace_snapshot");

	return function ? function(path) : -38;
}

#endif
#endif
