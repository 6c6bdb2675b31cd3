/*
 * The model (driver_pool.h). The pool has one range of addresses that is never full, and memory
 * under those of its chunks that hold something. A free block is pending on the stream that freed
 * it until the pool knows that the device got there; then it joins its free neighbours.
 */
#include "report/whatif/driver_pool.h"
#include "account/sizes.h"
#include "report/support/memory.h"
#include "report/whatif/free_blocks.h"
#include <stdlib.h>
#include <string.h>

#define CHUNK GM_POOL_CHUNK_BYTES
#define RANGE (1ull << 50)
#define NONE  UINT32_MAX

enum state { SPARE, FREE, PENDING, USED };

struct block {
	uint64_t address, bytes, asked;
	uint64_t order;		 /* among free blocks of its size */
	uint64_t freed;		 /* number of the free, of a pending one */
	uint32_t previous, next; /* by address; of spare ones the next spare one */
	uint32_t older, newer;	 /* pending ones of the stream */
	uint32_t stream;	 /* of a pending one; of a used one that of the request */
	uint8_t state;
};

/* Memory that was freed on a stream and is not known to be free for others. */
struct stream {
	uint32_t number;
	uint32_t newest;
	struct gm_free_blocks free;
};

/* A chunk of the range. */
struct chunk {
	uint32_t held; /* bytes that are handed out or pending */
	bool backed;
};

struct gm_pool_model {
	struct gm_pool_options options;
	struct gm_model_figures figures;
	struct block *blocks;
	uint32_t count, room, spare, last; /* last: that with the end of the range */
	struct gm_free_blocks free;
	struct stream *streams;
	unsigned streams_count;
	struct chunk *chunks;
	uint64_t chunks_count;
	uint64_t orders, operations, reached; /* reached: the device's last operation */
	uint64_t random;
};

/* ---- blocks ---- */

static struct block *at(struct gm_pool_model *model, uint32_t number)
{
	return &model->blocks[number];
}

static uint32_t new_block(struct gm_pool_model *model)
{
	uint32_t number = model->spare;

	if (number != NONE) {
		model->spare = model->blocks[number].next;
		return number;
	}
	if (model->count == model->room) {
		model->room = model->room ? 2 * model->room : 1024;
		model->blocks = gm_realloc(model->blocks, model->room * sizeof(*model->blocks));
	}
	return model->count++;
}

static struct stream *stream_of(struct gm_pool_model *model, uint32_t number)
{
	struct stream *stream;

	for (unsigned i = 0; i < model->streams_count; i++)
		if (model->streams[i].number == number)
			return &model->streams[i];
	model->streams =
		gm_realloc(model->streams, (model->streams_count + 1) * sizeof(*model->streams));
	stream = &model->streams[model->streams_count++];
	memset(stream, 0, sizeof(*stream));
	stream->number = number;
	stream->newest = NONE;
	return stream;
}

static struct gm_free_blocks *set_of(struct gm_pool_model *model, const struct block *block)
{
	return block->state == FREE ? &model->free : &stream_of(model, block->stream)->free;
}

static void add_free(struct gm_pool_model *model, uint32_t number)
{
	struct block *block = at(model, number);

	block->order = ++model->orders;
	gm_free_blocks_add(set_of(model, block),
			   (struct gm_free_block){block->bytes, block->order, number});
}

/* Takes a pending block out of its stream's list; `by` (NONE: nothing) comes in its place. */
static void replace_pending(struct gm_pool_model *model, const struct block *block, uint32_t by)
{
	struct stream *stream = stream_of(model, block->stream);

	if (by != NONE) {
		at(model, by)->older = block->older;
		at(model, by)->newer = block->newer;
	}
	if (block->older != NONE)
		at(model, block->older)->newer = by == NONE ? block->newer : by;
	if (block->newer != NONE)
		at(model, block->newer)->older = by == NONE ? block->older : by;
	else
		stream->newest = by == NONE ? block->older : by;
}

static void remove_free(struct gm_pool_model *model, const struct block *block)
{
	gm_free_blocks_remove(set_of(model, block), block->bytes, block->order);
	if (block->state == PENDING)
		replace_pending(model, block, NONE);
}

static bool joins(const struct block *block, const struct block *other)
{
	return other->state == block->state &&
	       (block->state == FREE || other->stream == block->stream);
}

