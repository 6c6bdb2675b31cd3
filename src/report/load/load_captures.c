/*
 * The memory of graphs, by the private pools of their captures. Numbers of a file are anybody's: an
 * index that leads nowhere is left out.
 */
#include "report/load/load_captures.h"
#include "account/kinds.h"
#include "account/torch_record.h"
#include <stdlib.h>
#include <string.h>

#define LEAST_CAPTURES 3 /* that tell what one more would take */

static uint32_t root_of(const struct gm_doc *doc, uint32_t capture)
{
	uint32_t pool = doc->captures[capture].pool;

	return pool < doc->captures_count ? pool : capture;
}

/* Captures that took no memory have no pool: those of one line are told together. */
static struct gm_graph_pool *pool_for(struct gm_doc *doc, uint32_t root, bool memory)
{
	const struct gm_capture_record *record = &doc->captures[root];
	struct gm_graph_pool *pool;

	for (unsigned i = 0; i < doc->graph_pools_count; i++) {
		pool = &doc->graph_pools[i];
		if (memory ? pool->root == root
			   : pool->root == GM_NONE && pool->stack == record->stack &&
				     pool->device == record->device)
			return pool;
	}
	pool = gm_zone_push(&doc->zone, &doc->graph_pools, &doc->graph_pools_count, sizeof(*pool));
	pool->root = memory ? root : GM_NONE;
	pool->device = record->device;
	pool->stack = record->stack;
	return pool;
}

static uint64_t plus(uint64_t sum, uint64_t more)
{
	return __builtin_add_overflow(sum, more, &sum) ? UINT64_MAX - 1 : sum;
}

static uint64_t cost_of(const struct gm_capture_record *record)
{
	return plus(record->taken_bytes,
		    record->executable_bytes > 0 ? (uint64_t)record->executable_bytes : 0);
}

static void add_capture(struct gm_doc *doc, struct gm_graph_pool *pool, uint32_t index)
{
	const struct gm_capture_record *record = &doc->captures[index];

	*(uint32_t *)gm_zone_push(&doc->zone, &pool->list, &pool->list_count, sizeof(index)) =
		index;
	pool->captures = plus(pool->captures, record->captures);
	pool->graphs = plus(pool->graphs, record->made);
	pool->live_graphs = plus(pool->live_graphs, record->live);
	pool->nodes = plus(pool->nodes, record->nodes);
	pool->taken_bytes = plus(pool->taken_bytes, record->taken_bytes);
	pool->executable_bytes =
		plus(pool->executable_bytes, cost_of(record) - record->taken_bytes);
}

/*
 * Returns the mean cost of the captures after the first, which finds an empty pool. Of captures
 * that take more and more, as from the smallest batch up, it is the latest cost and one more of the
 * mean steps between them.
 */
static uint64_t next_bytes(const struct gm_doc *doc, const struct gm_graph_pool *pool)
{
	uint64_t bytes = 0, cost = 0, second = 0;
	bool rises = pool->list_count == pool->captures;

	if (pool->captures < LEAST_CAPTURES)
		return GM_NO_BYTES;
	for (unsigned i = 1; i < pool->list_count; i++) {
		uint64_t before = cost;

		cost = cost_of(&doc->captures[pool->list[i]]);
		second = i == 1 ? cost : second;
		rises &= cost >= before;
		bytes = plus(bytes, cost);
	}
	return rises && cost > second ? plus(cost, (cost - second) / (pool->captures - 2))
				      : bytes / (pool->captures - 1);
}

struct piece {
	uint64_t address, end;
	uint32_t pool;
};

static int compare_pieces(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

static uint32_t pool_of_capture(const struct gm_doc *doc, uint32_t capture)
{
	uint32_t root = root_of(doc, capture);

	for (unsigned i = 0; i < doc->graph_pools_count; i++)
		if (doc->graph_pools[i].root == root)
			return i;
	return GM_NONE;
}

/* The segments of pools that are there now, in order of address. */
static struct piece *list_pieces(struct gm_doc *doc, unsigned *count)
{
	struct piece *pieces = gm_zone_alloc(&doc->zone, doc->blocks_count + 1, sizeof(*pieces));

	*count = 0;
	for (unsigned i = 0; i < doc->blocks_count; i++) {
		const struct gm_alloc_record copy = gm_doc_block(doc, i), *record = &copy;
		uint32_t capture = record->capture, pool;

		if (!capture || capture > doc->captures_count ||
		    !gm_torch_reserves(gm_torch_part(record)))
			continue;
		pool = pool_of_capture(doc, capture - 1);
		if (pool == GM_NONE)
			continue;
		doc->graph_pools[pool].segments++;
		doc->graph_pools[pool].reserved_bytes =
			plus(doc->graph_pools[pool].reserved_bytes, record->bytes);
		pieces[(*count)++] = (struct piece){record->key, plus(record->key, record->bytes),
						    pool};
	}
	if (*count)
		qsort(pieces, *count, sizeof(*pieces), compare_pieces);
	return pieces;
}

static void add_block(struct gm_doc *doc, const struct piece *pieces, unsigned count,
		      const struct gm_alloc_record *block)
{
	unsigned low = 0, high = count;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (pieces[middle].end <= block->key)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < count && pieces[low].address <= block->key)
		doc->graph_pools[pieces[low].pool].used_bytes =
			plus(doc->graph_pools[pieces[low].pool].used_bytes, block->bytes);
}

void gm_load_captures(struct gm_doc *doc)
{
	struct piece *pieces;
	uint64_t *taken;
	unsigned count;

	if (doc->captures_count > GM_CAPTURES_KEPT) /* more than the shim writes */
		doc->captures_count = GM_CAPTURES_KEPT;
	taken = gm_zone_alloc(&doc->zone, doc->captures_count + 1, sizeof(*taken));
	for (unsigned i = 0; i < doc->captures_count; i++)
		taken[root_of(doc, i)] = plus(taken[root_of(doc, i)], doc->captures[i].taken_bytes);
	for (unsigned i = 0; i < doc->captures_count; i++) {
		uint32_t root = root_of(doc, i);

		add_capture(doc, pool_for(doc, root, taken[root] != 0), i);
	}
	pieces = list_pieces(doc, &count);
	for (unsigned i = 0; i < doc->blocks_count && count; i++) {
		const struct gm_alloc_record block = gm_doc_block(doc, i);

		if (gm_torch_part(&block) == GM_TORCH_BLOCK)
			add_block(doc, pieces, count, &block);
	}
	for (unsigned i = 0; i < doc->graph_pools_count; i++)
		doc->graph_pools[i].next_bytes = next_bytes(doc, &doc->graph_pools[i]);
}
