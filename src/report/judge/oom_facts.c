/*
 * Facts about an out-of-memory event that follow from its records, see internal.h.
 */
#include "report/judge/internal.h"
#include "account/kinds.h"
#include "base/size_text.h"
#include "report/stacks/labels.h"
#include "report/support/memory.h"
#include "report/support/sort.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_CHANGES 8
#define MOST_PIDS    8

uint64_t gm_oom_idle(uint64_t whole, uint64_t part)
{
	return whole == GM_NO_BYTES || part == GM_NO_BYTES || part > whole ? 0 : whole - part;
}

bool gm_makes_context(const char *api)
{
	return api && (strncmp(api, "cuCtxCreate", 11) == 0 ||
		       strncmp(api, "cuDevicePrimaryCtxRetain", 24) == 0 ||
		       strncmp(api, "cuGreenCtxCreate", 16) == 0);
}

uint64_t gm_oom_common_idle(const struct gm_oom_record *record)
{
	return gm_oom_idle(gm_oom_idle(record->torch_reserved_bytes, record->torch_allocated_bytes),
			   record->torch_private_idle_bytes);
}

uint64_t gm_oom_free_bytes(const struct gm_doc *doc, const struct gm_oom_record *record)
{
	const struct gm_device *device = gm_doc_device(doc, record->device);
	uint64_t used =
		record->tracked_physical_bytes == GM_NO_BYTES ? 0 : record->tracked_physical_bytes;

	/* The shim has recorded the free bytes of the device, or of a pretended one. */
	if (record->free_bytes != GM_NO_BYTES)
		return record->free_bytes;
	if (device && device->record.context_bytes != GM_NO_BYTES &&
	    __builtin_add_overflow(used, device->record.context_bytes, &used))
		return 0;
	return gm_oom_idle(gm_device_limit(device), used);
}

/*
 * "0=1G,1=512MB": a limit for each device that the variable names (CUDA's documentation of MPS,
 * "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT").
 */
uint64_t gm_oom_mps_limit(struct gm_doc *doc, int device)
{
	const char *environment = gm_reader_string(doc->reader, doc->header->environment_string);
	const char *item = gm_doc_variable(doc, environment, GM_MPS_LIMIT);

	while (item && *item) {
		size_t length = strcspn(item, ",");
		char *end;
		long number = strtol(item, &end, 10);
		uint64_t bytes;

		if (end != item && *end == '=' && number == device &&
		    gm_parse_size(
			    gm_zone_strndup(&doc->zone, end + 1, length - (size_t)(end + 1 - item)),
			    &bytes))
			return bytes;
		item += length + (item[length] == ',');
	}
	return GM_NO_BYTES;
}

/* Segments and their blocks both hold the same bytes: the blocks tell more. */
static void drop_segments(const struct gm_doc *doc, struct gm_oom *oom)
{
	unsigned n = 0;

	for (unsigned i = 0; i < oom->top_count; i++) {
		const struct gm_site *site = &doc->sites[oom->top[i].site];
		bool segments =
			site->torch_segments || site->record.flags & GM_SITE_TORCH || site->caching;

		if (!(doc->torch && site->record.level == GM_LEVEL_DRIVER && segments))
			oom->top[n++] = oom->top[i];
	}
	oom->top_count = n;
}

static int compare_totals(const void *a, const void *b)
{
	const struct gm_oom_total *x = a, *y = b;

	return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : strcmp(x->what, y->what);
}

static void sum_categories(struct gm_doc *doc, struct gm_oom *oom)
{
	for (unsigned i = 0; i < oom->top_count; i++) {
		const char *category = doc->sites[oom->top[i].site].category;
		struct gm_oom_total *total = NULL;

		for (unsigned k = 0; k < oom->categories_count; k++)
			if (strcmp(oom->categories[k].what, category) == 0)
				total = &oom->categories[k];
		if (!total) {
			total = gm_zone_push(&doc->zone, &oom->categories, &oom->categories_count,
					     sizeof(*total));
			total->what = category;
		}
		total->bytes += oom->top[i].bytes;
	}
	if (oom->categories_count)
		qsort(oom->categories, oom->categories_count, sizeof(*oom->categories),
		      compare_totals);
}

