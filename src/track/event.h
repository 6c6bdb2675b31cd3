/*
 * The tracker's input: an event, which is the same whether it came from an interposed call, from
 * CUPTI or from a framework's own hook. The functions that record events are in the headers of
 * their subjects (driver_allocs.h, torch_blocks.h, vmm.h, pools.h, graphs.h, contexts.h, costs.h,
 * marks.h). track/ knows allocations and tables; it calls no CUDA function, takes no stack and
 * waits for nothing but its own lock.
 *
 * The functions named gm_track_... are for other modules. They are safe on any thread and do
 * nothing while no file is open. A signal handler may call only those whose comment says so.
 */
#ifndef GM_TRACK_EVENT_H
#define GM_TRACK_EVENT_H

#include "store/layout.h"
#include <stdbool.h>

/*
 * CUDA's errors of the same value in both layers: out of memory, and "unloading", which is what a
 * free at the end of the process gets.
 */
#define GM_ERROR_OUT_OF_MEMORY 2
#define GM_ERROR_TEARDOWN      4

struct gm_event {
	uint64_t key;	       /* pointer, array or handle in its space */
	uint64_t bytes;	       /* asked for */
	uint64_t layout_bytes; /* as the driver lays it out; 0: as asked for */
	uint64_t stream;
	uint64_t ticks;		/* gm_clock_ticks() when the call began; 0: not read */
	uint32_t stack;		/* index in GM_TABLE_STACKS; GM_NONE */
	uint32_t caller_module; /* index in GM_TABLE_MODULES; GM_NONE */
	uint32_t function;	/* index by gm_track_function; GM_NONE for blocks */
	uint32_t owner;		/* index of the pool, or of a mapping's handle; GM_NONE */
	uint32_t context;	/* index in GM_TABLE_CONTEXTS plus 1; 0: unknown */
	uint32_t ipc;		/* number of the IPC handle of imported memory; 0: none */
	int32_t error;		/* CUDA's code; 0: success */
	int32_t extra;		/* as in struct gm_alloc_record */
	/* in the order of struct gm_alloc_record, which driver_allocs.c relies on */
	uint16_t flags; /* GM_ALLOC_... */
	uint8_t space, kind;
	int16_t device; /* GM_HOST for host memory */
	uint8_t level;
	uint8_t injected;		   /* 1: the shim itself made the call fail */
	const struct gm_device_view *view; /* at an out-of-memory error; NULL: not queried */
};

/* A device as the driver and NVML report it; GM_NO_BYTES where they do not say. */
struct gm_device_view {
	uint64_t free_bytes,
		total_bytes;   /* the driver's; with GPUMEMTRACE_CAPACITY of that device */
	uint64_t own_bytes;    /* of this process */
	uint64_t others_bytes; /* of all other processes */
	uint64_t used_bytes;   /* of all processes */
	uint32_t pids_string;  /* "PID BYTES\n" of the others, GM_NONE */
};

/*
 * The stack of a block's allocation and the innermost module outside CUDA and the shim; GM_NONE.
 * `extra` as in struct gm_alloc_record, of a sampled block; -1 does not occur.
 */
struct gm_origin {
	uint32_t stack, module;
	int32_t extra;
};

/* Returns the event of a block of PyTorch. That of a free has no origin: GM_NONE twice. */
static inline struct gm_event gm_block_event(uint64_t block, uint64_t bytes, int device,
					     struct gm_origin origin)
{
	return (struct gm_event){.key = block,
				 .bytes = bytes,
				 .device = (int16_t)device,
				 .space = GM_SPACE_TORCH,
				 .kind = GM_KIND_DEVICE,
				 .level = GM_LEVEL_TORCH,
				 .owner = GM_NONE,
				 .function = GM_NONE,
				 .stack = origin.stack,
				 .caller_module = origin.module,
				 .extra = origin.extra};
}

/* PyTorch's own totals of a device, as its hooks pass them: after the block came or went. */
struct gm_torch_totals {
	uint64_t allocated_bytes, reserved_bytes;
};

#endif
