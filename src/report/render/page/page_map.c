/*
 * The memory map of the page: driver memory in order of address, and the live blocks in it.
 */
#include "report/doc/enum_names.h"
#include "report/history/moment.h"
#include "report/holes/segments.h"
#include "report/render/json/json_values.h"
#include "report/render/page/internal.h"
#include "account/kinds.h"
#include "account/sizes.h"
#include <stdlib.h>
#include <string.h>

#define UNKNOWN INT64_MIN /* null in JSON */

/* A list of internal.h: numbers, or names by number. */
struct column {
	const char *name;
	const char *(*name_of)(unsigned number); /* NULL: of numbers */
	int64_t *list;
	unsigned count;
};

enum columns {
	DEVICE,
	TYPE,
	KIND,
	ADDRESS,
	BYTES,
	USED,
	SITE,
	FIRST,
	SEGMENT_COLUMNS,
	OFFSET = SEGMENT_COLUMNS,
	BLOCK_BYTES,
	BLOCK_SITE,
	TIME,
	COLUMNS
};

enum type { SEGMENT, EXPANDABLE, POOL, SLAB, MAPPING, ALLOCATION };

static const char *type_name(unsigned type)
{
	static const char *const names[] = {"segment", "expandable", "pool",
					    "slab",    "mapping",    "allocation"};

	return names[type];
}

struct map {
	struct gm_doc *doc;
	const int *numbers;
	struct column to[COLUMNS];
	struct gm_segment *segments; /* of the device at hand */
	unsigned segments_count;
	uint64_t start, end, used; /* of the open row; end 0: none is open */
	uint64_t smallest;	   /* blocks under it are left out */
	uint64_t omitted_blocks, omitted_bytes, unplaced_bytes;
};

static void put(struct map *map, enum columns number, int64_t value)
{
	struct column *column = &map->to[number];

	/* Powers of two are where the list is full. */
	if ((column->count & (column->count - 1)) == 0)
		column->list = gm_realloc(column->list,
					  2 * ((size_t)column->count + 1) * sizeof(*column->list));
	column->list[column->count++] = value;
}

static void put_bytes(struct map *map, enum columns number, uint64_t bytes)
{
	put(map, number,
	    bytes == GM_NO_BYTES ? UNKNOWN
	    : bytes > INT64_MAX	 ? INT64_MAX
				 : (int64_t)bytes);
}

static void put_site(struct map *map, enum columns number, uint32_t site)
{
	put(map, number, site == GM_NONE ? -1 : map->numbers[site]);
}

/* Ends the open row: only now is known how much of it is used. */
static void close_row(struct map *map)
{
	if (map->end)
		put_bytes(map, USED, map->used);
	map->end = 0;
}

static void open_row(struct map *map, const struct gm_alloc_record *block, enum type type,
		     uint64_t start, uint64_t end)
{
	close_row(map);
	map->start = start;
	map->end = end;
	map->used = 0;
	put(map, DEVICE, block->device < 0 ? UNKNOWN : block->device);
	put(map, TYPE, type);
	put(map, KIND, block->kind);
	put_bytes(map, ADDRESS, start);
	put_bytes(map, BYTES, end - start);
	put_site(map, SITE, block->site);
	put(map, FIRST, map->to[OFFSET].count);
}

static void add_block(struct map *map, const struct gm_alloc_record *block, uint32_t site)
{
	uint64_t bytes = block->bytes;

	if (block->key < map->start || block->key >= map->end)
		return;
	if (bytes > map->end - block->key)
		bytes = map->end - block->key;
	map->used += bytes;
	if (bytes < map->smallest) {
		map->omitted_blocks++;
		map->omitted_bytes += bytes;
		return;
	}
	put_bytes(map, OFFSET, block->key - map->start);
	put_bytes(map, BLOCK_BYTES, bytes);
	put_site(map, BLOCK_SITE, site);
	put_bytes(map, TIME, block->time_ns / 1000);
}

/* The site of the memory behind a mapping: its handle's. */
static uint32_t behind(const struct map *map, const struct gm_alloc_record *mapping)
{
	struct gm_alloc_record handle;

	if (mapping->site != GM_NONE || mapping->owner == GM_NONE ||
	    !gm_doc_record(map->doc, mapping->owner, &handle) ||
	    handle.site >= map->doc->sites_count)
		return mapping->site;
	return handle.site;
}

static void open_segment(struct map *map, const struct gm_alloc_record *block,
			 const struct gm_segment *segment)
{
	enum type type = segment->owned	   ? (segment->expandable ? EXPANDABLE : SEGMENT)
			 : segment->pooled ? POOL
					   : MAPPING;

	if (map->end && map->start == segment->start)
		return;
	open_row(map, block, type, segment->start, segment->end);
}

/* Memory of the driver. Segments hold the blocks of others, the rest is one block itself. */
static void add_driver(struct map *map, const struct gm_alloc_record *block)
{
	struct gm_segment *segment =
		gm_is_divisible(block)
			? gm_segment_at(map->segments, map->segments_count, block->key)
			: NULL;
	struct gm_alloc_record mapping = *block;

	if (block->space == GM_SPACE_MAPPING && segment) {
		mapping.site = behind(map, block);
		mapping.kind = GM_KIND_VMM;
		open_segment(map, &mapping, segment);
		if (!segment->owned && !segment->pooled)
			add_block(map, &mapping, mapping.site);
	} else if (segment && (segment->owned || segment->pooled)) {
		open_segment(map, block, segment);
	} else if (gm_in_slab(block)) {
		uint64_t slab = gm_slab_of(block->key);

		if (!map->end || map->start != slab)
			open_row(map, block, SLAB, slab, slab + GM_SLAB_BYTES);
		add_block(map, block, block->site);
	} else {
		open_row(map, block, ALLOCATION, block->key, block->key + block->bytes);
		add_block(map, block, block->site);
	}
}

