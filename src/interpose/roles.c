/*
 * What each role of the table means (roles.h). One pair of functions per role, in a table at the end.
 */
#include "interpose/roles.h"
#include "interpose/pluggable.h"
#include "interpose/settings.h"
#include "interpose/ask.h"
#include "interpose/captures.h"
#include "interpose/preload.h"
#include "interpose/refuse.h"
#include "interpose/role_steps.h"
#include "interpose/torch.h"
#include "interpose/view.h"
#include "stack/stack.h"
#include "track/event.h"

#include <errno.h>
#include <string.h>

#define STREAM_LEGACY	  1u /* cudaStreamLegacy, another name for 0 */
#define STREAM_PER_THREAD 2u

/* ---- steps that roles share ---- */

uint32_t gm_take_stack(const struct gm_call *call, unsigned limit, uint32_t *module)
{
	return gm_stack_take(&call->caller, limit, module);
}

/* The stack of an allocation, and what it tells of who takes the memory. */
static void take_alloc_stack(const struct gm_call *call, struct gm_event *event)
{
	event->stack = gm_take_stack(call, 0, &event->caller_module);
	if (gm_settings.torch)
		event->flags |= gm_pluggable_flags(event->stack, call->caller.pc);
}

uint32_t gm_take_outer_stack(const struct gm_call *call, uint32_t *module)
{
	const struct gm_call *outer = gm_call_outermost(call);

	return gm_take_stack(outer, 0, module);
}

uint64_t gm_read_out(const struct gm_call *call)
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

static uint8_t space_of(const struct gm_call *call, const struct gm_row *row)
{
	if (call->space == GM_SPACE_POINTER && row->kind == GM_KIND_ARRAY)
		return GM_SPACE_ARRAY;
	return row->kind == GM_KIND_REGISTERED ? GM_SPACE_REGISTERED : call->space;
}

static inline uint32_t function_of(const struct gm_call *call, const struct gm_row *row)
{
	return gm_track_function(call->function, row->name, row->layer);
}

struct gm_event gm_event_of(const struct gm_call *call, const struct gm_row *row, int result)
{
	return (struct gm_event){
		.key = call->key,
		.bytes = call->bytes,
		.stream = call->stream,
		.stack = GM_NONE,
		.caller_module = GM_NONE,
		.owner = GM_NONE,
		.error = result,
		.kind = row->kind,
		.space = space_of(call, row),
		.level = GM_LEVEL_DRIVER,
		.device = (int16_t)call->device,
		.function = function_of(call, row),
	};
}

int gm_context_device(void)
{
	int device = gm_ask_device_count() == 1 ? 0 : gm_ask_current_device();

	return device < 0 ? 0 : device;
}

static bool on_host(const struct gm_call *call, unsigned kind)
{
	const CUmemLocation *location = call->location;

	if (kind == GM_KIND_PINNED || kind == GM_KIND_REGISTERED)
		return true;
	return kind == GM_KIND_VMM && location && location->type > GM_MEM_LOCATION_DEVICE;
}

/* Streams that are of the current context, whichever that is. */
static bool is_default_stream(const struct gm_call *call)
{
	return call->stream <= STREAM_PER_THREAD;
}

static GM_SELDOM int device_by_asking(const struct gm_call *call, unsigned kind, uint64_t key,
				   uint32_t context)
{
	const CUmemLocation *location = call->location;
	int device;

	if (on_host(call, kind))
		return GM_HOST;
	if (location && location->type == GM_MEM_LOCATION_DEVICE)
		return location->id;
	if (gm_ask_device_count() == 1)
		return 0;
	if (((kind == GM_KIND_ASYNC && !is_default_stream(call)) || kind == GM_KIND_IMPORTED) &&
	    call->space == GM_SPACE_POINTER) {
		device = gm_ask_pointer_device(key);
		if (device >= 0)
			return device;
	}
	device = gm_track_context_device(context);
	return device < 0 ? gm_context_device() : device;
}

