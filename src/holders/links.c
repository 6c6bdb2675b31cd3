/*
 * The links of chains (links.h): each is found again by walking the object that it starts from,
 * past the memory's cache, and remembers the words that it depends on. Right before a chain is
 * shown all of these are read at once.
 */
#include "holders/links.h"

#include "holders/array.h"

#include <stdlib.h>
#include <string.h>

#define MOST_LINKS 256u

bool gm_links_init(struct gm_links *links, struct gm_graph *graph)
{
	*links = (struct gm_links){.graph = graph};
	links->of_node = calloc(graph->count + 1ul, sizeof(*links->of_node));
	return links->of_node != NULL;
}

static uint32_t add_link(struct gm_links *links, struct gm_link link)
{
	if (!gm_array_grow(&links->links, links->count, &links->room, sizeof(*links->links)))
		return GM_NO_NODE;
	links->links[links->count] = link;
	return links->count++;
}

uint32_t gm_links_want(struct gm_links *links, const struct gm_holding *holding)
{
	const struct gm_node *nodes = links->graph->nodes;

	for (uint32_t node = holding->node;
	     nodes[node].parent != GM_NO_NODE && !links->of_node[node]; node = nodes[node].parent) {
		uint32_t number = add_link(links, (struct gm_link){.parent = nodes[node].parent,
								   .child = node,
								   .target = nodes[node].address});

		if (number == GM_NO_NODE)
			return number;
		links->of_node[node] = number + 1;
	}
	return add_link(links, (struct gm_link){.parent = holding->node,
						.child = GM_NO_NODE,
						.target = holding->leaf,
						.block = holding->block,
						.edge.slot = holding->slot});
}

/* ---- finding them ---- */

struct search {
	struct gm_object_walk walk;
	struct gm_links *links;
	uint32_t *wanted; /* links of one parent, by target and slot */
	uint32_t count, left;
};

static void keep(struct search *search, struct gm_link *link, const struct gm_edge *edge)
{
	struct gm_links *links = search->links;

	link->edge = *edge;
	link->first_need = links->needs_count;
	link->needs_count = 0;
	for (unsigned i = 0; i < search->walk.needs_count; i++) {
		if (!gm_array_grow(&links->needs, links->needs_count, &links->needs_room,
				   sizeof(*links->needs)))
			return;
		links->needs[links->needs_count++] = search->walk.needs[i];
		link->needs_count++;
	}
	link->found = true;
	search->left--;
}

static int compare(const struct gm_link *a, const struct gm_link *b)
{
	if (a->parent != b->parent)
		return a->parent < b->parent ? -1 : 1;
	if (a->target != b->target)
		return a->target < b->target ? -1 : 1;
	return !a->target && a->edge.slot != b->edge.slot ? (a->edge.slot < b->edge.slot ? -1 : 1)
							  : 0;
}

