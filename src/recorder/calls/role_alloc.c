/*
 * Roles of allocations and frees, the calls that programs make most (role_alloc.h). Most of them
 * allocate device memory or are stream-ordered; these have a shorter path.
 */
#include "recorder/calls/role_alloc.h"
#include "account/kinds.h"
#include "recorder/state/captures.h"
#include "recorder/calls/device_view.h"
#include "recorder/calls/internal.h"
#include "recorder/calls/oom.h"
#include "recorder/calls/role_context.h"
#include "recorder/calls/role_cost.h"
#include "recorder/calls/role_graph.h"
#include "recorder/calls/role_pool.h"
#include "recorder/calls/sleep.h"
#include "recorder/process/signals.h"
#include "recorder/query/query.h"
#include "recorder/query/query_layout.h"
#include "recorder/state/sampler.h"
#include "recorder/torch/pluggable.h"
#include "recorder/calls/torch_callers.h"
#include "store/hot.h"
#include "track/allocs.h"
#include "track/before.h"
#include "track/contexts.h"
#include "track/driver_allocs.h"
#include "track/exports.h"
#include "track/graphs.h"
#include "track/track.h"

#include <errno.h>
#include <string.h>

/*
 * Captures the stack of an allocation and sets the flags that follow from it. The flags are written
 * only if they change: they are read soon after by a wider load, which would have to wait for the
 * narrow store.
 */
static inline void capture_stack(const struct gm_call *call, struct gm_event *event)
{
	uint16_t flags;

	event->stack = gm_call_stack(call, 0, &event->caller_module);
	flags = gm_pluggable_flags(event->stack, call->caller.pc);
	if (__builtin_expect(flags != 0, 0))
		event->flags |= flags;
}

/*
 * Draws whether an allocation is sampled. PyTorch's other allocators and graphs are known by stacks
 * alone, so the stacks of these are taken always.
 */
static GM_COLD void capture_sampled(const struct gm_call *call, struct gm_event *event)
{
	if (!gm_pluggable_known() && event->kind != GM_KIND_GRAPH)
		event->extra = gm_sample(event->bytes);
	if (event->extra >= 0)
		capture_stack(call, event);
}

/* Captures the stack of an allocation that succeeded, unless it is not sampled. */
static inline void capture_if_sampled(const struct gm_call *call, struct gm_event *event)
{
	if (__builtin_expect(gm_sample_bytes != 0, 0))
		capture_sampled(call, event);
	else
		capture_stack(call, event);
}

static bool on_host(const struct gm_call *call, unsigned kind)
{
	const CUmemLocation *location = call->location;

	if (gm_kind_on_host(kind))
		return true;
	return kind == GM_KIND_VMM && location && location->type > GM_MEM_LOCATION_DEVICE;
}

/* True for the streams that belong to the current context, whichever that is. */
static bool is_default_stream(const struct gm_call *call)
{
	return call->stream <= GM_STREAM_PER_THREAD;
}

/* The device that the memory of a successful call lies on. `context` is as in struct gm_event. */
static int device_of(const struct gm_call *call, unsigned kind, uint64_t key, uint32_t context)
{
	const CUmemLocation *location = call->location;
	int device;

	if (on_host(call, kind))
		return GM_HOST;
	if (location && location->type == GM_MEM_LOCATION_DEVICE)
		return location->id;
	if (gm_query_device_count() == 1)
		return 0;
	if (((kind == GM_KIND_ASYNC && !is_default_stream(call)) || kind == GM_KIND_IMPORTED) &&
	    call->space == GM_SPACE_POINTER) {
		device = gm_query_pointer_device(key);
		if (device >= 0)
			return device;
	}
	device = gm_track_context_device(context);
	return device < 0 ? gm_context_device() : device;
}

static GM_COLD bool is_capturing(const struct gm_call *call, const struct gm_row *row)
{
	int saved = errno;
	bool capturing = gm_query_capturing(call->stream, row->per_thread);

	errno = saved;
	return capturing;
}

static inline bool captured(const struct gm_call *call, const struct gm_row *row)
{
	return __builtin_expect(gm_captures_under_way(), 0) && is_capturing(call, row);
}

