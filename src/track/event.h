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
#include <stdbool.h>

/* `error` of a free at the process's end: "unloading", 4 in both layers. Teardown, no bad free. */
#define GM_ERROR_TEARDOWN 4

struct gm_event {
	uint64_t key;		/* pointer, array or handle in its space */
	uint64_t bytes;		/* asked for */
	uint64_t stream;
	uint32_t stack;		/* GM_TABLE_STACKS; GM_NONE */
	uint32_t caller_module; /* GM_TABLE_MODULES; GM_NONE */
	uint32_t function;	/* gm_track_function's number; GM_NONE for blocks */
	uint32_t owner;		/* pool's record, or a mapping's handle record; GM_NONE */
	int32_t error;		/* CUDA's code; 0 success */
	int16_t device;		/* GM_HOST for host memory */
	uint8_t space, kind, level;
	uint16_t flags;		/* GM_ALLOC_... */
};

/* A free under way: which record it is about, and that the record was still that allocation's. */
struct gm_ticket {
	uint32_t record; /* GM_NONE: nothing of that key is known */
	uint64_t serial;
};

/* Time since the first event, in nanoseconds. Any context. */
uint64_t gm_track_now(void);

/* Number in GM_TABLE_FUNCTIONS of function `id` (below 512), entered by `name` at first use. */
uint32_t gm_track_function(unsigned id, const char *name, unsigned layer);

/*
 * Readies the tables of a file that was just opened. Called under the start lock, before any other
 * call; again in the child of a fork that opened its own file, when everything is forgotten first.
 * `history`: the ring of the last events is kept.
 */
void gm_track_start(bool history);

/* An allocation succeeded. An older live record of the same key is superseded: its free was missed. */
void gm_track_alloc(const struct gm_event *event);

/* An allocation call failed with event->error; `key` 0, `bytes` what was asked for. */
void gm_track_alloc_failed(const struct gm_event *event);

/* Before a free call: marks the record as being freed. Allocates nothing. */
struct gm_ticket gm_track_free_begin(uint8_t space, uint64_t key);

/*
 * After a free call. On success the allocation ends, unless another thread was given its address
 * meanwhile. On failure it is live again, and the call becomes an error of contract.md when it is
 * one. event: key, space, kind (the family of the free call), stack (shallow), function, error.
 */
void gm_track_free_end(struct gm_ticket ticket, const struct gm_event *event);

/* Frees what `matches` picks, for `cause` (reset, context, pool, graph): no leak, no free call. */
void gm_track_implicit_free(enum gm_implicit_cause cause,
			    bool (*matches)(const struct gm_alloc_record *, const void *),
			    const void *data);

/* The memory was exported to other processes (GM_ALLOC_EXPORTED). */
void gm_track_exported(uint8_t space, uint64_t key);

/* Copy of the live record of a key; false if there is none. */
bool gm_track_find(uint8_t space, uint64_t key, struct gm_alloc_record *out);

/* ---- virtual memory (vmm.c): handles are allocations of space GM_SPACE_HANDLE ---- */

/* Address space was reserved, or given back (`key` its start). Holds no memory. */
void gm_track_reserve(const struct gm_event *event);
void gm_track_unreserve(const struct gm_event *event);

/* A range was mapped to `handle`; unmapped: every mapping that starts in the range. */
void gm_track_map(const struct gm_event *event, uint64_t handle);
void gm_track_unmap(const struct gm_event *event);

/* One more reference to the handle that backs `address` (event->key is the handle CUDA returned). */
void gm_track_retain(const struct gm_event *event, uint64_t address);

/* A release of a handle: memory ends when references and mappings are both gone. */
void gm_track_release(const struct gm_event *event);

/* A mark: closes the window. `name` is copied (255 bytes). */
void gm_track_mark(const char *name, enum gm_mark_source source);

/* A consistent copy of the file to `path`. 0 or -errno. */
int gm_track_copy(const char *path);

/* A device is in use: name and size as CUDA tells them. `name` may be NULL. */
void gm_track_device(int device, const char *name, const uint8_t uuid[16], uint64_t total_bytes);

/* Owned bytes of the driver level on a device right now: physical, managed memory left out. */
uint64_t gm_track_physical_bytes(int device);

/* The process ends: closes the books (`end`, enum gm_end). Uses try-locks; any context. */
void gm_track_end(unsigned end, int status);

/* The end did not come about (a failed exec). */
void gm_track_resume(void);

#endif
