/*
 * The tracker's entry points: what happens at an allocation, a free, a mark, the end. Each is one
 * short critical section over the tables of the open file.
 */
#include "stack/intern.h"
#include "track/book.h"
#include "track/calls.h"
#include "track/freed.h"
#include "track/peaks.h"
#include "track/retries.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

GM_HOT_COUNTERS struct gm_track gm_track;
struct gm_totals gm_totals;
struct gm_arena gm_track_arena;

uint32_t gm_function_numbers[GM_MOST_FUNCTIONS];
static struct gm_lock functions_lock;

uint64_t gm_track_now(void)
{
	return gm_file ? gm_monotonic_ns() - gm_file->started_monotonic_ns : 0;
}

void gm_track_enter(void)
{
	gm_track_lock();
	gm_blocks_unready();
	gm_track.calls_ready = 0;
	gm_track_entered(gm_clock_ns(&gm_clock));
}

bool gm_track_try_enter(void)
{
	if (!gm_track_try_lock())
		return false;
	gm_blocks_unready();
	gm_track.calls_ready = 0;
	gm_track_entered(gm_clock_ns(&gm_clock));
	return true;
}

void gm_count_own_bytes(void)
{
	gm_file->own_bytes = gm_arena_bytes(&gm_track_arena) + gm_intern_bytes();
}

void gm_track_leave(void)
{
	gm_track_leaving();
}

void gm_track_pause(void)
{
	gm_file->last_event_ns = gm_track.now_ns;
	__atomic_store_n(&gm_file->sequence, gm_file->sequence + 1, __ATOMIC_RELEASE);
}