/* Live memory of which no address is known, or another has it: not on the map. */
static bool placed(const struct gm_alloc_record *block)
{
	return (block->space == GM_SPACE_POINTER || block->space == GM_SPACE_MAPPING) &&
	       block->bytes > 0 && block->bytes <= UINT64_MAX - block->key;
}

static void add(struct map *map, const struct gm_alloc_record *block)
{
	if (block->level == GM_LEVEL_DRIVER) {
		bool handle = block->space == GM_SPACE_HANDLE && block->mappings > 0;

		if (placed(block) &&
		    (block->space == GM_SPACE_MAPPING || gm_kind_owned(block->kind)))
			add_driver(map, block);
		else if (gm_kind_owned(block->kind) && !handle)
			map->unplaced_bytes += block->bytes;
	} else {
		struct gm_segment *segment =
			gm_segment_at(map->segments, map->segments_count, block->key);

		if (!segment ||
		    !(block->level == GM_LEVEL_TORCH ? segment->owned : segment->pooled))
			return;
		if (segment->owned && block->level == GM_LEVEL_CUSTOM)
			return; /* a pool inside a tensor: the tensor is on the map */
		open_segment(map, block, segment);
		add_block(map, block, block->site);
	}
}

/* The size under which blocks must be left out so that at most GM_MAP_BLOCKS stay. */
static uint64_t smallest_kept(const struct gm_doc *doc)
{
	unsigned counts[65] = {0}, kept = 0, bits = 64;

	for (unsigned i = 0; i < doc->blocks_count; i++) {
		uint64_t bytes = doc->blocks[i].bytes;

		counts[bytes ? 64 - __builtin_clzll(bytes) : 0]++;
	}
	for (; bits > 0 && kept + counts[bits] <= GM_MAP_BLOCKS; bits--)
		kept += counts[bits];
	return bits ? 1ull << (bits < 64 ? bits : 63) : 0;
}

static void put_column(struct gm_json_out *out, const struct column *column)
{
	gm_json_put_text(out, "\"");
	gm_json_put_text(out, column->name);
	gm_json_put_text(out, "\":[");
	for (unsigned i = 0; i < column->count; i++) {
		int64_t value = column->list[i];

		if (i)
			gm_json_put(out, ",", 1);
		if (column->name_of)
			gm_json_put_value(out, json_string(column->name_of((unsigned)value)));
		else if (value == UNKNOWN)
			gm_json_put_text(out, "null");
		else
			gm_json_put_integer(out, value);
	}
	gm_json_put_text(out, "]");
}

static void put_total(struct gm_json_out *out, const char *name, uint64_t total)
{
	gm_json_put_text(out, name);
	gm_json_put_value(out, gm_json_bytes(total));
}

static void finish(struct map *map, struct gm_json_out *out)
{
	gm_json_put_text(out, "{\"segments\":{");
	for (unsigned i = 0; i < COLUMNS; i++) {
		if (i)
			gm_json_put_text(out, i == SEGMENT_COLUMNS ? "},\"blocks\":{" : ",");
		put_column(out, &map->to[i]);
		free(map->to[i].list);
	}
	gm_json_put_text(out, "}");
	put_total(out, ",\"omitted_blocks\":", map->omitted_blocks);
	put_total(out, ",\"omitted_bytes\":", map->omitted_bytes);
	put_total(out, ",\"unplaced_bytes\":", map->unplaced_bytes);
	gm_json_put_text(out, "}");
}

/* Finds the segments of the device of block `first`, unless nothing is divided there or mapped. */
static void find_segments(struct map *map, unsigned first)
{
	struct gm_doc *doc = map->doc;
	int device = gm_block_device(doc, &doc->blocks[first]);
	struct gm_extents extents;
	bool found = false;

	free(map->segments);
	map->segments = NULL;
	map->segments_count = 0;
	for (unsigned i = first; i < doc->blocks_count && !found; i++) {
		const struct gm_alloc_record block = gm_doc_block(doc, i);

		if (block.device != device)
			break;
		found = block.space == GM_SPACE_MAPPING ||
			gm_extents_count(doc, &block, GM_HOLES_TORCH);
	}
	if (!found)
		return;
	extents = gm_extents_now(doc, device, GM_HOLES_TORCH);
	map->segments = gm_find_segments(&extents, &map->segments_count);
	gm_extents_free(&extents);
}

void gm_page_put_memory_map(struct gm_json_out *out, struct gm_doc *doc, const int *numbers)
{
	struct map map = {.doc = doc,
			  .numbers = numbers,
			  .smallest = smallest_kept(doc),
			  .to = {[DEVICE] = {"device"},
				 [TYPE] = {"type", type_name},
				 [KIND] = {"kind", gm_kind_name},
				 [ADDRESS] = {"address"},
				 [BYTES] = {"bytes"},
				 [USED] = {"used_bytes"},
				 [SITE] = {"site"},
				 [FIRST] = {"first_block"},
				 [OFFSET] = {"offset"},
				 [BLOCK_BYTES] = {"bytes"},
				 [BLOCK_SITE] = {"site"},
				 [TIME] = {"time_us"}}};
	/* The blocks that are not sampled would be taken for holes. */
	unsigned count = doc->header->sample_bytes ? 0 : doc->blocks_count;
	int device = GM_HOST - 1;

	for (unsigned i = 0; i < count; i++) {
		const struct gm_alloc_record block = gm_doc_block(doc, i);

		if (block.device != device) {
			close_row(&map);
			device = block.device;
			find_segments(&map, i);
		}
		add(&map, &block);
	}
	close_row(&map);
	free(map.segments);
	finish(&map, out);
}
