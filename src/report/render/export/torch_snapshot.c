/*
 * The format of torch.cuda.memory._dump_snapshot, for PyTorch's own viewers: segments with their
 * blocks, and each device's history, complete or from the ring of events. Facts that only PyTorch
 * knows are written as PyTorch would write them without them: requested sizes are the blocks'
 * sizes, and the stream of blocks that the shim recorded is 0.
 *
 * Of a program without PyTorch each allocation of the driver is a segment with one block, so that
 * the viewers show any program.
 */
#include "account/kinds.h"
#include "account/torch_record.h"
#include "report/doc/options.h"
#include "report/history/events.h"
#include "report/holes/extents.h"
#include "report/render/export/internal.h"
#include "report/render/export/pickle_writer.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct snapshot {
	struct gm_doc *doc;
	struct gm_pickle pickle;
	uint32_t *frames_memo; /* per stack: its list of frames in the memo, from 1; 0 not yet */
	uint32_t no_frames;    /* the empty list's, from 1 */
};

static void put_number(struct snapshot *snapshot, const char *key, uint64_t number)
{
	gm_pickle_text(&snapshot->pickle, key);
	gm_pickle_unsigned(&snapshot->pickle, number);
}

static void put_text(struct snapshot *snapshot, const char *key, const char *text)
{
	gm_pickle_text(&snapshot->pickle, key);
	gm_pickle_text(&snapshot->pickle, text);
}

static void put_frame(struct snapshot *snapshot, const struct gm_frame *frame)
{
	char text[512];

	gm_pickle_dict(&snapshot->pickle);
	put_text(snapshot, "name", gm_export_frame_name(frame, text, sizeof(text)));
	put_text(snapshot, "filename", gm_export_frame_file(frame));
	put_number(snapshot, "line", frame->line);
	gm_pickle_dict_end(&snapshot->pickle);
}

static void put_frames(struct snapshot *snapshot, const struct gm_stack *stack)
{
	struct gm_pickle *pickle = &snapshot->pickle;
	uint32_t *memo = stack && stack->count
				 ? &snapshot->frames_memo[stack - snapshot->doc->stacks]
				 : &snapshot->no_frames;

	gm_pickle_text(pickle, "frames");
	if (*memo) {
		gm_pickle_again(pickle, *memo - 1);
		return;
	}
	gm_pickle_list(pickle);
	for (unsigned i = 0; stack && i < stack->count; i++)
		put_frame(snapshot, gm_stack_frame(stack, i));
	gm_pickle_list_end(pickle);
	*memo = gm_pickle_remember(pickle) + 1;
}

static void put_block(struct snapshot *snapshot, uint64_t address, uint64_t bytes,
		      const struct gm_alloc_record *block)
{
	struct gm_doc *doc = snapshot->doc;

	gm_pickle_dict(&snapshot->pickle);
	put_number(snapshot, "address", address);
	put_number(snapshot, "size", bytes);
	put_number(snapshot, "requested_size", block ? bytes : 0);
	put_text(snapshot, "state",
		 !block				    ? "inactive"
		 : block->state == GM_STATE_PENDING ? "active_pending_free"
						    : "active_allocated");
	put_frames(snapshot,
		   block && block->site < doc->sites_count ? doc->sites[block->site].stack : NULL);
	gm_pickle_dict_end(&snapshot->pickle);
}

/* The sums over the blocks of a segment. */
struct sums {
	uint64_t allocated, active;
};

/* The blocks of a segment and the holes between them, in order. */
static struct sums put_blocks(struct snapshot *snapshot, const struct gm_extents *extents,
			      const struct gm_segment *segment)
{
	const struct gm_doc *doc = snapshot->doc;
	struct gm_hole_walk walk = {segment->first, segment->start};
	struct gm_stretch stretch;
	struct sums sums = {0};

	gm_pickle_text(&snapshot->pickle, "blocks");
	gm_pickle_list(&snapshot->pickle);
	while (gm_stretch_next(extents->list, segment, &walk, &stretch)) {
		const struct gm_alloc_record copy =
			gm_doc_block(doc, stretch.block ? stretch.block->number : 0);
		const struct gm_alloc_record *block = stretch.block ? &copy : NULL;
		uint64_t bytes = stretch.end - stretch.start;

		put_block(snapshot, stretch.start, bytes, block);
		sums.active += block ? bytes : 0;
		sums.allocated += block && block->state != GM_STATE_PENDING ? bytes : 0;
	}
	gm_pickle_list_end(&snapshot->pickle);
	return sums;
}

