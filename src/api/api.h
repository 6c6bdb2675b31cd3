/*
 * What the table of CUDA functions (cuda_api.def) is made of: rows, roles, and struct gm_call, one
 * call's arguments in the table's terms. Shared by interpose/ and cupti/, which fill it, and by
 * interpose/role*.c, which turn it into events.
 */
#ifndef GM_API_API_H
#define GM_API_API_H

#include "api/cuda_abi.h"
#include "api/params.h"
#include "stack/stack.h"
#include "store/layout.h"
#include "track/event.h"

/* What a function does to memory; handlers in interpose/roles.c's table. */
enum gm_role {
	GM_ROLE_NOTHING,	/* forwarded and counted, moves no memory */
	GM_ROLE_ALLOC,
	GM_ROLE_FREE,
	GM_ROLE_REGISTER,	/* as ALLOC, of an address that the caller gives */
	GM_ROLE_EXPORT,		/* a handle for other processes is taken */
	GM_ROLE_POOL_CREATE,
	GM_ROLE_POOL_IMPORT,
	GM_ROLE_POOL_DESTROY,
	GM_ROLE_POOL_TRIM,
	GM_ROLE_POOL_SET,	/* a device's current pool */
	GM_ROLE_VMM_RESERVE,
	GM_ROLE_VMM_ADDRESS_FREE,
	GM_ROLE_VMM_MAP,
	GM_ROLE_VMM_UNMAP,
	GM_ROLE_VMM_MAP_ARRAY,	/* tiles of sparse arrays, mapped and unmapped by one call */
	GM_ROLE_VMM_RETAIN,
	GM_ROLE_VMM_RELEASE,
	GM_ROLE_MULTICAST_BIND,
	GM_ROLE_MULTICAST_UNBIND,
	GM_ROLE_GRAPH_NODE,	/* a node of any type: memory nodes count */
	GM_ROLE_GRAPH_FREE_NODE,
	GM_ROLE_GRAPH_INSTANTIATE,
	GM_ROLE_GRAPH_LAUNCH,
	GM_ROLE_GRAPH_DESTROY,
	GM_ROLE_GRAPH_EXEC_DESTROY,
	GM_ROLE_GRAPH_TRIM,
	GM_ROLE_CTX_CREATE,
	GM_ROLE_CTX_RETAIN,	/* the primary context */
	GM_ROLE_CTX_RELEASE,
	GM_ROLE_CTX_DESTROY,
	GM_ROLE_GREEN_CREATE,
	GM_ROLE_GREEN_DESTROY,
	GM_ROLE_DEVICE_RESET,
	GM_ROLE_MODULE_LOAD,
	GM_ROLE_MODULE_UNLOAD,
	GM_ROLE_MODULE_USE,	/* lazily loaded code is loaded here */
	GM_ROLE_STREAM_CREATE,
	GM_ROLE_LAUNCH,		/* a kernel; only the first of each counts */
	GM_ROLE_LIMIT,
	GM_ROLE_MEM_INFO,
	GM_ROLE_CAPTURE_BEGIN,	/* a stream is captured into a graph from here on */
	GM_ROLE_CAPTURE_END,
	GM_ROLE_SYNC,		/* a stream or context was waited for: pools give memory back */
	GM_ROLE_ROUTE,
	GM_ROLES
};

enum gm_function {
#define GM_RUNTIME(name, ...)	     GM_FN_##name,
#define GM_RUNTIME_UNTIL12(name, ...) GM_FN_##name##_until12,
#define GM_RUNTIME_FROM13(name, ...) GM_FN_##name,
#define GM_DRIVER(name, ...)	     GM_FN_##name,
#define GM_ROUTE(layer, name, ...)   GM_FN_##name,
#include "api/cuda_api.def"
	GM_FUNCTIONS
};

struct gm_row {
	const char *name;	/* as exported */
	uint8_t layer;		/* enum gm_layer */
	uint8_t role;		/* enum gm_role */
	uint8_t kind;		/* enum gm_kind: of what is allocated, or the family that a free belongs to */
	uint8_t name_bytes;
	uint8_t majors;		/* bit 0: libcudart 11, bit 1: 12, bit 2: 13 (runtime rows) */
	uint8_t space;		/* enum gm_space: of what is allocated or freed, if the call does not say */
	uint8_t per_thread;	/* its stream 0 is the calling thread's own: "_ptsz" */
};

extern const struct gm_row gm_rows[GM_FUNCTIONS] __attribute__((visibility("hidden")));

