/*
 * What the tracker is told: struct gm_event, the same whether it came from an interposed call, from
 * CUPTI or from a framework's own hook, and the functions that take it. track/ knows allocations and
 * tables; it calls no CUDA, takes no stack and never blocks on anything but its own lock.
 *
 * All functions are safe from any thread and do nothing while no file is open. None may be called
 * from a signal handler but those that say so.
 */
#ifndef GM_TRACK_EVENT_H
#define GM_TRACK_EVENT_H

#include "store/layout.h"
#include "store/writer.h"
#include "track/clock.h"
#include <stdbool.h>

/* `error` of a free at the process's end: "unloading", 4 in both layers. Teardown, no bad free. */
#define GM_ERROR_TEARDOWN 4

struct gm_event {
	uint64_t key;		/* pointer, array or handle in its space */
	uint64_t bytes;		/* asked for */
	uint64_t layout_bytes;	/* as the driver lays it out, 0: as asked */
	uint64_t stream;
	uint64_t ticks;		/* gm_clock_ticks() when it began; 0: not read */
	uint32_t stack;		/* GM_TABLE_STACKS; GM_NONE */
	uint32_t caller_module; /* GM_TABLE_MODULES; GM_NONE */
	uint32_t function;	/* gm_track_function's number; GM_NONE for blocks */
	uint32_t owner;		/* pool's record, or a mapping's handle record; GM_NONE */
	uint32_t context;	/* number in GM_TABLE_CONTEXTS plus 1; 0 unknown */
	uint32_t ipc;		/* of imported memory: the number of its IPC handle, 0 none */
	int32_t error;		/* CUDA's code; 0 success */
	/* in the order of struct gm_alloc_record (calls.c) */
	uint16_t flags;		/* GM_ALLOC_... */
	uint8_t space, kind;
	int16_t device;		/* GM_HOST for host memory */
	uint8_t level;
	uint8_t injected;	/* the failure is the tracker's own doing */
	const struct gm_device_view *view; /* at an out-of-memory error (torch.h); NULL: not asked */
};

/* A free under way: which record it is about, and that the record was still that allocation's. */
struct gm_ticket {
	uint32_t record; /* gm_store_offset; GM_NONE: nothing of that key is known */
	uint32_t owner;	 /* its pool, GM_NONE */
	uint64_t serial;
};

extern __thread uint32_t gm_thread_id
	__attribute__((tls_model("initial-exec"), visibility("hidden"))); /* 0: to be asked */
uint32_t gm_ask_thread_id(void);

/* The calling thread's id (tid). Asks the system once in a thread's life; in the child of a fork again. */
static inline uint32_t gm_calling_thread(void)
{
	return __builtin_expect(gm_thread_id != 0, 1) ? gm_thread_id : gm_ask_thread_id();
}

/* Time since the first event, in nanoseconds. Any context. */
uint64_t gm_track_now(void);

/* Number in GM_TABLE_FUNCTIONS of function `id` (below 512), entered by `name` at first use. */
uint32_t gm_enter_function(unsigned id, const char *name, unsigned layer);

#define GM_MOST_FUNCTIONS 512
extern uint32_t gm_function_numbers[GM_MOST_FUNCTIONS] __attribute__((visibility("hidden"))); /* + 1 */

static inline uint32_t gm_track_function(unsigned id, const char *name, unsigned layer)
{
	uint32_t number =
		id < GM_MOST_FUNCTIONS ? __atomic_load_n(&gm_function_numbers[id], __ATOMIC_ACQUIRE) : 0;

	return number ? number - 1 : gm_enter_function(id, name, layer);
}

/*
 * Readies the tables of a file that was just opened. Called under the start lock, before any other
 * call; again in the child of a fork that opened its own file, when everything is forgotten first.
 * `history`: the ring of the last events is kept.
 */
void gm_track_start(bool history);

/*
 * An allocation succeeded. An older live record of the same key is superseded: its free was missed.
 * True when the pool that it was taken from (event->owner) is to be asked for its attributes now.
 */
bool gm_track_alloc(const struct gm_event *event);

/* An allocation call failed with event->error; `key` 0, `bytes` what was asked for. */
void gm_track_alloc_failed(const struct gm_event *event);

/* Before a free call: marks the record as being freed. Allocates nothing. */
struct gm_ticket gm_track_free_begin(uint8_t space, uint64_t key);

/*
 * After a free call. On success the allocation ends, unless another thread was given its address
 * meanwhile. On failure it is live again, and the call becomes an error of contract.md when it is
 * one. event: key, space, kind (the family of the free call), stack (shallow), function, error.
 * True when ticket.owner is to be asked for its attributes now.
 */
bool gm_track_free_end(struct gm_ticket ticket, const struct gm_event *event);

/* Frees what `matches` picks, for `cause` (reset, context, pool, graph): no leak, no free call. */
void gm_track_implicit_free(enum gm_implicit_cause cause,
			    bool (*matches)(const struct gm_alloc_record *, const void *),
			    const void *data);

