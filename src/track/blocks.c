/*
 * PyTorch's blocks, the events that come thousands of times a second: the usual ones straight through,
 * with each address worked out once. What is unusual (a first block, a new site, an address that was
 * not freed, a retry under way, a journal) is left to torch.c, before anything was changed.
 */
#include "track/book.h"
#include "track/retries.h"

/* What a device's blocks are summed in. */
struct sums {
	struct gm_level_record *level;
	struct gm_torch_record *torch;
	struct gm_open_series *series;
};

/* False unless all are there and nothing but books is to be kept. */
static inline bool usual(unsigned slot, struct sums *sums)
{
	sums->level = gm_track.levels[slot][GM_LEVEL_TORCH];
	sums->torch = gm_torch_state.devices[slot];
	sums->series = &gm_open_series[slot][GM_SERIES_TORCH_ALLOCATED];
	return sums->level && sums->torch && gm_track.now_ns < sums->series->end_ns && gm_thread_id &&
	       gm_torch_state.seen && !gm_open_chains && !gm_journal_on && gm_ring_steady();
}

static inline void tell(enum gm_event_op op, const struct gm_event *event, uint64_t serial, uint32_t site)
{
	gm_history_fill(gm_ring_take(), op, event, serial, site, gm_thread_id);
	gm_file->event_head++;
}

/* ---- allocations ---- */

static inline bool add(const struct gm_event *event, const struct gm_torch_totals *totals)
{
	struct gm_index_slot *place = gm_index_place(&gm_live.index, GM_SPACE_TORCH, event->key);
	unsigned slot = gm_slot(event->device);
	struct gm_alloc_record *record;
	struct gm_site_record *site;
	uint32_t site_number, number = gm_live.empty;
	struct sums sums;

	if (!usual(slot, &sums) || !place || number == GM_NONE || number >= GM_INDEX_MOST_NUMBERS)
		return false;
	site = gm_site_known(event, &site_number);
	if (!site)
		return false;
	record = gm_store_record(GM_TABLE_ALLOCS, number);
	gm_live.empty = record->site;
	gm_live_fill(record, event, site_number);
	gm_index_put(&gm_live.index, place, GM_SPACE_TORCH, event->key, number, site_number);
	gm_site_add(site, record, sums.level);
	gm_level_add(sums.level, record->bytes, (int64_t)record->physical_bytes, site);
	gm_series_value(sums.series, sums.level->current_bytes);
	gm_torch_block_add(sums.torch, record->bytes);
	gm_in_use_raise(event->device);
	tell(GM_OP_ALLOC, event, record->serial, site_number);
	gm_torch_compare(sums.torch, totals);
	gm_torch_raise_holes(sums.torch);
	return true;
}

void gm_track_block(const struct gm_event *event, const struct gm_torch_totals *totals)
{
	if (!gm_file || !event->key)
		return;
	gm_track_enter();
	gm_file->events++;
	if (!add(event, totals))
		gm_torch_block(event, totals);
	gm_track_leave();
}

/* ---- frees ---- */

static inline bool end(struct gm_event *event, const struct gm_torch_totals *totals)
{
	struct gm_index_slot *place = gm_index_find(&gm_live.index, GM_SPACE_TORCH, event->key);
	struct gm_alloc_record *record;
	struct gm_site_record *site;
	struct sums sums;
	uint32_t number;

	if (!place || !usual(gm_slot(event->device), &sums))
		return false;
	number = gm_index_number(place);
	record = gm_store_record(GM_TABLE_ALLOCS, number);
	site = gm_store_record(GM_TABLE_SITES, place->site);
	if (!site || record->device != event->device)
		return false;
	event->bytes = record->bytes;
	tell(GM_OP_FREE, event, record->serial, record->site);
	gm_torch_block_end(sums.torch, record->bytes);
	gm_peak_freed(GM_HOLES_TORCH, record);
	gm_site_remove(site, record, sums.level);
	gm_level_remove(sums.level, record->bytes, -(int64_t)record->physical_bytes);
	gm_series_value(sums.series, sums.level->current_bytes);
	gm_index_take(&gm_live.index, place);
	gm_live_put(record, number);
	gm_torch_compare(sums.torch, totals);
	return true;
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

	if (!gm_file || !block)
		return;
	gm_track_enter();
	gm_file->events++;
	if (!end(&event, totals))
		gm_torch_block_free(&event, totals);
	gm_track_leave();
}

/* ---- what both will need ---- */

static inline void fetch(const void *record, size_t bytes)
{
	const char *at = record;

	for (; at < (const char *)record + bytes; at += 64)
		__builtin_prefetch(at, 1);
}

void gm_track_block_prefetch(uint64_t block, int device, bool alloc)
{
	unsigned slot = gm_slot(device);

	if (!gm_file)
		return;
	gm_index_prefetch(&gm_live.index, GM_SPACE_TORCH, block);
	fetch(__atomic_load_n(&gm_ring.next, __ATOMIC_RELAXED), 1);
	fetch(&gm_open_series[slot][GM_SERIES_TORCH_ALLOCATED], 1);
	fetch(__atomic_load_n(&gm_track.levels[slot][GM_LEVEL_TORCH], __ATOMIC_RELAXED),
	      sizeof(struct gm_level_record));
	fetch(__atomic_load_n(&gm_torch_state.devices[slot], __ATOMIC_RELAXED),
	      sizeof(struct gm_torch_record));
	fetch(__atomic_load_n(&gm_peaks[slot][GM_HOLES_TORCH].record, __ATOMIC_RELAXED), 1);
	if (alloc)
		fetch(gm_store_record(GM_TABLE_ALLOCS, __atomic_load_n(&gm_live.empty, __ATOMIC_RELAXED)),
		      sizeof(struct gm_alloc_record));
}
