/*
 * Virtual memory. A handle's memory is held until the program's references and the mappings are
 * both gone; reservations and mappings hold no memory themselves and have no site.
 *
 * Facts: cuMemRelease of a mapped handle succeeds and the memory stays; cuMemUnmap of a range
 * without mappings succeeds.
 */
#include "track/vmm.h"
#include "account/sizes.h"
#include "track/allocs.h"
#include "track/errors.h"
#include "track/event_log.h"
#include "track/freed.h"
#include "track/holds.h"
#include "track/live.h"
#include "track/peaks.h"
#include "track/retries.h"
#include "track/torch_memory.h"
#include "track/update.h"
#include "track/vmm_totals.h"

/* Returns whether a mapping begins in a range. */
static bool is_mapped_within(uint64_t address, uint64_t bytes)
{
	uint64_t at;
	uint32_t index;

	for (at = address; at < address + bytes; at += GM_PAGE_BYTES)
		if (gm_live_find(GM_SPACE_MAPPING, at, &index))
			return true;
	return false;
}

void gm_track_reserve(const struct gm_event *event)
{
	struct gm_alloc_record *record;

	if (!gm_file || !event->key)
		return;
	gm_update_begin();
	gm_file->events++;
	record = gm_live_add(event, GM_NONE);
	if (record)
		gm_vmm_count(record);
	gm_update_end();
}

void gm_track_unreserve(const struct gm_event *event)
{
	struct gm_alloc_record *record;
	uint32_t index;

	if (!gm_file)
		return;
	gm_update_begin();
	gm_file->events++;
	record = gm_live_find(GM_SPACE_RESERVATION, event->key, &index);
	if (event->error == GM_ERROR_TEARDOWN) {
		gm_file->teardown_frees++;
	} else if (event->error && record && is_mapped_within(event->key, event->bytes)) {
		gm_record_error(GM_ERROR_FREED_WHILE_MAPPED, event, record->bytes, GM_NONE,
				GM_NONE);
	} else if (event->error) {
		gm_record_free_error(event, record);
	} else if (record) {
		gm_vmm_uncount(record);
		gm_peak_freed(record->device, GM_HOLES_TORCH, record);
		gm_freed_remember(record, event->stack, 0);
		gm_live_remove(record, index);
	} else {
		gm_file->unknown_frees++;
	}
	gm_update_end();
}

void gm_track_map(const struct gm_event *event, uint64_t handle, uint64_t offset)
{
	struct gm_event mapping = *event;
	struct gm_alloc_record *owner, *record;

	if (!gm_file || !event->key)
		return;
	gm_update_begin();
	gm_file->events++;
	owner = gm_live_find(GM_SPACE_HANDLE, handle, &mapping.owner);
	if (owner)
		mapping.device = owner->device;
	else
		mapping.owner = GM_NONE;
	if (!owner || owner->kind != GM_KIND_VMM) /* another process's memory, not PyTorch's here */
		mapping.flags &= (uint16_t)~GM_ALLOC_TORCH;
	record = gm_live_add(&mapping, GM_NONE);
	if (record) {
		if (owner)
			owner->mappings++;
		if (owner && owner->kind == GM_KIND_IMPORTED &&
		    offset + event->bytes > owner->bytes)
			gm_resize_alloc(owner, mapping.owner, offset + event->bytes);
		if (mapping.flags & GM_ALLOC_TORCH)
			gm_torch_add(record);
		gm_vmm_count(record);
		gm_log_event(GM_OP_MAP, &mapping, owner ? owner->serial : 0, GM_NONE);
	}
	gm_update_end();
}

static void unmap(struct gm_alloc_record *mapping, uint32_t index, uint32_t stack)
{
	uint32_t owner = mapping->owner;

	gm_vmm_uncount(mapping);
	if (mapping->flags & GM_ALLOC_TORCH) {
		gm_torch_count_release(mapping, stack);
		gm_torch_remove(mapping);
	}
	gm_retry_freed(mapping);
	gm_live_remove(mapping, index);
	gm_release_mapping(owner);
}

void gm_track_unmap(const struct gm_event *event)
{
	struct gm_alloc_record *mapping;
	uint64_t address = event->key, end = event->key + event->bytes;
	uint32_t index;

	if (!gm_file)
		return;
	gm_update_begin();
	gm_file->events++;
	gm_log_event(GM_OP_UNMAP, event, 0, GM_NONE);
	while (address < end) {
		mapping = gm_live_find(GM_SPACE_MAPPING, address, &index);
		address += mapping ? mapping->bytes : GM_PAGE_BYTES;
		if (mapping)
			unmap(mapping, index, event->stack);
	}
	gm_update_end();
}