/* All wanted links to a target that were not found yet: two blocks can share an int. */
static void found(struct search *search, const struct gm_edge *edge, uint64_t target)
{
	struct gm_link *links = search->links->links,
		       key = {.target = target, .edge.slot = edge->slot};
	uint32_t low = 0, high = search->count;

	key.parent = links[search->wanted[0]].parent;
	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (compare(&links[search->wanted[middle]], &key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < search->count; low++) {
		struct gm_link *link = &links[search->wanted[low]];

		if (compare(link, &key) != 0)
			break;
		if (!link->found)
			keep(search, link, edge);
	}
}

static bool found_edge(struct gm_object_walk *walk, const struct gm_edge *edge)
{
	struct search *search = walk->data;

	found(search, edge, edge->child);
	return search->left > 0;
}

static bool found_bytes(struct gm_object_walk *walk, uint64_t address, uint64_t bytes, bool certain)
{
	struct search *search = walk->data;
	const struct gm_links *links = search->links;

	(void)certain;
	for (uint32_t i = 0; i < search->count && !links->links[search->wanted[i]].target; i++) {
		const struct gm_link *link = &links->links[search->wanted[i]];
		struct gm_edge edge = {.slot = link->edge.slot,
				       .index = link->edge.slot - address,
				       .size = bytes,
				       .how = GM_BY_WORD,
				       .sure = true};

		if (!link->found && edge.slot >= address && edge.index + 8 <= bytes)
			found(search, &edge, 0);
	}
	return search->left > 0;
}

static bool found_frame(uint64_t frame, void *data)
{
	struct search *search = data;
	struct gm_cpython *python = search->walk.python;
	struct gm_edge edge = {.child = frame, .how = GM_BY_FRAME, .sure = true};

	edge.slot = frame + python->offsets->frame_code;
	if (gm_cpython_word(python, edge.slot, &edge.key)) {
		search->walk.needs[0] = (struct gm_need){edge.slot, edge.key, GM_EQUAL};
		search->walk.needs_count = 1;
		edge.slot = 0;
		found(search, &edge, frame);
	}
	return search->left > 0;
}

/* Walks one parent for all links that start from it. */
static void find_of_parent(struct gm_links *links, uint32_t *wanted, uint32_t count)
{
	struct search search = {.links = links, .wanted = wanted, .count = count, .left = count};
	uint32_t parent = links->links[wanted[0]].parent;
	struct gm_type type = *gm_graph_type(links->graph, parent);
	uint64_t address = links->graph->nodes[parent].address;

	for (uint32_t i = 0; i < count; i++)
		links->links[wanted[i]].found = false;
	search.walk = (struct gm_object_walk){.python = links->graph->python,
					      .edge = found_edge,
					      .bytes = found_bytes,
					      .data = &search};
	if (type.kind == GM_IS_THREAD)
		gm_thread_frames(links->graph->python, address, found_frame, &search);
	if (search.left)
		gm_walk_object(&search.walk, address, &type);
	search.walk.unsure = true;
	if (search.left && gm_graph_stage(links->graph, parent) != GM_STAGE_GARBAGE)
		gm_walk_object(&search.walk, address, &type);
}

static int compare_wanted(const void *a, const void *b, void *links)
{
	const struct gm_link *base = links;

	return compare(&base[*(const uint32_t *)a], &base[*(const uint32_t *)b]);
}

static void find_these(struct gm_links *links, uint32_t *wanted, uint32_t count)
{
	gm_memory_set_fresh(links->graph->python->memory,
			    !gm_memory_still(links->graph->python->memory));
	qsort_r(wanted, count, sizeof(*wanted), compare_wanted, links->links);
	for (uint32_t from = 0, to; from < count; from = to) {
		for (to = from + 1; to < count && links->links[wanted[to]].parent ==
							  links->links[wanted[from]].parent;
		     to++)
			;
		find_of_parent(links, wanted + from, to - from);
	}
	gm_memory_set_fresh(links->graph->python->memory, false);
}

void gm_links_find(struct gm_links *links)
{
	uint32_t *wanted = calloc(links->count + 1ul, sizeof(*wanted)), count = 0;

	if (!wanted)
		return;
	for (uint32_t i = 0; i < links->count; i++)
		if (!links->links[i].found)
			wanted[count++] = i;
	find_these(links, wanted, count);
	free(wanted);
}

/* The links of a chain from the root on; 0 if it has too many. */
static uint32_t path_of(const struct gm_links *links, uint32_t last, uint32_t path[MOST_LINKS])
{
	uint32_t count = 0, link = last;

	for (;;) {
		if (count == MOST_LINKS)
			return 0;
		path[count++] = link;
		if (!links->of_node[links->links[link].parent])
			break;
		link = links->of_node[links->links[link].parent] - 1;
	}
	for (uint32_t i = 0; i < count / 2; i++) {
		uint32_t other = path[i];

		path[i] = path[count - 1 - i];
		path[count - 1 - i] = other;
	}
	return count;
}

uint64_t gm_links_root(const struct gm_links *links, uint32_t last)
{
	uint32_t path[MOST_LINKS];

	return path_of(links, last, path)
		       ? links->graph->nodes[links->links[path[0]].parent].address
		       : 0;
}

void gm_links_renew(struct gm_links *links, uint32_t last)
{
	uint32_t path[MOST_LINKS], sorted[MOST_LINKS], count = path_of(links, last, path);

	memcpy(sorted, path, count * sizeof(*path));
	if (count)
		find_these(links, sorted, count);
}

/* ---- holding them against the process ---- */

struct claim {
	uint64_t address[1024], word[1024];
	struct gm_need need[1024];
	unsigned count;
};

static void claim(struct claim *claims, uint64_t address, uint64_t value, int how)
{
	if (claims->count == 1024)
		return;
	claims->address[claims->count] = address;
	claims->need[claims->count].value = value;
	claims->need[claims->count++].how = how;
}

/* PyLongObject.ob_digit: 30 bits each, of an address always two. */
static void claim_int(struct claim *claims, uint64_t object, uint64_t value)
{
	uint64_t digits = (value & 0x3fffffff) | (value >> 30 & 0x3fffffff) << 32;

	claim(claims, object, 0, GM_REFERENCED);
	if (value >> 30)
		claim(claims, object + 24, digits, GM_EQUAL);
}

static bool is_object(const struct gm_graph *graph, uint32_t node)
{
	enum gm_object_kind kind = gm_graph_type(graph, node)->kind;

	return kind != GM_IS_ROOTS && kind != GM_IS_THREAD && kind != GM_IS_RUNNING &&
	       kind < GM_IS_TENSOR_IMPL;
}

/*
 * A count of references is above 0 while an object lives. Memory that was freed holds 0 there, or a
 * pointer to other free memory, which is larger than any count.
 */
static bool fulfilled(const struct gm_cpython *python, uint64_t word, const struct gm_need *need)
{
	switch (need->how) {
	case GM_ABOVE:
		return (int64_t)word > (int64_t)need->value;
	case GM_REFERENCED:
		word = gm_cpython_count(python, word);
		return word && word < 1ull << 40;
	default:
		return word == need->value;
	}
}

bool gm_links_hold(const struct gm_links *links, uint32_t last)
{
	const struct gm_graph *graph = links->graph;
	uint32_t path[MOST_LINKS], count = path_of(links, last, path);
	struct claim claims;

	claims.count = 0;
	for (uint32_t i = 0; i < count; i++) {
		const struct gm_link *link = &links->links[path[i]];
		uint64_t value = link->target ? link->target : graph->blocks[link->block];

		if (!link->found)
			return false;
		if (is_object(graph, link->parent))
			claim(&claims, graph->nodes[link->parent].address, 0, GM_REFERENCED);
		if (link->child == GM_NO_NODE && link->target)
			claim_int(&claims, link->target, graph->blocks[link->block]);
		if (link->edge.slot)
			claim(&claims, link->edge.slot, value | link->edge.tag, GM_EQUAL);
		if (link->edge.size_at)
			claim(&claims, link->edge.size_at, link->edge.index, GM_ABOVE);
		for (uint32_t k = 0; k < link->needs_count; k++)
			claim(&claims, links->needs[link->first_need + k].address,
			      links->needs[link->first_need + k].value, GM_EQUAL);
	}
	if (!count || claims.count == 1024 ||
	    !gm_memory_words(graph->python->memory, claims.address, claims.word, claims.count))
		return false;
	for (unsigned i = 0; i < claims.count; i++)
		if (!fulfilled(graph->python, claims.word[i], &claims.need[i]))
			return false;
	return true;
}

void gm_links_free(struct gm_links *links)
{
	free(links->links);
	free(links->needs);
	free(links->of_node);
}
