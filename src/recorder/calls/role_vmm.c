/*
 * Roles of virtual memory: reservations, mappings, handles, tiles of sparse arrays, multicast
 * bindings.
 */
#include "account/sizes.h"
#include "recorder/calls/internal.h"
#include "recorder/calls/role_steps.h"
#include "recorder/query/query.h"
#include "recorder/state/fork_page.h"
#include "recorder/calls/torch_callers.h"
#include "track/allocs.h"
#include "track/before.h"
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

/* ---- memory from before the period ---- */

/*
 * A handle's memory ends with its last reference and its last mapping. The driver tells the size of
 * a mapping and its handle, but neither how many references and mappings are left nor whether the
 * memory is another process's. So the memory counts as ended when the device's free bytes rise by
 * its size during the call. Where they cannot be compared, because of other calls in flight or
 * because the memory is on another device than the thread's context, a release counts as the end:
 * programs keep one reference and release it after the mapping [PyTorch 2.11,
 * c10/cuda/CUDACachingAllocator.cpp, unmapHandles; NCCL 2.28, src/include/alloc.h, ncclCuMemFree].
 */

/* Reads the free bytes before a call that may end memory of a device. */
static void read_free_bytes(struct gm_call *call, int device)
{
	uint64_t total;

	call->device = device;
	if (device != gm_query_current_device() || !gm_in_flight_none(&call->begun) ||
	    !gm_query_mem_info(&call->free_then, &total))
		call->free_then = GM_NO_BYTES;
}

/* Tells after the call whether its memory has ended; `otherwise` where that cannot be seen. */
static bool has_ended(const struct gm_call *call, bool otherwise)
{
	uint64_t free_now, total, begun;

	if (call->free_then == GM_NO_BYTES || !gm_query_mem_info(&free_now, &total) ||
	    !gm_in_flight_none(&begun) || begun != call->begun)
		return otherwise;
	return free_now >= call->free_then + call->before_bytes;
}

/* Adds the mapping at an address to what the call may end, and returns the mapping's size. */
static uint64_t note_mapping(struct gm_call *call, uint64_t address, int *device)
{
	uint64_t bytes = gm_query_pointer_bytes(address);
	uint64_t handle = bytes ? gm_query_mapped_handle(address) : 0;
	int lies_on = handle ? gm_query_pointer_device(address) : -1;

	if (lies_on < 0)
		return bytes ? bytes : GM_PAGE_BYTES;
	*device = call->before_bytes && lies_on != *device ? -1 : lies_on;
	call->before_bytes += bytes;
	gm_track_before_handle(handle, bytes, lies_on);
	return bytes;
}

static GM_COLD void note_unknown_mappings(struct gm_call *call)
{
	uint64_t address = call->key, end = call->key + call->bytes;
	struct gm_alloc_record known;
	int device = -1;

	while (address < end)
		address += gm_track_find(GM_SPACE_MAPPING, address, &known)
				   ? known.bytes
				   : note_mapping(call, address, &device);
	if (call->before_bytes)
		read_free_bytes(call, device);
}

void gm_begin_vmm_unmap(struct gm_call *call, const struct gm_row *row)
{
	(void)row;
	call->before_bytes = 0;
	if (__builtin_expect(gm_file->periods != 0, 0))
		note_unknown_mappings(call);
}

void gm_begin_vmm_release(struct gm_call *call, const struct gm_row *row)
{
	int device;

	(void)row;
	call->before_bytes = 0;
	if (__builtin_expect(gm_file->periods == 0, 1))
		return;
	call->before_bytes = gm_track_before_handle_bytes(call->key, &device);
	if (call->before_bytes)
		read_free_bytes(call, device);
}

/* ---- mappings and handles ---- */

void gm_end_vmm_unmap(struct gm_call *call, const struct gm_row *row, int result)
{
	struct gm_event event = gm_event_of(call, row, result);

	event.space = GM_SPACE_MAPPING;
	if (result == GM_CUDA_SUCCESS) {
		gm_track_unmap(&event);
		if (call->before_bytes && has_ended(call, false))
			gm_track_before_freed(call->device, call->before_bytes);
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
	if (result == GM_CUDA_SUCCESS && call->before_bytes && has_ended(call, true)) {
		gm_track_before_freed(call->device, call->before_bytes);
		gm_track_before_handle_ended(call->key);
	}
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
