/*
 * What each role of the table means (roles.h): steps that they share, virtual memory, and the table. The
 * other roles are in role_*.c.
 */
#include "interpose/roles.h"
#include "interpose/ask.h"
#include "interpose/preload.h"
#include "interpose/refuse.h"
#include "interpose/role_steps.h"
#include "interpose/torch.h"
#include "track/event.h"

#include <string.h>

/* ---- steps that roles share ---- */

uint32_t gm_take_outer_stack(const struct gm_call *call, uint32_t *module)
{
	const struct gm_call *outer = gm_call_outermost(call);

	return gm_take_stack(outer, 0, module);
}

struct gm_event gm_event_of(const struct gm_call *call, const struct gm_row *row, int result)
{
	return (struct gm_event){
		.key = call->key,
		.bytes = call->bytes,
		.stream = call->stream,
		.ticks = call->ticks,
		.stack = GM_NONE,
		.caller_module = GM_NONE,
		.owner = GM_NONE,
		.error = result,
		.kind = row->kind,
		.space = gm_space_of(call, row),
		.level = GM_LEVEL_DRIVER,
		.device = (int16_t)call->device,
		.function = gm_function_of(call, row),
	};
}

int gm_context_device(void)
{
	int device = gm_ask_device_count() == 1 ? 0 : gm_ask_current_device();

	return device < 0 ? 0 : device;
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
	[GM_ROLE_REGISTER] = {NULL, gm_end_register},
	[GM_ROLE_EXPORT] = {NULL, gm_end_export},
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
