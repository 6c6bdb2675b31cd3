/*
 * Queries to the driver, always through its own functions and never through a wrapper. Each returns
 * false or a neutral value where the driver lacks the function or refuses. Any thread.
 */
#ifndef GM_RECORDER_ASK_H
#define GM_RECORDER_ASK_H

#include "api/api.h"
#include "track/pools.h"
#include <stdbool.h>

/* Finds the functions in libcuda, when that was found, and again when it was unloaded. */
void gm_query_init(void);

/* True while the functions of a libcuda are known. */
bool gm_query_ready(void);

/* Number of devices that the process sees; 1 until that is known. */
extern int gm_device_count __attribute__((visibility("hidden"))); /* 0: not known yet */
int gm_find_device_count(void);

static inline int gm_query_device_count(void)
{
	return __builtin_expect(gm_device_count != 0, 1) ? gm_device_count : gm_find_device_count();
}

/* Device of the calling thread's context, -1 without a context. */
int gm_query_current_device(void);

/* Device that a pointer's memory lies on, -1 if the driver does not say. */
int gm_query_pointer_device(uint64_t pointer);

/*
 * Whole size of the allocation that a device pointer belongs to, 0 if the driver does not say. Of
 * virtual memory it is the mapping's size, while CU_POINTER_ATTRIBUTE_RANGE_SIZE is that of the
 * reserved range [CUDA 13.0 driver API, cuPointerGetAttribute].
 */
uint64_t gm_query_pointer_bytes(uint64_t pointer);

/*
 * The handle that is mapped at an address, 0 if there is none. The driver returns the value that
 * the program mapped, and takes a reference for the caller [CUDA 13.0 driver API,
 * cuMemRetainAllocationHandle], which is given back at once.
 */
uint64_t gm_query_mapped_handle(uint64_t address);

/* The driver's free and total bytes of the current context's device. */
bool gm_query_mem_info(uint64_t *free_bytes, uint64_t *total_bytes);

/*
 * True if the stream is being captured into a graph. `per_thread`: 0 means the per-thread stream.
 */
bool gm_query_capturing(uint64_t stream, bool per_thread);

/* True if the calling thread may make calls that captures forbid (capture mode relaxed). */
bool gm_query_capture_relaxed(void);

/* Handle of the calling thread's context, 0 without a context. */
extern CUresult (*gm_ctx_get_current)(CUcontext *) /* NULL: the driver lacks it */
	__attribute__((visibility("hidden")));

static inline uint64_t gm_query_current_context(void)
{
	CUcontext context = NULL;

	if (!gm_ctx_get_current || gm_ctx_get_current(&context) != GM_CUDA_SUCCESS)
		return 0;
	return (uintptr_t)context;
}

/* True if a device's primary context exists; `otherwise` if the driver does not say. */
bool gm_query_primary_active(int device, bool otherwise);

/* The context through which a green context is used, 0 if the driver does not say. */
uint64_t gm_query_green_context(uint64_t green);

/* Bytes in use on a device by all processes, from NVML. */
bool gm_query_device_used(int device, uint64_t *used_bytes);

/* Bytes of this process alone; 0 where NVML does not list it, as before its first context. */
enum gm_nvml_answer { GM_NVML_UNKNOWN, GM_NVML_UNLISTED, GM_NVML_LISTED };
enum gm_nvml_answer gm_query_process_used(int device, uint64_t *used_bytes);

/* All four figures of a pool; false if the driver does not say. */
bool gm_query_pool_figures(uint64_t pool, struct gm_pool_figures *figures);

/*
 * Returns the bytes that the pool keeps at waits; GM_NO_BYTES - 1: everything, GM_NO_BYTES: the
 * driver does not say.
 */
uint64_t gm_query_pool_threshold(uint64_t pool);

/* All four figures of a device's graph memory; false if the driver does not say. */
bool gm_query_graph_figures(int device, struct gm_pool_figures *figures);

/* The device's default and current pool, 0 if the driver does not say. */
uint64_t gm_query_default_pool(int device);
uint64_t gm_query_current_pool(int device);

/* Tells the tracker about a device (name, UUID, size) the first time that the device is seen. */
void gm_note_new_device(int device);
extern uint64_t gm_described_devices /* bit i: the tracker knows device i (atomic) */
	__attribute__((visibility("hidden")));

static inline void gm_note_device(int device)
{
	uint64_t described = __atomic_load_n(&gm_described_devices, __ATOMIC_RELAXED);

	if (device >= 0 && device < 64 && !(described >> device & 1))
		gm_note_new_device(device);
}

/* The file is new: the tracker has to learn of devices again. */
void gm_query_forget_devices(void);

#endif
