/*
 * Replaying a device's history (replay.h): back from the snapshot's state to where the history
 * begins, forward once to see that it ends in that state again, and once more to keep the books.
 */
#include "report/import/snapshot_replay.h"
#include "account/torch_record.h"
#include "report/import/replay_sets.h"
#include "report/support/progress.h"
#include <stdlib.h>
#include <string.h>

struct replay {
	const struct gm_snapshot *snapshot;
	struct gm_import_books *books; /* NULL while only the state is followed */
	struct gm_sets sets;
	int device;
	uint64_t base_us;
	struct gm_torch_record torch;
};

static unsigned segment_kind(const struct gm_replayed_allocation *live)
{
	return live->expandable ? GM_KIND_VMM : GM_KIND_DEVICE;
}

/* ---- keeping the books ---- */

static void note_series(struct replay *replay)
{
	const struct gm_torch_record *torch = &replay->torch;

	gm_import_books_series(replay->books, replay->device, GM_SERIES_TORCH_ALLOCATED,
			       torch->allocated_bytes);
	gm_import_books_series(replay->books, replay->device, GM_SERIES_TORCH_RESERVED,
			       torch->reserved_bytes);
	gm_import_books_series(replay->books, replay->device, GM_SERIES_TRACKED,
			       torch->reserved_bytes);
}

static struct gm_event_record *add_event(struct replay *replay, enum gm_event_op op,
					 const struct gm_snapshot_event *from,
					 const struct gm_replayed_allocation *live)
{
	struct gm_event_record *event =
		gm_image_add(replay->books->image, GM_TABLE_EVENTS, sizeof(*event), NULL);

	event->time_ns = replay->books->now_ns;
	event->key = from->start;
	event->bytes = from->bytes;
	event->site = live ? live->site : GM_NONE;
	event->serial = live ? live->serial : 0;
	event->stack = from->stack;
	event->function = UINT16_MAX;
	event->op = (uint8_t)op;
	event->device = (int16_t)replay->device;
	event->stream = from->stream;
	return event;
}

static void open_live(struct replay *replay, struct gm_replayed_allocation *live, unsigned level,
		      unsigned kind, uint64_t bytes)
{
	live->site = gm_import_books_site(replay->books, live->stack, level, kind, replay->device);
	live->serial = ++replay->books->serial;
	live->time_ns = replay->books->now_ns;
	gm_import_books_add(replay->books, live->site, bytes);
}

static void segment_event(struct replay *replay, enum gm_event_op op,
			  const struct gm_snapshot_event *from,
			  const struct gm_replayed_allocation *live)
{
	struct gm_event_record *event = add_event(replay, op, from, live);

	event->kind = (uint8_t)segment_kind(live);
	event->space = live->expandable ? GM_SPACE_HANDLE : GM_SPACE_POINTER;
	if (!live->expandable)
		return;
	event = add_event(replay, op == GM_OP_ALLOC ? GM_OP_MAP : GM_OP_UNMAP, from, live);
	event->space = GM_SPACE_MAPPING;
}

static void block_event(struct replay *replay, enum gm_event_op op,
			const struct gm_snapshot_event *from,
			const struct gm_replayed_allocation *live, uint64_t bytes)
{
	struct gm_event_record *event = add_event(replay, op, from, live);

	event->bytes = bytes;
	event->kind = GM_KIND_DEVICE;
	event->level = GM_LEVEL_TORCH;
	event->space = GM_SPACE_TORCH;
}

static void hand_out(struct replay *replay, uint64_t bytes)
{
	gm_torch_block_add(&replay->torch, bytes);
	gm_torch_raise_peaks(&replay->torch);
}

/* ---- out of memory ---- */

static void oom_sites(struct replay *replay, struct gm_oom_record *oom)
{
	struct gm_image *image = replay->books->image;

	oom->first_site = image->tables[GM_TABLE_OOM_SITES].count;
	for (uint32_t i = 0; i < image->tables[GM_TABLE_SITES].count; i++) {
		const struct gm_site_record *site = gm_image_record(image, GM_TABLE_SITES, i);
		struct gm_oom_site_record *row;

		if (site->level != GM_LEVEL_TORCH || site->device != replay->device ||
		    !site->live_bytes)
			continue;
		row = gm_image_add(image, GM_TABLE_OOM_SITES, sizeof(*row), NULL);
		*row = (struct gm_oom_site_record){i, (uint32_t)site->live_count, site->live_bytes};
		oom->sites++;
	}
}

static uint64_t pending_bytes(const struct gm_sets *sets)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < sets->blocks.count; i++)
		if (sets->lives[sets->blocks.ranges[i].tag].pending)
			bytes += sets->blocks.ranges[i].end - sets->blocks.ranges[i].start;
	return bytes;
}

