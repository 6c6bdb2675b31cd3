/*
 * See annotated_ranges.h. An annotation begins before the events of its microsecond and ends after
 * them.
 */
#include "report/import/annotated_ranges.h"
#include "account/range_records.h"
#include <stdlib.h>
#include <string.h>

#define DEPTH 64u /* deeper ones are left out */

struct open_range {
	struct gm_range_instance figures; /* start, peak and name */
	uint32_t record;
	int device;
};

struct walk {
	const struct gm_snapshot *snapshot;
	struct gm_image *image;
	uint64_t *in_use;      /* by device */
	uint64_t *last_serial; /* of the latest allocation, by device */
	uint32_t *range_of;    /* by serial: the innermost open range, plus 1 */
	struct open_range open[DEPTH];
	unsigned depth;
	struct gm_numbering keys; /* of the records */
	uint32_t *record_of;	  /* by number of the key; GM_NONE: there was no room */
};

/* ---- records ---- */

static struct gm_range_record *record_at(const struct walk *walk, uint32_t index)
{
	return gm_image_record(walk->image, GM_TABLE_RANGES, index);
}

/* The record of a name in the range around it; GM_NONE: there is no room. */
static uint32_t find_or_make(struct walk *walk, const char *name, uint32_t parent, uint32_t group,
			     int device)
{
	struct {
		uint32_t parent;
		int32_t device, pattern;
		char name[GM_RANGE_NAME_BYTES];
	} key = {.parent = parent, .device = device, .pattern = group == GM_NONE};
	struct gm_range_record *record;
	uint32_t index = GM_NONE;
	unsigned number;
	bool added;

	strcpy(key.name, name);
	number = gm_number_of(&walk->keys, &key, sizeof(key), &added);
	if (!added)
		return walk->record_of[number];
	if (walk->image->tables[GM_TABLE_RANGES].count < GM_RANGE_RECORDS) {
		uint32_t string = gm_image_string(walk->image, name, strlen(name));

		record = gm_image_add(walk->image, GM_TABLE_RANGES, sizeof(*record), &index);
		record->name_string = string;
		record->domain_string = record->other_device = GM_NONE;
		record->parent = parent;
		record->group = group;
		record->source = GM_RANGE_ANNOTATION;
		record->device = (int16_t)device;
		record->stride = 1;
		if (group != GM_NONE)
			record_at(walk, group)->names++;
	} else {
		walk->image->header.ranges_dropped++;
	}
	if ((number & (number - 1)) == 0)
		walk->record_of = gm_realloc(walk->record_of, (number ? 2 * (size_t)number : 1) *
								      sizeof(*walk->record_of));
	walk->record_of[number] = index;
	return index;
}

/* The record of a name, or where the names of its group are too many, that of the group. */
static uint32_t record_for(struct walk *walk, const char *name, uint32_t parent, int device)
{
	char pattern[GM_RANGE_NAME_BYTES];
	uint32_t group, own;

	if (!gm_range_pattern(pattern, name))
		return find_or_make(walk, name, parent, GM_NONE, device);
	group = find_or_make(walk, pattern, parent, GM_NONE, device);
	if (group == GM_NONE)
		return GM_NONE;
	own = record_at(walk, group)->names < GM_RANGE_NAMES
		      ? find_or_make(walk, name, parent, group, device)
		      : GM_NONE;
	if (own == GM_NONE)
		record_at(walk, group)->overflowed = 1;
	return own == GM_NONE ? group : own;
}

/* ---- begin and end ---- */

static uint32_t group_of(const struct walk *walk, uint32_t record)
{
	return record_at(walk, record)->group == GM_NONE ? record : record_at(walk, record)->group;
}

static void begin(struct walk *walk, const struct gm_snapshot_annotation *annotation,
		  uint64_t time_ns)
{
	struct open_range *open = &walk->open[walk->depth];
	int device = annotation->device;
	uint32_t parent = walk->depth ? group_of(walk, open[-1].record) : GM_NONE;
	uint64_t bytes = walk->in_use[device];

	if (walk->depth == DEPTH)
		return;
	*open = (struct open_range){.device = device,
				    .figures = {.start_ns = time_ns,
						.peak_ns = time_ns,
						.start_bytes = bytes,
						.peak_bytes = bytes,
						.first_serial = walk->last_serial[device] + 1}};
	memcpy(open->figures.name, annotation->name, sizeof(open->figures.name));
	open->record = record_for(walk, annotation->name, parent, device);
	if (open->record == GM_NONE)
		return;
	record_at(walk, open->record)->opened++;
	if (record_at(walk, open->record)->group != GM_NONE)
		record_at(walk, group_of(walk, open->record))->opened++;
	walk->depth++;
}

static void count(struct walk *walk, uint32_t record, const struct gm_range_instance *figures)
{
	record_at(walk, record)->closed++;
	gm_range_add_instance(record_at(walk, record), figures);
}

