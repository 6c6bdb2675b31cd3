/*
 * Steps that the roles' files share, and the handlers that roles.c puts into its table. Private to
 * roles.c, role_*.c and call.c.
 */
#ifndef GM_INTERPOSE_ROLE_STEPS_H
#define GM_INTERPOSE_ROLE_STEPS_H

#include "api/api.h"
#include "interpose/ask.h"
#include "store/hot.h"
#include "store/writer.h"
#include "track/event.h"

#include <stdbool.h>
#include <string.h>

/* The caller's stack; `limit` frames, 0: as many as are set. `module` may be NULL. */
static inline uint32_t gm_take_stack(const struct gm_call *call, unsigned limit, uint32_t *module)
{
	return gm_stack_take(&call->caller, limit, module);
}

/* The stack of the outermost call under way: where the program asked for what happens inside. */
uint32_t gm_take_outer_stack(const struct gm_call *call, uint32_t *module);

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

_Static_assert(GM_FUNCTIONS <= GM_MOST_FUNCTIONS, "each has a number");

static inline uint32_t gm_function_of(const struct gm_call *call, const struct gm_row *row)
{
	uint32_t number = __atomic_load_n(&gm_function_numbers[call->function], __ATOMIC_ACQUIRE);

	return __builtin_expect(number != 0, 1) ? number - 1 :
						  gm_enter_function(call->function, row->name, row->layer);
}

/* An event with what all events say. Device and bytes are the caller's business. */
struct gm_event gm_event_of(const struct gm_call *call, const struct gm_row *row, int result);

/* Device of the calling thread's context; 0 where that cannot be told. */
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

/* role_context.c: the context that the thread used last and its number, good until one comes or goes. */
struct gm_last_context {
	uint64_t handle;
	uint32_t changes, number;
};
extern __thread struct gm_last_context gm_last_context
	__attribute__((tls_model("initial-exec"), visibility("hidden")));
uint32_t gm_find_context(const struct gm_call *call, uint64_t handle);

/* Number in GM_TABLE_CONTEXTS of the calling thread's context plus 1, 0 without one. */
static inline uint32_t gm_current_context(const struct gm_call *call)
{
	uint64_t handle = gm_ask_current_context();

	if (__builtin_expect(handle && gm_last_context.handle == handle &&
				     gm_last_context.changes == gm_track_context_changes(), 1))
		return gm_last_context.number + 1;
	return gm_find_context(call, handle);
}

/* role_pool.c: the pool that an allocation on a device is taken from (`handle` 0: the current one). */
uint32_t gm_pool_of(uint64_t handle, int *device);
uint32_t gm_graph_pool_of(int device);
/* Asks a pool's attributes if it is time to (`now`: in any case); all pools, or those of a device. */
void gm_sample_pool(uint32_t pool, bool now);
void gm_sample_pools(void);
/* Those with idle bytes, if it is time to: they may have given some back to other allocations. */
void gm_sample_if_idle(void);

static inline void gm_sample_idle_pools(void)
{
	if (__builtin_expect(gm_file->tables[GM_TABLE_POOLS].count != 0, 0))
		gm_sample_if_idle();
}

/* role_graph.c: an allocation node got its address. */
void gm_graph_node_made(struct gm_event *event);

/* role_alloc.c. errno stays where allocations and frees end and where a free begins. */
void gm_end_alloc(struct gm_call *call, const struct gm_row *row, int result);
void gm_begin_free(struct gm_call *call, const struct gm_row *row);
void gm_end_free(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_register(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_export(struct gm_call *call, const struct gm_row *row, int result);
/* A free by the short way (call.c): all that is to be done before it. */
void gm_begin_straight_free(struct gm_call *call, const struct gm_row *row);

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

/* True the first time a kernel is launched; lock-free, bounded, no allocation. Any thread. */
bool gm_first_launch(uint64_t function);
/*
 * True the first time code (a kernel, or a name in a module) is asked for on the current device, and
 * again after code was unloaded or when many others were asked for in between. cuBLAS asks for its
 * kernels' functions before every launch. As above.
 */
bool gm_first_use(uint64_t code);
/* A context is gone: what is launched and asked for from now on may be other code of the same handles. */
void gm_forget_code(void);

void gm_begin_cost(struct gm_call *call, const struct gm_row *row);
void gm_end_cost(struct gm_call *call, const struct gm_row *row, int result);

#endif