/* ---- allocations ---- */

/* The bytes that were asked for. A product above 64 bits becomes the largest known size. */
static uint64_t refused_bytes(const struct gm_call *call)
{
	uint64_t bytes = call->bytes;

	if ((call->rows && __builtin_mul_overflow(bytes, call->rows, &bytes)) ||
	    bytes == GM_NO_BYTES)
		return GM_NO_BYTES - 1;
	return bytes;
}

static void alloc_failed(struct gm_call *call, const struct gm_row *row, int result)
{
	const CUmemLocation *location = call->location;
	struct gm_event event = gm_event_of(call, row, result);

	if (gm_torch_call(call->caller.pc))
		event.flags |= GM_ALLOC_TORCH;
	event.key = 0;
	event.device = (int16_t)(on_host(call, row->kind) ? GM_HOST : gm_context_device());
	if (location && location->type == GM_MEM_LOCATION_DEVICE)
		event.device = (int16_t)location->id;
	event.bytes = refused_bytes(call);
	if (row->kind == GM_KIND_ASYNC) {
		int device = event.device;

		event.owner = gm_pool_of(call->pool, &device);
	}
	capture_stack(call, &event);
	if (result != GM_CUDA_OUT_OF_MEMORY) {
		gm_track_alloc_failed(&event);
		return;
	}
	gm_record_oom(call, &event);
}

static uint64_t requested_bytes(const struct gm_call *call)
{
	uint64_t pitch;

	if (!call->rows)
		return call->bytes;
	pitch = call->bytes;
	if (call->pitch && call->narrow) {
		uint32_t narrow;

		memcpy(&narrow, call->pitch, sizeof(narrow));
		pitch = narrow;
	} else if (call->pitch) {
		memcpy(&pitch, call->pitch, sizeof(pitch));
	}
	return pitch * call->rows;
}

/* Bytes of a successful allocation. The driver is asked where the call does not say. */
static uint64_t bytes_of(const struct gm_call *call, const struct gm_row *row, uint64_t key)
{
	if (row->kind == GM_KIND_ARRAY && (call->flags & GM_ARRAY_HOLDS_NOTHING))
		return 0; /* the memory that is mapped into it is recorded by itself */
	if (call->view)
		return 0;
	if (row->kind == GM_KIND_IMPORTED && call->space == GM_SPACE_POINTER && !call->bytes)
		return gm_query_pointer_bytes(key);
	return requested_bytes(call);
}

/*
 * PyTorch takes a segment while streams are captured: whether the thread allows itself what
 * captures forbid is known as long as the call lasts.
 */
static GM_COLD void note_relaxed(struct gm_event *event)
{
	int saved = errno;

	if (event->flags & GM_ALLOC_TORCH && gm_query_capture_relaxed())
		event->flags |= GM_ALLOC_RELAXED;
	errno = saved;
}

/* The launches since the thread's last allocation, as the flags of an allocation have them. */
static inline uint16_t take_launches(void)
{
	uint32_t count = gm_launches_since();

	gm_thread.launches_before = gm_thread.launches;
	return (uint16_t)((count ? 32 - __builtin_clz(count) : 0) << GM_ALLOC_LAUNCHES_SHIFT);
}

/* When memory is short the driver takes it from pools. */
static inline void track_alloc(const struct gm_event *event)
{
	bool due = gm_track_alloc(event);

	if (__builtin_expect(event->kind != GM_KIND_ASYNC, 0))
		gm_sample_idle_pools();
	else if (__builtin_expect(due, 0))
		gm_sample_pool(event->owner, false);
}