/* The small pool's segments are 2 MiB; an expandable one is mapped in handles of that size. */
static bool is_small(const struct gm_alloc_record *memory)
{
	return memory->bytes == GM_TORCH_SMALL_SEGMENT_BYTES;
}

static const struct gm_stack *stack_of(const struct gm_doc *doc,
				       const struct gm_alloc_record *record)
{
	return record->site < doc->sites_count ? doc->sites[record->site].stack : NULL;
}

static void begin_segment(struct snapshot *snapshot, const struct gm_alloc_record *memory,
			  const struct gm_segment *segment, int device)
{
	gm_pickle_dict(&snapshot->pickle);
	put_number(snapshot, "device", (uint64_t)device);
	put_number(snapshot, "address", segment->start);
	put_number(snapshot, "total_size", segment->end - segment->start);
	put_number(snapshot, "stream", memory->stream);
	put_text(snapshot, "segment_type", is_small(memory) ? "small" : "large");
	gm_pickle_text(&snapshot->pickle, "segment_pool_id");
	gm_pickle_pair(&snapshot->pickle, 0, 0);
	gm_pickle_text(&snapshot->pickle, "is_expandable");
	gm_pickle_bool(&snapshot->pickle, segment->expandable);
	put_frames(snapshot, stack_of(snapshot->doc, memory));
}

static void end_segment(struct snapshot *snapshot, struct sums sums)
{
	put_number(snapshot, "allocated_size", sums.allocated);
	put_number(snapshot, "active_size", sums.active);
	put_number(snapshot, "requested_size", sums.active);
	gm_pickle_dict_end(&snapshot->pickle);
}

static void put_segment(struct snapshot *snapshot, const struct gm_extents *extents,
			const struct gm_segment *segment, int device)
{
	const struct gm_alloc_record memory =
		gm_doc_block(snapshot->doc, extents->list[segment->first].number);

	begin_segment(snapshot, &memory, segment, device);
	end_segment(snapshot, put_blocks(snapshot, extents, segment));
}

/* True for memory of a device that has an address: it is shown of programs without PyTorch. */
static bool is_plain(int level, int kind, int space)
{
	return level == GM_LEVEL_DRIVER && space == GM_SPACE_POINTER && gm_kind_owned(kind) &&
	       kind != GM_KIND_PINNED;
}

static void put_plain_segments(struct snapshot *snapshot, int device)
{
	struct gm_doc *doc = snapshot->doc;

	for (unsigned i = 0; i < doc->blocks_count; i++) {
		const struct gm_alloc_record copy = gm_doc_block(doc, i), *memory = &copy;
		const struct gm_segment segment = {.start = memory->key,
						   .end = memory->key + memory->bytes};
		bool pending = memory->state == GM_STATE_PENDING;

		if (memory->device != device || !memory->bytes ||
		    !is_plain(memory->level, memory->kind, memory->space))
			continue;
		begin_segment(snapshot, memory, &segment, device);
		gm_pickle_text(&snapshot->pickle, "blocks");
		gm_pickle_list(&snapshot->pickle);
		put_block(snapshot, memory->key, memory->bytes, memory);
		gm_pickle_list_end(&snapshot->pickle);
		end_segment(snapshot, (struct sums){pending ? 0 : memory->bytes, memory->bytes});
	}
}

static void put_segments(struct snapshot *snapshot)
{
	struct gm_doc *doc = snapshot->doc;

	gm_pickle_text(&snapshot->pickle, "segments");
	gm_pickle_list(&snapshot->pickle);
	for (unsigned d = 0; d < doc->devices_count; d++) {
		int device = doc->devices[d].index;
		struct gm_segment segment = {0};
		struct gm_extents extents;

		if (!doc->torch) {
			put_plain_segments(snapshot, device);
			continue;
		}
		extents = gm_extents_now(doc, device, GM_HOLES_TORCH);
		while (gm_segment_next(extents.list, extents.count, &segment))
			if (segment.owned)
				put_segment(snapshot, &extents, &segment, device);
		gm_extents_free(&extents);
	}
	gm_pickle_list_end(&snapshot->pickle);
}

static void put_event(struct snapshot *snapshot, const char *action,
		      const struct gm_event_record *event)
{
	const struct gm_header *header = snapshot->doc->header;

	gm_pickle_dict(&snapshot->pickle);
	put_text(snapshot, "action", action);
	put_number(snapshot, strcmp(action, "oom") == 0 ? "device_free" : "addr", event->key);
	put_number(snapshot, "size", event->bytes);
	put_number(snapshot, "stream", event->stream);
	put_number(snapshot, "time_us", (header->started_realtime_ns + event->time_ns) / 1000);
	put_frames(snapshot, gm_event_stack(snapshot->doc, event));
	gm_pickle_dict_end(&snapshot->pickle);
}

