/*
 * What the files of the roles share: steps in making an event of a call (role_steps.c), the
 * handlers that roles.c puts into its table, and pools and contexts of calls. Private to roles.c
 * and role_*.c.
 *
 * A handler is called inside the tracker (thread.h), before or after the real call, and saves errno
 * itself where its comment says so; gm_call_enter and gm_call_leave do it for all others.
 */
#ifndef GM_RECORDER_INTERNAL_H
#define GM_RECORDER_INTERNAL_H

#include "api/api.h"
#include "recorder/call.h"
#include "recorder/query.h"
#include "recorder/role_alloc.h"
#include "recorder/roles.h"
#include "store/hot.h"
#include "track/event.h"

#include <stdbool.h>
#include <string.h>

/* ---- steps (role_steps.c) ---- */

/*
 * The stack of the call: at most `limit` frames, or as many as are set if that is 0. `module` may
 * be NULL.
 */
static inline uint32_t gm_call_stack(const struct gm_call *call, unsigned limit, uint32_t *module)
{
	return gm_stack_take(&call->caller, limit, module);
}

/* The stack of the outermost call, from which the program asked for what happens inside. */
uint32_t gm_outer_call_stack(const struct gm_call *call, uint32_t *module);

/* The new pointer or handle that a successful call wrote. */
static inline uint64_t gm_read_out(const struct gm_call *call)
{
	uint32_t narrow;
	uint64_t wide;

	if (!call->out)
		return 0;
	if (call->narrow) {
		memcpy(&narrow, call->out, sizeof(narrow));
		return narrow;
	}
	memcpy(&wide, call->out, sizeof(wide));
	return wide;
}

static inline uint8_t gm_space_of(const struct gm_call *call, const struct gm_row *row)
{
	return call->space ? call->space : row->space;
}

/* The tracker's number of the function that was called (gm_track_function). */
static inline uint32_t gm_function_of(const struct gm_call *call, const struct gm_row *row)
{
	_Static_assert(GM_FUNCTIONS <= GM_MOST_FUNCTIONS, "each function has a number");
	uint32_t number = __atomic_load_n(&gm_function_numbers[call->function], __ATOMIC_ACQUIRE);

	return __builtin_expect(number != 0, 1)
		       ? number - 1
		       : gm_enter_function(call->function, row->name, row->layer);
}

/* An event with the fields that all events have. The handler fills in the device and the bytes. */
struct gm_event gm_event_of(const struct gm_call *call, const struct gm_row *row, int result);

/* Device of the calling thread's context; 0 where that is not known. */
int gm_context_device(void);

#define GM_STREAM_LEGACY     1u /* cudaStreamLegacy, another name for 0 */
#define GM_STREAM_PER_THREAD 2u

/* The stream as one number for its different spellings. */
static inline uint64_t gm_stream_of(const struct gm_call *call, const struct gm_row *row)
{
	if (call->stream == GM_STREAM_LEGACY)
		return 0;
	return call->stream == 0 && row->per_thread ? GM_STREAM_PER_THREAD : call->stream;
}

/* ---- contexts (role_context.c) ---- */

/* The context that the thread used last and its number, valid until a context comes or goes. */
struct gm_last_context {
	uint64_t handle;
	uint32_t changes, number;
};
extern __thread struct gm_last_context gm_last_context
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/*
 * The same of any context, which is entered if it is not known; the slow path of
 * gm_current_context.
 */
uint32_t gm_find_context(const struct gm_call *call, uint64_t handle);

/* The number of the calling thread's context plus 1 (gm_track_context), 0 without one. */
static inline uint32_t gm_current_context(const struct gm_call *call)
{
	uint64_t handle = gm_query_current_context();

	if (__builtin_expect(handle && gm_last_context.handle == handle &&
				     gm_last_context.changes == gm_track_context_changes(), 1))
		return gm_last_context.number + 1;
	return gm_find_context(call, handle);
}

/* ---- pools (role_pool.c) ---- */

/*
 * The pool that an allocation on *device is taken from (`handle` 0: the current one); GM_NONE where
 * it is not known. Sets *device to the pool's.
 */
uint32_t gm_pool_of(uint64_t handle, int *device);

/* The pool that stands for a device's graph memory. */
uint32_t gm_graph_pool_of(int device);

/* Queries a pool's attributes if that is due, or in any case if `now`. */
void gm_sample_pool(uint32_t pool, bool now);

/* Queries those of all pools. */
void gm_sample_pools(void);

/*
 * Queries those that are due if a pool holds idle bytes, some of which other allocations may have
 * taken.
 */
void gm_sample_idle_pools_slow(void);

static inline void gm_sample_idle_pools(void)
{
	if (__builtin_expect(gm_track_has_pools(), 0))
		gm_sample_idle_pools_slow();
}

/* ---- graphs (role_graph.c) ---- */

/* An allocation node has its address: event->key. */
void gm_graph_node_made(struct gm_event *event);

/* ---- handlers, by file; those of role_alloc.h are not repeated ---- */

void gm_end_register(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_export(struct gm_call *call, const struct gm_row *row, int result);

void gm_end_vmm_reserve(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_vmm_address_free(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_vmm_map(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_vmm_unmap(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_vmm_map_array(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_vmm_retain(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_vmm_release(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_multicast_bind(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_multicast_unbind(struct gm_call *call, const struct gm_row *row, int result);

void gm_begin_context(struct gm_call *call, const struct gm_row *row);
void gm_end_context(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_release_context(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_destroy_context(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_green(struct gm_call *call, const struct gm_row *row, int result);
void gm_begin_destroy_green(struct gm_call *call, const struct gm_row *row);
void gm_end_destroy_green(struct gm_call *call, const struct gm_row *row, int result);
void gm_begin_reset(struct gm_call *call, const struct gm_row *row);
void gm_end_reset(struct gm_call *call, const struct gm_row *row, int result);

void gm_end_pool_create(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_pool_import(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_pool_destroy(struct gm_call *call, const struct gm_row *row, int result);
void gm_begin_pool_trim(struct gm_call *call, const struct gm_row *row);
void gm_end_pool_trim(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_pool_set(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_sync(struct gm_call *call, const struct gm_row *row, int result);

void gm_end_graph_node(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_graph_instantiate(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_graph_launch(struct gm_call *call, const struct gm_row *row, int result);
void gm_begin_graph_destroy(struct gm_call *call, const struct gm_row *row);
void gm_end_graph_exec_destroy(struct gm_call *call, const struct gm_row *row, int result);
void gm_begin_graph_trim(struct gm_call *call, const struct gm_row *row);
void gm_end_graph_trim(struct gm_call *call, const struct gm_row *row, int result);

void gm_begin_cost(struct gm_call *call, const struct gm_row *row);
void gm_end_cost(struct gm_call *call, const struct gm_row *row, int result);

#endif
