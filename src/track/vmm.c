/*
 * Virtual memory: physical handles (cuMemCreate), reserved address space and mappings. A handle's
 * memory is held until the program's references and the mappings are both gone; reservations and
 * mappings hold none themselves and have no site. Facts: cuMemRelease of a mapped handle succeeds and
 * the memory stays; cuMemUnmap of a range without mappings succeeds.
 */
#include "account/sizes.h"
#include "account/vmm_record.h"
#include "track/freed.h"
#include "track/state.h"
#include "track/retries.h"

static struct gm_vmm_record *vmm_of(int device)
{
	uint32_t number, count = gm_file->tables[GM_TABLE_VMM].count;
	struct gm_vmm_record *record;

	for (number = 0; number < count; number++) {
		record = gm_store_record(GM_TABLE_VMM, number);
		if (record->device == device)
			return record;
	}
	record = gm_store_append(GM_TABLE_VMM, 1, &number);
	if (record) {
		record->device = (int16_t)device;
		gm_store_publish(GM_TABLE_VMM);
	}
	return record;
}

void gm_vmm_came(const struct gm_alloc_record *alloc)
{
	struct gm_vmm_record *vmm = vmm_of(alloc->device);

	if (vmm)
		gm_vmm_add(vmm, alloc);
}

void gm_vmm_went(const struct gm_alloc_record *alloc)
{
	struct gm_vmm_record *vmm = vmm_of(alloc->device);

	if (vmm)
		gm_vmm_remove(vmm, alloc);
}

void gm_track_reserve(const struct gm_event *event)
{
	struct gm_alloc_record *record;

	if (!gm_file || !event->key)
		return;
	gm_track_enter();
	gm_file->events++;
	record = gm_live_add(event, GM_NONE);
	if (record)
		gm_vmm_came(record);
	gm_track_leave();
}

void gm_track_unreserve(const struct gm_event *event)
{
	struct gm_alloc_record *record;
	uint32_t number;

	if (!gm_file)
		return;
	gm_track_enter();
	gm_file->events++;
	record = gm_live_find(GM_SPACE_RESERVATION, event->key, &number);
	if (event->error == GM_ERROR_TEARDOWN) {
		gm_file->teardown_frees++;
	} else if (event->error && record && gm_mapped_within(event->key, event->bytes)) {
		gm_error_note(GM_ERROR_FREED_WHILE_MAPPED, event, record->bytes, GM_NONE, GM_NONE);
	} else if (event->error) {
		gm_error_of_free(event, record);
	} else if (record) {
		gm_vmm_went(record);
		gm_peak_freed(record->device, GM_HOLES_TORCH, record);
		gm_freed_note(record, event->stack, 0);
		gm_live_drop(record, number);
	} else {
		gm_file->unknown_frees++;
	}
	gm_track_leave();
}

void gm_track_map(const struct gm_event *event, uint64_t handle, uint64_t offset)
{
	struct gm_event mapping = *event;
	struct gm_alloc_record *owner, *record;

	if (!gm_file || !event->key)
		return;
	gm_track_enter();
	gm_file->events++;
	owner = gm_live_find(GM_SPACE_HANDLE, handle, &mapping.owner);
	if (owner)
		mapping.device = owner->device;
	else
		mapping.owner = GM_NONE;
	if (!owner || owner->kind != GM_KIND_VMM) /* another process's memory is not PyTorch's here */
		mapping.flags &= (uint16_t)~GM_ALLOC_TORCH;
	record = gm_live_add(&mapping, GM_NONE);
	if (record) {
		if (owner)
			owner->mappings++;
		if (owner && owner->kind == GM_KIND_IMPORTED && offset + event->bytes > owner->bytes)
			gm_live_resize(owner, mapping.owner, offset + event->bytes);
		if (mapping.flags & GM_ALLOC_TORCH)
			gm_torch_add(record);
		gm_vmm_came(record);
		gm_history(GM_OP_MAP, &mapping, owner ? owner->serial : 0, GM_NONE);
	}
	gm_track_leave();
}