/* The last mark before the event, -1; the window that it opened, -1 if that was merged away. */
static int last_mark(const struct gm_doc *doc, const struct gm_oom *oom, int *window)
{
	const struct gm_header *header = doc->header;
	int mark = -1;

	*window = -1;
	for (unsigned i = 0; i < doc->marks_count; i++) {
		const struct gm_mark_record *record = &doc->marks[i].record;

		if (gm_mark_by_program(record->source) && record->time_ns <= oom->record.time_ns)
			mark = (int)i;
	}
	for (unsigned w = 0; mark >= 0 && w <= header->window_current && w < GM_WINDOWS; w++)
		if (header->window_marks && header->window_mark[w] == (uint32_t)mark)
			*window = (int)w;
	return mark;
}

static int compare_changes(const void *a, const void *b)
{
	const struct gm_oom_top *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x->site < y->site ? -1 : x->site > y->site;
}

/* Sites that hold more than they did at the last mark: `bytes` is by how much. */
static void find_changes(struct gm_doc *doc, struct gm_oom *oom)
{
	int window, mark = last_mark(doc, oom, &window);

	if (mark < 0)
		return;
	oom->mark = doc->marks[mark].name ? doc->marks[mark].name : "unnamed";
	for (unsigned i = 0; window > 0 && i < oom->top_count; i++) {
		const struct gm_site *site = &doc->sites[oom->top[i].site];
		uint64_t before = gm_site_window(site, (unsigned)window - 1).last_bytes;
		struct gm_oom_top *change;

		if (oom->top[i].bytes <= before)
			continue;
		change = gm_zone_push(&doc->zone, &oom->changes, &oom->changes_count,
				      sizeof(*change));
		*change = (struct gm_oom_top){oom->top[i].site, oom->top[i].bytes - before,
					      oom->top[i].count};
	}
	if (oom->changes_count)
		qsort(oom->changes, oom->changes_count, sizeof(*oom->changes), compare_changes);
	if (oom->changes_count > MOST_CHANGES)
		oom->changes_count = MOST_CHANGES;
}

/* The lines "PID BYTES" and "PID BYTES gone" that the shim wrote. */
static void read_processes(struct gm_doc *doc, struct gm_oom *oom)
{
	const char *line = gm_reader_string(doc->reader, oom->record.other_pids_string);

	while (line && *line && oom->processes_count < MOST_PIDS) {
		struct gm_oom_process *process;
		unsigned long long pid, bytes;
		char gone[8] = "";

		if (sscanf(line, "%llu %llu%*1[ ]%7[a-z]", &pid, &bytes, gone) < 2)
			break;
		process = gm_zone_push(&doc->zone, &oom->processes, &oom->processes_count,
				       sizeof(*process));
		*process = (struct gm_oom_process){pid, bytes, strcmp(gone, "gone") == 0};
		line = strchr(line, '\n');
		line += line != NULL;
	}
}

const char *gm_oom_others(struct gm_doc *doc, const struct gm_oom *oom)
{
	const char *text = gm_size(doc, oom->record.others_bytes);

	for (unsigned i = 0; i < oom->processes_count; i++)
		text = gm_doc_printf(
			doc, "%s%spid %llu with %s%s", text, i ? ", " : " (",
			(unsigned long long)oom->processes[i].pid,
			gm_size(doc, oom->processes[i].bytes),
			oom->processes[i].gone ? ", ended badly or in another container" : "");
	return oom->processes_count ? gm_doc_printf(doc, "%s)", text) : text;
}

/* True if memory was asked for after the event. */
static bool went_on(const struct gm_doc *doc, const struct gm_oom *oom)
{
	for (unsigned i = 0; i < doc->ooms_count; i++)
		if (doc->ooms[i].record.time_ns > oom->record.time_ns)
			return true;
	for (unsigned i = 0; i < doc->sites_count; i++)
		if (doc->sites[i].record.last_ns > oom->record.time_ns)
			return true;
	return false;
}

/*
 * Finds the memory that a step had taken before it failed and did not give back, though the program
 * went on: an exception's traceback keeps the frames, and they the tensors (pytorch#27600).
 */
