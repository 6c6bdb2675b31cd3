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

/* The lists of internal.h, one JSON array per column. */
struct columns {
	json_t *device, *type, *kind, *address, *bytes, *used, *site, *first;
	json_t *offset, *block_bytes, *block_site, *time;
};

struct map {
	struct gm_doc *doc;
	const int *numbers;
	struct columns to;
	struct gm_segment *segments; /* of the device at hand */
	unsigned segments_count;
	uint64_t start, end, used; /* of the open row; end 0: none is open */
	uint64_t smallest;	   /* blocks under it are left out */
	uint64_t omitted_blocks, omitted_bytes, unplaced_bytes;
};

static void put(json_t *column, uint64_t value)
{
	json_array_append_new(column, gm_json_bytes(value));
}

static json_t *site_number(const struct map *map, uint32_t site)
{
	return json_integer(site == GM_NONE ? -1 : map->numbers[site]);
}

/* Ends the open row: only now is known how much of it is used. */
static void close_row(struct map *map)
{
	if (map->end)
		put(map->to.used, map->used);
	map->end = 0;
}

static void open_row(struct map *map, const struct gm_alloc_record *block, const char *type,
		     uint64_t start, uint64_t end)
{
	close_row(map);
	map->start = start;
	map->end = end;
	map->used = 0;
	json_array_append_new(map->to.device,
			      block->device < 0 ? json_null() : json_integer(block->device));
	json_array_append_new(map->to.type, json_string(type));
	json_array_append_new(map->to.kind, json_string(gm_kind_name(block->kind)));
	put(map->to.address, start);
	put(map->to.bytes, end - start);
	json_array_append_new(map->to.site, site_number(map, block->site));
	put(map->to.first, json_array_size(map->to.offset));
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
	put(map->to.offset, block->key - map->start);
	put(map->to.block_bytes, bytes);
	json_array_append_new(map->to.block_site, site_number(map, site));
	put(map->to.time, block->time_ns / 1000);
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
	const char *type = segment->owned    ? (segment->expandable ? "expandable" : "segment")
			   : segment->pooled ? "pool"
					     : "mapping";

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
			open_row(map, block, "slab", slab, slab + GM_SLAB_BYTES);
		add_block(map, block, block->site);
	} else {
		open_row(map, block, "allocation", block->key, block->key + block->bytes);
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

static json_t *finish(struct map *map)
{
	struct columns *to = &map->to;

	return json_pack("{s:{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}, s:{s:o, s:o, s:o, s:o}, "
			 "s:o, s:o, s:o}",
			 "segments", "device", to->device, "type", to->type, "kind", to->kind,
			 "address", to->address, "bytes", to->bytes, "used_bytes", to->used, "site",
			 to->site, "first_block", to->first, "blocks", "offset", to->offset,
			 "bytes", to->block_bytes, "site", to->block_site, "time_us", to->time,
			 "omitted_blocks", gm_json_bytes(map->omitted_blocks), "omitted_bytes",
			 gm_json_bytes(map->omitted_bytes), "unplaced_bytes",
			 gm_json_bytes(map->unplaced_bytes));
}

json_t *gm_page_memory_map(struct gm_doc *doc, const int *numbers)
{
	struct map map = {.doc = doc, .numbers = numbers, .smallest = smallest_kept(doc)};
	json_t **columns = (json_t **)&map.to;
	struct gm_extents extents;
	/* The blocks that are not sampled would be taken for holes. */
	unsigned count = doc->header->sample_bytes ? 0 : doc->blocks_count;
	int device = GM_HOST - 1;

	for (size_t i = 0; i < sizeof(map.to) / sizeof(*columns); i++)
		columns[i] = json_array();
	for (unsigned i = 0; i < count; i++) {
		const struct gm_alloc_record copy = gm_doc_block(doc, i), *block = &copy;

		if (block->device != device) {
			close_row(&map);
			device = block->device;
			extents = gm_extents_now(doc, device, GM_HOLES_TORCH);
			free(map.segments);
			map.segments = gm_find_segments(&extents, &map.segments_count);
			gm_extents_free(&extents);
		}
		add(&map, block);
	}
	close_row(&map);
	free(map.segments);
	return finish(&map);
}