void gm_track_retain(const struct gm_event *event)
{
	struct gm_alloc_record *handle;
	uint32_t index;

	if (!gm_file)
		return;
	gm_update_begin();
	gm_file->events++;
	handle = gm_live_find(GM_SPACE_HANDLE, event->key, &index);
	if (!handle)
		handle = gm_live_find_pending(event->key, &index);
	if (handle) {
		handle->references++;
		if (handle->state == GM_STATE_PENDING)
			gm_live_add_to_index(handle);
		__atomic_store_n(&handle->state, GM_STATE_LIVE, __ATOMIC_RELEASE);
	}
	gm_update_end();
}

/* The last reference to a handle was released. */
static void release(struct gm_alloc_record *handle, uint32_t index, const struct gm_event *event)
{
	struct gm_event logged = *event; /* with what the handle held */

	gm_freed_remember(handle, event->stack, 0);
	logged.bytes = handle->bytes;
	logged.kind = handle->kind;
	logged.device = handle->device;
	gm_log_event(GM_OP_FREE, &logged, handle->serial, handle->site);
	if (handle->mappings) {
		/*
		 * The driver may give the handle's number to another one now: it leaves the index.
		 */
		gm_live_remove_from_index(handle);
		__atomic_store_n(&handle->state, GM_STATE_PENDING, __ATOMIC_RELEASE);
	} else {
		gm_end_unheld_handle(handle, index);
	}
}

void gm_track_release(const struct gm_event *event)
{
	struct gm_alloc_record *handle;
	uint32_t index;

	if (!gm_file)
		return;
	gm_update_begin();
	gm_file->events++;
	handle = gm_live_find(GM_SPACE_HANDLE, event->key, &index);
	if (event->error == GM_ERROR_TEARDOWN)
		gm_file->teardown_frees++;
	else if (event->error)
		gm_record_free_error(event, handle);
	else if (!handle)
		gm_file->unknown_frees++;
	else if (--handle->references == 0)
		release(handle, index, event);
	gm_update_end();
}

/* ---- multicast objects and sparse arrays ---- */

/* Returns the index of the handle that is mapped at an address; GM_NONE if there is none. */
static uint32_t handle_mapped_at(uint64_t address)
{
	uint32_t index, count = gm_file->tables[GM_TABLE_ALLOCS].count;

	for (index = 0; index < count; index++) {
		struct gm_alloc_record *record = gm_store_record(GM_TABLE_ALLOCS, index);

		if (record->state == GM_STATE_LIVE && record->space == GM_SPACE_MAPPING &&
		    address >= record->key && address - record->key < record->bytes)
			return record->owner;
	}
	return GM_NONE;
}

static uint32_t index_of(uint64_t handle)
{
	uint32_t index;

	return gm_live_find(GM_SPACE_HANDLE, handle, &index) ? index : GM_NONE;
}

/* The event's object holds memory of the handle with the index `owner`, if there is one. */
static void add_hold(const struct gm_event *event, uint64_t offset, uint32_t owner)
{
	const struct gm_alloc_record *handle = gm_store_record(GM_TABLE_ALLOCS, owner);

	if (handle)
		gm_hold_add(&(struct gm_hold){.object = event->key,
					      .offset = offset,
					      .bytes = event->bytes,
					      .owner = owner,
					      .device = handle->device,
					      .space = event->space});
}

void gm_track_bind(const struct gm_event *event, uint64_t offset, uint64_t handle, uint64_t address)
{
	if (!gm_file)
		return;
	gm_update_begin();
	gm_file->events++;
	add_hold(event, offset, handle ? index_of(handle) : handle_mapped_at(address));
	gm_update_end();
}

/* A part of an object: the range of a multicast object on a device, or a tile. */
struct part {
	const struct gm_event *event;
	uint64_t offset;
};

static bool is_bound_in(const struct gm_hold *hold, const void *data)
{
	const struct part *part = data;

	return hold->object == part->event->key && hold->space == part->event->space &&
	       hold->device == part->event->device && hold->offset >= part->offset &&
	       hold->offset - part->offset < part->event->bytes;
}

void gm_track_unbind(const struct gm_event *event, uint64_t offset)
{
	const struct part part = {event, offset};
	uint32_t owner;

	if (!gm_file)
		return;
	gm_update_begin();
	gm_file->events++;
	while ((owner = gm_hold_remove(is_bound_in, &part)) != GM_NONE)
		gm_release_mapping(owner);
	gm_update_end();
}

static bool is_tile(const struct gm_hold *hold, const void *data)
{
	const struct part *part = data;

	return hold->object == part->event->key && hold->space == part->event->space &&
	       hold->offset == part->offset;
}

void gm_track_tile(const struct gm_event *event, uint64_t tile, uint64_t handle)
{
	const struct part part = {event, tile};
	uint32_t owner;

	if (!gm_file)
		return;
	gm_update_begin();
	gm_file->events++;
	owner = gm_hold_remove(is_tile, &part);
	if (owner != GM_NONE)
		gm_release_mapping(owner);
	if (handle)
		add_hold(event, tile, index_of(handle));
	gm_update_end();
}