void gm_track_unpause(void)
{
	__atomic_store_n(&gm_file->sequence, gm_file->sequence + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

uint32_t gm_enter_function(unsigned id, const char *name, unsigned layer)
{
	struct gm_function_record *record;
	uint32_t number;

	if (id >= GM_MOST_FUNCTIONS || !gm_file)
		return GM_NONE;
	gm_lock_acquire(&functions_lock);
	number = gm_function_numbers[id];
	if (!number) {
		record = gm_store_append(GM_TABLE_FUNCTIONS, 1, &number);
		if (record) {
			record->name_string = gm_store_string(name, 128);
			record->layer = layer;
			gm_store_publish(GM_TABLE_FUNCTIONS);
			number++;
			__atomic_store_n(&gm_function_numbers[id], number, __ATOMIC_RELEASE);
		} else {
			number = 0;
		}
	}
	gm_lock_release(&functions_lock);
	return number ? number - 1 : GM_NONE;
}

void gm_track_start(bool history)
{
	gm_arena_reset(&gm_track_arena);
	memset(&gm_track, 0, sizeof(gm_track));
	memset(&gm_totals, 0, sizeof(gm_totals));
	memset(gm_function_numbers, 0, sizeof(gm_function_numbers));
	gm_lock_reset(&functions_lock);
	gm_live_reset();
	gm_sites_reset();
	gm_freed_reset();
	gm_torch_reset();
	gm_retries_reset();
	gm_ooms_reset();
	gm_ledger_reset();
	gm_pools_reset();
	gm_graphs_reset();
	gm_contexts_reset();
	gm_costs_reset();
	gm_holds_reset();
	gm_in_use_reset();
	gm_peaks_reset();
	gm_file->started_monotonic_ns = gm_monotonic_ns();
	gm_clock_start(gm_file->started_monotonic_ns);
	gm_timeline_reset();
	gm_windows_start();
	gm_history_start(history);
}

struct gm_alloc_record *gm_alloc(const struct gm_event *event)
{
	struct gm_alloc_record *old, *record;
	struct gm_site_record *site;
	uint32_t number, site_number;

	old = gm_live_find(event->space, event->key, &number);
	if (old && old->kind == GM_KIND_IMPORTED && event->kind == GM_KIND_IMPORTED) {
		old->references++; /* opened again: CUDA gives the same address */
		return old;
	}
	if (old)
		gm_live_end(old, number);
	site_number = gm_site(event);
	site = gm_store_record(GM_TABLE_SITES, site_number);
	record = site ? gm_live_add(event, site_number) : NULL;
	if (record) {
		gm_account_alloc(record, site);
		if (record->kind == GM_KIND_VMM)
			gm_vmm_came(record);
		if (record->flags & (GM_ALLOC_TORCH | GM_ALLOC_PLUGGABLE))
			gm_torch_add(record);
		gm_in_use_raise(record->device);
		gm_history(GM_OP_ALLOC, event, record->serial, site_number);
	}
	return record;
}

void gm_track_alloc_failed(const struct gm_event *event)
{
	struct gm_site_record *site;
	uint32_t number;

	if (!gm_file)
		return;
	gm_track_enter();
	gm_file->events++;
	number = gm_site(event);
	site = gm_store_record(GM_TABLE_SITES, number);
	gm_account_failure(event->device, event->level, event->kind, site);
	gm_track_worked();
	gm_history(GM_OP_ALLOC_FAILED, event, 0, number);
	if (event->error == GM_ERROR_OUT_OF_MEMORY)
		gm_retry_failed(event, number);
	else
		gm_retry_other(event);
	gm_track_leave();
}

void gm_free_succeeded(struct gm_ticket ticket, struct gm_alloc_record *record,
		       const struct gm_event *event)
{
	uint32_t number = record ? gm_store_index(GM_TABLE_ALLOCS, record) : GM_NONE;
	uint64_t serial = record ? record->serial : 0;
	uint32_t site = record ? record->site : GM_NONE;
	struct gm_event told = *event; /* a free does not say what it frees: the history should */

	if (record) {
		told.bytes = record->bytes;
		told.kind = record->kind;
		told.device = record->device;
	}
	gm_history(GM_OP_FREE, &told, serial, site);
	if (record && event->error) { /* teardown: the memory goes with the process */
		gm_file->teardown_frees++;
		gm_live_end(record, number);
	} else if (record && record->kind == GM_KIND_IMPORTED && record->references > 1) {
		record->references--;
		__atomic_store_n(&record->state, GM_STATE_LIVE, __ATOMIC_RELEASE);
	} else if (record) {
		struct gm_alloc_record was = *record;

		if (record->flags & GM_ALLOC_EXPORTED)
			gm_error_note(GM_ERROR_FREED_WHILE_EXPORTED, event, record->bytes, GM_NONE,
				      record->site);
		gm_freed_note(record, event->stack, 0);
		if (record->flags & GM_ALLOC_TORCH)
			gm_torch_released(record, event->stack);
		gm_live_end(record, number);
		if (was.kind == GM_KIND_ASYNC && event->kind == GM_KIND_ASYNC)
			gm_pool_pending(&was, event->stream);
	} else if (event->error) {
		gm_file->teardown_frees++;
	} else if (ticket.record == GM_NONE) {
		gm_file->unknown_frees++;
	}
}

void gm_free_failed(struct gm_alloc_record *record, const struct gm_event *event)
{
	struct gm_site_record *site = record ? gm_store_record(GM_TABLE_SITES, record->site) : NULL;

	if (record)
		__atomic_store_n(&record->state, GM_STATE_LIVE, __ATOMIC_RELEASE);
	if (site)
		site->failed_frees++;
	gm_error_of_free(event, record);
	gm_history(GM_OP_FREE_FAILED, event, record ? record->serial : 0,
		   record ? record->site : GM_NONE);
}

void gm_track_exported(uint8_t space, uint64_t key, uint32_t ipc)
{
	struct gm_alloc_record *record;
	uint32_t number;

	if (!gm_file)
		return;
	gm_track_enter();
	record = gm_live_find(space, key, &number);
	if (!record && space == GM_SPACE_POINTER)
		record = gm_live_containing(space, key); /* IPC takes any address inside */
	if (record) {
		record->flags |= GM_ALLOC_EXPORTED;
		record->ipc = ipc ? ipc : record->ipc;
	}
	gm_track_leave();
}

bool gm_track_find(uint8_t space, uint64_t key, struct gm_alloc_record *out)
{
	struct gm_alloc_record *record;
	uint32_t number;

	if (!gm_file)
		return false;
	gm_track_lock();
	record = gm_live_find(space, key, &number);
	if (record)
		*out = *record;
	gm_track_unlock();
	return record != NULL;
}

void gm_track_device(int device, const char *name, const uint8_t uuid[16], uint64_t total_bytes)
{
	struct gm_device_record *record;
	uint32_t number, name_string;

	if (!gm_file || device < 0 || device >= GM_DEVICES)
		return;
	name_string = gm_store_string(name, 255);
	gm_track_enter();
	while (gm_file->tables[GM_TABLE_DEVICES].count <= (uint32_t)device) {
		record = gm_store_append(GM_TABLE_DEVICES, 1, &number);
		if (!record)
			break;
		record->name_string = GM_NONE;
		record->capacity_bytes = GM_NO_BYTES;
		record->free_before_bytes = GM_NO_BYTES;
		record->context_bytes = GM_NO_BYTES;
		record->context_stack = GM_NONE;
		gm_store_publish(GM_TABLE_DEVICES);
	}
	record = gm_store_record(GM_TABLE_DEVICES, (uint32_t)device);
	if (record && !record->used) {
		record->name_string = name_string;
		memcpy(record->uuid, uuid, sizeof(record->uuid));
		record->total_bytes = total_bytes;
		__atomic_store_n(&record->used, 1, __ATOMIC_RELEASE);
	}
	gm_track_leave();
}

void gm_track_capacity(int device, uint64_t bytes)
{
	struct gm_device_record *record;

	if (!gm_file || device < 0)
		return;
	gm_track_enter();
	record = gm_store_record(GM_TABLE_DEVICES, (uint32_t)device);
	if (record)
		record->capacity_bytes = bytes;
	gm_track_leave();
}

uint64_t gm_track_physical_bytes(int device)
{
	struct gm_level_record *level;

	if (!gm_file)
		return 0;
	level = __atomic_load_n(&gm_totals.levels[gm_slot(device)][GM_LEVEL_DRIVER], __ATOMIC_ACQUIRE);
	return level ? level->physical_bytes : 0;
}

void gm_track_end(unsigned end, int status)
{
	bool locked;

	if (!gm_file)
		return;
	/* A thread killed by exec or _exit of another may hold the lock for ever: only try. */
	locked = gm_track_try_lock();
	gm_count_own_bytes();
	gm_file->ended_ns = gm_track_now();
	gm_file->exit_status = status;
	__atomic_store_n(&gm_file->end, end, __ATOMIC_RELEASE);
	if (locked)
		gm_track_unlock();
}

void gm_track_resume(void)
{
	if (!gm_file)
		return;
	gm_file->ended_ns = 0;
	__atomic_store_n(&gm_file->end, GM_END_NONE, __ATOMIC_RELEASE);
}