/* True for driver memory that PyTorch's allocator took: segments, or mappings of expandable ones.
 */
static bool of_segment(const struct gm_doc *doc, const struct gm_event_record *event)
{
	const struct gm_alloc_record taken = {.site = event->site, .kind = event->kind};

	return event->level == GM_LEVEL_DRIVER && event->site < doc->sites_count &&
	       ((doc->sites[event->site].record.flags & GM_SITE_TORCH) ||
		doc->sites[event->site].torch_segments || gm_by_torch(doc, &taken));
}

/* An allocation of the driver is a segment and its block at once. */
static void put_plain_event(struct snapshot *snapshot, const struct gm_event_record *event)
{
	bool freed = event->op == GM_OP_FREE || event->op == GM_OP_IMPLICIT_FREE;

	if (!is_plain(event->level, event->kind, event->space) || !event->bytes)
		return;
	if (event->op == GM_OP_ALLOC) {
		put_event(snapshot, "segment_alloc", event);
		put_event(snapshot, "alloc", event);
	} else if (freed) {
		put_event(snapshot, "free_requested", event);
		put_event(snapshot, "free_completed", event);
		put_event(snapshot, "segment_free", event);
	}
}

/* Blocks, segments and mappings; a free is requested and completed at once, as far as we can see.
 */
static void put_history_event(struct snapshot *snapshot, const struct gm_event_record *event)
{
	bool block = event->level == GM_LEVEL_TORCH && event->space == GM_SPACE_TORCH;
	bool segment = of_segment(snapshot->doc, event);
	bool freed = event->op == GM_OP_FREE || event->op == GM_OP_IMPLICIT_FREE;

	if (event->op == GM_OP_ALLOC && block) {
		put_event(snapshot, "alloc", event);
	} else if (freed && block) {
		put_event(snapshot, "free_requested", event);
		put_event(snapshot, "free_completed", event);
	} else if (segment && event->space == GM_SPACE_POINTER) {
		if (event->op == GM_OP_ALLOC)
			put_event(snapshot, "segment_alloc", event);
		else if (freed)
			put_event(snapshot, "segment_free", event);
	} else if (segment && event->op == GM_OP_MAP) {
		put_event(snapshot, "segment_map", event);
	} else if (segment && event->op == GM_OP_UNMAP) {
		put_event(snapshot, "segment_unmap", event);
	}
}

static bool goes_on(const struct gm_event_record *before, const struct gm_event_record *event)
{
	return before->bytes && before->op == event->op &&
	       before->key + before->bytes == event->key;
}

static void put_oom(struct snapshot *snapshot, const struct gm_oom *oom)
{
	struct gm_event_record event = {
		.key = oom->record.free_bytes == GM_NO_BYTES ? 0 : oom->record.free_bytes,
		.bytes = oom->record.requested_bytes,
		.time_ns = oom->record.time_ns,
		.stack = oom->record.stack,
		.site = GM_NONE,
	};

	put_event(snapshot, "oom", &event);
}

/* The trace of one device in the making. */
struct device_trace {
	struct snapshot *snapshot;
	int device;
	unsigned oom;			/* the next one */
	struct gm_event_record mapping; /* not written yet; `bytes` 0: none */
};

static void put_mapping(struct device_trace *trace)
{
	if (trace->mapping.bytes)
		put_history_event(trace->snapshot, &trace->mapping);
	trace->mapping.bytes = 0;
}

/*
 * PyTorch maps and unmaps a stretch of an expandable segment by handles of 2 or 20 MiB, one call of
 * CUDA's for each, and tells one event. Two stretches never follow one another without a block
 * between (map) or a gap (unmap: free neighbours are one block), so what continues is one.
 */
static void add_mapping(struct device_trace *trace, const struct gm_event_record *event)
{
	if (goes_on(&trace->mapping, event)) {
		trace->mapping.bytes += event->bytes;
		return;
	}
	put_mapping(trace);
	trace->mapping = *event;
}

static void put_ooms(struct device_trace *trace, uint64_t until_ns)
{
	const struct gm_doc *doc = trace->snapshot->doc;

	for (; trace->oom < doc->ooms_count && doc->ooms[trace->oom].record.time_ns <= until_ns;
	     trace->oom++) {
		if (doc->ooms[trace->oom].record.device != trace->device)
			continue;
		put_mapping(trace);
		put_oom(trace->snapshot, &doc->ooms[trace->oom]);
	}
}

