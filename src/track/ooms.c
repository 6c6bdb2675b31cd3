/*
 * Out-of-memory events. The copy of what held the memory is made at the moment of the failed call.
 * The first and the latest records are kept, all events are counted. If the request is served after
 * all, its record becomes empty (`withdrawn`) and is used again.
 */
#include "track/ooms.h"
#include "track/event_log.h"
#include "track/levels.h"
#include "track/live.h"
#include "track/pools.h"
#include "track/slabs.h"
#include "track/thread_id.h"
#include "track/torch_memory.h"

#include <string.h>

#define SITES_KEPT  8192u /* per OOM */
#define BLOCKS_KEPT 16384u

/* The records that hold a copy. They are used again, because tables only grow. */
struct run {
	uint32_t first, capacity;
};

static struct {
	struct run sites, blocks;
	uint32_t ticket; /* 0: the record is empty */
} kept[GM_OOMS_KEPT];

static uint32_t tickets;

void gm_ooms_reset(void)
{
	memset(kept, 0, sizeof(kept));
	tickets = 0;
}

/* Gives a run a capacity for `count` records. Returns `count`, or 0 if the file is full. */
static uint32_t reserve(struct run *run, enum gm_table_id table, uint32_t count, uint32_t most)
{
	uint32_t capacity = count + count / 4;

	if (count <= run->capacity)
		return count;
	if (capacity > most)
		capacity = most;
	if (!gm_store_append(table, capacity, &run->first)) {
		run->capacity = 0;
		return 0;
	}
	gm_store_publish(table);
	run->capacity = capacity;
	return count;
}

/*
 * PyTorch's segments are left out if their blocks are recorded: both would count the bytes twice.
 */
static bool holds_memory(const struct gm_site_record *site, int device)
{
	return site->live_bytes && site->device == device && site->kind != GM_KIND_NONE &&
	       !(site->flags & GM_SITE_TORCH && gm_track_torch_seen());
}

static void copy_sites(struct gm_oom_record *oom, struct run *run)
{
	uint32_t index, count = 0, copied = 0, sites = gm_file->tables[GM_TABLE_SITES].count;

	for (index = 0; index < sites; index++)
		count += holds_memory(gm_store_record(GM_TABLE_SITES, index), oom->device);
	count = reserve(run, GM_TABLE_OOM_SITES, count < SITES_KEPT ? count : SITES_KEPT,
			SITES_KEPT);
	for (index = 0; index < sites && copied < count; index++) {
		const struct gm_site_record *site = gm_store_record(GM_TABLE_SITES, index);
		struct gm_oom_site_record *copy;

		if (!holds_memory(site, oom->device))
			continue;
		copy = gm_store_record(GM_TABLE_OOM_SITES, run->first + copied++);
		copy->site = index;
		copy->count = (uint32_t)site->live_count;
		copy->bytes = site->live_bytes;
	}
	oom->first_site = run->first;
	oom->sites = copied;
}

struct block_copy {
	int device;
	uint32_t first, count, most;
};

static bool wanted(const struct gm_alloc_record *alloc, int device)
{
	if (alloc->device != device)
		return false;
	return alloc->level != GM_LEVEL_DRIVER || alloc->space == GM_SPACE_RESERVATION ||
	       gm_is_divisible(alloc);
}

static bool count_block(struct gm_alloc_record *alloc, uint32_t index, void *data)
{
	struct block_copy *copy = data;

	(void)index;
	copy->count += wanted(alloc, copy->device);
	return copy->count < copy->most;
}

static bool copy_block(struct gm_alloc_record *alloc, uint32_t index, void *data)
{
	struct block_copy *copy = data;
	struct gm_oom_block_record *block;

	(void)index;
	if (!wanted(alloc, copy->device))
		return true;
	if (copy->count == copy->most)
		return false;
	block = gm_store_record(GM_TABLE_OOM_BLOCKS, copy->first + copy->count++);
	block->address = alloc->key;
	block->bytes = alloc->bytes;
	block->site = alloc->site;
	block->level = alloc->level;
	block->kind = alloc->kind;
	block->space = alloc->space;
	block->flags = alloc->flags & GM_ALLOC_TORCH ? GM_OOM_BLOCK_TORCH : 0;
	return true;
}

