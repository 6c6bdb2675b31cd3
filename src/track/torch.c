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

enum allocator { NATIVE, EXPANDABLE, ASYNC, PLUGGABLE };

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
	gm_file->features |= GM_FEATURE_TORCH;
	gm_store_publish(GM_TABLE_TORCH);
	return *known;
}

static inline void raise_peaks(struct gm_torch_record *record)
{
	if (record->allocated_bytes > record->allocated_peak_bytes)
		record->allocated_peak_bytes = record->allocated_bytes;
	if (record->reserved_bytes > record->reserved_peak_bytes)
		record->reserved_peak_bytes = record->reserved_bytes;
}

/* ---- the driver's side ---- */

/* With backend:cudaMallocAsync every tensor is a call of the driver's and no hook ever comes. */
static bool is_async_tensor(const struct gm_alloc_record *alloc)
{
	return alloc->kind == GM_KIND_ASYNC || alloc->kind == GM_KIND_GRAPH;
}

/* Memory behind an expandable segment counts when it is mapped. */
static bool is_segment(const struct gm_alloc_record *alloc)
{
	return alloc->space == GM_SPACE_MAPPING ||
	       (alloc->space == GM_SPACE_POINTER && alloc->kind == GM_KIND_DEVICE);
}

void gm_torch_add(const struct gm_alloc_record *alloc)
{
	struct gm_torch_record *record;

	if (!is_segment(alloc) && !is_async_tensor(alloc))
		return;
	record = gm_torch(alloc->device);
	if (!record)
		return;
	if (is_async_tensor(alloc)) {
		if (gm_torch_state.seen)
			return;
		record->allocator = ASYNC;
		record->allocated_bytes += alloc->bytes;
		record->allocated_total_bytes += alloc->bytes;
		record->allocations++;
	} else {
		if (alloc->space == GM_SPACE_MAPPING)
			record->allocator = EXPANDABLE;
		record->reserved_bytes += alloc->bytes;
		record->reserved_total_bytes += alloc->bytes;
		gm_timeline(alloc->device, GM_SERIES_TORCH_RESERVED, record->reserved_bytes);
	}
	raise_peaks(record);
}

static void take(uint64_t *from, uint64_t bytes)
{
	*from = *from > bytes ? *from - bytes : 0;
}

void gm_torch_remove(const struct gm_alloc_record *alloc)
{
	struct gm_torch_record *record = gm_torch_known(alloc->device);

	if (!record)
		return;
	if (is_async_tensor(alloc) && record->allocator == ASYNC) {
		take(&record->allocated_bytes, alloc->bytes);
		record->freed_total_bytes += alloc->bytes;
		record->frees++;
	} else if (is_segment(alloc)) {
		take(&record->reserved_bytes, alloc->bytes);
		record->released_total_bytes += alloc->bytes;
		gm_timeline(alloc->device, GM_SERIES_TORCH_RESERVED, record->reserved_bytes);
	}
}

void gm_torch_pool(const struct gm_pool_record *pool)
{
	struct gm_torch_record *record = gm_torch_known(pool->device);

	if (!record || record->allocator != ASYNC)
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

static inline void compare(struct gm_torch_record *record, const struct gm_torch_totals *totals)
{
	record->hook_allocated_bytes = totals->allocated_bytes;
	record->hook_reserved_bytes = totals->reserved_bytes;
	if (record->allocated_bytes != totals->allocated_bytes ||
	    record->reserved_bytes != totals->reserved_bytes)
		record->mismatches++;
	record->allocated_bytes = totals->allocated_bytes;
	if (record->reserved_bytes != totals->reserved_bytes) {
		record->reserved_bytes = totals->reserved_bytes;
		gm_timeline(record->device, GM_SERIES_TORCH_RESERVED, record->reserved_bytes);
	}
	raise_peaks(record);
}

static void first_block(int device)
{
	struct gm_torch_record *record = gm_torch(device);

	if (record && record->allocator == ASYNC)
		record->allocator = NATIVE;
	__atomic_store_n(&gm_torch_state.seen, true, __ATOMIC_RELAXED);
}

void gm_track_block_prefetch(uint64_t block, int device, bool alloc)
{
	const struct gm_torch_record *record;
	const struct gm_level_record *level;

	if (!gm_file)
		return;
	gm_live_prefetch(GM_SPACE_TORCH, block, alloc);
	gm_history_prefetch();
	record = __atomic_load_n(&gm_torch_state.devices[gm_slot(device)], __ATOMIC_RELAXED);
	level = __atomic_load_n(&gm_track.levels[gm_slot(device)][GM_LEVEL_TORCH], __ATOMIC_RELAXED);
	__builtin_prefetch(&gm_open_series[gm_slot(device)][GM_SERIES_TORCH_ALLOCATED], 1);
	__builtin_prefetch(level, 1);
	__builtin_prefetch((const char *)level + 64, 1);
	__builtin_prefetch(record, 1);
	__builtin_prefetch((const char *)record + 64, 1);
}

void gm_track_block(const struct gm_event *event, const struct gm_torch_totals *totals)
{
	struct gm_torch_record *record;

	if (!gm_file || !event->key)
		return;
	gm_track_enter();
	gm_file->events++;
	if (!gm_torch_state.seen)
		first_block(event->device);
	gm_alloc(event);
	record = gm_torch(event->device);
	if (record) {
		record->allocated_bytes += event->bytes;
		record->allocated_total_bytes += event->bytes;
		record->allocations++;
		compare(record, totals);
	}
	gm_retry_block();
	gm_track_leave();
}

void gm_track_block_free(uint64_t block, int device, const struct gm_torch_totals *totals)
{
	struct gm_event event = {.key = block,
				 .space = GM_SPACE_TORCH,
				 .kind = GM_KIND_DEVICE,
				 .level = GM_LEVEL_TORCH,
				 .device = (int16_t)device,
				 .stack = GM_NONE,
				 .function = GM_NONE};
	struct gm_torch_record *record;
	struct gm_alloc_record *alloc;
	uint32_t number;

	if (!gm_file || !block)
		return;
	gm_track_enter();
	gm_file->events++;
	record = gm_torch(device);
	alloc = gm_live_find(GM_SPACE_TORCH, block, &number);
	if (alloc) {
		event.bytes = alloc->bytes;
		gm_history(GM_OP_FREE, &event, alloc->serial, alloc->site);
		if (record) {
			take(&record->allocated_bytes, alloc->bytes);
			record->freed_total_bytes += alloc->bytes;
			record->frees++;
		}
		gm_live_end(alloc, number);
	}
	if (record)
		compare(record, totals);
	gm_track_leave();
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
		compare(record, totals);
	gm_retry_torch_oom(event);
	gm_track_leave();
}