/* The device had room for the request, so it was a limit that PyTorch was given that refused it. */
static void note_oom(struct replay *replay, const struct gm_snapshot_event *event)
{
	struct gm_image *image = replay->books->image;
	struct gm_oom_record oom = {
		.time_ns = replay->books->now_ns,
		.requested_bytes = event->bytes,
		.free_bytes = event->start,
		.total_bytes = GM_NO_BYTES,
		.tracked_bytes = replay->torch.reserved_bytes,
		.tracked_physical_bytes = replay->torch.reserved_bytes,
		.others_bytes = GM_NO_BYTES,
		.own_bytes = GM_NO_BYTES,
		.torch_reserved_bytes = replay->torch.reserved_bytes,
		.torch_allocated_bytes = replay->torch.allocated_bytes,
		.torch_largest_hole_bytes = gm_sets_largest_hole(&replay->sets),
		.torch_private_idle_bytes = gm_sets_private_idle(&replay->sets),
		.pending_free_bytes = pending_bytes(&replay->sets),
		.function = GM_NONE,
		.error = 2,
		.device = (int16_t)replay->device,
		.verdict = event->start != GM_NO_BYTES && event->start >= event->bytes
				   ? GM_OOM_LIMIT
				   : GM_OOM_UNDECIDED,
		.level = GM_LEVEL_TORCH,
		.stack = event->stack,
		.attempts = 1,
		.other_pids_string = GM_NONE,
	};

	replay->torch.ooms++;
	image->header.oom_events++;
	add_event(replay, GM_OP_OOM, event, NULL)->level = GM_LEVEL_TORCH;
	if (image->tables[GM_TABLE_OOMS].count >= GM_OOMS_KEPT)
		return;
	oom_sites(replay, &oom);
	memcpy(gm_image_add(image, GM_TABLE_OOMS, sizeof(oom), NULL), &oom, sizeof(oom));
}

/* ---- events, forward ---- */

static bool segment_begins(struct replay *replay, const struct gm_snapshot_event *event)
{
	struct gm_sets *sets = &replay->sets;
	bool expandable = event->action == GM_ACTION_SEGMENT_MAP;
	uint64_t tag = gm_sets_new(sets, event->stack, event->stream, expandable);

	sets->lives[tag].left_bytes = event->bytes;
	if (!gm_ranges_add(&sets->segments, event->start, event->start + event->bytes, tag))
		return false;
	if (replay->books) {
		open_live(replay, &sets->lives[tag], GM_LEVEL_DRIVER,
			  segment_kind(&sets->lives[tag]), event->bytes);
		segment_event(replay, GM_OP_ALLOC, event, &sets->lives[tag]);
		gm_torch_segment_add(&replay->torch, event->bytes);
	}
	return true;
}

/* A whole segment, or the mappings of a stretch. */
static bool segment_ends(struct replay *replay, const struct gm_snapshot_event *event)
{
	struct gm_sets *sets = &replay->sets;
	uint64_t at = event->start, end = event->start + event->bytes;

	while (at < end) {
		struct gm_tagged_range cut;
		struct gm_replayed_allocation *live;

		if (!gm_ranges_cut(&sets->segments, at, end, &cut))
			return false;
		live = &sets->lives[cut.tag];
		live->left_bytes -= cut.end - cut.start;
		at = cut.end;
		if (!replay->books)
			continue;
		gm_import_books_take(replay->books, live->site, cut.end - cut.start,
				     live->left_bytes == 0);
		segment_event(replay, GM_OP_FREE,
			      &(struct gm_snapshot_event){.start = cut.start,
							  .bytes = cut.end - cut.start,
							  .stream = event->stream,
							  .stack = event->stack},
			      live);
		gm_torch_segment_remove(&replay->torch, cut.end - cut.start);
	}
	return true;
}

static bool block_begins(struct replay *replay, const struct gm_snapshot_event *event)
{
	struct gm_sets *sets = &replay->sets;
	uint64_t bytes = gm_sets_block_bytes(sets, event->start, event->bytes);
	uint64_t tag = gm_sets_new(sets, event->stack, event->stream, false);

	if (!gm_ranges_add(&sets->blocks, event->start, event->start + bytes, tag))
		return false;
	if (replay->books) {
		open_live(replay, &sets->lives[tag], GM_LEVEL_TORCH, GM_KIND_DEVICE, bytes);
		block_event(replay, GM_OP_ALLOC, event, &sets->lives[tag], bytes);
		hand_out(replay, bytes);
	}
	return true;
}