/* Joins a block, which is in no set, with its free neighbours of the same kind. */
static void join(struct gm_pool_model *model, uint32_t number)
{
	struct block *block = at(model, number), *other;
	uint32_t gone;

	while (block->next != NONE && joins(block, at(model, block->next))) {
		gone = block->next;
		other = at(model, gone);
		remove_free(model, other);
		block->bytes += other->bytes;
		block->next = other->next;
		if (gone == model->last)
			model->last = number;
		else
			at(model, other->next)->previous = number;
		*other = (struct block){.state = SPARE, .next = model->spare};
		model->spare = gone;
	}
	while (block->previous != NONE && joins(block, at(model, block->previous))) {
		gone = block->previous;
		other = at(model, gone);
		remove_free(model, other);
		block->address = other->address;
		block->bytes += other->bytes;
		block->previous = other->previous;
		if (other->previous != NONE)
			at(model, other->previous)->next = number;
		*other = (struct block){.state = SPARE, .next = model->spare};
		model->spare = gone;
	}
}

/* ---- chunks ---- */

static uint64_t first_chunk(uint64_t address)
{
	return address / CHUNK;
}

static uint64_t past_chunk(uint64_t end)
{
	return (end + CHUNK - 1) / CHUNK;
}

/* Counts bytes as held, or as held no more. */
static void hold(struct gm_pool_model *model, uint64_t address, uint64_t bytes, bool held)
{
	uint64_t past = past_chunk(address + bytes);

	if (past > model->chunks_count) {
		model->chunks = gm_realloc(model->chunks, past * sizeof(*model->chunks));
		memset(&model->chunks[model->chunks_count], 0,
		       (past - model->chunks_count) * sizeof(*model->chunks));
		model->chunks_count = past;
	}
	for (uint64_t i = first_chunk(address); i < past; i++) {
		uint64_t from = i * CHUNK > address ? i * CHUNK : address;
		uint64_t to = (i + 1) * CHUNK < address + bytes ? (i + 1) * CHUNK : address + bytes;

		model->chunks[i].held += (uint32_t)(held ? to - from : from - to);
	}
}

/* A chunk that has memory, and holds nothing. */
static bool is_idle(const struct chunk *chunk)
{
	return chunk->backed && !chunk->held;
}

static bool is_backed(const struct gm_pool_model *model, const struct block *block)
{
	if (block->bytes >= RANGE / 2)
		return false;
	for (uint64_t i = first_chunk(block->address);
	     i < past_chunk(block->address + block->bytes); i++)
		if (!model->chunks[i].backed)
			return false;
	return true;
}

static uint64_t idle_chunks(const struct gm_pool_model *model)
{
	uint64_t count = 0;

	for (uint64_t i = 0; i < model->chunks_count; i++)
		count += is_idle(&model->chunks[i]);
	return count;
}

/* Chunks under a block's first bytes that have no memory. */
static uint64_t missing(const struct gm_pool_model *model, const struct block *block,
			uint64_t bytes)
{
	uint64_t count = 0;

	for (uint64_t i = first_chunk(block->address); i < past_chunk(block->address + bytes); i++)
		count += i >= model->chunks_count || !model->chunks[i].backed;
	return count;
}

/* Puts memory under what is handed out: that of idle chunks, those with the highest addresses
 * first, then the device's. */
static void back(struct gm_pool_model *model, const struct block *block)
{
	uint64_t idle = model->chunks_count, taken = 0;
	struct gm_model_figures *figures = &model->figures;

	for (uint64_t i = first_chunk(block->address);
	     i < past_chunk(block->address + block->bytes); i++) {
		if (model->chunks[i].backed)
			continue;
		while (idle && !is_idle(&model->chunks[idle - 1]))
			idle--;
		if (idle)
			model->chunks[idle - 1].backed = false;
		else
			taken += CHUNK;
		model->chunks[i].backed = true;
	}
	if (!taken)
		return;
	figures->segments++;
	figures->reserved_bytes += taken;
	if (figures->reserved_bytes > figures->reserved_peak_bytes) {
		figures->reserved_peak_bytes = figures->reserved_bytes;
		figures->allocated_at_peak_bytes = figures->allocated_bytes;
	}
}

static void give_back(struct gm_pool_model *model, uint64_t chunk, uint64_t keep_bytes)
{
	if (model->figures.reserved_bytes <= keep_bytes || !is_idle(&model->chunks[chunk]))
		return;
	model->chunks[chunk].backed = false;
	model->figures.reserved_bytes -= CHUNK;
}

