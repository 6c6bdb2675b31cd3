/*
 * The live table.
 */
#include "track/live.h"
#include "store/journal.h"
#include "track/surplus.h"
#include "track/thread_id.h"
#include "track/work.h"

void gm_live_reset(void)
{
	gm_track.live = (struct gm_index){0}; /* the arena was freed as a whole */
	gm_surplus_reset();
}

struct gm_alloc_record *gm_live_find(unsigned space, uint64_t key, uint32_t *index)
{
	const struct gm_index_slot *slot = gm_index_find(&gm_track.live, space, key);
	struct gm_alloc_record *record;

	if (!slot) {
		*index = GM_NONE;
		return gm_surplus_find(space, key);
	}
	record = gm_store_at(gm_index_value(slot));
	*index = gm_store_index(GM_TABLE_ALLOCS, record);
	return record;
}

static struct gm_alloc_record *take_empty(void)
{
	struct gm_alloc_record *record;
	uint32_t index;

	if (__builtin_expect(!gm_file->emptied, 0)) {
		gm_track_worked();
		gm_windows_advance();
		record = gm_store_append(GM_TABLE_ALLOCS, 1, &index);
		gm_store_publish(GM_TABLE_ALLOCS); /* a zeroed record is empty */
		return record;
	}
	record = gm_store_at(gm_file->emptied);
	gm_live_reuse(record);
	return record;
}

/* The index has the site of a block too, because the fast path of its free needs it at once. */
bool gm_live_add_to_index(struct gm_alloc_record *record)
{
	const struct gm_site_record *site = NULL;

	if (record->space == GM_SPACE_TORCH)
		site = gm_store_record(GM_TABLE_SITES, record->site);
	return gm_index_add(&gm_track.live, &gm_track_arena, record->space, record->key,
			    gm_store_offset(record), site ? gm_store_offset(site) : 0);
}

void gm_live_remove_from_index(struct gm_alloc_record *record)
{
	gm_index_remove(&gm_track.live, record->space, record->key, gm_store_offset(record));
}

/*
 * For a full file. Handles of memory have to be in it, because mappings name them by the index of
 * their record, and so have mappings and reservations, which count in no site. Of a file that has
 * ended and grows no more nothing is added: the reader of an update that the end of the process cut
 * off counts the file's records again.
 */
static struct gm_alloc_record *add_surplus(const struct gm_event *event, uint32_t site)
{
	struct gm_alloc_record *record = NULL;

	if (event->space != GM_SPACE_HANDLE && site != GM_NONE && gm_file->end == GM_END_NONE)
		record = gm_surplus_add(event->space, event->key);
	if (record)
		gm_live_fill(record, event, site, gm_calling_thread());
	return record;
}

struct gm_alloc_record *gm_live_add(const struct gm_event *event, uint32_t site)
{
	struct gm_alloc_record *record = take_empty();

	if (!record)
		return add_surplus(event, site);
	gm_live_fill(record, event, site, gm_calling_thread());
	if (!gm_live_add_to_index(record)) {
		gm_store_dropped(GM_TABLE_ALLOCS);
		gm_live_release(record);
		return NULL;
	}
	if (gm_journal_on)
		gm_journal_add(record, gm_store_index(GM_TABLE_ALLOCS, record),
			       gm_driver_bytes(record->level, record->kind, record->bytes));
	return record;
}

void gm_live_remove(struct gm_alloc_record *record, uint32_t index)
{
	if (index == GM_NONE) {
		gm_surplus_remove(record);
		return;
	}
	if (gm_journal_on)
		gm_journal_drop(index, gm_track.now_ns, gm_calling_thread());
	gm_live_remove_from_index(record);
	gm_live_release(record);
}

struct gm_alloc_record *gm_live_find_pending(uint64_t handle, uint32_t *index)
{
	uint32_t count = gm_file->tables[GM_TABLE_ALLOCS].count;

	for (*index = 0; *index < count; ++*index) {
		struct gm_alloc_record *record = gm_store_record(GM_TABLE_ALLOCS, *index);

		if (record->state == GM_STATE_PENDING && record->space == GM_SPACE_HANDLE &&
		    record->key == handle)
			return record;
	}
	return NULL;
}

void gm_live_each(bool (*visit)(struct gm_alloc_record *, uint32_t, void *), void *data)
{
	uint32_t index, count = gm_file->tables[GM_TABLE_ALLOCS].count;

	for (index = 0; index < count; index++) {
		struct gm_alloc_record *record = gm_store_record(GM_TABLE_ALLOCS, index);

		if ((record->state & GM_STATE_MASK) != GM_STATE_EMPTY &&
		    !visit(record, index, data))
			return;
	}
	gm_surplus_each(visit, data);
}

struct containing {
	unsigned space;
	uint64_t address;
	struct gm_alloc_record *found;
};

static bool contains(struct gm_alloc_record *record, uint32_t index, void *data)
{
	struct containing *wanted = data;

	(void)index;
	if (record->space != wanted->space || wanted->address <= record->key ||
	    wanted->address - record->key >= record->bytes)
		return true;
	wanted->found = record;
	return false;
}

struct gm_alloc_record *gm_live_find_containing(unsigned space, uint64_t address)
{
	struct containing wanted = {.space = space, .address = address};

	gm_live_each(contains, &wanted);
	return wanted.found;
}