/* The device that the memory of a successful call lies on; `context` as in struct gm_event. */
static inline int device_of(const struct gm_call *call, unsigned kind, uint64_t key, uint32_t context)
{
	if ((kind == GM_KIND_DEVICE || kind == GM_KIND_ASYNC) && !call->location &&
	    gm_ask_device_count() == 1)
		return 0;
	return device_by_asking(call, kind, key, context);
}

uint64_t gm_stream_of(const struct gm_call *call, const struct gm_row *row)
{
	if (call->stream == STREAM_LEGACY)
		return 0;
	return call->stream == 0 && row->per_thread ? STREAM_PER_THREAD : call->stream;
}

static GM_SELDOM bool is_capturing(const struct gm_call *call, const struct gm_row *row)
{
	int saved = errno;
	bool capturing = gm_ask_capturing(call->stream, row->per_thread);

	errno = saved;
	return capturing;
}

static inline bool captured(const struct gm_call *call, const struct gm_row *row)
{
	return __builtin_expect(gm_captures_under_way(), 0) && is_capturing(call, row);
}

/* ---- allocations ---- */

static GM_SELDOM void alloc_failed(struct gm_call *call, const struct gm_row *row, int result)
{
	const CUmemLocation *location = call->location;
	struct gm_event event = gm_event_of(call, row, result);

	if (gm_torch_call(call))
		event.flags |= GM_ALLOC_TORCH;
	event.key = 0;
	event.device = (int16_t)(on_host(call, row->kind) ? GM_HOST : gm_context_device());
	if (location && location->type == GM_MEM_LOCATION_DEVICE)
		event.device = (int16_t)location->id;
	event.bytes = call->rows ? call->bytes * call->rows : call->bytes;
	take_alloc_stack(call, &event);
	if (result != GM_CUDA_OUT_OF_MEMORY) {
		gm_track_alloc_failed(&event);
		return;
	}
	gm_sample_pools(); /* they gave back what was idle */
	gm_alloc_out_of_memory(call, &event);
}

/* A row of bytes is as wide as the driver made it. */
static GM_SELDOM uint64_t pitched_bytes(const struct gm_call *call)
{
	uint64_t pitch = call->bytes;
	uint32_t narrow;

	if (call->pitch && call->narrow) {
		memcpy(&narrow, call->pitch, sizeof(narrow));
		pitch = narrow;
	} else if (call->pitch) {
		memcpy(&pitch, call->pitch, sizeof(pitch));
	}
	return pitch * call->rows;
}

/* Bytes of a successful allocation, asked of the driver where the call did not say. */
static inline uint64_t bytes_of(const struct gm_call *call, const struct gm_row *row, uint64_t key)
{
	if (row->kind == GM_KIND_ARRAY && (call->flags & GM_ARRAY_HOLDS_NOTHING))
		return 0; /* what is mapped into it is memory of its own */
	if (row->kind == GM_KIND_IMPORTED) {
		if (call->view)
			return 0;
		if (call->space == GM_SPACE_POINTER && !call->bytes)
			return gm_ask_pointer_bytes(key);
	}
	return call->rows ? pitched_bytes(call) : call->bytes;
}

static inline void tell_alloc(struct gm_call *call, struct gm_event *event)
{
	uint32_t pool;
	int device = event->device;

	if (event->kind == GM_KIND_ASYNC) {
		pool = gm_pool_of(call->pool, &device);
		event->owner = pool;
		event->device = (int16_t)device;
		if (gm_track_alloc(event))
			gm_sample_pool(pool, false);
		return;
	}
	if (event->kind == GM_KIND_ARRAY && event->bytes)
		event->layout_bytes = gm_ask_array_bytes(event->key, event->space == GM_SPACE_MIPMAP);
	gm_track_alloc(event);
	gm_sample_idle_pools(); /* the driver takes from them when memory is short */
}

static inline uint16_t flags_of(const struct gm_call *call, unsigned kind)
{
	return (uint16_t)((kind == GM_KIND_IMPORTED ? GM_ALLOC_NOT_OWNED : 0) |
			  (gm_torch_call(call) ? GM_ALLOC_TORCH : 0));
}

