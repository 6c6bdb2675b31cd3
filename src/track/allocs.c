/*
 * Allocations from their start to their end.
 */
#include "track/allocs.h"
#include "account/kinds.h"
#include "store/journal.h"
#include "track/accounting.h"
#include "track/errors.h"
#include "track/event_log.h"
#include "track/exports.h"
#include "track/freed.h"
#include "track/holds.h"
#include "track/in_use.h"
#include "track/live.h"
#include "track/peaks.h"
#include "track/pools.h"
#include "track/retries.h"
#include "track/sites.h"
#include "track/thread_id.h"
#include "track/torch_memory.h"
#include "track/update.h"
#include "track/vmm_totals.h"

#include <string.h>

/* ---- the end ---- */

struct held_by {
	unsigned space;
	uint64_t object;
};

static bool is_held_by(const struct gm_hold *hold, const void *data)
{
	const struct held_by *holder = data;

	return hold->object == holder->object && hold->space == holder->space;
}

/* A multicast object or sparse array is gone, and with it everything that it held. */
static void end_holds(unsigned space, uint64_t object)
{
	const struct held_by holder = {space, object};
	uint32_t owner = gm_hold_remove(is_held_by, &holder);

	for (; owner != GM_NONE; owner = gm_hold_remove(is_held_by, &holder))
		gm_release_mapping(owner);
}

void gm_remove_alloc(struct gm_alloc_record *record, uint32_t index)
{
	gm_account_free(record, gm_store_record(GM_TABLE_SITES, record->site));
	if (record->flags & (GM_ALLOC_TORCH | GM_ALLOC_PLUGGABLE))
		gm_torch_remove(record);
	if (record->level == GM_LEVEL_TORCH)
		gm_peak_freed(record->device, GM_HOLES_TORCH, record);
	if (record->level == GM_LEVEL_DRIVER && gm_kind_owned(record->kind) &&
	    record->kind != GM_KIND_VMM)
		gm_retry_freed(record);
	if (record->kind == GM_KIND_VMM)
		gm_vmm_uncount(record);
	else if (record->kind == GM_KIND_ARRAY || record->space == GM_SPACE_HANDLE)
		end_holds(record->space, record->key);
	gm_live_remove(record, index);
}

void gm_end_unheld_handle(struct gm_alloc_record *handle, uint32_t index)
{
	const struct gm_freed *released;

	if (handle->references || handle->mappings)
		return;
	released = gm_freed_find(GM_SPACE_HANDLE, handle->key);
	gm_export_freed(handle, released ? released->stack : GM_NONE);
	gm_remove_alloc(handle, index);
}

void gm_release_mapping(uint32_t index)
{
	struct gm_alloc_record *handle = gm_store_record(GM_TABLE_ALLOCS, index);

	if (handle && handle->mappings) {
		handle->mappings--;
		gm_end_unheld_handle(handle, index);
	}
}

void gm_resize_alloc(struct gm_alloc_record *record, uint32_t index, uint64_t bytes)
{
	uint64_t more_bytes = bytes - record->bytes;

	if (gm_journal_on)
		gm_journal_resize(index, bytes, gm_track.now_ns, gm_calling_thread());
	record->bytes = bytes;
	gm_account_resize(record, gm_store_record(GM_TABLE_SITES, record->site), more_bytes);
}

/* ---- frees that another thread's allocation overtook ---- */

#define OVERTAKEN 64u

/*
 * The keys of allocations that ended because their key was allocated anew: the free call is not
 * over yet, or it was missed. When the call is over, its allocation is no longer found.
 */
static struct {
	uint64_t key[OVERTAKEN]; /* 0: none */
	uint8_t space[OVERTAKEN];
	unsigned next; /* to be replaced */
} overtaken;

void gm_allocs_reset(void)
{
	memset(&overtaken, 0, sizeof(overtaken));
}

static void overtake(const struct gm_alloc_record *record)
{
	unsigned i = overtaken.next++ % OVERTAKEN;

	overtaken.key[i] = record->key;
	overtaken.space[i] = record->space;
}

