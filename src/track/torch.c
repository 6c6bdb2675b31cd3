/*
 * PyTorch's caching allocator: its blocks (allocations of level torch) and the memory it took from
 * the driver for them, kept beside PyTorch's own totals. Called by interpose/ with PyTorch's
 * allocator lock held: nothing here waits for anything but the tracker's lock.
 *
 * `reserved` follows the driver layer: segments come and go without a word from PyTorch. Every
 * block's hook passes what PyTorch itself counts; where ours differs (segments of a user's own
 * pool, a shim loaded late) it is counted in `mismatches` and PyTorch's figure is taken over.
 */
#include "track/retries.h"

struct gm_torch_state gm_torch_state;

void gm_torch_reset(void)
{
	gm_torch_state = (struct gm_torch_state){0};
}

bool gm_track_torch_seen(void)
{
	return __atomic_load_n(&gm_torch_state.seen, __ATOMIC_RELAXED);
}

struct gm_torch_record *gm_make_torch(int device)
{
	struct gm_torch_record **known = &gm_torch_state.devices[gm_slot(device)];
	uint32_t number;

	if (device < 0)
		return NULL;
	*known = gm_store_append(GM_TABLE_TORCH, 1, &number);
	if (!*known)
		return NULL;
	(*known)->device = (int16_t)device;
	(*known)->release_stack = GM_NONE;
	gm_file->features |= GM_FEATURE_TORCH;
	gm_store_publish(GM_TABLE_TORCH);
	return *known;
}

/* ---- the driver's side ---- */

void gm_torch_add(const struct gm_alloc_record *alloc)
{
	struct gm_torch_record *record =
		gm_torch_part(alloc) != GM_TORCH_NO_PART ? gm_torch(alloc->device) : NULL;

	if (record && gm_torch_reserves(gm_torch_add_driver(record, alloc, gm_torch_state.seen)))
		gm_timeline(alloc->device, GM_SERIES_TORCH_RESERVED, record->reserved_bytes);
}

void gm_torch_remove(const struct gm_alloc_record *alloc)
{
	struct gm_torch_record *record = gm_torch_known(alloc->device);

	if (!record || !gm_torch_reserves(gm_torch_remove_driver(record, alloc)))
		return;
	gm_peak_freed(alloc->device, GM_HOLES_TORCH, alloc);
	gm_timeline(alloc->device, GM_SERIES_TORCH_RESERVED, record->reserved_bytes);
}

/*
 * Who gives back most, in bounded room: a stack stays while it leads what others gave back (the
 * majority vote of Boyer and Moore, by bytes), so the one with more than half is the one that is left.
 */
static void vote(struct gm_torch_record *record, uint32_t stack, uint64_t bytes)
{
	if (stack == record->release_stack) {
		record->release_weight += bytes;
	} else if (bytes > record->release_weight) {
		record->release_stack = stack;
		record->release_weight = bytes - record->release_weight;
	} else {
		record->release_weight -= bytes;
	}
}

void gm_torch_released(const struct gm_alloc_record *alloc, uint32_t stack)
{
	struct gm_torch_record *record = gm_torch_known(alloc->device);

	if (!record || gm_torch_part(alloc) != GM_TORCH_SEGMENT)
		return;
	if (!record->releases++)
		record->first_release_ns = gm_track.now_ns;
	record->last_release_ns = gm_track.now_ns;
	record->releasing = 1;
	vote(record, stack, alloc->bytes);
}

void gm_torch_pool(const struct gm_pool_record *pool)
{
	struct gm_torch_record *record = gm_torch_known(pool->device);

	if (!record || record->allocator != GM_TORCH_ASYNC)
		return;
	if (pool->reserved_bytes > record->reserved_bytes)
		record->reserved_total_bytes += pool->reserved_bytes - record->reserved_bytes;
	else
		record->released_total_bytes += record->reserved_bytes - pool->reserved_bytes;
	record->reserved_bytes = pool->reserved_bytes;
	if (pool->reserved_peak_bytes > record->reserved_peak_bytes)
		record->reserved_peak_bytes = pool->reserved_peak_bytes;
	gm_timeline(pool->device, GM_SERIES_TORCH_RESERVED, record->reserved_bytes);
}

/* ---- PyTorch's side ---- */

static void first_block(int device)
{
	struct gm_torch_record *record = gm_torch(device);

	if (record && record->allocator == GM_TORCH_ASYNC)
		record->allocator = GM_TORCH_NATIVE;
	__atomic_store_n(&gm_torch_state.seen, true, __ATOMIC_RELAXED);
	gm_track.calls_ready = 0; /* what is in use goes by blocks from now on */
}

/*
 * An event changes the level and then the record. A kill in between leaves to the level what is to be said
 * of blocks (struct gm_torch_record), unless the two differed before.
 */
static void leave_to_level(struct gm_torch_record *record)
{
	static const struct gm_level_record none;
	const struct gm_level_record *level = gm_totals.levels[gm_slot(record->device)][GM_LEVEL_TORCH];

	if (!level)
		level = &none;
	if (!gm_torch_follows(record, level))
		return;
	record->beyond_bytes = record->allocated_bytes - level->current_bytes;
	__atomic_store_n(&record->by_level, 1, __ATOMIC_RELEASE);
}

/* The event's changes are all there. */
static void compare(struct gm_torch_record *record, const struct gm_torch_totals *totals)
{
	gm_torch_compare(record, totals);
	__atomic_store_n(&record->by_level, 0, __ATOMIC_RELEASE);
}

/* The address is in use by our books: PyTorch told of its free while nobody listened. */
static void count_missed_free(uint64_t key)
{
	uint32_t number;
	const struct gm_alloc_record *old = gm_live_find(GM_SPACE_TORCH, key, &number);
	struct gm_torch_record *record = old ? gm_torch(old->device) : NULL;

	if (!record)
		return;
	record->frees++;
	record->freed_total_bytes += old->bytes;
}

void gm_torch_block(const struct gm_event *event, const struct gm_torch_totals *totals)
{
	struct gm_torch_record *record;

	if (!gm_torch_state.seen)
		first_block(event->device);
	record = gm_torch(event->device);
	if (record)
		leave_to_level(record);
	count_missed_free(event->key);
	gm_alloc(event);
	if (record) {
		gm_torch_block_add(record, event->bytes);
		compare(record, totals);
		gm_torch_raise_holes(record);
	}
	if (gm_open_chains)
		gm_retry_block();
}

void gm_torch_block_free(struct gm_event *event, const struct gm_torch_totals *totals)
{
	struct gm_torch_record *record = gm_torch(event->device);
	struct gm_alloc_record *alloc;
	uint32_t number;

	if (record)
		leave_to_level(record);
	alloc = gm_live_find(GM_SPACE_TORCH, event->key, &number);
	if (alloc) {
		event->bytes = alloc->bytes;
		gm_history(GM_OP_FREE, event, alloc->serial, alloc->site);
		if (record)
			gm_torch_block_remove(record, alloc->bytes);
		gm_live_end(alloc, number);
	}
	if (record)
		compare(record, totals);
}

void gm_track_torch_oom(const struct gm_event *event, const struct gm_torch_totals *totals)
{
	struct gm_torch_record *record;

	if (!gm_file)
		return;
	gm_track_enter();
	gm_file->events++;
	record = gm_torch(event->device);
	if (record)
		gm_torch_compare(record, totals);
	gm_retry_torch_oom(event);
	gm_track_leave();
}
