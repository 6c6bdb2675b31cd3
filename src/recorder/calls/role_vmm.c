/*
 * Roles of virtual memory: reservations, mappings, handles, tiles of sparse arrays, multicast
 * bindings.
 */
#include "recorder/calls/internal.h"
#include "recorder/calls/role_steps.h"
#include "recorder/torch/torch_callers.h"
#include "track/driver_allocs.h"
#include "track/vmm.h"

void gm_end_vmm_reserve(struct gm_call *call, const struct gm_row *row, int result)
{
	struct gm_event event = gm_event_of(call, row, result);

	if (result != GM_CUDA_SUCCESS)
		return;
	event.key = gm_read_out(call);
	event.space = GM_SPACE_RESERVATION;
	event.device = (int16_t)gm_context_device();
	gm_track_reserve(&event);
}

void gm_end_vmm_address_free(struct gm_call *call, const struct gm_row *row, int result)
{
	struct gm_event event = gm_event_of(call, row, result);

	event.space = GM_SPACE_RESERVATION;
	event.stack = gm_call_stack(call, GM_SHALLOW_FRAMES, &event.caller_module);
	gm_track_unreserve(&event);
}

void gm_end_vmm_map(struct gm_call *call, const struct gm_row *row, int result)
{
	struct gm_event event = gm_event_of(call, row, result);

	event.space = GM_SPACE_MAPPING;
	event.device = (int16_t)gm_context_device();
	if (gm_torch_call(call->caller.pc))
		event.flags |= GM_ALLOC_TORCH;
	if (result == GM_CUDA_SUCCESS)
		gm_track_map(&event, call->handle, call->offset);
}

void gm_end_vmm_unmap(struct gm_call *call, const struct gm_row *row, int result)
{
	struct gm_event event = gm_event_of(call, row, result);

	event.space = GM_SPACE_MAPPING;
	if (result == GM_CUDA_SUCCESS) {
		gm_track_unmap(&event);
		return;
	}
	event.stack = gm_call_stack(call, GM_SHALLOW_FRAMES, &event.caller_module);
	gm_track_free_end(0, &event);
}

void gm_end_vmm_retain(struct gm_call *call, const struct gm_row *row, int result)
{
	struct gm_event event = gm_event_of(call, row, result);

	if (result != GM_CUDA_SUCCESS)
		return;
	event.key = gm_read_out(call);
	gm_track_retain(&event);
}

void gm_end_vmm_release(struct gm_call *call, const struct gm_row *row, int result)
{
	struct gm_event event = gm_event_of(call, row, result);

	event.space = GM_SPACE_HANDLE;
	event.stack = gm_call_stack(call, GM_SHALLOW_FRAMES, &event.caller_module);
	gm_track_release(&event);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	return (hash ^ value) * 0x9e3779b97f4a7c15ull >> 1 ^ hash << 7;
}

/*
 * A number for a tile, by its place in the array. Member by member: the structure's padding is
 * undefined.
 */
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

void gm_end_vmm_map_array(struct gm_call *call, const struct gm_row *row, int result)
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
		event.space = list[i].resourceType == GM_RESOURCE_MIPMAP ? GM_SPACE_MIPMAP
									 : GM_SPACE_ARRAY;
		gm_track_tile(&event, tile_of(&list[i]), map ? list[i].memHandle.memHandle : 0);
	}
}

void gm_end_multicast_bind(struct gm_call *call, const struct gm_row *row, int result)
{
	struct gm_event event = gm_event_of(call, row, result);

	event.space = GM_SPACE_HANDLE;
	if (result == GM_CUDA_SUCCESS)
		gm_track_bind(&event, call->offset, call->handle, call->address);
}

void gm_end_multicast_unbind(struct gm_call *call, const struct gm_row *row, int result)
{
	struct gm_event event = gm_event_of(call, row, result);

	event.space = GM_SPACE_HANDLE;
	if (result == GM_CUDA_SUCCESS)
		gm_track_unbind(&event, call->offset);
}
