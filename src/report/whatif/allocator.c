/*
 * The model (allocator.h). Functions follow the steps of PyTorch's: find a free block, take memory
 * from the driver, give memory back and try again, split, merge.
 */
#include "report/whatif/allocator.h"
#include "account/torch_record.h"
#include "report/support/memory.h"
#include "report/whatif/free_blocks.h"
#include <stdlib.h>
#include <string.h>

#define MIB		   (1ull << 20)
#define SMALL_GRANULE	   (2 * MIB) /* pages of expandable segments, small pool */
#define LARGE_GRANULE	   (20 * MIB)
#define FIRST_ADDRESS	   (1ull << 46)
#define EXPANDABLE_ADDRESS (LARGE_GRANULE << 24) /* ranges of expandable segments lie from here */
#define LONGEST_RANGE	   (LARGE_GRANULE << 15)
#define BLOCK_BYTES_LIMIT  (1ull << 40)

#define PLACES	(1ull << 22)
#define SCATTER 2654435761ull

enum state { SPARE, FREE, USED, PENDING, UNMAPPED };

struct block {
	uint64_t address, bytes;
	uint64_t base; /* of an expandable segment's range */
	uint32_t previous, next;
	uint32_t list;
	uint32_t born; /* count of searches when it became free, for garbage collection */
	uint8_t state;
	bool expandable;
};

/* The free blocks of one pool and stream, small or large. */
struct list {
	struct gm_free_blocks free;
	uint32_t *unmapped; /* in order of address */
	unsigned unmapped_count, unmapped_room;
	uint32_t group; /* counts searches: one for all streams of a pool */
	bool small, private;
};

struct gm_model {
	const struct gm_model_options *options;
	struct gm_model_figures figures;
	struct block *blocks;
	uint32_t count, room, spare; /* spare ones are chained by `next` */
	struct list *lists;	     /* two for each pool: large, small */
	uint32_t *searches;	     /* by group */
	unsigned lists_count;
	uint64_t allowed_bytes; /* by a fraction; UINT64_MAX: none */
	uint64_t next_address, next_range;
	unsigned recorded; /* addresses used */
	struct gm_address_space space;
	struct gm_model_change *changes;
	unsigned changes_count, changes_room;
	uint64_t device_bytes;
	struct pending {
		uint32_t block, request;
	} * pending;
	unsigned pending_count, pending_room;
	uint32_t requests;
};

static uint64_t granule(const struct list *list)
{
	return list->small ? SMALL_GRANULE : LARGE_GRANULE;
}

/* ---- what is taken from the driver ---- */

static void log_change(struct gm_model *model, uint64_t address, int64_t bytes)
{
	if (!model->options->log)
		return;
	if (model->changes_count == model->changes_room) {
		model->changes_room = model->changes_room ? 2 * model->changes_room : 64;
		model->changes =
			gm_realloc(model->changes, model->changes_room * sizeof(*model->changes));
	}
	model->changes[model->changes_count++] = (struct gm_model_change){address, bytes};
}

static bool driver_has(const struct gm_model *model, uint64_t bytes)
{
	uint64_t reserved = model->figures.reserved_bytes, limit = model->device_bytes;

	return reserved <= limit && bytes <= limit - reserved;
}

static void reserve(struct gm_model *model, uint64_t bytes)
{
	struct gm_model_figures *figures = &model->figures;

	figures->reserved_bytes += bytes;
	if (figures->reserved_bytes > figures->reserved_peak_bytes) {
		figures->reserved_peak_bytes = figures->reserved_bytes;
		figures->allocated_at_peak_bytes = figures->allocated_bytes;
	}
}

static void take(struct gm_model *model, uint64_t address, uint64_t bytes)
{
	reserve(model, bytes);
	model->figures.segments++;
	log_change(model, address, (int64_t)bytes);
}

static void give_back(struct gm_model *model, uint64_t address, uint64_t bytes)
{
	model->figures.reserved_bytes -= bytes;
	log_change(model, address, -(int64_t)bytes);
}