/* The events of this and of gm_end_free come most: every field is named, so that none is cleared first. */
static inline void alloc_succeeded(struct gm_call *call, const struct gm_row *row, uint64_t key)
{
	uint8_t kind = row->kind == GM_KIND_ASYNC && captured(call, row) ? GM_KIND_GRAPH : row->kind;
	uint32_t context = gm_current_context(call);
	struct gm_event event = {
		.key = key,
		.bytes = bytes_of(call, row, key),
		.layout_bytes = 0,
		.stream = gm_stream_of(call, row),
		.stack = GM_NONE,
		.caller_module = GM_NONE,
		.function = function_of(call, row),
		.owner = GM_NONE,
		.context = context,
		.ipc = call->ipc,
		.error = GM_CUDA_SUCCESS,
		.device = (int16_t)device_of(call, row->kind, key, context),
		.space = space_of(call, row),
		.kind = kind,
		.level = GM_LEVEL_DRIVER,
		.injected = 0,
		.flags = flags_of(call, kind),
		.view = NULL,
	};

	gm_ask_describe_device(event.device);
	take_alloc_stack(call, &event);
	if (kind == GM_KIND_GRAPH)
		gm_graph_node_made(&event);
	else
		tell_alloc(call, &event);
}

GM_HOT_CODE void gm_end_alloc(struct gm_call *call, const struct gm_row *row, int result)
{
	uint64_t key;

	if (__builtin_expect(result != GM_CUDA_SUCCESS, 0)) {
		alloc_failed(call, row, result);
		return;
	}
	key = gm_read_out(call);
	if (key) /* else nothing was asked for */
		alloc_succeeded(call, row, key);
	gm_sample_peaks();
}

static void end_register(struct gm_call *call, const struct gm_row *row, int result)
{
	struct gm_event event = gm_event_of(call, row, result);

	event.device = GM_HOST;
	event.flags |= GM_ALLOC_NOT_OWNED;
	event.context = gm_current_context(call);
	event.stack = gm_take_stack(call, 0, &event.caller_module);
	if (result == GM_CUDA_SUCCESS)
		gm_track_alloc(&event);
	else
		gm_track_alloc_failed(&event);
}

/* ---- frees ---- */

void gm_begin_free(struct gm_call *call, const struct gm_row *row)
{
	if (row->kind == GM_KIND_ASYNC && gm_track_graph_nodes() && captured(call, row)) {
		call->captured = 1; /* a node that frees when its graph is launched */
		call->ticket = (struct gm_ticket){.record = GM_NONE, .owner = GM_NONE};
		return;
	}
	call->ticket = gm_track_free_begin(space_of(call, row), call->key);
}

GM_HOT_CODE void gm_end_free(struct gm_call *call, const struct gm_row *row, int result)
{
	struct gm_event event;

	if (!call->key || (call->captured && result == GM_CUDA_SUCCESS))
		return; /* NULL may be freed everywhere */
	event = (struct gm_event){
		.key = call->key,
		.bytes = 0,
		.layout_bytes = 0,
		.stream = gm_stream_of(call, row),
		.stack = GM_NONE,
		.caller_module = GM_NONE,
		.function = function_of(call, row),
		.owner = GM_NONE,
		.context = 0,
		.ipc = 0,
		.error = result,
		.device = GM_HOST,
		.space = space_of(call, row),
		.kind = row->kind,
		.level = GM_LEVEL_DRIVER,
		.injected = 0,
		.flags = 0,
		.view = NULL,
	};
	event.stack = gm_take_stack(call, GM_SHALLOW_FRAMES, &event.caller_module);
	if (gm_track_free_end(call->ticket, &event))
		gm_sample_pool(call->ticket.owner, false);
}

static void end_export(struct gm_call *call, const struct gm_row *row, int result)
{
	(void)row;
	if (result == GM_CUDA_SUCCESS)
		gm_track_exported(call->space, call->key,
				  call->ipc_out ? gm_ipc_number(call->ipc_out) : 0);
}

/* ---- virtual memory ---- */