static void find_kept(struct gm_doc *doc, struct gm_oom *oom)
{
	unsigned level = doc->torch ? GM_LEVEL_TORCH : GM_LEVEL_DRIVER;
	uint64_t most = 0, *bytes = gm_zone_alloc(&doc->zone, doc->sites_count + 1, sizeof(*bytes));

	oom->kept_site = GM_NO_SITE;
	if (!went_on(doc, oom))
		return;
	for (unsigned i = 0; i < gm_work_blocks(doc); i++) {
		const struct gm_alloc_record copy = gm_work_block(doc, i), *block = &copy;

		if (block->site == GM_NONE || block->level != level ||
		    block->device != oom->record.device || block->time_ns > oom->record.time_ns ||
		    strcmp(doc->sites[block->site].category, "activations") != 0)
			continue;
		bytes[block->site] += gm_site_share(block);
		oom->kept_bytes += gm_site_share(block);
		if (bytes[block->site] > most) {
			most = bytes[block->site];
			oom->kept_site = block->site;
		}
	}
}

#define LEAK_PART 5 /* a leak that held a fifth of all is a cause */

uint32_t gm_oom_leak(const struct gm_doc *doc, const struct gm_oom *oom, uint64_t *bytes)
{
	uint32_t leak = GM_NO_SITE;
	uint64_t sum = 0;

	*bytes = 0;
	for (unsigned i = 0; i < oom->top_count; i++) {
		const struct gm_oom_top *top = &oom->top[i];

		sum += top->bytes;
		if (doc->sites[top->site].verdict == GM_GROW && top->bytes > *bytes) {
			*bytes = top->bytes;
			leak = top->site;
		}
	}
	return *bytes >= oom->record.requested_bytes || *bytes >= sum / LEAK_PART ? leak
										  : GM_NO_SITE;
}

/* True for memory of the device that was taken before the event, at that level. */
static bool was_there(const struct gm_oom *oom, const struct gm_alloc_record *block,
		      enum gm_level level)
{
	return block->level == level && block->device == oom->record.device &&
	       block->time_ns <= oom->record.time_ns;
}

/* True if an address lies in one of the segments, which are in order of address. */
static bool in_segments(const struct gm_doc *doc, const struct gm_keyed *segments, unsigned count,
			uint64_t address)
{
	unsigned low = 0;

	while (low < count) {
		unsigned middle = (low + count) / 2;

		if (segments[middle].key <= address)
			low = middle + 1;
		else
			count = middle;
	}
	return low && address - segments[low - 1].key <
			      gm_work_block(doc, segments[low - 1].number).bytes;
}

/*
 * Finds what was idle in the private pools of captures: their segments, which stay as long as the
 * graphs, less the blocks in them that are still there. A snapshot tells it by itself.
 */
static void find_private_idle(struct gm_doc *doc, struct gm_oom *oom)
{
	struct gm_keyed *segments;
	uint64_t bytes = 0, used = 0;
	unsigned count = 0;

	if (!doc->captures_count || oom->record.torch_private_idle_bytes)
		return;
	segments = gm_realloc(NULL, ((size_t)gm_work_blocks(doc) + 1) * sizeof(*segments));
	for (unsigned i = 0; i < gm_work_blocks(doc); i++) {
		const struct gm_alloc_record block = gm_work_block(doc, i);

		if (!block.capture || !was_there(oom, &block, GM_LEVEL_DRIVER))
			continue;
		segments[count++] = (struct gm_keyed){block.key, i};
		bytes += block.bytes;
	}
	gm_sort_keyed(segments, count);
	for (unsigned i = 0; count && i < gm_work_blocks(doc); i++) {
		const struct gm_alloc_record block = gm_work_block(doc, i);

		if (was_there(oom, &block, GM_LEVEL_TORCH) &&
		    in_segments(doc, segments, count, block.key))
			used += block.bytes;
	}
	oom->record.torch_private_idle_bytes = gm_oom_idle(bytes, used);
	free(segments);
}

void gm_oom_facts(struct gm_doc *doc, struct gm_oom *oom)
{
	find_private_idle(doc, oom);
	oom->library = gm_stack_toolkit(oom->stack);
	drop_segments(doc, oom);
	sum_categories(doc, oom);
	find_changes(doc, oom);
	read_processes(doc, oom);
	find_kept(doc, oom);
}