/* For memory of any kind, and for failures. */
static GM_COLD void end_alloc_slow(struct gm_call *call, const struct gm_row *row, uint64_t key,
				   int result)
{
	struct gm_event event;
	int device;

	if (result != GM_CUDA_SUCCESS)
		alloc_failed(call, row, result);
	if (!key)
		return; /* the call failed, or asked for 0 bytes */
	event = gm_event_of(call, row, result);
	event.key = key;
	event.bytes = bytes_of(call, row, key);
	if (row->kind == GM_KIND_ASYNC && captured(call, row))
		event.kind = GM_KIND_GRAPH;
	if (row->kind == GM_KIND_ARRAY && event.bytes)
		event.layout_bytes = gm_query_array_bytes(key, event.space == GM_SPACE_MIPMAP);
	if (gm_torch_call(call->caller.pc))
		event.flags |= GM_ALLOC_TORCH;
	event.flags |= take_launches();
	event.ipc = call->ipc;
	event.stream = gm_stream_of(call, row);
	event.context = gm_current_context(call);
	device = device_of(call, row->kind, key, event.context);
	gm_note_device(device);
	capture_if_sampled(call, &event);
	if (gm_captures_under_way())
		note_relaxed(&event);
	if (event.kind == GM_KIND_ASYNC)
		event.owner = gm_pool_of(call->pool, &device);
	event.device = (int16_t)device;
	if (event.kind == GM_KIND_GRAPH)
		gm_graph_node_made(&event);
	else
		track_alloc(&event);
}

void gm_end_alloc(struct gm_call *call, const struct gm_row *row, int result)
{
	end_alloc_slow(call, row, result == GM_CUDA_SUCCESS ? gm_read_out(call) : 0, result);
	if (result == GM_CUDA_SUCCESS)
		gm_sample_peaks();
}

/* ---- the fast path ---- */

/* The context that memory is allocated in, as in struct gm_event, and its device. */
struct place {
	uint32_t context;
	int device;
};

/* There is no memory without a context: the driver is asked where there may be several. */
static __attribute__((noinline)) struct place find_place(const struct gm_call *call, unsigned kind,
							 uint64_t key)
{
	uint32_t context = gm_current_context(call);

	return (struct place){context, device_of(call, kind, key, context)};
}

static inline struct place place_of(const struct gm_call *call, unsigned kind, uint64_t key)
{
	struct place sole = {gm_track_sole_context(), 0};

	if (__builtin_expect(sole.context && gm_query_device_count() == 1, 1))
		return sole;
	return find_place(call, kind, key);
}

/*
 * Does as end_alloc_slow, for memory that its size and its stream describe and that is no node of a
 * graph. All fields are named, so that the compiler clears none first.
 */
static inline void record_plain(struct gm_call *call, const struct gm_row *row, uint64_t key)
{
	struct place place = place_of(call, row->kind, key);
	struct gm_event event = {
		.key = key,
		.bytes = call->bytes,
		.layout_bytes = 0,
		.stream = gm_stream_of(call, row),
		.ticks = call->ticks,
		.stack = GM_NONE,
		.caller_module = GM_NONE,
		.function = gm_function_of(call, row),
		.owner = GM_NONE,
		.context = place.context,
		.ipc = 0,
		.error = GM_CUDA_SUCCESS,
		.extra = 0,
		.device = (int16_t)place.device,
		.space = GM_SPACE_POINTER,
		.kind = row->kind,
		.level = GM_LEVEL_DRIVER,
		.injected = 0,
		.flags = take_launches() | (gm_torch_call(call->caller.pc) ? GM_ALLOC_TORCH : 0),
		.view = NULL,
	};

	gm_note_device(place.device);
	capture_if_sampled(call, &event);
	if (__builtin_expect(gm_captures_counted(), 0))
		note_relaxed(&event);
	if (__builtin_expect(row->kind == GM_KIND_ASYNC, 1)) {
		event.owner = gm_pool_of(call->pool, &place.device);
		if (__builtin_expect(place.device != event.device, 0))
			event.device = (int16_t)place.device;
	}
	track_alloc(&event);
}

static inline void end_call(void)
{
	gm_leave_tracker();
	gm_call_over();
	gm_sleep_if_asked();
	gm_signals_serve_waiting();
}

GM_HOT_CODE void gm_end_alloc_fast(struct gm_call *call, const struct gm_row *row, int result)
{
	int *error = &errno, saved = *error;
	uint64_t key = result == GM_CUDA_SUCCESS ? gm_read_out(call) : 0;

	gm_begin_work();
	if (__builtin_expect(key && (!gm_captures_counted() || row->kind == GM_KIND_DEVICE), 1)) {
		record_plain(call, row, key);
		gm_sample_peaks();
	} else {
		gm_end_alloc(call, row, result);
	}
	end_call();
	*error = saved;
}