/*
 * The memory was exported to other processes (GM_ALLOC_EXPORTED); `ipc` is the number of its IPC
 * handle, 0 if it has none.
 */
void gm_track_exported(uint8_t space, uint64_t key, uint32_t ipc);

/* Copy of the live record of a key; false if there is none. */
bool gm_track_find(uint8_t space, uint64_t key, struct gm_alloc_record *out);

/* ---- virtual memory (vmm.c): handles are allocations of space GM_SPACE_HANDLE ---- */

/* Address space was reserved, or given back (`key` its start). Holds no memory. */
void gm_track_reserve(const struct gm_event *event);
void gm_track_unreserve(const struct gm_event *event);

/* A range was mapped to `handle` from `offset` on; unmapped: every mapping that starts in the range. */
void gm_track_map(const struct gm_event *event, uint64_t handle, uint64_t offset);
void gm_track_unmap(const struct gm_event *event);

/* One more reference to the handle that backs `address` (event->key is the handle CUDA returned). */
void gm_track_retain(const struct gm_event *event, uint64_t address);

/* A release of a handle: memory ends when references and mappings are both gone. */
void gm_track_release(const struct gm_event *event);

/*
 * A tile of the sparse array event->key (`tile`: any number that tells it from others) was mapped to
 * `handle`, unmapped if that is 0. A tile holds its memory as a mapping does.
 */
void gm_track_tile(const struct gm_event *event, uint64_t tile, uint64_t handle);

/*
 * Memory was bound to the multicast object event->key from `offset` on: that of `handle`, or if that
 * is 0 what is mapped at `address`. A binding holds its memory as a mapping does.
 */
void gm_track_bind(const struct gm_event *event, uint64_t offset, uint64_t handle, uint64_t address);
void gm_track_unbind(const struct gm_event *event, uint64_t offset);

/* ---- pools (pools.c) ---- */

struct gm_pool_figures {
	uint64_t reserved_bytes, used_bytes, reserved_high_bytes, used_high_bytes;
	uint64_t release_threshold_bytes; /* GM_NO_BYTES: not asked */
};

/*
 * Number in GM_TABLE_POOLS of the pool with this handle, entered at first sight with its type and the
 * stack that made it; GM_NONE when the file is full. Graph memory is a device's pool of handle 0.
 */
uint32_t gm_track_pool(uint64_t handle, int device, unsigned type, uint32_t stack);

/* The most that the pool was made to hold; `number` as gm_track_pool returned it. */
void gm_track_pool_max(uint32_t number, uint64_t max_bytes);

/* Its number if it is known, and then its device; else GM_NONE. No lock. */
uint32_t gm_track_pool_known(uint64_t handle, int *device);

/* True when the pool's attributes are to be asked: always at first, later now and then. No lock. */
bool gm_track_pool_due(uint32_t pool);

/* Rises with the pool's allocations and with what is told of its attributes. No lock. */
uint64_t gm_track_pool_changes(uint32_t pool);

/*
 * What the pool's attributes said when gm_track_pool_changes was `changes`; false if that is no longer so:
 * they may be older than the books, and are to be asked again. They are booked in any case.
 */
bool gm_track_pool_sampled(uint32_t pool, const struct gm_pool_figures *figures, uint64_t changes);

/* True when its release threshold was asked once. No lock. */
bool gm_track_pool_configured(uint32_t pool);

/* What it holds as last asked, 0 for a pool that is not known. No lock. */
uint64_t gm_track_pool_reserved(uint32_t pool);

/* It was trimmed, and sampled since; `before_bytes`: what it held until then. */
void gm_track_pool_trimmed(uint32_t pool, uint64_t before_bytes);

/* A pool was destroyed: its handle is no more, what is allocated from it stays. */
void gm_track_pool_destroyed(uint64_t handle);

/* True when a pool is known. No lock; a file must be open. */
static inline bool gm_track_has_pools(void)
{
	return gm_file->tables[GM_TABLE_POOLS].count != 0;
}

/* True when a pool holds more than is allocated from it. No lock. */
bool gm_track_pools_idle(void);

/* True when bytes were freed on streams since the last wait: a wait may give them back. No lock. */
extern uint32_t gm_pools_waiting __attribute__((visibility("hidden")));

static inline bool gm_track_pools_waiting(void)
{
	return __atomic_load_n(&gm_pools_waiting, __ATOMIC_RELAXED);
}

/* A stream was waited for (`all`: a whole context): its frees are no longer pending. */
void gm_track_pools_waited(uint64_t stream, bool all);

/* Handle of the number-th pool that is to be asked after a wait, 0 none; false past the last. */
bool gm_track_pool_handle(uint32_t number, uint64_t *handle, int *device, unsigned *type);

/* ---- graphs (graphs.c): memory is held from a launch on, by the address its node was given ---- */

struct gm_graph_node {
	uint64_t address;
	bool frees; /* else allocates */
};

/* An allocation node was made: event says what a launch will allocate, and whose stack it is. */
void gm_track_graph_define(const struct gm_event *event);

/* True when there are such nodes. No lock. */
bool gm_track_graph_nodes(void);