/* The address of a new segment: where the recorded run had it, while the sizes agree. */
static uint64_t place(struct gm_model *model, uint64_t bytes)
{
	const struct gm_model_options *options = model->options;

	while (model->recorded < options->recorded_count) {
		const struct gm_model_change *change = &options->recorded[model->recorded];

		if (change->bytes > 0 && change->bytes != (int64_t)bytes)
			break;
		model->recorded++;
		if (change->bytes > 0)
			return change->address;
	}
	switch (options->placement) {
	case GM_PLACE_DOWNWARDS:
		return model->next_address -= bytes;
	case GM_PLACE_SCATTERED: /* an odd factor: every number of a place has one of its own */
		model->next_address++;
		return ((model->next_address * SCATTER ^ options->seed * SCATTER >> 7) &
			(PLACES - 1)) *
		       BLOCK_BYTES_LIMIT;
	case GM_PLACE_UPWARDS:
		model->next_address += bytes;
		return model->next_address - bytes;
	default:
		return gm_address_space_take(&model->space, bytes);
	}
}

/* ---- blocks ---- */

static uint32_t new_block(struct gm_model *model, struct block block)
{
	uint32_t number = model->spare;

	if (number != GM_NO_BLOCK) {
		model->spare = model->blocks[number].next;
	} else {
		if (model->count == model->room) {
			model->room = model->room ? 2 * model->room : 1024;
			model->blocks =
				gm_realloc(model->blocks, model->room * sizeof(*model->blocks));
		}
		number = model->count++;
	}
	model->blocks[number] = block;
	return number;
}

static void drop_block(struct gm_model *model, uint32_t number)
{
	model->blocks[number].state = SPARE;
	model->blocks[number].next = model->spare;
	model->spare = number;
}

static void put_free(struct gm_model *model, uint32_t number)
{
	struct block *block = &model->blocks[number];
	struct list *list = &model->lists[block->list];

	block->state = FREE;
	block->born = model->searches[list->group];
	gm_free_blocks_add(&list->free,
			   (struct gm_free_block){block->bytes, block->address, number});
}

static void take_free(struct gm_model *model, uint32_t number)
{
	struct block *block = &model->blocks[number];

	gm_free_blocks_remove(&model->lists[block->list].free, block->bytes, block->address);
}

static void put_unmapped(struct gm_model *model, uint32_t number)
{
	struct block *block = &model->blocks[number];
	struct list *list = &model->lists[block->list];
	unsigned at = list->unmapped_count;

	block->state = UNMAPPED;
	if (list->unmapped_count == list->unmapped_room) {
		list->unmapped_room = list->unmapped_room ? 2 * list->unmapped_room : 4;
		list->unmapped =
			gm_realloc(list->unmapped, list->unmapped_room * sizeof(*list->unmapped));
	}
	for (; at > 0 && model->blocks[list->unmapped[at - 1]].address > block->address; at--)
		list->unmapped[at] = list->unmapped[at - 1];
	list->unmapped[at] = number;
	list->unmapped_count++;
}

static void take_unmapped(struct gm_model *model, uint32_t number)
{
	struct list *list = &model->lists[model->blocks[number].list];
	unsigned at = 0;

	while (list->unmapped[at] != number)
		at++;
	list->unmapped_count--;
	memmove(&list->unmapped[at], &list->unmapped[at + 1],
		(list->unmapped_count - at) * sizeof(*list->unmapped));
}

/* Puts a new block between two that follow each other, either of which may be GM_NO_BLOCK. */
static void link_block(struct gm_model *model, uint32_t number, uint32_t before, uint32_t after)
{
	model->blocks[number].previous = before;
	model->blocks[number].next = after;
	if (before != GM_NO_BLOCK)
		model->blocks[before].next = number;
	if (after != GM_NO_BLOCK)
		model->blocks[after].previous = number;
}

/* Takes a neighbour in that is as idle as the block itself, which is in no list. */
static void merge(struct gm_model *model, uint32_t number, uint32_t other, bool mapped)
{
	struct block *block = &model->blocks[number], *idle;

	if (other == GM_NO_BLOCK)
		return;
	idle = &model->blocks[other];
	if (idle->state != (mapped ? FREE : UNMAPPED))
		return;
	if (mapped)
		take_free(model, other);
	else
		take_unmapped(model, other);
	block->bytes += idle->bytes;
	if (block->previous == other) {
		block->address = idle->address;
		block->previous = idle->previous;
		if (block->previous != GM_NO_BLOCK)
			model->blocks[block->previous].next = number;
	} else {
		block->next = idle->next;
		if (block->next != GM_NO_BLOCK)
			model->blocks[block->next].previous = number;
	}
	drop_block(model, other);
}