/* Gives back idle chunks: those at the end of what is used from the top, then from the bottom. */
static void release(struct gm_pool_model *model, uint64_t keep_bytes)
{
	uint64_t end = past_chunk(at(model, model->last)->address);

	for (uint64_t i = model->chunks_count; i > end; i--)
		give_back(model, i - 1, keep_bytes);
	for (uint64_t i = 0; i < end && i < model->chunks_count; i++)
		give_back(model, i, keep_bytes);
}

/* ---- what the device has got to ---- */

static uint32_t draw(struct gm_pool_model *model)
{
	model->random = model->random * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(model->random >> 33);
}

/* The number of the last operation that the device is seen to have got to. */
static uint64_t ask_device(struct gm_pool_model *model)
{
	const struct gm_pool_timing *timing = &model->options.timing;
	uint64_t now = model->operations, behind = 0;

	if (timing->kind == GM_DEVICE_BEHIND)
		behind = draw(model) % timing->scale;
	else if (timing->kind == GM_DEVICE_LATE ||
		 (timing->kind == GM_DEVICE_BURSTS && draw(model) % timing->scale))
		behind = now;
	if (behind <= now && now - behind > model->reached)
		model->reached = now - behind;
	return model->reached;
}

static void complete(struct gm_pool_model *model, uint32_t number)
{
	struct block *block = at(model, number);

	remove_free(model, block);
	hold(model, block->address, block->bytes, false);
	block->state = FREE;
	join(model, number);
	add_free(model, number);
}

/* Frees of the stream up to that one are complete; the latest of them first. True if there are. */
static bool settle(struct gm_pool_model *model, struct stream *stream, uint64_t reached)
{
	uint32_t number = stream->newest, older;
	bool any = false;

	while (number != NONE && at(model, number)->freed > reached)
		number = at(model, number)->older;
	for (; number != NONE; number = older) {
		older = at(model, number)->older;
		complete(model, number);
		any = true;
	}
	return any;
}

static void poll(struct gm_pool_model *model)
{
	uint64_t reached = ask_device(model);
	bool waiting = false;

	for (unsigned i = 0; i < model->streams_count; i++)
		waiting |= model->streams[i].newest != NONE;
	model->figures.ties += waiting;
	for (unsigned i = 0; i < model->streams_count; i++)
		settle(model, &model->streams[i], reached);
}

/* ---- requests and frees ---- */

static uint32_t fit_backed(const struct gm_pool_model *model, uint64_t bytes)
{
	struct gm_free_place place;
	const struct gm_free_block *found = gm_free_blocks_fit(&model->free, bytes, &place);

	while (found && !is_backed(model, &model->blocks[found->block]))
		found = gm_free_blocks_next(&model->free, &place);
	return found ? found->block : NONE;
}

/*
 * The smallest block that is large enough: of the stream's own, then of those that are free for all
 * and have memory, then, once the device was asked what it has got to, of all.
 */
static uint32_t find(struct gm_pool_model *model, uint32_t stream, uint64_t bytes)
{
	struct gm_free_place place;
	const struct gm_free_block *found =
		gm_free_blocks_fit(&stream_of(model, stream)->free, bytes, &place);
	uint32_t number = found ? found->block : fit_backed(model, bytes);

	if (number != NONE)
		return number;
	poll(model);
	found = gm_free_blocks_fit(&model->free, bytes, &place);
	return found ? found->block : NONE;
}

/* The rest keeps the place of the block among those that are pending. */
static void split(struct gm_pool_model *model, uint32_t number, uint64_t bytes)
{
	uint32_t rest = new_block(model);
	struct block *block = at(model, number), *other = at(model, rest);

	*other = *block;
	other->address += bytes;
	other->bytes -= bytes;
	other->previous = number;
	if (block->next != NONE)
		at(model, block->next)->previous = rest;
	else
		model->last = rest;
	block->next = rest;
	block->bytes = bytes;
	if (block->state == PENDING)
		replace_pending(model, block, rest);
	add_free(model, rest);
}

