/*
 * gpumemtrace: marks, snapshots and the program's own pools.
 *
 * Nothing to link: a program that includes this runs with and without the shim
 * (LD_PRELOAD=libgpumemtrace.so); without it every call here does nothing. From other languages,
 * look the same names up in the running process (Python:
 * ctypes.CDLL(None).gpumemtrace_mark(b"step")). All functions are safe from any thread; none may be
 * called from a signal handler.
 */
#ifndef GPUMEMTRACE_H
#define GPUMEMTRACE_H

#include <stddef.h>
#include <stdint.h>

#ifdef GPUMEMTRACE_IMPLEMENTATION /* the shim itself */

int gpumemtrace_active(void);
int gpumemtrace_start(void);
int gpumemtrace_stop(void);
void gpumemtrace_mark(const char *name);
void gpumemtrace_range_push(const char *name);
void gpumemtrace_range_pop(void);
void gpumemtrace_pool_alloc(const void *ptr, size_t bytes, int device);
void gpumemtrace_pool_free(const void *ptr);
int gpumemtrace_snapshot(const char *path);
uint64_t gpumemtrace_live_bytes(int device);
uint64_t gpumemtrace_peak_bytes(int device);
void gpumemtrace_reset_peak(int device);

#else

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The functions are looked up, once each: a plain weak reference is fixed to "absent" by the linker
 * in programs that are not position-independent. Weak, because before glibc 2.34 dlsym is in libdl,
 * which the program may not link; then these calls do nothing.
 */
extern void *dlsym(void *handle, const char *name)
#if defined(__cplusplus) && __cplusplus >= 201103L
	noexcept(true)
#elif defined(__cplusplus)
	throw()
#endif
	__attribute__((weak));

#ifdef __cplusplus
}
#endif

static __inline__ void *gpumemtrace_find_(void **cache, const char *name)
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
static __inline__ int gpumemtrace_active(void)
{
	static void *cache;
	int (*function)(void) =
		__extension__(int (*)(void)) gpumemtrace_find_(&cache, "gpumemtrace_active");

	return function ? function() : 0;
}

/*
 * Begins to record, in a process that sleeps (GPUMEMTRACE_START=asleep, or after gpumemtrace_stop),
 * at its next CUDA call; and puts it to sleep. What an earlier period recorded is dropped at the
 * start of the next. 0, or -ENOSYS: no shim, or one that is switched off.
 */
static __inline__ int gpumemtrace_start(void)
{
	static void *cache;
	int (*function)(void) =
		__extension__(int (*)(void)) gpumemtrace_find_(&cache, "gpumemtrace_start");

	return function ? function() : -38;
}

static __inline__ int gpumemtrace_stop(void)
{
	static void *cache;
	int (*function)(void) =
		__extension__(int (*)(void)) gpumemtrace_find_(&cache, "gpumemtrace_stop");

	return function ? function() : -38;
}

/*
 * A point in time with a name (copied, at most 255 bytes); closes the current window of the report.
 */
static __inline__ void gpumemtrace_mark(const char *name)
{
	static void *cache;
	void (*function)(const char *) =
		__extension__ (void (*)(const char *))gpumemtrace_find_(&cache, "gpumemtrace_mark");

	if (function)
		function(name);
}

/*
 * Open a range of the calling thread with a name (copied, at most 95 bytes), such as "forward",
 * "layer 3" or "request 4711", and close the one that was opened last. Ranges nest; for each name
 * the report has the peaks, what was retained and where. Ranges of NVTX are recorded as well.
 */
static __inline__ void gpumemtrace_range_push(const char *name)
{
	static void *cache;
	void (*function)(const char *) = __extension__(void (*)(const char *))
		gpumemtrace_find_(&cache, "gpumemtrace_range_push");

	if (function)
		function(name);
}

static __inline__ void gpumemtrace_range_pop(void)
{
	static void *cache;
	void (*function)(void) =
		__extension__(void (*)(void)) gpumemtrace_find_(&cache, "gpumemtrace_range_pop");

	if (function)
		function();
}

/*
 * A block of `bytes` at `ptr` on `device` was handed out by the program's own pool (level custom).
 */
static __inline__ void gpumemtrace_pool_alloc(const void *ptr, size_t bytes, int device)
{
	static void *cache;
	void (*function)(const void *, size_t, int) =
		__extension__ (void (*)(const void *, size_t, int))gpumemtrace_find_(&cache,
								       "gpumemtrace_pool_alloc");

	if (function)
		function(ptr, bytes, device);
}

/* The block came back to the pool. */
static __inline__ void gpumemtrace_pool_free(const void *ptr)
{
	static void *cache;
	void (*function)(const void *) = __extension__(void (*)(const void *))
		gpumemtrace_find_(&cache, "gpumemtrace_pool_free");

	if (function)
		function(ptr);
}

/* A consistent copy of the output file as it stands now, to a new file at `path`; an earlier file
 * of the tracer's there is kept as PATH.old1 and so on. 0, or -errno (-ENOSYS: no shim, -EBUSY:
 * from a handler that came between another call, or `path` is the file of a live process, -EEXIST,
 * -ELOOP: a file that is not the tracer's, a link). */
static __inline__ int gpumemtrace_snapshot(const char *path)
{
	static void *cache;
	int (*function)(const char *) = __extension__(int (*)(const char *))
		gpumemtrace_find_(&cache, "gpumemtrace_snapshot");

	return function ? function(path) : -38;
}

/*
 * Bytes in use on `device` (CUDA's ordinal in this process; -1: pinned host memory) right now: all
 * that was allocated from CUDA and not freed; of what PyTorch's allocator reserved only the blocks
 * that it handed out. 0 without the shim, before the first CUDA call and for a device that was not
 * used. The call takes the tracker's lock for an instant.
 */
static __inline__ uint64_t gpumemtrace_live_bytes(int device)
{
	static void *cache;
	uint64_t (*function)(int) =
		__extension__(uint64_t(*)(int)) gpumemtrace_find_(&cache, "gpumemtrace_live_bytes");

	return function ? function(device) : 0;
}

/* The highest value of gpumemtrace_live_bytes(device) since the start or the last reset, never
 * missed. */
static __inline__ uint64_t gpumemtrace_peak_bytes(int device)
{
	static void *cache;
	uint64_t (*function)(int) =
		__extension__(uint64_t(*)(int)) gpumemtrace_find_(&cache, "gpumemtrace_peak_bytes");

	return function ? function(device) : 0;
}

/*
 * The peak of `device` begins anew at what is in use now; for the whole process: two users of it
 * disturb each other. The peaks in the report are not touched.
 */
static __inline__ void gpumemtrace_reset_peak(int device)
{
	static void *cache;
	void (*function)(int) =
		__extension__(void (*)(int)) gpumemtrace_find_(&cache, "gpumemtrace_reset_peak");

	if (function)
		function(device);
}

#endif
#endif