void gm_end_register(struct gm_call *call, const struct gm_row *row, int result)
{
	struct gm_event event = gm_event_of(call, row, result);

	event.device = GM_HOST;
	event.context = gm_current_context(call);
	event.stack = gm_call_stack(call, 0, &event.caller_module);
	if (result == GM_CUDA_SUCCESS)
		gm_track_alloc(&event);
	else
		gm_track_alloc_failed(&event);
}

/* ---- frees ---- */

/*
 * A free of memory that is not known, in a period: the driver confirms the size beforehand, because
 * afterwards the address may be another's. cuMemGetAddressRange changes nothing and makes no error
 * that stays; it refuses memory of the host [doc].
 */
static GM_COLD void confirm_unknown(struct gm_call *call, const struct gm_row *row)
{
	struct gm_alloc_record known;
	int saved = errno;

	if (!call->key || row->kind == GM_KIND_ASYNC ||
	    gm_space_of(call, row) != GM_SPACE_POINTER ||
	    gm_track_find(GM_SPACE_POINTER, call->key, &known))
		return;
	call->bytes = gm_query_pointer_bytes(call->key);
	if (call->bytes)
		call->device = gm_query_pointer_device(call->key);
	errno = saved;
}

void gm_begin_free(struct gm_call *call, const struct gm_row *row)
{
	if (row->kind == GM_KIND_ASYNC && gm_track_graph_nodes() && captured(call, row)) {
		call->captured = 1; /* it makes a node, which frees when its graph is launched */
		call->latest = 0;
		return;
	}
	call->latest = gm_track_free_begin(gm_space_of(call, row), call->key);
	if (__builtin_expect(gm_file->periods != 0, 0))
		confirm_unknown(call, row);
}

GM_COLD void gm_begin_free_slow(struct gm_call *call, const struct gm_row *row)
{
	gm_begin_work();
	gm_begin_free(call, row);
	gm_leave_tracker();
}

static inline __attribute__((always_inline)) void
end_free(struct gm_call *call, const struct gm_row *row, int result)
{
	struct gm_event event;
	uint32_t pool;

	if (!call->key)
		return; /* every function accepts NULL */
	if (__builtin_expect(call->captured, 0) && result == GM_CUDA_SUCCESS)
		return;
	event = (struct gm_event){
		.key = call->key,
		.bytes = 0,
		.layout_bytes = 0,
		.stream = gm_stream_of(call, row),
		.ticks = call->ticks,
		.stack = GM_NONE,
		.caller_module = GM_NONE,
		.function = gm_function_of(call, row),
		.owner = GM_NONE,
		.context = 0,
		.ipc = 0,
		.error = result,
		.extra = 0,
		.device = GM_HOST,
		.space = gm_space_of(call, row),
		.kind = row->kind,
		.level = GM_LEVEL_DRIVER,
		.injected = 0,
		.flags = 0,
		.view = NULL,
	};
	event.stack = gm_call_stack(call, GM_SHALLOW_FRAMES, &event.caller_module);
	pool = gm_track_free_end(call->latest, &event);
	if (__builtin_expect(pool != GM_NONE, 0))
		gm_sample_pool(pool, false);
	if (__builtin_expect(call->bytes != 0, 0) && result == GM_CUDA_SUCCESS)
		gm_track_before_freed(call->device, call->bytes);
}

GM_COLD void gm_end_free(struct gm_call *call, const struct gm_row *row, int result)
{
	end_free(call, row, result);
}

GM_HOT_CODE void gm_end_free_fast(struct gm_call *call, const struct gm_row *row, int result)
{
	int *error = &errno, saved = *error;

	gm_begin_work();
	end_free(call, row, result);
	end_call();
	*error = saved;
}

void gm_end_export(struct gm_call *call, const struct gm_row *row, int result)
{
	(void)row;
	if (result == GM_CUDA_SUCCESS)
		gm_track_exported(call->space, call->key, gm_handle_number(call->ipc_out));
}