/* Bytes that the device would have to give for it. */
static uint64_t growth(const struct gm_pool_model *model, const struct block *block, uint64_t bytes)
{
	uint64_t needed = missing(model, block, bytes), idle;

	if (!needed)
		return 0;
	idle = idle_chunks(model);
	/* those that lie under it are not missing */
	for (uint64_t i = first_chunk(block->address);
	     i < past_chunk(block->address + bytes) && i < model->chunks_count; i++)
		idle -= is_idle(&model->chunks[i]);
	return needed > idle ? (needed - idle) * CHUNK : 0;
}

static bool device_has(const struct gm_pool_model *model, uint64_t bytes)
{
	uint64_t reserved = model->figures.reserved_bytes, limit = model->options.device_bytes;

	return !bytes || (reserved <= limit && bytes <= limit - reserved);
}

uint32_t gm_pool_model_alloc(struct gm_pool_model *model, uint32_t stream, uint64_t bytes)
{
	uint64_t rounded = gm_round_units(bytes ? bytes : 1);
	struct gm_model_figures *figures = &model->figures;
	uint32_t number;
	struct block *block;

	model->operations++;
	if (rounded > RANGE / 4)
		return figures->ooms++, GM_NO_BLOCK;
	number = find(model, stream, rounded);
	if (number == NONE || !device_has(model, growth(model, at(model, number), rounded)))
		return figures->ooms++, GM_NO_BLOCK;
	block = at(model, number);
	gm_free_blocks_remove(set_of(model, block), block->bytes, block->order);
	if (block->bytes > rounded)
		split(model, number, rounded);
	else if (block->state == PENDING)
		replace_pending(model, block, NONE);
	block = at(model, number);
	if (block->state == FREE)
		hold(model, block->address, rounded, true);
	block->state = USED;
	block->stream = stream;
	block->asked = bytes;
	figures->allocated_bytes += bytes;
	if (figures->allocated_bytes > figures->allocated_peak_bytes)
		figures->allocated_peak_bytes = figures->allocated_bytes;
	back(model, block);
	return number;
}

void gm_pool_model_free_block(struct gm_pool_model *model, uint32_t number, uint32_t on)
{
	struct block *block = at(model, number);
	struct stream *stream = stream_of(model, on);

	model->figures.allocated_bytes -= block->asked;
	block->state = PENDING;
	block->stream = on;
	block->freed = ++model->operations;
	join(model, number);
	block->older = stream->newest;
	block->newer = NONE;
	if (stream->newest != NONE)
		at(model, stream->newest)->newer = number;
	stream->newest = number;
	add_free(model, number);
}

void gm_pool_model_wait(struct gm_pool_model *model, uint32_t stream)
{
	bool any = false;

	for (unsigned i = 0; i < model->streams_count; i++)
		if (stream == GM_ALL_STREAMS || model->streams[i].number == stream)
			any |= settle(model, &model->streams[i], UINT64_MAX);
	if (any)
		release(model, model->options.release_threshold_bytes);
}

void gm_pool_model_trim(struct gm_pool_model *model, uint64_t keep_bytes)
{
	release(model, keep_bytes);
}

/* ---- the model ---- */

struct gm_pool_model *gm_pool_model_new(const struct gm_pool_options *options)
{
	struct gm_pool_model *model = gm_realloc(NULL, sizeof(*model));
	uint32_t number;

	memset(model, 0, sizeof(*model));
	model->options = *options;
	model->random = options->timing.seed;
	model->spare = NONE;
	number = model->last = new_block(model);
	*at(model, number) =
		(struct block){.bytes = RANGE, .previous = NONE, .next = NONE, .state = FREE};
	add_free(model, number);
	return model;
}

void gm_pool_model_free(struct gm_pool_model *model)
{
	gm_free_blocks_free(&model->free);
	for (unsigned i = 0; i < model->streams_count; i++)
		gm_free_blocks_free(&model->streams[i].free);
	free(model->streams);
	free(model->blocks);
	free(model->chunks);
	free(model);
}

const struct gm_model_figures *gm_pool_model_figures(const struct gm_pool_model *model)
{
	return &model->figures;
}

uint32_t gm_pool_model_stream(const struct gm_pool_model *model, uint32_t block)
{
	return model->blocks[block].stream;
}

uint64_t gm_pool_model_address(const struct gm_pool_model *model, uint32_t block)
{
	return model->blocks[block].address;
}

uint64_t gm_pool_model_set_limit(struct gm_pool_model *model, uint64_t bytes)
{
	uint64_t before = model->options.device_bytes;

	model->options.device_bytes = bytes;
	return before;
}
