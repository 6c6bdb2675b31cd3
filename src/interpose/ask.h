/*
 * Questions put to the driver, always through its own functions and never through a wrapper. Each
 * answers false or a neutral value where the driver lacks the function or refuses.
 */
#ifndef GM_INTERPOSE_ASK_H
#define GM_INTERPOSE_ASK_H

#include "api/api.h"
#include "track/event.h"
#include <stdbool.h>

/* Finds the functions in libcuda; called when it was found. */
void gm_ask_init(void);

/* The same for what ask_layout.c asks. */
void gm_ask_layouts_init(void);

/* Number of devices the process sees; 1 until it can be told. */
extern int gm_device_count __attribute__((visibility("hidden"))); /* 0: not asked yet */
int gm_find_device_count(void);

static inline int gm_ask_device_count(void)
{
	return __builtin_expect(gm_device_count != 0, 1) ? gm_device_count : gm_find_device_count();
}

/* Device of the calling thread's context, -1 without one. */
int gm_ask_current_device(void);

/* Device that a pointer's memory lies on, -1 if CUDA does not say. */
int gm_ask_pointer_device(uint64_t pointer);

/* Whole size of the allocation that a device pointer belongs to, 0 if CUDA does not say. */
uint64_t gm_ask_pointer_bytes(uint64_t pointer);

/* The driver's free and total bytes of the current context's device. */
bool gm_ask_mem_info(uint64_t *free_bytes, uint64_t *total_bytes);

/* True if the stream is being captured into a graph. `per_thread`: 0 means the per-thread stream. */
bool gm_ask_capturing(uint64_t stream, bool per_thread);

/* Handle of the calling thread's context, 0 without one. */
extern CUresult (*gm_ctx_get_current)(CUcontext *) __attribute__((visibility("hidden"))); /* or NULL */

static inline uint64_t gm_ask_current_context(void)
{
	CUcontext context = NULL;

	if (!gm_ctx_get_current || gm_ctx_get_current(&context) != GM_CUDA_SUCCESS)
		return 0;
	return (uintptr_t)context;
}

/* Whether a device's primary context is there; `otherwise` if the driver does not say. */
bool gm_ask_primary_active(int device, bool otherwise);

/* The context that a green context is used by, 0 if the driver does not say. */
uint64_t gm_ask_green_context(uint64_t green);

/* Bytes in use on a device by all processes, from NVML. */
bool gm_ask_device_used(int device, uint64_t *used_bytes);

/* Those of this process alone, 0 where NVML does not list it: before its first context. */
enum gm_nvml_answer { GM_NVML_SILENT, GM_NVML_UNLISTED, GM_NVML_LISTED };
enum gm_nvml_answer gm_ask_process_used(int device, uint64_t *used_bytes);

/*
 * Bytes that an array or mipmapped array takes as the driver lays it out (tiles of 64 B by 8 rows, as
 * measured on an H100), from the descriptor that the driver keeps; 0 if it does not say.
 */
uint64_t gm_ask_array_bytes(uint64_t array, bool mipmapped);

/* All four figures of a pool, of a device's graph memory; false if the driver does not say. */
bool gm_ask_pool_figures(uint64_t pool, struct gm_pool_figures *figures);

/* What the pool keeps at waits; GM_NO_BYTES - 1 is everything, GM_NO_BYTES that the driver does not say. */
uint64_t gm_ask_pool_threshold(uint64_t pool);
bool gm_ask_graph_figures(int device, struct gm_pool_figures *figures);

/* The memory nodes of a graph and of the graphs inside it, in the order they were made. */
struct gm_graph_nodes {
	struct gm_graph_node *nodes;
	uint32_t count, capacity;
};
void gm_ask_graph_nodes(uint64_t graph, struct gm_graph_nodes *nodes);
void gm_free_graph_nodes(struct gm_graph_nodes *nodes);

/* The device's default and current pool, 0 if the driver does not say. */
uint64_t gm_ask_default_pool(int device);
uint64_t gm_ask_current_pool(int device);

/* Tells the tracker about a device (name, uuid, size) the first time it is seen. */
void gm_ask_device(int device);
extern uint64_t gm_described_devices __attribute__((visibility("hidden"))); /* bit i: device i was told */

static inline void gm_ask_describe_device(int device)
{
	uint64_t described = __atomic_load_n(&gm_described_devices, __ATOMIC_RELAXED);

	if (device >= 0 && device < 64 && !(described >> device & 1))
		gm_ask_device(device);
}

/* The file is new: devices are to be told again. */
void gm_ask_forget_devices(void);

#endif