/* Returns whether an allocation of the event's key was overtaken, and forgets it. */
static bool was_overtaken(const struct gm_event *event)
{
	unsigned i;

	for (i = 0; i < OVERTAKEN; i++) {
		if (overtaken.key[i] != event->key || overtaken.space[i] != event->space)
			continue;
		overtaken.key[i] = 0;
		return true;
	}
	return false;
}

/* ---- allocations and frees ---- */

struct gm_alloc_record *gm_record_alloc(const struct gm_event *event)
{
	struct gm_alloc_record *old, *record;
	struct gm_site_record *site;
	uint32_t index, site_index;

	old = gm_live_find(event->space, event->key, &index);
	if (old && old->kind == GM_KIND_IMPORTED && event->kind == GM_KIND_IMPORTED) {
		old->references++; /* opened again: CUDA returns the same address */
		return old;
	}
	if (old) {
		overtake(old);
		gm_remove_alloc(old, index);
	}
	site_index = gm_find_or_make_site(event);
	site = gm_store_record(GM_TABLE_SITES, site_index);
	record = site ? gm_live_add(event, site_index) : NULL;
	if (record) {
		gm_account_alloc(record, site);
		if (record->kind == GM_KIND_VMM)
			gm_vmm_count(record);
		if (record->flags & (GM_ALLOC_TORCH | GM_ALLOC_PLUGGABLE))
			gm_torch_add(record);
		gm_in_use_raise(record->device);
		gm_log_event(GM_OP_ALLOC, event, record->serial, site_index);
	} else {
		gm_store_incomplete(GM_TABLE_LEVELS);
	}
	return record;
}

/* A free call does not say what it frees; the log does. */
static void log_free(const struct gm_event *event, const struct gm_alloc_record *record)
{
	struct gm_event logged = *event;

	if (record) {
		logged.bytes = record->bytes;
		logged.kind = record->kind;
		logged.device = record->device;
	}
	gm_log_event(GM_OP_FREE, &logged, record ? record->serial : 0,
		     record ? record->site : GM_NONE);
}

/* Ends an allocation that the program freed. */
static void end_freed(struct gm_alloc_record *record, uint32_t index, const struct gm_event *event)
{
	struct gm_alloc_record was = *record;

	if (record->flags & GM_ALLOC_EXPORTED)
		gm_record_error(GM_ERROR_FREED_WHILE_EXPORTED, event, record->bytes, GM_NONE,
				record->site);
	gm_freed_remember(record, event->stack, 0);
	gm_export_freed(record, event->stack);
	if (record->flags & GM_ALLOC_TORCH)
		gm_torch_count_release(record, event->stack);
	gm_remove_alloc(record, index);
	if (was.kind == GM_KIND_ASYNC && event->kind == GM_KIND_ASYNC)
		gm_pool_add_pending(&was, event->stream, event->stack);
}

/* The driver answered an allocation of this thread that it is unloading. */
static __thread bool refused_at_end __attribute__((tls_model("initial-exec")));

void gm_note_refused_at_end(void)
{
	refused_at_end = true;
}

/*
 * Returns whether a free that was answered "unloading" is taken for a stale one. CUDA's runtime
 * leaves the pointer of the program as it was when it answers an allocation like that [sim], so a
 * thread that goes on frees the address of its block before, which it freed itself. Meanwhile the
 * address may belong to another thread's block, which nobody has freed.
 */
static bool is_stale_free(const struct gm_alloc_record *record)
{
	return refused_at_end && record->thread != gm_calling_thread() &&
	       gm_freed_find(record->space, record->key);
}

