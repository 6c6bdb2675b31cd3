/*
 * struct gm_call describes one call of a CUDA function. It has the arguments in the terms of the
 * table (api/cuda_api.def), and the recorder's own state of the call from its begin to its end.
 * interpose/ fills in a wrapper's arguments, cupti/ a callback's.
 */
#ifndef GM_RECORDER_CALL_H
#define GM_RECORDER_CALL_H

#include "api/api.h"
#include "recorder/state/in_flight.h"
#include "recorder/state/thread.h"
#include "stack/stack.h"
#include "track/event.h"

/*
 * Fields that a row does not name are 0, but for the device, which is then -1. Fields of which no
 * role reads two share their place, the recorder's own among them: a call is filled anew each time,
 * and most calls need little of it.
 */
struct gm_call {
	uint32_t function;	/* enum gm_function */
	int device;
	struct gm_entry caller; /* the place of the call in the program */
	void *out;		/* the new pointer or handle is written here */
	uint64_t bytes;
	uint64_t key;		/* the pointer, handle or address that is given */
	uint64_t stream, pool;
	union {
		const void *location;	  /* a CUmemLocation: where the memory is to lie */
		int64_t explained_before; /* the recorder's own (gm_track_explained_bytes) */
	};
	union {
		struct { /* allocations */
			void *pitch; /* the pitch is written here; `bytes` is then a row's width */
			uint64_t rows;
		};
		struct { /* virtual memory, green contexts */
			uint64_t handle, offset;
		};
		struct { /* MEM_INFO */
			void *free_out, *total_out;
		};
		const void *ipc_out; /* EXPORT: where a handle of GM_HANDLE_BYTES is written */
		const void *node;	       /* GRAPH_NODE: graph node parameters */
		/* the recorder's own */
		uint64_t latest; /* of a free: gm_track_free_begin */
		struct {
			uint64_t free_before; /* free bytes, or used ones if there is no context */
			uint64_t own_before;  /* this process's bytes by NVML, or a pool's */
		};
		struct {		       /* VMM_UNMAP, VMM_RELEASE */
			uint64_t free_then;    /* free bytes, GM_NO_BYTES: not known */
			uint64_t before_bytes; /* memory from before the period that it may end */
		};
	};
	union {
		uint64_t graph, exec, address;
		uint64_t begun;		  /* VMM_UNMAP, VMM_RELEASE: calls so far (in_flight.h) */
		const void *list;	  /* CUarrayMapInfo[count] */
	};
	uint64_t flags; /* of an array or a graph's instantiation; a capture's mode */
	union {
		uint32_t count, limit;
		uint32_t ipc; /* gm_handle_number of the handle that is opened */
	};
	uint8_t space;		/* enum gm_space; 0: the row's */
	uint8_t narrow;		/* the out-parameters are 32 bits wide (first driver API) */
	uint8_t view;		/* a view of imported memory: no bytes of its own */
	/* from here on the recorder's own */
	uint8_t captured; /* a free on a capturing stream: it makes a node and frees nothing */
	uint64_t ticks;		/* gm_clock_ticks() at the begin, if the call is recorded */
	union {
		uint64_t marks; /* all of the following */
		struct {
			uint8_t outermost; /* the program made the call; it is inside no other */
			uint8_t recorded;  /* it is recorded at its end */
			uint8_t injected;  /* its failure is the recorder's doing (refuse.h) */
			uint8_t fast_role; /* its role on the fast path (interpose/wrap.h), or 0 */
			uint32_t contexts; /* gm_track_context_changes before the call */
		};
	};
};

/*
 * This is the initialiser of a call of row `fn`. A row's field comes after the default and replaces
 * it. All fields are named, because the compiler clears the whole structure first otherwise.
 */
#define GM_CALL(fn, entry, ...)                                                                    \
	{                                                                                          \
		.function = (fn), .device = -1, .caller = entry, .out = NULL, .bytes = 0,          \
		.key = 0, .stream = 0, .pool = 0, .location = NULL, .pitch = NULL, .rows = 0,      \
		.graph = 0, .flags = 0, .count = 0, .space = 0, .narrow = 0, .view = 0,            \
		.captured = 0, .ticks = 0, .marks = 0, ##__VA_ARGS__                               \
	}

/*
 * The calling thread's outermost call is over. Called at its end, and where the program leaves it
 * by a jump, an exception or a cancellation. Async-signal-safe.
 */
static inline void gm_call_over(void)
{
	gm_thread.outermost = 0;
	gm_in_flight_end();
}

/* Returns the outermost call that `call` is nested in, which may be `call` itself. */
static inline const struct gm_call *gm_call_outermost(const struct gm_call *call)
{
	return !call->outermost && gm_is_nested((uintptr_t)call) ?
		       (const struct gm_call *)gm_thread.outermost : call;
}

#endif