static bool block_freed(struct replay *replay, const struct gm_snapshot_event *event)
{
	struct gm_tagged_range *range = gm_ranges_find(&replay->sets.blocks, event->start);
	struct gm_replayed_allocation *live = range ? &replay->sets.lives[range->tag] : NULL;
	uint64_t bytes = range ? range->end - range->start : 0;

	if (!live || live->pending)
		return false;
	live->pending = true;
	if (replay->books) {
		gm_import_books_take(replay->books, live->site, bytes, true);
		block_event(replay, GM_OP_FREE, event, live, bytes);
		gm_torch_block_remove(&replay->torch, bytes);
	}
	return true;
}

static bool block_ends(struct replay *replay, const struct gm_snapshot_event *event)
{
	struct gm_tagged_range *range = gm_ranges_find(&replay->sets.blocks, event->start);

	return range && replay->sets.lives[range->tag].pending &&
	       gm_ranges_remove(&replay->sets.blocks, event->start);
}

static bool apply(struct replay *replay, const struct gm_snapshot_event *event)
{
	if (replay->books) {
		uint64_t ns = event->time_us > replay->base_us
				      ? (event->time_us - replay->base_us) * 1000
				      : 0;

		replay->books->now_ns = ns;
		if (ns > replay->books->image->header.last_event_ns)
			replay->books->image->header.last_event_ns = ns;
	}
	switch (event->action) {
	case GM_ACTION_SEGMENT_ALLOC:
	case GM_ACTION_SEGMENT_MAP:
		return segment_begins(replay, event);
	case GM_ACTION_SEGMENT_FREE:
	case GM_ACTION_SEGMENT_UNMAP:
		return segment_ends(replay, event);
	case GM_ACTION_ALLOC:
		return block_begins(replay, event);
	case GM_ACTION_FREE_REQUESTED:
		return block_freed(replay, event);
	case GM_ACTION_FREE_COMPLETED:
		return block_ends(replay, event);
	default:
		if (replay->books)
			note_oom(replay, event);
		return true;
	}
}

static bool forward(struct replay *replay, const struct gm_snapshot_trace *trace)
{
	for (unsigned i = 0; i < trace->count; i++) {
		gm_progress("replaying the snapshot", i, trace->count);
		if (!apply(replay, &trace->events[i]))
			return false;
		if (replay->books)
			note_series(replay);
	}
	return true;
}

static bool backward(struct replay *replay, const struct gm_snapshot_trace *trace)
{
	for (unsigned i = trace->count; i-- > 0;)
		if (!gm_sets_undo(&replay->sets, &trace->events[i]))
			return false;
	return true;
}

/* ---- the beginning and the end ---- */

/* Begins the accounting with the memory that is there before the first event. */
static void open_books(struct replay *replay)
{
	struct gm_sets *sets = &replay->sets;

	replay->books->now_ns = 0;
	for (unsigned i = 0; i < sets->segments.count; i++) {
		const struct gm_tagged_range *range = &sets->segments.ranges[i];
		struct gm_replayed_allocation *live = &sets->lives[range->tag];

		live->left_bytes = range->end - range->start;
		open_live(replay, live, GM_LEVEL_DRIVER, segment_kind(live), live->left_bytes);
		gm_torch_segment_add(&replay->torch, live->left_bytes);
	}
	for (unsigned i = 0; i < sets->blocks.count; i++) {
		const struct gm_tagged_range *range = &sets->blocks.ranges[i];
		struct gm_replayed_allocation *live = &sets->lives[range->tag];

		open_live(replay, live, GM_LEVEL_TORCH, GM_KIND_DEVICE, range->end - range->start);
		if (live->pending)
			gm_import_books_take(replay->books, live->site, range->end - range->start,
					     true);
		else
			hand_out(replay, range->end - range->start);
	}
	gm_import_books_level(replay->books, replay->device, GM_LEVEL_DRIVER);
	gm_import_books_level(replay->books, replay->device, GM_LEVEL_TORCH);
	note_series(replay);
}

static struct gm_alloc_record *add_alloc(struct replay *replay, const struct gm_tagged_range *range,
					 uint32_t *number)
{
	const struct gm_replayed_allocation *live = &replay->sets.lives[range->tag];
	struct gm_alloc_record *alloc =
		gm_image_add(replay->books->image, GM_TABLE_ALLOCS, sizeof(*alloc), number);

	alloc->state = live->pending ? GM_STATE_PENDING : GM_STATE_LIVE;
	alloc->site = live->site;
	alloc->key = range->start;
	alloc->bytes = alloc->physical_bytes = range->end - range->start;
	alloc->time_ns = live->time_ns;
	alloc->stream = live->stream;
	alloc->serial = live->serial;
	alloc->owner = alloc->context = GM_NONE;
	alloc->device = (int16_t)replay->device;
	return alloc;
}