static void merge_both(struct gm_model *model, uint32_t number, bool mapped)
{
	merge(model, number, model->blocks[number].previous, mapped);
	merge(model, number, model->blocks[number].next, mapped);
}

/* Splits off what lies after the first `bytes`; the rest is linked and in no list. */
static uint32_t cut(struct gm_model *model, uint32_t number, uint64_t bytes)
{
	struct block rest = model->blocks[number];
	uint32_t next = rest.next, added;

	rest.address += bytes;
	rest.bytes -= bytes;
	added = new_block(model, rest);
	model->blocks[number].bytes = bytes;
	link_block(model, added, number, next);
	return added;
}

static bool alone(const struct block *block)
{
	return block->previous == GM_NO_BLOCK && block->next == GM_NO_BLOCK;
}

/* ---- giving memory back ---- */

static void release(struct gm_model *model, uint32_t number)
{
	struct block *block = &model->blocks[number];

	take_free(model, number);
	give_back(model, block->address, block->bytes);
	if (model->options->placement == GM_PLACE_AS_DRIVER)
		gm_address_space_give(&model->space, block->address, block->bytes);
	drop_block(model, number);
}

/* Unmaps the whole pages of a free block of an expandable segment. */
static void unmap(struct gm_model *model, uint32_t number)
{
	struct block *block = &model->blocks[number];
	uint64_t page = granule(&model->lists[block->list]), offset = block->address - block->base;
	uint64_t before = (offset + page - 1) / page * page - offset;
	uint64_t end = (offset + block->bytes) / page * page;
	uint32_t rest;

	if (end <= offset + before)
		return;
	take_free(model, number);
	if (before) {
		rest = cut(model, number, before);
		put_free(model, number);
		number = rest;
	}
	if (end < offset + before + model->blocks[number].bytes) {
		rest = cut(model, number, end - offset - before);
		put_free(model, rest);
	}
	block = &model->blocks[number];
	give_back(model, block->address, block->bytes);
	merge_both(model, number, false);
	if (alone(&model->blocks[number]))
		drop_block(model, number); /* the range itself is given back */
	else
		put_unmapped(model, number);
}

static void release_list(struct gm_model *model, struct list *list)
{
	uint32_t *found = NULL;
	unsigned count = 0, room = 0;
	struct gm_free_place place;
	const struct gm_free_block *free_block = gm_free_blocks_fit(&list->free, 0, &place);

	for (; free_block; free_block = gm_free_blocks_next(&list->free, &place)) {
		const struct block *block = &model->blocks[free_block->block];

		if (!block->expandable && !alone(block))
			continue;
		if (count == room) {
			room = room ? 2 * room : 64;
			found = gm_realloc(found, room * sizeof(*found));
		}
		found[count++] = free_block->block;
	}
	for (unsigned i = 0; i < count; i++)
		if (!model->blocks[found[i]].expandable)
			release(model, found[i]);
	for (unsigned i = 0; i < count; i++)
		if (model->blocks[found[i]].state == FREE && model->blocks[found[i]].expandable)
			unmap(model, found[i]);
	free(found);
}

static void make_free(struct gm_model *model, uint32_t number)
{
	merge_both(model, number, true);
	put_free(model, number);
}

/* Waits for the streams that use freed blocks. */
static void synchronize(struct gm_model *model)
{
	for (unsigned i = 0; i < model->pending_count; i++)
		make_free(model, model->pending[i].block);
	model->pending_count = 0;
}

void gm_model_empty_cache(struct gm_model *model)
{
	synchronize(model);
	for (unsigned small = 0; small < 2; small++)
		for (unsigned i = small; i < model->lists_count; i += 2)
			if (!model->lists[i].private)
				release_list(model, &model->lists[i]);
}