static void end_reserve(struct gm_call *call, const struct gm_row *row, int result)
{
	struct gm_event event = gm_event_of(call, row, result);

	if (result != GM_CUDA_SUCCESS)
		return;
	event.key = gm_read_out(call);
	event.space = GM_SPACE_RESERVATION;
	event.device = (int16_t)gm_context_device();
	gm_track_reserve(&event);
}

static void end_address_free(struct gm_call *call, const struct gm_row *row, int result)
{
	struct gm_event event = gm_event_of(call, row, result);

	event.space = GM_SPACE_RESERVATION;
	event.stack = gm_take_stack(call, GM_SHALLOW_FRAMES, &event.caller_module);
	gm_track_unreserve(&event);
}

static void end_map(struct gm_call *call, const struct gm_row *row, int result)
{
	struct gm_event event = gm_event_of(call, row, result);

	event.space = GM_SPACE_MAPPING;
	event.device = (int16_t)gm_context_device();
	if (gm_torch_call(call))
		event.flags |= GM_ALLOC_TORCH;
	if (result == GM_CUDA_SUCCESS)
		gm_track_map(&event, call->handle, call->offset);
}

static void end_unmap(struct gm_call *call, const struct gm_row *row, int result)
{
	struct gm_event event = gm_event_of(call, row, result);

	event.space = GM_SPACE_MAPPING;
	if (result == GM_CUDA_SUCCESS) {
		gm_track_unmap(&event);
		return;
	}
	event.stack = gm_take_stack(call, GM_SHALLOW_FRAMES, &event.caller_module);
	gm_track_free_end((struct gm_ticket){.record = GM_NONE, .owner = GM_NONE}, &event);
}

static void end_retain(struct gm_call *call, const struct gm_row *row, int result)
{
	struct gm_event event = gm_event_of(call, row, result);

	if (result != GM_CUDA_SUCCESS)
		return;
	event.key = gm_read_out(call);
	gm_track_retain(&event, call->key);
}

static void end_release(struct gm_call *call, const struct gm_row *row, int result)
{
	struct gm_event event = gm_event_of(call, row, result);

	event.space = GM_SPACE_HANDLE;
	event.stack = gm_take_stack(call, GM_SHALLOW_FRAMES, &event.caller_module);
	gm_track_release(&event);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	return (hash ^ value) * 0x9e3779b97f4a7c15ull >> 1 ^ hash << 7;
}

/* A tile is known by its place in the array. The structure's padding is the program's litter. */
static uint64_t tile_of(const CUarrayMapInfo *info)
{
	const unsigned int *level = &info->subresource.sparseLevel.level;
	uint64_t hash = mix(1, info->subresourceType);
	unsigned i;

	if (info->subresourceType == GM_SUBRESOURCE_MIPTAIL) {
		hash = mix(hash, info->subresource.miptail.layer);
		hash = mix(hash, info->subresource.miptail.offset);
		return mix(hash, info->subresource.miptail.size);
	}
	for (i = 0; i < sizeof(info->subresource.sparseLevel) / sizeof(*level); i++)
		hash = mix(hash, level[i]);
	return hash;
}

static void end_map_array(struct gm_call *call, const struct gm_row *row, int result)
{
	const CUarrayMapInfo *list = call->list;
	struct gm_event event = gm_event_of(call, row, result);
	uint32_t i;

	if (result != GM_CUDA_SUCCESS || !list)
		return;
	event.device = (int16_t)gm_context_device();
	for (i = 0; i < call->count; i++) {
		bool map = list[i].memOperationType == GM_MEM_OPERATION_MAP;

		event.key = (uintptr_t)list[i].resource.array;
		event.space = list[i].resourceType == GM_RESOURCE_MIPMAP ? GM_SPACE_MIPMAP : GM_SPACE_ARRAY;
		gm_track_tile(&event, tile_of(&list[i]), map ? list[i].memHandle.memHandle : 0);
	}
}

static void end_bind(struct gm_call *call, const struct gm_row *row, int result)
{
	struct gm_event event = gm_event_of(call, row, result);

	event.space = GM_SPACE_HANDLE;
	if (result == GM_CUDA_SUCCESS)
		gm_track_bind(&event, call->offset, call->handle, call->address);
}