static void write_segment(struct replay *replay, const struct gm_tagged_range *range)
{
	const struct gm_replayed_allocation *live = &replay->sets.lives[range->tag];
	uint32_t number;
	struct gm_alloc_record *alloc = add_alloc(replay, range, &number);

	alloc->kind = (uint8_t)segment_kind(live);
	alloc->flags = GM_ALLOC_TORCH;
	alloc->space = live->expandable ? GM_SPACE_HANDLE : GM_SPACE_POINTER;
	if (!live->expandable)
		return;
	alloc->mappings = 1;
	alloc = add_alloc(replay, range, NULL);
	alloc->physical_bytes = 0;
	alloc->kind = GM_KIND_NONE;
	alloc->flags = GM_ALLOC_TORCH;
	alloc->space = GM_SPACE_MAPPING;
	alloc->owner = number;
}

static void close_books(struct replay *replay)
{
	const struct gm_sets *sets = &replay->sets;
	struct gm_torch_record *torch;

	for (unsigned i = 0; i < sets->segments.count; i++)
		write_segment(replay, &sets->segments.ranges[i]);
	for (unsigned i = 0; i < sets->blocks.count; i++) {
		struct gm_alloc_record *alloc = add_alloc(replay, &sets->blocks.ranges[i], NULL);

		alloc->kind = GM_KIND_DEVICE;
		alloc->level = GM_LEVEL_TORCH;
		alloc->space = GM_SPACE_TORCH;
	}
	torch = gm_image_add(replay->books->image, GM_TABLE_TORCH, sizeof(*torch), NULL);
	*torch = replay->torch;
}

/* Marks totals that cannot be known from a part of the history as unknown. */
static void forget_totals(struct gm_torch_record *torch)
{
	uint64_t *totals[] = {&torch->allocated_peak_bytes,  &torch->reserved_peak_bytes,
			      &torch->allocations,	     &torch->frees,
			      &torch->allocated_total_bytes, &torch->freed_total_bytes,
			      &torch->reserved_total_bytes,  &torch->released_total_bytes};

	for (size_t i = 0; i < sizeof(totals) / sizeof(totals[0]); i++)
		*totals[i] = GM_NO_BYTES;
}

/* Sets the state to where the history begins; false if it cannot be found or leads elsewhere. */
static bool rewind_history(struct replay *replay, const struct gm_snapshot_trace *trace)
{
	gm_sets_load(&replay->sets, replay->snapshot, replay->device);
	if (!backward(replay, trace))
		return false;
	if (!forward(replay, trace) || !gm_sets_final(&replay->sets))
		return false;
	gm_sets_free(&replay->sets);
	gm_sets_load(&replay->sets, replay->snapshot, replay->device);
	return backward(replay, trace);
}

static bool uses_expandable(const struct gm_snapshot *snapshot, int device)
{
	for (unsigned i = 0; i < snapshot->segments_count; i++)
		if (snapshot->segments[i].device == device && snapshot->segments[i].expandable)
			return true;
	return gm_value_number(snapshot->settings, "expandable_segments", 0) == 1;
}

enum gm_replayed gm_import_replay(const struct gm_snapshot *snapshot, struct gm_import_books *books,
				  int device, uint64_t base_us)
{
	static const struct gm_snapshot_trace none;
	const struct gm_snapshot_trace *trace =
		(unsigned)device < snapshot->traces_count ? &snapshot->traces[device] : &none;
	struct replay replay = {.snapshot = snapshot, .device = device, .base_us = base_us};
	enum gm_replayed replayed = GM_REPLAY_NONE;

	replay.torch.device = (int16_t)device;
	replay.torch.allocator = uses_expandable(snapshot, device);
	if (trace->count && rewind_history(&replay, trace)) {
		replayed = replay.sets.segments.count || replay.sets.blocks.count
				   ? GM_REPLAY_PARTIAL
				   : GM_REPLAY_WHOLE;
	} else {
		gm_sets_free(&replay.sets);
		gm_sets_load(&replay.sets, snapshot, device);
	}
	replay.books = books;
	open_books(&replay);
	if (replayed != GM_REPLAY_NONE)
		forward(&replay, trace);
	if (replayed != GM_REPLAY_WHOLE)
		forget_totals(&replay.torch);
	replay.torch.alloc_retries = GM_NO_BYTES; /* a failing cudaMalloc leaves no entry */
	close_books(&replay);
	gm_sets_free(&replay.sets);
	return replayed;
}
