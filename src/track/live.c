/*
 * The live table: every allocation that was not freed, by key. The records lie in the file, the index
 * over them (index.h) in private memory. Called under the tracker's lock.
 */
#include "track/book.h"
#include "track/freed.h"
#include "track/retries.h"
#include "track/torch.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

GM_HOT_COUNTERS struct gm_live gm_live = {.empty = GM_NONE};

__thread uint32_t gm_thread_id __attribute__((tls_model("initial-exec")));

void gm_live_reset(void)
{
	gm_live = (struct gm_live){.empty = GM_NONE};
	gm_thread_id = 0; /* after a raw clone it is the parent's */
	gm_physical_reset();
}

struct gm_alloc_record *gm_live_find(unsigned space, uint64_t key, uint32_t *number)
{
	const struct gm_index_slot *slot = gm_index_find(&gm_live.index, space, key);
	struct gm_alloc_record *record;

	if (!slot)
		return NULL;
	record = gm_store_at(gm_index_number(slot));
	*number = gm_store_index(GM_TABLE_ALLOCS, record);
	return record;
}

static struct gm_alloc_record *take_record(void)
{
	struct gm_alloc_record *record;
	uint32_t number;

	if (__builtin_expect(gm_live.empty == GM_NONE, 0)) {
		record = gm_store_append(GM_TABLE_ALLOCS, 1, &number);
		gm_store_publish(GM_TABLE_ALLOCS); /* zeroed: not in use yet */
		return record;
	}
	record = gm_store_at(gm_live.empty);
	gm_live_set_empty(record->site);
	return record;
}

uint32_t gm_ask_thread_id(void)
{
	gm_thread_id = (uint32_t)syscall(SYS_gettid);
	return gm_thread_id;
}

/* Of a block the site's spot too: its end comes straight to it (blocks.c). */
bool gm_live_index(struct gm_alloc_record *record)
{
	const struct gm_site_record *site =
		record->space == GM_SPACE_TORCH ? gm_store_record(GM_TABLE_SITES, record->site) : NULL;

	return gm_index_add(&gm_live.index, &gm_track_arena, record->space, record->key,
			    gm_store_offset(record), site ? gm_store_offset(site) : 0);
}

void gm_live_unindex(struct gm_alloc_record *record)
{
	gm_index_remove(&gm_live.index, record->space, record->key, gm_store_offset(record));
}

struct gm_alloc_record *gm_live_add(const struct gm_event *event, uint32_t site)
{
	struct gm_alloc_record *record = take_record();

	if (!record)
		return NULL;
	gm_live_fill(record, event, site, gm_calling_thread());
	if (!gm_live_index(record)) {
		gm_file->dropped_records++;
		gm_live_put(record);
		return NULL;
	}
	if (gm_journal_on)
		gm_journal_add(record, gm_store_index(GM_TABLE_ALLOCS, record),
			       gm_driver_bytes(record->level, record->kind, record->bytes));
	return record;
}

void gm_live_drop(struct gm_alloc_record *record, uint32_t number)
{
	if (gm_journal_on)
		gm_journal_drop(number, gm_track.now_ns, gm_calling_thread());
	gm_live_unindex(record);
	gm_live_put(record);
}

void gm_live_end(struct gm_alloc_record *record, uint32_t number)
{
	struct gm_site_record *site = gm_store_record(GM_TABLE_SITES, record->site);

	gm_account_free(record, site);
	if (record->flags & (GM_ALLOC_TORCH | GM_ALLOC_PLUGGABLE))
		gm_torch_remove(record);
	if (record->level == GM_LEVEL_TORCH)
		gm_peak_freed(record->device, GM_HOLES_TORCH, record);
	if (record->level == GM_LEVEL_DRIVER && gm_kind_owned(record->kind) &&
	    record->kind != GM_KIND_VMM)
		gm_retry_freed(record);
	if (record->kind == GM_KIND_VMM)
		gm_vmm_went(record);
	else if (record->kind == GM_KIND_ARRAY || record->space == GM_SPACE_HANDLE)
		gm_holder_gone(record->space, record->key);
	gm_live_drop(record, number);
}