static void copy_blocks(struct gm_oom_record *oom, struct run *run)
{
	struct block_copy copy = {.device = oom->device, .most = BLOCKS_KEPT};

	gm_live_each(count_block, &copy);
	copy.most = reserve(run, GM_TABLE_OOM_BLOCKS, copy.count, BLOCKS_KEPT);
	copy.first = run->first;
	copy.count = 0;
	gm_live_each(copy_block, &copy);
	oom->first_block = copy.first;
	oom->blocks = copy.count;
}

static void fill_view(struct gm_oom_record *oom, const struct gm_device_view *view)
{
	oom->free_bytes = view ? view->free_bytes : GM_NO_BYTES;
	oom->total_bytes = view ? view->total_bytes : GM_NO_BYTES;
	oom->own_bytes = view ? view->own_bytes : GM_NO_BYTES;
	oom->others_bytes = view ? view->others_bytes : GM_NO_BYTES;
	oom->other_pids_string = view ? view->pids_string : GM_NONE;
}

static void fill_levels(struct gm_oom_record *oom)
{
	const struct gm_level_record *level = gm_level_of(oom->device, GM_LEVEL_DRIVER);
	const struct gm_torch_record *torch = gm_torch_with_blocks(oom->device);

	oom->tracked_bytes = level ? level->current_bytes : 0;
	oom->tracked_physical_bytes = level ? level->physical_bytes : 0;
	oom->torch_reserved_bytes = torch ? torch->reserved_bytes : GM_NO_BYTES;
	oom->torch_allocated_bytes = torch ? torch->allocated_bytes : GM_NO_BYTES;
	oom->torch_largest_hole_bytes = GM_NO_BYTES; /* the report finds it by the blocks */
}

static void fill_slabs(struct gm_oom_record *oom)
{
	struct gm_slab_sums sums = gm_slab_sums(oom->device);

	oom->slab_reserved_bytes = sums.reserved_bytes;
	oom->slab_used_bytes = sums.used_bytes;
}

/* Puts the streams on which most was freed and not waited for since first. */
static void fill_pending(struct gm_oom_record *oom)
{
	unsigned i, k;

	memset(oom->pending, 0, sizeof(oom->pending));
	for (i = 0; i < gm_pools.count; i++) {
		const struct gm_pending *from = &gm_pools.pending[i];
		const struct gm_pool_record *pool = gm_pool_at(from->pool);

		if (!pool || pool->device != oom->device)
			continue;
		for (k = 0; k < GM_OOM_PENDING && oom->pending[k].bytes >= from->bytes; k++)
			;
		if (k == GM_OOM_PENDING)
			continue;
		memmove(&oom->pending[k + 1], &oom->pending[k],
			(GM_OOM_PENDING - 1 - k) * sizeof(oom->pending[0]));
		oom->pending[k] = (struct gm_oom_pending){
			.stream = from->stream, .bytes = from->bytes, .stack = from->stack};
	}
}

static void fill_pools(struct gm_oom_record *oom)
{
	uint32_t index, count = gm_file->tables[GM_TABLE_POOLS].count;

	oom->pool_reserved_bytes = oom->pool_used_bytes = oom->pending_free_bytes = 0;
	for (index = 0; index < count; index++) {
		const struct gm_pool_record *pool = gm_store_record(GM_TABLE_POOLS, index);

		if (pool->state == GM_STATE_EMPTY || pool->device != oom->device)
			continue;
		oom->pool_reserved_bytes += pool->reserved_bytes;
		/*
		 * Memory that graphs have freed stays used by the driver's figure until it is
		 * trimmed.
		 */
		oom->pool_used_bytes +=
			pool->type == GM_POOL_GRAPH && pool->live_bytes < pool->used_bytes
				? pool->live_bytes
				: pool->used_bytes;
		oom->pending_free_bytes += pool->pending_free_bytes;
	}
}

/* Copies the figures of the pool that was asked, if there was one. */
static void fill_pool(struct gm_oom_record *oom, uint32_t index)
{
	const struct gm_pool_record *pool = gm_store_record(GM_TABLE_POOLS, index);

	oom->pool_max_bytes = pool ? pool->max_bytes : 0;
	oom->pool_live_bytes = pool ? pool->live_bytes : 0;
}

/*
 * Returns the growth of all devices together since the last mark; a mark has no more than their
 * sum.
 */