/* Ends a handle when nothing holds it any more. A released one is in no index: see below. */
static void let_go(struct gm_alloc_record *handle, uint32_t number)
{
	if (handle->references || handle->mappings)
		return;
	gm_live_end(handle, number);
}

void gm_vmm_let_go(uint32_t owner)
{
	struct gm_alloc_record *handle = gm_store_record(GM_TABLE_ALLOCS, owner);

	if (handle && handle->mappings) {
		handle->mappings--;
		let_go(handle, owner);
	}
}

static void unmap(struct gm_alloc_record *mapping, uint32_t number, uint32_t stack)
{
	uint32_t owner = mapping->owner;

	gm_vmm_went(mapping);
	if (mapping->flags & GM_ALLOC_TORCH) {
		gm_torch_released(mapping, stack);
		gm_torch_remove(mapping);
	}
	gm_retry_freed(mapping);
	gm_live_drop(mapping, number);
	gm_vmm_let_go(owner);
}

void gm_track_unmap(const struct gm_event *event)
{
	struct gm_alloc_record *mapping;
	uint64_t address = event->key, end = event->key + event->bytes;
	uint32_t number;

	if (!gm_file)
		return;
	gm_track_enter();
	gm_file->events++;
	gm_history(GM_OP_UNMAP, event, 0, GM_NONE);
	while (address < end) {
		mapping = gm_live_find(GM_SPACE_MAPPING, address, &number);
		address += mapping ? mapping->bytes : GM_PAGE_BYTES;
		if (mapping)
			unmap(mapping, number, event->stack);
	}
	gm_track_leave();
}

bool gm_mapped_within(uint64_t address, uint64_t bytes)
{
	uint64_t at;
	uint32_t number;

	for (at = address; at < address + bytes; at += GM_PAGE_BYTES)
		if (gm_live_find(GM_SPACE_MAPPING, at, &number))
			return true;
	return false;
}

void gm_track_retain(const struct gm_event *event, uint64_t address)
{
	struct gm_alloc_record *handle;
	uint32_t number;

	(void)address; /* CUDA returns the handle it was created as */
	if (!gm_file)
		return;
	gm_track_enter();
	gm_file->events++;
	handle = gm_live_find(GM_SPACE_HANDLE, event->key, &number);
	if (!handle)
		handle = gm_vmm_pending(event->key, &number);
	if (handle) {
		handle->references++;
		if (handle->state == GM_STATE_PENDING)
			gm_live_index(handle);
		__atomic_store_n(&handle->state, GM_STATE_LIVE, __ATOMIC_RELEASE);
	}
	gm_track_leave();
}

void gm_track_release(const struct gm_event *event)
{
	struct gm_event told = *event; /* for the history: with what the handle held */
	struct gm_alloc_record *handle;
	uint32_t number;

	if (!gm_file)
		return;
	gm_track_enter();
	gm_file->events++;
	handle = gm_live_find(GM_SPACE_HANDLE, event->key, &number);
	if (event->error == GM_ERROR_TEARDOWN) {
		gm_file->teardown_frees++;
	} else if (event->error) {
		gm_error_of_free(event, handle);
	} else if (!handle) {
		gm_file->unknown_frees++;
	} else if (--handle->references == 0) {
		gm_freed_note(handle, event->stack, 0);
		told.bytes = handle->bytes;
		told.kind = handle->kind;
		told.device = handle->device;
		gm_history(GM_OP_FREE, &told, handle->serial, handle->site);
		if (handle->mappings) {
			/* The driver may give the handle's number to another now: out of the index. */
			gm_live_unindex(handle);
			__atomic_store_n(&handle->state, GM_STATE_PENDING, __ATOMIC_RELEASE);
		} else {
			let_go(handle, number);
		}
	}
	gm_track_leave();
}
