/*
 * From addresses to chains (holders.h): the graph, the links of the surest holding of each block,
 * and what a running process needs on top: a chain that does not hold any more is looked for again,
 * and what looks unreachable has to look so twice.
 */
#include "holders/holders.h"

#include "holders/link_text.h"
#include "holders/native_holders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_STEPS  64u
#define ATTEMPTS    3u
#define MOST_RENEWS 20000u

/* The state of one look at the process. */
struct look {
	struct gm_graph graph;
	struct gm_links links;
	uint32_t *last; /* the last link of each block's chain; GM_NO_NODE */
	enum gm_stage *stage;
};

struct gm_holders {
	struct gm_chain *chains;
	uint32_t count;
	struct gm_holders_figures figures;
	struct look *looks[2];
};

static void end_look(struct look *look)
{
	struct gm_text_block;

	if (!look)
		return;
	gm_links_free_text(&look->links);
	gm_links_free(&look->links);
	gm_graph_free(&look->graph);
	free(look->last);
	free(look->stage);
	free(look);
}

/* The holding of a block that comes after `tried` better ones; NULL. */
static const struct gm_holding *choose(const struct gm_graph *graph, uint32_t block, unsigned tried)
{
	const struct gm_holding *list[GM_MOST_HOLDINGS];
	unsigned count = 0;

	for (uint32_t at = graph->first_holding[block]; at && count < GM_MOST_HOLDINGS;
	     at = graph->holdings[at - 1].next) {
		unsigned k = count++;

		/* of equal ones the first that was found stays the first */
		for (; k && list[k - 1]->rank > graph->holdings[at - 1].rank; k--)
			list[k] = list[k - 1];
		list[k] = &graph->holdings[at - 1];
	}
	return tried < count ? list[tried] : NULL;
}

static bool want(struct look *look, uint32_t block, unsigned tried)
{
	const struct gm_holding *holding = choose(&look->graph, block, tried);

	look->last[block] = GM_NO_NODE;
	if (!holding)
		return false;
	look->stage[block] = holding->stage;
	look->last[block] = gm_links_want(&look->links, holding);
	return look->last[block] != GM_NO_NODE;
}

/* Holds every chain against the process, and renews or replaces those that changed. */
static void settle(struct look *look)
{
	unsigned renews = 0;

	for (uint32_t i = 0; i < look->graph.blocks_count; i++) {
		for (unsigned tried = 1; look->last[i] != GM_NO_NODE; tried++) {
			bool holds = gm_links_hold(&look->links, look->last[i]);

			for (unsigned k = 0; !holds && k < ATTEMPTS && renews++ < MOST_RENEWS;
			     k++) {
				gm_links_renew(&look->links, look->last[i]);
				holds = gm_links_hold(&look->links, look->last[i]);
			}
			if (holds)
				break;
			if (want(look, i, tried))
				gm_links_find(&look->links);
		}
	}
}

static struct look *begin_look(struct gm_cpython *python, const uint64_t *addresses, uint32_t count,
			       const struct look *earlier)
{
	struct look *look = calloc(1, sizeof(*look));

	if (!look)
		return NULL;
	look->last = calloc(count + 1ul, sizeof(*look->last));
	look->stage = calloc(count + 1ul, sizeof(*look->stage));
	if (!look->last || !look->stage ||
	    !gm_graph_build(&look->graph, python, addresses, count,
			    earlier ? &earlier->graph : NULL) ||
	    !gm_links_init(&look->links, &look->graph)) {
		end_look(look);
		return NULL;
	}
	for (uint32_t i = 0; i < count; i++)
		want(look, i, 0);
	gm_links_find(&look->links);
	settle(look);
	return look;
}

static enum gm_chain_end end_of(const struct look *look, uint32_t block)
{
	static const enum gm_chain_end ends[GM_STAGES] = {[GM_STAGE_UNSURE] = GM_CHAIN_UNSURE,
							  [GM_STAGE_WEAK] = GM_CHAIN_WEAK,
							  [GM_STAGE_UNKNOWN] = GM_CHAIN_UNKNOWN,
							  [GM_STAGE_GARBAGE] = GM_CHAIN_GARBAGE,
							  [GM_STAGE_CHANGED] = GM_CHAIN_CHANGED};

	if (!look->graph.first_holding[block])
		return GM_CHAIN_NONE;
	return look->last[block] == GM_NO_NODE ? GM_CHAIN_CHANGED : ends[look->stage[block]];
}

/* The steps of a block's chain, in memory that lives as long as the look. */
static bool write_steps(struct look *look, uint32_t block, struct gm_chain *chain)
{
	const char *steps[MOST_STEPS], *exact[MOST_STEPS], **copy;

	chain->count = gm_links_text(&look->links, look->last[block], steps, exact, MOST_STEPS);
	copy = malloc(chain->count * 2ul * sizeof(*copy));
	if (!copy)
		return false;
	memcpy(copy, steps, chain->count * sizeof(*copy));
	memcpy(copy + chain->count, exact, chain->count * sizeof(*copy));
	chain->steps = copy;
	chain->exact = copy + chain->count;
	return true;
}

/*
 * The better of two looks. The first knows no garbage for sure, since a reference that moves while
 * a process runs can be missed; what it calls garbage is what the second says of it.
 */