static void put_next(const struct gm_event_record *event, void *data)
{
	struct device_trace *trace = data;

	put_ooms(trace, event->time_ns);
	if (event->device != trace->device)
		return;
	if (!trace->snapshot->doc->torch) {
		put_plain_event(trace->snapshot, event);
		return;
	}
	if ((event->op == GM_OP_MAP || event->op == GM_OP_UNMAP) &&
	    of_segment(trace->snapshot->doc, event)) {
		add_mapping(trace, event);
		return;
	}
	if (event->level == GM_LEVEL_TORCH || event->space == GM_SPACE_POINTER)
		put_mapping(trace);
	put_history_event(trace->snapshot, event);
}

static void put_trace(struct snapshot *snapshot, int device)
{
	struct device_trace trace = {.snapshot = snapshot, .device = device};

	gm_pickle_list(&snapshot->pickle);
	gm_history_each(snapshot->doc, put_next, &trace);
	put_mapping(&trace);
	put_ooms(&trace, UINT64_MAX);
	gm_pickle_list_end(&snapshot->pickle);
}

static void put_traces(struct snapshot *snapshot)
{
	struct gm_doc *doc = snapshot->doc;
	int devices = 0;

	for (unsigned d = 0; d < doc->devices_count; d++)
		if (doc->devices[d].index >= devices)
			devices = doc->devices[d].index + 1;
	gm_pickle_text(&snapshot->pickle, "device_traces");
	gm_pickle_list(&snapshot->pickle);
	for (int device = 0; device < devices; device++)
		put_trace(snapshot, device);
	gm_pickle_list_end(&snapshot->pickle);
}

static void put_settings(struct snapshot *snapshot)
{
	const struct gm_doc *doc = snapshot->doc;
	bool expandable = false;

	for (unsigned i = 0; i < doc->torches_count; i++)
		expandable = expandable || doc->torches[i].allocator == 1;
	gm_pickle_text(&snapshot->pickle, "allocator_settings");
	gm_pickle_dict(&snapshot->pickle);
	put_text(snapshot, "PYTORCH_CUDA_ALLOC_CONF",
		 doc->allocator_settings ? doc->allocator_settings : "");
	gm_pickle_text(&snapshot->pickle, "expandable_segments");
	gm_pickle_bool(&snapshot->pickle, expandable);
	gm_pickle_dict_end(&snapshot->pickle);
}

/* Stretches between marks, on every device, as PyTorch shows profiler ranges. */
static void put_annotations(struct snapshot *snapshot)
{
	const struct gm_doc *doc = snapshot->doc;

	gm_pickle_text(&snapshot->pickle, "external_annotations");
	gm_pickle_list(&snapshot->pickle);
	for (unsigned i = 0; i < 2 * doc->marks_count; i++) {
		unsigned edge = (i + 1) / 2;
		uint64_t ns = edge < doc->marks_count ? doc->marks[edge].record.time_ns
						      : doc->header->last_event_ns;

		gm_pickle_dict(&snapshot->pickle);
		put_text(snapshot, "stage", i % 2 ? "END" : "START");
		put_text(snapshot, "name", doc->marks[i / 2].name ? doc->marks[i / 2].name : "");
		put_number(snapshot, "device", 0);
		put_number(snapshot, "time_us", (doc->header->started_realtime_ns + ns) / 1000);
		gm_pickle_dict_end(&snapshot->pickle);
	}
	gm_pickle_list_end(&snapshot->pickle);
}

int gm_export_torch_snapshot(struct gm_doc *doc, const struct gm_options *options, FILE *file)
{
	struct snapshot snapshot = {.doc = doc};

	(void)options;
	snapshot.frames_memo = gm_realloc(NULL, (doc->stacks_count + 1) * sizeof(uint32_t));
	memset(snapshot.frames_memo, 0, (doc->stacks_count + 1) * sizeof(uint32_t));
	gm_pickle_begin(&snapshot.pickle, file);
	gm_pickle_dict(&snapshot.pickle);
	put_segments(&snapshot);
	put_traces(&snapshot);
	put_settings(&snapshot);
	put_annotations(&snapshot);
	gm_pickle_dict_end(&snapshot.pickle);
	gm_pickle_end(&snapshot.pickle);
	free(snapshot.frames_memo);
	return gm_export_end(file);
}