void gm_record_free(struct gm_alloc_record *record, const struct gm_event *event)
{
	uint32_t index = GM_NONE;

	if (record)
		gm_live_find(record->space, record->key, &index);
	if (record && event->error && is_stale_free(record))
		record = NULL;
	log_free(event, record);
	if (record && event->error) { /* the memory ends with the process */
		gm_file->teardown_frees++;
		gm_remove_alloc(record, index);
	} else if (record && record->kind == GM_KIND_IMPORTED && record->references > 1) {
		record->references--;
	} else if (record) {
		end_freed(record, index, event);
	} else if (event->error) {
		gm_file->teardown_frees++;
	} else if (!was_overtaken(event)) {
		gm_file->unknown_frees++;
	}
}

void gm_record_failed_free(struct gm_alloc_record *record, const struct gm_event *event)
{
	struct gm_site_record *site = record ? gm_store_record(GM_TABLE_SITES, record->site) : NULL;

	if (site)
		site->failed_frees++;
	gm_record_free_error(event, record);
	gm_log_event(GM_OP_FREE_FAILED, event, record ? record->serial : 0,
		     record ? record->site : GM_NONE);
}

/* ---- frees without a call ---- */

#define IMPLICIT_PLACES 256u /* beyond them one record of a device and cause has to do */

/*
 * Returns the record of a device, cause and place, made at its first use; NULL if the file is full.
 */
static struct gm_implicit_record *implicit_record(int device, enum gm_implicit_cause cause,
						  uint32_t stack)
{
	uint32_t index, count = gm_file->tables[GM_TABLE_IMPLICIT].count;
	struct gm_implicit_record *record;

	for (index = 0; index < count; index++) {
		record = gm_store_record(GM_TABLE_IMPLICIT, index);
		if (record->device == device && record->cause == cause &&
		    (record->stack == stack || index >= IMPLICIT_PLACES))
			return record;
	}
	record = gm_store_append(GM_TABLE_IMPLICIT, 1, &index);
	if (record) {
		record->device = (int16_t)device;
		record->cause = (uint8_t)cause;
		record->stack = stack;
		gm_store_publish(GM_TABLE_IMPLICIT);
	}
	return record;
}

void gm_record_implicit_free(const struct gm_alloc_record *record, enum gm_implicit_cause cause,
			     uint32_t stack)
{
	struct gm_implicit_record *sum;
	struct gm_event event = {.key = record->key,
				 .bytes = record->bytes,
				 .kind = record->kind,
				 .device = record->device,
				 .space = record->space,
				 .level = record->level,
				 .stack = GM_NONE,
				 .function = GM_NONE};

	if (gm_kind_owned(record->kind) && record->level == GM_LEVEL_DRIVER) {
		sum = implicit_record(record->device, cause, stack);
		if (sum) {
			sum->bytes += record->bytes;
			sum->count++;
		}
	}
	gm_freed_remember(record, stack, cause + 1);
	gm_log_event(GM_OP_IMPLICIT_FREE, &event, record->serial, record->site);
}

struct implicit_free {
	enum gm_implicit_cause cause;
	uint32_t stack;
	bool (*matches)(const struct gm_alloc_record *, const void *);
	const void *data;
};

static bool free_implicitly(struct gm_alloc_record *record, uint32_t index, void *data)
{
	const struct implicit_free *request = data;

	if (!request->matches(record, request->data))
		return true;
	gm_record_implicit_free(record, request->cause, request->stack);
	gm_export_freed(record, request->stack);
	gm_remove_alloc(record, index);
	return true;
}

void gm_track_implicit_free(enum gm_implicit_cause cause, uint32_t stack,
			    bool (*matches)(const struct gm_alloc_record *, const void *),
			    const void *data)
{
	struct implicit_free request = {cause, stack, matches, data};

	if (!gm_file)
		return;
	gm_update_begin();
	gm_live_each(free_implicitly, &request);
	gm_update_end();
}

/* ---- other entry points ---- */

bool gm_track_find(uint8_t space, uint64_t key, struct gm_alloc_record *out)
{
	struct gm_alloc_record *record;
	uint32_t index;

	if (!gm_file)
		return false;
	gm_track_lock();
	record = gm_live_find(space, key, &index);
	if (record)
		*out = *record;
	gm_track_unlock();
	return record != NULL;
}
