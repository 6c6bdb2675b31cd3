/*
 * Questions put to the driver, always through its own functions and never through a wrapper. Each
 * answers false or a neutral value where the driver lacks the function or refuses.
 */
#ifndef GM_INTERPOSE_ASK_H
#define GM_INTERPOSE_ASK_H

#include "api/api.h"
#include <stdbool.h>

/* Finds the functions in libcuda; called when it was found. */
void gm_ask_init(void);

/* Number of devices the process sees; 1 until it can be told. */
int gm_ask_device_count(void);

/* Device of the calling thread's context, -1 without one. */
int gm_ask_current_device(void);

/* Device that a pointer's memory lies on, `fallback` if CUDA does not say. */
int gm_ask_pointer_device(uint64_t pointer, int fallback);

/* Whole size of the allocation that a device pointer belongs to, 0 if CUDA does not say. */
uint64_t gm_ask_pointer_bytes(uint64_t pointer);

/* The driver's free and total bytes of the current context's device. */
bool gm_ask_mem_info(uint64_t *free_bytes, uint64_t *total_bytes);

/* True if the stream is being captured into a graph. `per_thread`: 0 means the per-thread stream. */
bool gm_ask_capturing(uint64_t stream, bool per_thread);

/* A pool's attribute as a number (CUmemPool_attribute); 0 if the driver does not say. */
uint64_t gm_ask_pool(uint64_t pool, int attribute);
#define GM_POOL_RESERVED_CURRENT 5
#define GM_POOL_RESERVED_HIGH	 6
#define GM_POOL_USED_CURRENT	 7
#define GM_POOL_USED_HIGH	 8

/* Graph memory of a device (CUgraphMem_attribute). */
uint64_t gm_ask_graph_memory(int device, int attribute);
#define GM_GRAPH_USED_CURRENT	  0
#define GM_GRAPH_USED_HIGH	  1
#define GM_GRAPH_RESERVED_CURRENT 2
#define GM_GRAPH_RESERVED_HIGH	  3

/* The device's default and current pool, 0 if the driver does not say. */
uint64_t gm_ask_default_pool(int device);
uint64_t gm_ask_current_pool(int device);

/* Tells the tracker about a device (name, uuid, size) the first time it is seen. */
void gm_ask_describe_device(int device);

/* The file is new: devices are to be told again. */
void gm_ask_forget_devices(void);

#endif