void gm_live_resize(struct gm_alloc_record *record, uint32_t number, uint64_t bytes)
{
	struct gm_site_record *site = gm_store_record(GM_TABLE_SITES, record->site);
	uint64_t more_bytes = bytes - record->bytes;

	if (gm_journal_on)
		gm_journal_resize(number, bytes, gm_track.now_ns, gm_calling_thread());
	record->bytes = bytes;
	gm_account_resize(record, site, more_bytes);
}

/* A handle that was released while mapped is in no index, for its number may be given out again. */
struct gm_alloc_record *gm_vmm_pending(uint64_t handle, uint32_t *number)
{
	uint32_t count = gm_file->tables[GM_TABLE_ALLOCS].count;

	for (*number = 0; *number < count; ++*number) {
		struct gm_alloc_record *record = gm_store_record(GM_TABLE_ALLOCS, *number);

		if (record->state == GM_STATE_PENDING && record->space == GM_SPACE_HANDLE &&
		    record->key == handle)
			return record;
	}
	return NULL;
}

/* Memory that is being freed is live until the call returned, pending memory until the driver gives it back. */
void gm_live_each(bool (*visit)(struct gm_alloc_record *, uint32_t, void *), void *data)
{
	uint32_t number, count = gm_file->tables[GM_TABLE_ALLOCS].count;

	for (number = 0; number < count; number++) {
		struct gm_alloc_record *record = gm_store_record(GM_TABLE_ALLOCS, number);

		if (record->state != GM_STATE_EMPTY && !visit(record, number, data))
			return;
	}
}

struct containing {
	unsigned space;
	uint64_t address;
	struct gm_alloc_record *found;
};

static bool contains(struct gm_alloc_record *record, uint32_t number, void *data)
{
	struct containing *wanted = data;

	(void)number;
	if (record->space != wanted->space || wanted->address <= record->key ||
	    wanted->address - record->key >= record->bytes)
		return true;
	wanted->found = record;
	return false;
}

struct gm_alloc_record *gm_live_containing(unsigned space, uint64_t address)
{
	struct containing wanted = {.space = space, .address = address};

	gm_live_each(contains, &wanted);
	return wanted.found;
}

struct implicit_free {
	enum gm_implicit_cause cause;
	bool (*matches)(const struct gm_alloc_record *, const void *);
	const void *data;
};

static struct gm_implicit_record *implicit_record(int device, enum gm_implicit_cause cause)
{
	uint32_t number, count = gm_file->tables[GM_TABLE_IMPLICIT].count;
	struct gm_implicit_record *record;

	for (number = 0; number < count; number++) {
		record = gm_store_record(GM_TABLE_IMPLICIT, number);
		if (record->device == device && record->cause == cause)
			return record;
	}
	record = gm_store_append(GM_TABLE_IMPLICIT, 1, &number);
	if (record) {
		record->device = (int16_t)device;
		record->cause = (uint8_t)cause;
		gm_store_publish(GM_TABLE_IMPLICIT);
	}
	return record;
}

void gm_implicitly_freed(const struct gm_alloc_record *record, enum gm_implicit_cause cause)
{
	struct gm_implicit_record *sum;
	struct gm_event event = {.key = record->key, .bytes = record->bytes, .kind = record->kind,
				 .device = record->device, .space = record->space,
				 .level = record->level, .stack = GM_NONE, .function = GM_NONE};

	if (gm_kind_owned(record->kind) && record->level == GM_LEVEL_DRIVER) {
		sum = implicit_record(record->device, cause);
		if (sum) {
			sum->bytes += record->bytes;
			sum->count++;
		}
	}
	gm_freed_note(record, GM_NONE, cause + 1);
	gm_history(GM_OP_IMPLICIT_FREE, &event, record->serial, record->site);
}

static bool free_implicitly(struct gm_alloc_record *record, uint32_t number, void *data)
{
	const struct implicit_free *request = data;

	if (!request->matches(record, request->data))
		return true;
	gm_implicitly_freed(record, request->cause);
	gm_live_end(record, number);
	return true;
}

void gm_track_implicit_free(enum gm_implicit_cause cause,
			    bool (*matches)(const struct gm_alloc_record *, const void *),
			    const void *data)
{
	struct implicit_free request = {cause, matches, data};

	if (!gm_file)
		return;
	gm_track_enter();
	gm_live_each(free_implicitly, &request);
	gm_track_leave();
}