static void end_unbind(struct gm_call *call, const struct gm_row *row, int result)
{
	struct gm_event event = gm_event_of(call, row, result);

	event.space = GM_SPACE_HANDLE;
	if (result == GM_CUDA_SUCCESS)
		gm_track_unbind(&event, call->offset);
}

/* ---- the table ---- */

const struct gm_role_steps gm_role_steps[GM_ROLES] = {
	[GM_ROLE_ALLOC] = {NULL, gm_end_alloc},
	[GM_ROLE_FREE] = {gm_begin_free, gm_end_free},
	[GM_ROLE_REGISTER] = {NULL, end_register},
	[GM_ROLE_EXPORT] = {NULL, end_export},
	[GM_ROLE_POOL_CREATE] = {NULL, gm_end_pool_create},
	[GM_ROLE_POOL_IMPORT] = {NULL, gm_end_pool_import},
	[GM_ROLE_POOL_DESTROY] = {NULL, gm_end_pool_destroy},
	[GM_ROLE_POOL_TRIM] = {gm_begin_pool_trim, gm_end_pool_trim},
	[GM_ROLE_POOL_SET] = {NULL, gm_end_pool_set},
	[GM_ROLE_VMM_RESERVE] = {NULL, end_reserve},
	[GM_ROLE_VMM_ADDRESS_FREE] = {NULL, end_address_free},
	[GM_ROLE_VMM_MAP] = {NULL, end_map},
	[GM_ROLE_VMM_UNMAP] = {NULL, end_unmap},
	[GM_ROLE_VMM_MAP_ARRAY] = {NULL, end_map_array},
	[GM_ROLE_VMM_RETAIN] = {NULL, end_retain},
	[GM_ROLE_VMM_RELEASE] = {NULL, end_release},
	[GM_ROLE_MULTICAST_BIND] = {NULL, end_bind},
	[GM_ROLE_MULTICAST_UNBIND] = {NULL, end_unbind},
	[GM_ROLE_MEM_INFO] = {NULL, gm_refuse_end_mem_info},
	[GM_ROLE_GRAPH_NODE] = {NULL, gm_end_graph_node},
	[GM_ROLE_GRAPH_INSTANTIATE] = {NULL, gm_end_graph_instantiate},
	[GM_ROLE_GRAPH_LAUNCH] = {NULL, gm_end_graph_launch},
	[GM_ROLE_GRAPH_DESTROY] = {gm_begin_graph_destroy, NULL},
	[GM_ROLE_GRAPH_EXEC_DESTROY] = {NULL, gm_end_graph_exec_destroy},
	[GM_ROLE_GRAPH_TRIM] = {gm_begin_graph_trim, gm_end_graph_trim},
	[GM_ROLE_CTX_CREATE] = {gm_begin_context, gm_end_context},
	[GM_ROLE_CTX_RETAIN] = {gm_begin_context, gm_end_context},
	[GM_ROLE_CTX_RELEASE] = {NULL, gm_end_release_context},
	[GM_ROLE_CTX_DESTROY] = {NULL, gm_end_destroy_context},
	[GM_ROLE_GREEN_CREATE] = {gm_begin_context, gm_end_green},
	[GM_ROLE_GREEN_DESTROY] = {gm_begin_destroy_green, gm_end_destroy_green},
	[GM_ROLE_DEVICE_RESET] = {gm_begin_reset, gm_end_reset},
	[GM_ROLE_MODULE_LOAD] = {gm_begin_cost, gm_end_cost},
	[GM_ROLE_MODULE_UNLOAD] = {gm_begin_cost, gm_end_cost},
	[GM_ROLE_MODULE_USE] = {gm_begin_cost, gm_end_cost},
	[GM_ROLE_STREAM_CREATE] = {gm_begin_cost, gm_end_cost},
	[GM_ROLE_LAUNCH] = {gm_begin_cost, gm_end_cost},
	[GM_ROLE_LIMIT] = {gm_begin_cost, gm_end_cost},
	[GM_ROLE_SYNC] = {NULL, gm_end_sync},
};