static void join(struct gm_holders *holders, uint32_t block)
{
	struct look *look = holders->looks[0];
	struct gm_chain *chain = &holders->chains[block];

	chain->end = end_of(look, block);
	if (holders->looks[1]) {
		enum gm_chain_end second = end_of(holders->looks[1], block);

		if (second < chain->end || chain->end == GM_CHAIN_GARBAGE) {
			chain->end = second;
			look = holders->looks[1];
		}
	}
	if (chain->end < GM_CHAIN_CHANGED && !write_steps(look, block, chain))
		chain->end = GM_CHAIN_NONE;
}

/* True if what was found of a running process is worth another look. */
static bool is_doubtful(const struct gm_holders *holders)
{
	for (uint32_t i = 0; i < holders->count; i++)
		if (end_of(holders->looks[0], i) > GM_CHAIN_UNSURE)
			return true;
	return false;
}

static bool look_at(struct gm_holders *holders, struct gm_cpython *python,
		    const uint64_t *addresses)
{
	struct look *look = begin_look(python, addresses, holders->count, NULL);

	if (!look)
		return false;
	holders->looks[0] = look;
	holders->figures = (struct gm_holders_figures){.minor = python->minor,
						       .objects = look->graph.count,
						       .references = look->graph.references,
						       .whole = !look->graph.full};
	if (!gm_memory_still(python->memory) && is_doubtful(holders)) {
		gm_memory_forget(python->memory);
		holders->looks[1] = begin_look(python, addresses, holders->count, look);
		if (!holders->looks[1])
			return false;
	}
	for (uint32_t i = 0; i < holders->count; i++)
		join(holders, i);
	return true;
}

/* The steps of a native chain as one of ours; they belong to the holders from now on. */
static bool take_native(struct gm_holders *holders, uint32_t block, struct gm_native_chain *native)
{
	struct gm_chain *chain = &holders->chains[block];
	const char **copy = malloc(native->count * 2ul * sizeof(*copy));

	for (unsigned i = 0; copy && i < native->count; i++)
		copy[i] = copy[i + native->count] = native->steps[i];
	if (!copy)
		return false;
	free((void *)chain->steps);
	*chain = (struct gm_chain){.end = native->cpp ? GM_CHAIN_CPP : GM_CHAIN_COMPLETE,
				   .steps = copy,
				   .exact = copy + native->count,
				   .count = native->count,
				   .native = true};
	native->count = 0;
	return true;
}

/*
 * Looks for the global variables and the objects of C++ that hold addresses which no Python object
 * is known to keep.
 */
static bool look_native(struct gm_holders *holders, struct gm_memory *memory,
			const uint64_t *addresses)
{
	uint64_t *left = calloc(holders->count + 1ul, sizeof(*left));
	uint32_t *blocks = calloc(holders->count + 1ul, sizeof(*blocks)), count = 0;
	struct gm_native_chain *chains = calloc(holders->count + 1ul, sizeof(*chains));
	bool enough = left && blocks && chains;

	for (uint32_t i = 0; enough && i < holders->count; i++)
		if (holders->chains[i].end == GM_CHAIN_NONE ||
		    holders->chains[i].end == GM_CHAIN_UNKNOWN) {
			blocks[count] = i;
			left[count++] = addresses[i];
		}
	enough = enough && (!count || gm_native_find(memory, left, count,
						     holders->figures.minor > 0, chains));
	for (uint32_t i = 0; chains && i < count; i++) {
		if (enough && chains[i].count)
			enough = take_native(holders, blocks[i], &chains[i]);
		for (unsigned k = 0; k < chains[i].count; k++)
			free(chains[i].steps[k]);
	}
	free(left);
	free(blocks);
	free(chains);
	return enough;
}

struct gm_holders *gm_holders_find(struct gm_memory *memory, const uint64_t *addresses,
				   uint32_t count, char *error, size_t error_bytes)
{
	bool native = false, enough = false;
	struct gm_cpython *python = gm_cpython_open(memory, &native, error, error_bytes);
	struct gm_holders *holders;

	if (!python && !native)
		return NULL;
	holders = calloc(1, sizeof(*holders));
	if (holders) {
		holders->count = count;
		holders->figures.whole = true;
		holders->chains = calloc(count + 1ul, sizeof(*holders->chains));
		for (uint32_t i = 0; holders->chains && i < count; i++)
			holders->chains[i].end = GM_CHAIN_NONE;
		enough = holders->chains && (!python || look_at(holders, python, addresses)) &&
			 look_native(holders, memory, addresses);
	}
	gm_cpython_close(python);
	if (enough)
		return holders;
	snprintf(error, error_bytes, "out of memory");
	gm_holders_free(holders);
	return NULL;
}

void gm_holders_free(struct gm_holders *holders)
{
	if (!holders)
		return;
	for (uint32_t i = 0; holders->chains && i < holders->count; i++) {
		const struct gm_chain *chain = &holders->chains[i];

		for (unsigned k = 0; chain->native && k < chain->count; k++)
			free((void *)chain->steps[k]);
		free((void *)chain->steps);
	}
	free(holders->chains);
	end_look(holders->looks[0]);
	end_look(holders->looks[1]);
	free(holders);
}

const struct gm_chain *gm_holders_chain(const struct gm_holders *holders, uint32_t number)
{
	return &holders->chains[number];
}

struct gm_holders_figures gm_holders_figures(const struct gm_holders *holders)
{
	return holders->figures;
}