/* Gives back, for max_split_size_mb, one block that is large enough, or several large ones. */
static bool release_available(struct gm_model *model, struct list *list, uint64_t bytes)
{
	uint64_t split = model->options->settings.max_split_bytes, released = 0;
	const struct gm_free_block *block;
	struct gm_free_place place;

	if (split == UINT64_MAX)
		return false;
	bytes = bytes < split ? split : bytes;
	block = gm_free_blocks_fit(&list->free, bytes, &place);
	if (block && !model->blocks[block->block].expandable) {
		release(model, block->block);
		return true;
	}
	while (released < bytes && (block = gm_free_blocks_last(&list->free)) &&
	       block->bytes >= split && !model->blocks[block->block].expandable) {
		released += block->bytes;
		release(model, block->block);
	}
	return released >= bytes;
}

/* ---- garbage collection ---- */

static bool collects(const struct gm_model *model)
{
	return model->allowed_bytes != UINT64_MAX && model->options->settings.gc_threshold > 0;
}

static uint32_t age(const struct gm_model *model, const struct block *block)
{
	return model->searches[model->lists[block->list].group] - block->born;
}

/* Segments of the large pool that are wholly free; the caller frees the list. */
static uint32_t *idle_segments(const struct gm_model *model, unsigned *count, uint64_t *ages)
{
	uint32_t *found = NULL;
	unsigned room = 0;

	*count = 0;
	*ages = 0;
	for (unsigned i = 0; i < model->lists_count; i += 2) {
		const struct list *list = &model->lists[i];
		struct gm_free_place place;
		const struct gm_free_block *block = gm_free_blocks_fit(&list->free, 0, &place);

		for (; block && !list->private; block = gm_free_blocks_next(&list->free, &place)) {
			if (!alone(&model->blocks[block->block]))
				continue;
			if (*count == room) {
				room = room ? 2 * room : 64;
				found = gm_realloc(found, room * sizeof(*found));
			}
			found[(*count)++] = block->block;
			*ages += age(model, &model->blocks[block->block]);
		}
	}
	return found;
}

static void collect_garbage(struct gm_model *model)
{
	const struct gm_torch_settings *settings = &model->options->settings;
	uint64_t threshold = (uint64_t)(settings->gc_threshold * (double)model->allowed_bytes);
	uint64_t target, reclaimed = 0, ages;
	unsigned count, left;
	uint32_t *found;
	bool freed = true;

	if (model->figures.reserved_bytes <= threshold)
		return;
	target = model->figures.reserved_bytes - threshold;
	found = idle_segments(model, &count, &ages);
	left = count;
	while (reclaimed < target && freed && left) {
		double mean = (double)ages / left;

		freed = false;
		for (unsigned i = 0; i < count; i++) {
			const struct block *block =
				found[i] == GM_NO_BLOCK ? NULL : &model->blocks[found[i]];

			if (!block || block->expandable || age(model, block) < mean)
				continue;
			freed = true;
			reclaimed += block->bytes;
			ages -= age(model, block);
			left--;
			release(model, found[i]);
			found[i] = GM_NO_BLOCK;
		}
	}
	free(found);
}

/* ---- taking memory ---- */

/* True if free and unmapped blocks from `number` on have room for `bytes`. */
static bool has_room(const struct gm_model *model, uint32_t number, uint64_t bytes)
{
	uint64_t room = 0;

	while (room < bytes && number != GM_NO_BLOCK &&
	       (model->blocks[number].state == FREE || model->blocks[number].state == UNMAPPED)) {
		room += model->blocks[number].bytes;
		number = model->blocks[number].next;
	}
	return room >= bytes;
}

/* The lowest place of expandable segments where a block can grow; a new segment without one. */
static uint32_t find_expandable(struct gm_model *model, uint32_t list_number, uint64_t bytes)
{
	struct list *list = &model->lists[list_number];
	uint64_t total = model->options->total_bytes, page = granule(list), range;
	uint32_t number;

	for (unsigned i = 0; i < list->unmapped_count; i++) {
		uint32_t previous;

		number = list->unmapped[i];
		previous = model->blocks[number].previous;
		if (previous != GM_NO_BLOCK && model->blocks[previous].state == FREE)
			number = previous;
		if (has_room(model, number, bytes))
			return number;
	}
	range = LONGEST_RANGE;
	if (total / 8 * 9 < range)
		range = (total + total / 8 + page - 1) / page * page;
	if (range < bytes)
		return GM_NO_BLOCK;
	number = new_block(model, (struct block){.address = model->next_range,
						 .base = model->next_range,
						 .bytes = range,
						 .previous = GM_NO_BLOCK,
						 .next = GM_NO_BLOCK,
						 .list = list_number,
						 .expandable = true});
	model->next_range += LONGEST_RANGE;
	put_unmapped(model, number);
	return number;
}