/* A graph with these memory nodes became executable `exec`. */
void gm_track_graph_instantiate(uint64_t exec, bool auto_free, const struct gm_graph_node *nodes,
				uint32_t count);

/* Devices that exec's memory lies on, as bits (first 64); 0: it has no memory nodes. */
uint64_t gm_track_graph_devices(uint64_t exec);

/* A launch, successful or not (event->error, stack, function). */
void gm_track_graph_launch(uint64_t exec, const struct gm_event *event);

/* A graph with these nodes, an executable: destroyed. Frees no memory that is allocated. */
void gm_track_graph_destroyed(const struct gm_graph_node *nodes, uint32_t count);
void gm_track_graph_exec_destroyed(uint64_t exec);

/* ---- contexts and what calls cost beside allocations (contexts.c, costs.c) ---- */

/*
 * Number in GM_TABLE_CONTEXTS of the live context that memory allocated in this one goes with: itself,
 * of a green context the primary one. GM_NONE unknown. No lock.
 */
uint32_t gm_track_context(uint64_t handle);

/* Device of the context whose number this is less 1 (event->context), -1 unknown. No lock. */
int gm_track_context_device(uint32_t context);

/* A context was made or, if primary, retained. `bytes` it cost: GM_NO_BYTES unknown. Its number. */
uint32_t gm_track_context_made(uint64_t handle, int device, bool primary, bool green, uint64_t bytes,
			       uint32_t stack);

/*
 * A context is gone, and with it everything that was allocated in it: `cause`. Without a handle all
 * contexts of the device that are primary. No-op for unknown ones but for memory of no known context
 * (device >= 0, handle 0).
 */
void gm_track_context_gone(uint64_t handle, int device, enum gm_implicit_cause cause);

/* Rises whenever a context comes or goes: numbers remembered elsewhere are then to be asked again. */
extern uint32_t gm_context_changes __attribute__((visibility("hidden")));

static inline uint32_t gm_track_context_changes(void)
{
	return __atomic_load_n(&gm_context_changes, __ATOMIC_ACQUIRE);
}

/*
 * There may be contexts that no call tells of: one was found, to be said before gm_track_context_made, or the
 * program has a function that may make some. Any context, and before there is a file.
 */
void gm_track_context_untold(void);

/*
 * The number plus 1 of the only context that there is, a primary one, so that what is allocated is
 * allocated in it; 0 where there may be others. Of the visible devices' contexts: with one device it is sure.
 */
extern uint32_t gm_sole_context __attribute__((visibility("hidden")));

static inline uint32_t gm_track_sole_context(void)
{
	return __atomic_load_n(&gm_sole_context, __ATOMIC_ACQUIRE);
}

/*
 * What the books explain of a device's memory, contexts left out: physical bytes and costs. A cost is
 * the driver's change less the change of this, so that nothing is counted twice. No lock.
 */
int64_t gm_track_explained_bytes(int device);

struct gm_cost_event {
	int device;
	enum gm_cost cost;
	int object;		 /* 1: one came, -1: went */
	uint32_t module, stack;
	int64_t bytes;		 /* negative: given back */
	int64_t explained_bytes; /* what the books explained when `bytes` was measured */
};

/*
 * What a call cost the device beside allocations. False, and nothing was booked, when the books have
 * changed since it was measured: it is to be measured again.
 */
bool gm_track_cost(const struct gm_cost_event *event);

/* Limits that were set, for the report: GM_NO_BYTES leaves one as it is. */
void gm_track_limits(uint64_t stack_bytes, uint64_t heap_bytes);

/* What was in use on the device before its first context, by NVML. */
void gm_track_used_before(int device, uint64_t bytes);

/* A mark: closes the window. `name` is copied (255 bytes). */
void gm_track_mark(const char *name, enum gm_mark_source source);

/* A consistent copy of the file to `path`. 0 or -errno. */
int gm_track_copy(const char *path);

/*
 * A mark by a signal, its name already in the file, and a copy to `path`. Waits for nothing: -EAGAIN,
 * with nothing done, where a lock is held. Signal-safe.
 */
int gm_track_signal(uint32_t name_string, const char *path);

/* A device is in use: name and size as CUDA tells them. `name` may be NULL. */
void gm_track_device(int device, const char *name, const uint8_t uuid[16], uint64_t total_bytes);

/* GPUMEMTRACE_CAPACITY of a device that was told; GM_NO_BYTES: none. */
void gm_track_capacity(int device, uint64_t bytes);

/* Owned bytes of the driver level on a device right now: physical, managed memory left out. */
uint64_t gm_track_physical_bytes(int device);

/*
 * Bytes in use on a device (GM_HOST: pinned memory) right now, or the most since gm_track_reset_peak:
 * the driver level, but of what PyTorch reserved only the blocks that it handed out.
 */
uint64_t gm_track_in_use(int device, bool peak);
void gm_track_reset_peak(int device);

/* The process ends: closes the books (`end`, enum gm_end). Uses try-locks; any context. */
void gm_track_end(unsigned end, int status);

/* The end did not come about (a failed exec). */
void gm_track_resume(void);

#endif