/* Ends the innermost range of that name; what lies in it and was not ended is not counted. */
static void end(struct walk *walk, const struct gm_snapshot_annotation *annotation,
		uint64_t time_ns)
{
	struct open_range *open;
	unsigned at = walk->depth;

	while (at && strcmp(walk->open[at - 1].figures.name, annotation->name) != 0)
		at--;
	if (!at)
		return;
	open = &walk->open[at - 1];
	open->figures.end_ns = time_ns;
	open->figures.last_serial = walk->last_serial[open->device];
	open->figures.retained_bytes =
		(int64_t)(walk->in_use[open->device] - open->figures.start_bytes);
	count(walk, open->record, &open->figures);
	if (record_at(walk, open->record)->group != GM_NONE)
		count(walk, group_of(walk, open->record), &open->figures);
	walk->depth = at - 1;
}

/* ---- the walk ---- */

static bool is_block(const struct gm_event_record *event)
{
	return event->level == GM_LEVEL_TORCH && event->device >= 0 &&
	       (event->op == GM_OP_ALLOC || event->op == GM_OP_FREE);
}

static void apply(struct walk *walk, const struct gm_event_record *event)
{
	uint64_t *bytes = &walk->in_use[event->device];

	if (event->op == GM_OP_FREE) {
		*bytes -= event->bytes;
		return;
	}
	*bytes += event->bytes;
	walk->last_serial[event->device] = event->serial;
	if (walk->depth)
		walk->range_of[event->serial] = walk->open[walk->depth - 1].record + 1;
	for (unsigned i = 0; i < walk->depth; i++) {
		struct gm_range_instance *figures = &walk->open[i].figures;

		if (walk->open[i].device == event->device && *bytes > figures->peak_bytes) {
			figures->peak_bytes = *bytes;
			figures->peak_ns = event->time_ns;
		}
	}
}

/* Finds the bytes in use before the first event, and the serial number of the allocation before. */
static void find_start(struct walk *walk, const struct gm_event_record *events, uint32_t count)
{
	struct gm_image *image = walk->image;

	for (uint32_t i = 0; i < image->tables[GM_TABLE_TORCH].count; i++) {
		const struct gm_torch_record *torch = gm_image_record(image, GM_TABLE_TORCH, i);

		walk->in_use[torch->device] = torch->allocated_bytes;
		walk->last_serial[torch->device] = image->header.serial;
	}
	for (uint32_t i = count; i-- > 0;) {
		if (!is_block(&events[i]))
			continue;
		if (events[i].op == GM_OP_FREE) {
			walk->in_use[events[i].device] += events[i].bytes;
		} else {
			walk->in_use[events[i].device] -= events[i].bytes;
			walk->last_serial[events[i].device] = events[i].serial - 1;
		}
	}
}

static void note_ranges(struct walk *walk)
{
	for (uint32_t i = 0; i < walk->image->tables[GM_TABLE_ALLOCS].count; i++) {
		struct gm_alloc_record *block = gm_image_record(walk->image, GM_TABLE_ALLOCS, i);

		if (block->level == GM_LEVEL_TORCH && block->serial <= walk->image->header.serial)
			block->range = walk->range_of[block->serial];
	}
}

static void follow(struct walk *walk, const bool *replayed, uint64_t base_us)
{
	const struct gm_snapshot *snapshot = walk->snapshot;
	const struct gm_event_record *events =
		(const void *)walk->image->tables[GM_TABLE_EVENTS].bytes;
	uint32_t next = 0, count = walk->image->tables[GM_TABLE_EVENTS].count;

	find_start(walk, events, count);
	for (unsigned i = 0; i < snapshot->annotations_count; i++) {
		const struct gm_snapshot_annotation *annotation = &snapshot->annotations[i];
		uint64_t ns = annotation->time_us > base_us ? (annotation->time_us - base_us) * 1000
							    : 0;

		if (!replayed[annotation->device])
			continue;
		for (; next < count && (annotation->ends ? events[next].time_ns <= ns
							 : events[next].time_ns < ns);
		     next++)
			if (is_block(&events[next]))
				apply(walk, &events[next]);
		(annotation->ends ? end : begin)(walk, annotation, ns);
	}
	note_ranges(walk);
}

void gm_import_annotations(const struct gm_snapshot *snapshot, const bool *replayed,
			   uint64_t base_us)
{
	struct gm_image *image = snapshot->image;
	struct walk walk = {.snapshot = snapshot, .image = image};

	if (!snapshot->annotations_count)
		return;
	walk.in_use = gm_zone_alloc(snapshot->zone, GM_SNAPSHOT_DEVICES, sizeof(*walk.in_use));
	walk.last_serial =
		gm_zone_alloc(snapshot->zone, GM_SNAPSHOT_DEVICES, sizeof(*walk.last_serial));
	walk.range_of = gm_zone_alloc(snapshot->zone, (size_t)image->header.serial + 1,
				      sizeof(*walk.range_of));
	follow(&walk, replayed, base_us);
	gm_numbering_free(&walk.keys);
	free(walk.record_of);
}