/* Maps the first pages of an unmapped block; its number stays that of the free block it becomes. */
static bool map(struct gm_model *model, uint32_t number, uint64_t bytes)
{
	uint64_t page = granule(&model->lists[model->blocks[number].list]);
	uint64_t address = model->blocks[number].address;

	bytes = (bytes + page - 1) / page * page;
	if (!driver_has(model, bytes))
		return false;
	take_unmapped(model, number);
	if (bytes < model->blocks[number].bytes)
		put_unmapped(model, cut(model, number, bytes));
	merge_both(model, number, true);
	put_free(model, number);
	take(model, address, bytes);
	return true;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* A free block of an expandable segment that was taken out of its list; GM_NO_BLOCK. */
static uint32_t expand(struct gm_model *model, uint32_t list_number, uint64_t bytes)
{
	uint32_t number = find_expandable(model, list_number, bytes), next;

	if (number == GM_NO_BLOCK)
		return GM_NO_BLOCK;
	if (model->blocks[number].state == UNMAPPED &&
	    !map(model, number, least(model->blocks[number].bytes, bytes)))
		return GM_NO_BLOCK;
	while (model->blocks[number].bytes < bytes) {
		next = model->blocks[number].next;
		if (!map(model, next,
			 least(bytes - model->blocks[number].bytes, model->blocks[next].bytes)))
			return GM_NO_BLOCK;
		number = next;
	}
	take_free(model, number);
	return number;
}

/* A block made of new memory, in no list; GM_NO_BLOCK if neither limit nor driver allow it. */
static uint32_t take_new(struct gm_model *model, uint32_t list, uint64_t bytes)
{
	uint64_t segment = gm_torch_segment_size(bytes), address;

	if (model->allowed_bytes != UINT64_MAX &&
	    model->figures.reserved_bytes + segment > model->allowed_bytes)
		return GM_NO_BLOCK;
	if (model->options->settings.expandable)
		return expand(model, list, bytes);
	if (!driver_has(model, segment))
		return GM_NO_BLOCK;
	address = place(model, segment);
	take(model, address, segment);
	return new_block(model, (struct block){.address = address,
					       .base = address,
					       .bytes = segment,
					       .previous = GM_NO_BLOCK,
					       .next = GM_NO_BLOCK,
					       .list = list});
}

/* ---- free blocks ---- */

static uint64_t could_grow_to(const struct gm_model *model, uint32_t number)
{
	const struct block *block = &model->blocks[number];

	if (block->next != GM_NO_BLOCK && model->blocks[block->next].state == UNMAPPED)
		return block->bytes + model->blocks[block->next].bytes;
	return block->bytes;
}

/* Blocks of expandable segments count as large as they can grow. */
static const struct gm_free_block *prefer_inner(const struct gm_model *model,
						const struct gm_free_blocks *free_blocks,
						const struct gm_free_block *block,
						struct gm_free_place *place)
{
	const struct gm_free_block *next;

	while (model->blocks[block->block].expandable &&
	       (next = gm_free_blocks_next(free_blocks, place)) &&
	       could_grow_to(model, next->block) < could_grow_to(model, block->block))
		block = next;
	return block;
}

/* True if the block behind a place is as large and of another segment. */
static bool tied(const struct gm_model *model, const struct list *list, struct gm_free_place place)
{
	const struct gm_free_bin *bin = &list->free.bins[place.bin];
	const struct gm_free_block *block = &bin->blocks[place.at];

	return place.at + 1 < bin->count && block[1].bytes == block->bytes &&
	       model->blocks[block[1].block].base != model->blocks[block->block].base;
}

/* The free block for a request, taken out of its list; GM_NO_BLOCK without one. */
static uint32_t find_free(struct gm_model *model, struct list *list, uint64_t bytes)
{
	const struct gm_torch_settings *settings = &model->options->settings;
	const struct gm_free_block *block;
	struct gm_free_place place;
	uint32_t number;

	model->searches[list->group] += collects(model);
	block = gm_free_blocks_fit(&list->free, bytes, &place);
	if (block && settings->expandable)
		block = prefer_inner(model, &list->free, block, &place);
	else if (block && model->blocks[block->block].expandable)
		do
			block = gm_free_blocks_next(&list->free, &place);
		while (block && model->blocks[block->block].expandable);
	if (!block ||
	    (bytes < settings->max_split_bytes && block->bytes >= settings->max_split_bytes) ||
	    (bytes >= settings->max_split_bytes &&
	     block->bytes >= bytes + settings->max_rounding_bytes))
		return GM_NO_BLOCK;
	number = block->block;
	model->figures.ties += tied(model, list, place);
	take_free(model, number);
	return number;
}

static bool splits(const struct gm_model *model, const struct list *list, uint64_t bytes,
		   uint64_t rest)
{
	const struct gm_torch_settings *settings = &model->options->settings;

	if (list->small || settings->expandable)
		return rest >= GM_TORCH_MIN_BLOCK_BYTES;
	return bytes < settings->max_split_bytes && rest > GM_TORCH_SMALL_BYTES;
}

static void hand_out(struct gm_model *model, uint32_t number, uint64_t bytes)
{
	struct gm_model_figures *figures = &model->figures;
	struct list *list = &model->lists[model->blocks[number].list];

	if (splits(model, list, bytes, model->blocks[number].bytes - bytes))
		put_free(model, cut(model, number, bytes));
	model->blocks[number].state = USED;
	figures->allocated_bytes += model->blocks[number].bytes;
	if (figures->allocated_bytes > figures->allocated_peak_bytes)
		figures->allocated_peak_bytes = figures->allocated_bytes;
	if (figures->reserved_bytes == figures->reserved_peak_bytes &&
	    figures->allocated_bytes > figures->allocated_at_peak_bytes)
		figures->allocated_at_peak_bytes = figures->allocated_bytes;
}

uint32_t gm_model_alloc(struct gm_model *model, unsigned pool, uint64_t bytes)
{
	uint32_t number, list_number;
	struct list *list;

	if (bytes >= BLOCK_BYTES_LIMIT) {
		model->figures.ooms++;
		return GM_NO_BLOCK;
	}
	bytes = gm_torch_round_size(&model->options->settings, bytes);
	list_number = 2 * pool + (bytes <= GM_TORCH_SMALL_BYTES);
	list = &model->lists[list_number];
	number = find_free(model, list, bytes);
	if (number == GM_NO_BLOCK) {
		if (collects(model))
			collect_garbage(model);
		number = take_new(model, list_number, bytes);
	}
	if (number == GM_NO_BLOCK && release_available(model, list, bytes))
		number = take_new(model, list_number, bytes);
	/* A private pool is used during a capture, when nothing may be waited for. */
	if (number == GM_NO_BLOCK && !list->private) {
		gm_model_empty_cache(model);
		model->figures.retries++;
		number = take_new(model, list_number, bytes);
	}
	if (number == GM_NO_BLOCK)
		model->figures.ooms++;
	else
		hand_out(model, number, bytes);
	return number;
}

uint32_t gm_model_free_requested(struct gm_model *model, uint32_t number)
{
	if (model->pending_count == model->pending_room) {
		model->pending_room = model->pending_room ? 2 * model->pending_room : 64;
		model->pending =
			gm_realloc(model->pending, model->pending_room * sizeof(*model->pending));
	}
	model->pending[model->pending_count++] = (struct pending){number, model->requests};
	model->blocks[number].state = PENDING;
	model->figures.allocated_bytes -= model->blocks[number].bytes;
	return model->requests++;
}

void gm_model_free_completed(struct gm_model *model, uint32_t request)
{
	for (unsigned i = model->pending_count; i-- > 0;)
		if (model->pending[i].request == request) {
			uint32_t number = model->pending[i].block;

			model->pending[i] = model->pending[--model->pending_count];
			make_free(model, number);
			return;
		}
}

void gm_model_free_block(struct gm_model *model, uint32_t number)
{
	model->figures.allocated_bytes -= model->blocks[number].bytes;
	make_free(model, number);
}

uint64_t gm_model_block_address(const struct gm_model *model, uint32_t block)
{
	return model->blocks[block].address;
}

uint64_t gm_model_set_limit(struct gm_model *model, uint64_t bytes)
{
	uint64_t before = model->device_bytes;

	model->device_bytes = bytes;
	return before;
}

/* ---- beginning and end ---- */

static uint64_t allowed(const struct gm_model_options *options)
{
	double fraction = options->settings.fraction;

	if (options->fraction > 0)
		fraction = options->fraction;
	if (fraction <= 0 || options->total_bytes == UINT64_MAX ||
	    (fraction >= 1 && !options->rules->whole_fraction_limits))
		return UINT64_MAX;
	return (uint64_t)(fraction * (double)options->total_bytes);
}

/* Searches are counted for each pool and size class, over all streams. */
static uint32_t group_of(const struct gm_model *model, unsigned list)
{
	const struct gm_model_pool *pools = model->options->pools;
	unsigned first = 0;

	while (pools[first].pool != pools[list / 2].pool)
		first++;
	return 2 * first + list % 2;
}

struct gm_model *gm_model_new(const struct gm_model_options *options)
{
	struct gm_model *model = gm_realloc(NULL, sizeof(*model));

	*model = (struct gm_model){.options = options,
				   .spare = GM_NO_BLOCK,
				   .lists_count = 2 * options->pools_count,
				   .allowed_bytes = allowed(options),
				   .device_bytes = options->device_bytes,
				   .next_address = FIRST_ADDRESS,
				   .next_range = EXPANDABLE_ADDRESS};
	gm_address_space_begin(&model->space);
	model->lists = gm_realloc(NULL, model->lists_count * sizeof(*model->lists));
	memset(model->lists, 0, model->lists_count * sizeof(*model->lists));
	model->searches = gm_realloc(NULL, model->lists_count * sizeof(*model->searches));
	memset(model->searches, 0, model->lists_count * sizeof(*model->searches));
	for (unsigned i = 0; i < model->lists_count; i++) {
		model->lists[i].small = i % 2;
		model->lists[i].private = options->pools[i / 2].pool != 0;
		model->lists[i].group = group_of(model, i);
	}
	return model;
}

void gm_model_free(struct gm_model *model)
{
	for (unsigned i = 0; i < model->lists_count; i++) {
		gm_free_blocks_free(&model->lists[i].free);
		free(model->lists[i].unmapped);
	}
	gm_address_space_free(&model->space);
	free(model->lists);
	free(model->searches);
	free(model->blocks);
	free(model->changes);
	free(model->pending);
	free(model);
}

const struct gm_model_figures *gm_model_figures(const struct gm_model *model)
{
	return &model->figures;
}

const struct gm_model_change *gm_model_changes(const struct gm_model *model, unsigned *count)
{
	*count = model->changes_count;
	return model->changes;
}

void gm_model_add_segment(struct gm_model *model, unsigned pool, bool small, bool expandable,
			  uint64_t address, uint64_t base, struct gm_model_found *found,
			  unsigned count)
{
	uint32_t before = GM_NO_BLOCK;

	for (unsigned i = 0; i < count; i++) {
		uint32_t number = new_block(model, (struct block){.address = address,
								  .base = base,
								  .bytes = found[i].bytes,
								  .list = 2 * pool + small,
								  .expandable = expandable});

		link_block(model, number, before, GM_NO_BLOCK);
		before = number;
		address += found[i].bytes;
		found[i].block = number;
		if (found[i].unmapped) {
			put_unmapped(model, number);
			continue;
		}
		reserve(model, found[i].bytes);
		if (!found[i].used) {
			put_free(model, number);
			continue;
		}
		model->blocks[number].state = USED;
		model->figures.allocated_bytes += found[i].bytes;
		if (found[i].pending)
			found[i].block = gm_model_free_requested(model, number);
	}
	if (model->figures.allocated_bytes > model->figures.allocated_peak_bytes)
		model->figures.allocated_peak_bytes = model->figures.allocated_bytes;
}