static uint64_t mark_delta(const struct gm_oom_record *oom)
{
	uint32_t marks = gm_file->tables[GM_TABLE_MARKS].count;
	const struct gm_mark_record *mark =
		marks ? gm_store_record(GM_TABLE_MARKS, marks - 1) : NULL;
	bool torch = oom->torch_allocated_bytes != GM_NO_BYTES;
	uint64_t before = !mark ? 0 : torch ? mark->torch_bytes : mark->current_bytes, now = 0;
	unsigned slot, level = torch ? GM_LEVEL_TORCH : GM_LEVEL_DRIVER;

	for (slot = 1; slot < GM_SLOTS; slot++)
		if (gm_totals.levels[slot][level])
			now += gm_totals.levels[slot][level]->current_bytes;
	return now > before ? now - before : 0;
}

static void fill(struct gm_oom_record *oom, uint32_t index, const struct gm_event *event)
{
	oom->time_ns = gm_track.now_ns;
	oom->requested_bytes = event->bytes;
	oom->driver_bytes = event->level == GM_LEVEL_DRIVER ? event->bytes : 0;
	oom->function = event->function;
	oom->error = event->error;
	oom->device = event->device;
	oom->verdict = event->device < 0 ? GM_OOM_HOST : GM_OOM_UNDECIDED;
	oom->level = event->level;
	oom->stack = event->stack;
	oom->thread = gm_calling_thread();
	oom->injected = event->injected;
	fill_view(oom, event->view);
	fill_levels(oom);
	fill_pools(oom);
	fill_pending(oom);
	fill_slabs(oom);
	fill_pool(oom, event->kind == GM_KIND_ASYNC ? event->owner : GM_NONE);
	oom->mark_delta_bytes = mark_delta(oom);
	copy_sites(oom, &kept[index].sites);
	copy_blocks(oom, &kept[index].blocks);
}

/* Returns an empty record, a new one, or the oldest of those that are kept as the latest. */
static struct gm_oom_record *take_record(uint32_t *index)
{
	uint32_t i, oldest = GM_OOMS_FIRST, count = gm_file->tables[GM_TABLE_OOMS].count;

	for (i = 0; i < count; i++) {
		if (!kept[i].ticket) {
			*index = i;
			return gm_store_record(GM_TABLE_OOMS, i);
		}
		if (i > oldest && kept[i].ticket < kept[oldest].ticket)
			oldest = i;
	}
	if (count < GM_OOMS_KEPT)
		return gm_store_append(GM_TABLE_OOMS, 1, index);
	*index = oldest;
	return gm_store_record(GM_TABLE_OOMS, oldest);
}

static struct gm_oom_record *find(uint32_t ticket, uint32_t *index)
{
	for (*index = 0; ticket && *index < GM_OOMS_KEPT; ++*index)
		if (kept[*index].ticket == ticket)
			return gm_store_record(GM_TABLE_OOMS, *index);
	return NULL;
}

uint32_t gm_oom_open(const struct gm_event *event)
{
	struct gm_oom_record *oom;
	uint32_t index;

	gm_file->oom_events++;
	gm_log_event(GM_OP_OOM, event, 0, GM_NONE);
	oom = take_record(&index);
	if (!oom)
		return 0;
	kept[index].ticket = ++tickets;
	fill(oom, index, event);
	oom->attempts = 1;
	oom->withdrawn = 0;
	gm_store_publish(GM_TABLE_OOMS);
	return tickets;
}

void gm_oom_again(uint32_t ticket, const struct gm_event *event)
{
	uint32_t index;
	struct gm_oom_record *oom = find(ticket, &index);

	if (!oom)
		return;
	fill(oom, index, event);
	oom->attempts++;
}

void gm_oom_set_torch_request(uint32_t ticket, const struct gm_event *event, bool limit)
{
	uint32_t index;
	struct gm_oom_record *oom = find(ticket, &index);

	if (!oom)
		return;
	oom->requested_bytes = event->bytes;
	oom->level = GM_LEVEL_TORCH;
	if (limit)
		oom->verdict = GM_OOM_LIMIT;
}

void gm_oom_withdraw(uint32_t ticket)
{
	uint32_t index;
	struct gm_oom_record *oom = find(ticket, &index);

	gm_file->oom_events--;
	if (!oom)
		return;
	oom->withdrawn = 1;
	kept[index].ticket = 0;
}