/*
 * One call. Everything not named by its row is 0, but the device, then -1. What no role reads beside
 * each other shares its place: a call is filled anew each time, and most need little of it.
 */
struct gm_call {
	uint32_t function;	/* enum gm_function */
	int device;
	struct gm_entry caller;
	void *out;		/* where the new pointer or handle is written */
	uint64_t bytes;
	uint64_t key;		/* pointer, handle or address given */
	uint64_t stream, pool;
	const void *location;	/* a CUmemLocation: where the memory is to lie */
	union {
		struct { /* allocations */
			void *pitch; /* where the pitch is written; bytes is then a row's width */
			uint64_t rows;
		};
		struct { /* virtual memory, green contexts */
			uint64_t handle, offset;
		};
		struct { /* MEM_INFO */
			void *free_out, *total_out;
		};
		const CUipcMemHandle *ipc_out; /* EXPORT: where an IPC handle is written */
		const void *node;	       /* GRAPH_NODE: graph node parameters */
		/* the tracker's own, from gm_call_begin to gm_call_end */
		struct gm_ticket ticket; /* of a free */
		struct {
			uint64_t free_before; /* bytes: free, or used where there is no context yet */
			uint64_t own_before; /* this process's, by NVML; what a pool that is trimmed held */
		};
	};
	union {
		uint64_t graph, exec, address;
		const void *list;	  /* CUarrayMapInfo[count] */
		int64_t explained_before; /* what the books explained then: the tracker's own */
	};
	uint64_t flags;		/* of an array, of a graph's instantiation */
	union {
		uint32_t count, limit;
		uint32_t ipc;	/* gm_ipc_number of the handle that is opened */
	};
	uint8_t space;		/* enum gm_space; 0: the row's */
	uint8_t narrow;		/* the out-parameters are 32 bits wide (first driver API) */
	uint8_t view;		/* a view of imported memory: no bytes of its own */
	uint8_t captured;	/* a free on a capturing stream: makes a node, frees nothing */
	/* the tracker's own, as above */
	uint64_t ticks; /* gm_clock_ticks() when it was made, if it is recorded */
	union {
		uint64_t marks; /* all of them */
		struct {
			uint8_t outermost, recorded, injected;
			uint8_t straight;  /* the role of one that goes the short way (call.c), else 0 */
			uint32_t contexts; /* that came or went until then */
		};
	};
};

/*
 * What a call of row `fn` is filled with: a field of the row comes after the default and replaces it. All
 * are named, so that the compiler writes what is 0 in a few stores; else it would clear the structure first.
 */
#define GM_CALL(fn, entry, ...)                                                                    \
	{                                                                                          \
		.function = (fn), .device = -1, .caller = entry, .out = NULL, .bytes = 0, .key = 0, \
		.stream = 0, .pool = 0, .location = NULL, .pitch = NULL, .rows = 0, .graph = 0,    \
		.flags = 0, .count = 0, .space = 0, .narrow = 0, .view = 0, .captured = 0, \
		.ticks = 0, .marks = 0, ##__VA_ARGS__                                              \
	}

/*
 * A number for an IPC handle, never 0: equal for equal handles, so that the report can tell which
 * process's memory another one opened. FNV-1a over the handle, which is opaque. Pure.
 */
static inline uint32_t gm_ipc_number(const CUipcMemHandle *handle)
{
	const unsigned char *at = (const unsigned char *)handle;
	uint32_t hash = 2166136261u;

	for (unsigned i = 0; i < sizeof(*handle); i++)
		hash = (hash ^ at[i]) * 16777619u;
	return hash ? hash : 1;
}

/* A number for a name in a module or library. FNV-1a; the name may be NULL, as CUDA then answers. Pure. */
static inline __attribute__((pure)) uint64_t gm_named(uint64_t owner, const char *name)
{
	uint64_t hash = 14695981039346656037ull ^ owner;

	for (; name && *name; name++)
		hash = (hash ^ (unsigned char)*name) * 1099511628211ull;
	return hash;
}

/* Bytes of a CUDA array by its descriptor, all mipmap levels; extents of 0 count as 1. */
uint64_t gm_runtime_array_bytes(const struct cudaChannelFormatDesc *desc, size_t width, size_t height,
				size_t depth, unsigned int levels);
uint64_t gm_driver_array_bytes(unsigned int format, unsigned int channels, size_t width,
			       size_t height, size_t depth, unsigned int levels);

#endif
