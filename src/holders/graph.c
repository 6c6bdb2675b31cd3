/*
 * The objects of a CPython by breadth-first search from its roots (graph.h), so that the first way
 * that is found to an object is a shortest one. The parts, in this order:
 *
 *   modules, threads, the rest of the interpreter's state: certain references only;
 *   garbage: of the objects that the collector tracks and that were not reached, those whose
 *     references all come from such objects, as the collector computes it (Modules/gcmodule.c:
 *     update_refs, subtract_refs, move_unreachable); a running process has to show the same counts
 *     and references in two searches, one after the other (holders.c);
 *   of the rest, what an uncertain reference leads to, then what a weak one leads to, and at last
 *     what has references from nowhere that is known.
 *
 * A wrong address ends a branch: nothing that was read is used before the type of what is there has
 * been found to be a type.
 */
#include "holders/graph.h"

#include "holders/array.h"

#include <stdlib.h>
#include <string.h>

#define MOST_NODES   (1u << 26)
#define MOST_THREADS 10000u
#define MOST_FRAMES  20000u

static const struct gm_type pseudo_types[] = {
	{.kind = GM_IS_ROOTS}, {.kind = GM_IS_THREAD}, {.kind = GM_IS_RUNNING}};
#define PSEUDO(i) (UINT32_MAX - (i)) /* gm_node.type */
enum { ROOTS, THREAD, RUNNING, PSEUDO_TYPES };

/* Objects that the collector tracks and that were not reached. */
struct gm_unreached {
	struct gm_node *nodes;
	int64_t *refs;
	uint64_t *seen; /* the count and the references of each object, as one number */
	uint32_t count, room, *index, index_room;
	unsigned char *held; /* 1: reachable from outside of these objects */
};

struct search {
	struct gm_object_walk walk; /* first: the callbacks' argument */
	struct gm_graph *graph;
	uint32_t node;
	enum gm_stage stage;
	uint64_t *frames; /* of threads, sorted */
	uint32_t frames_count, frames_room;
	bool keys; /* the keys of dicts: after everything else of a stage, as they are seldom meant
		    */
	uint32_t *keyed; /* dicts with such keys, once or more */
	uint32_t keyed_count, keyed_room;
	uint32_t *weak; /* nodes that are weak references */
	uint32_t weak_count, weak_room;
};

static uint32_t hash(uint64_t address)
{
	return (uint32_t)((address >> 3) * 0x9E3779B97F4A7C15u >> 32);
}

/* ---- nodes ---- */

static uint32_t find(const struct gm_node *nodes, const uint32_t *index, uint32_t room,
		     uint64_t address)
{
	for (uint32_t at = hash(address) & (room - 1); room; at = (at + 1) & (room - 1)) {
		if (!index[at])
			return GM_NO_NODE;
		if (nodes[index[at] - 1].address == address)
			return index[at] - 1;
	}
	return GM_NO_NODE;
}

/* Adds a node to a table; the caller has looked whether it is there. */
static bool add(struct gm_node **nodes, uint32_t *count, uint32_t *room, uint32_t **index,
		uint32_t *index_room, struct gm_node node)
{
	uint32_t at;

	if (*count >= MOST_NODES || !gm_array_grow(nodes, *count, room, sizeof(**nodes)))
		return false;
	if (*count * 2ul >= *index_room) {
		uint32_t more = *index_room ? *index_room * 2 : 4096;
		uint32_t *bigger = calloc(more, sizeof(*bigger));

		if (!bigger)
			return false;
		for (uint32_t i = 0; i < *count; i++) {
			at = hash((*nodes)[i].address) & (more - 1);
			while (bigger[at])
				at = (at + 1) & (more - 1);
			bigger[at] = i + 1;
		}
		free(*index);
		*index = bigger;
		*index_room = more;
	}
	at = hash(node.address) & (*index_room - 1);
	while ((*index)[at])
		at = (at + 1) & (*index_room - 1);
	(*nodes)[*count] = node;
	(*index)[at] = ++*count;
	return true;
}

static uint32_t find_node(const struct gm_graph *graph, uint64_t address)
{
	return find(graph->nodes, graph->index, graph->index_room, address);
}

static bool add_node(struct gm_graph *graph, uint64_t address, uint32_t parent, uint32_t type)
{
	if (add(&graph->nodes, &graph->count, &graph->room, &graph->index, &graph->index_room,
		(struct gm_node){address, parent, type}))
		return true;
	graph->full = true;
	return false;
}

static uint32_t type_number(const struct gm_graph *graph, const struct gm_type *type)
{
	return (uint32_t)(type - graph->python->types);
}

const struct gm_type *gm_graph_type(const struct gm_graph *graph, uint32_t node)
{
	uint32_t type = graph->nodes[node].type;

	return type >= PSEUDO(PSEUDO_TYPES - 1) ? &pseudo_types[UINT32_MAX - type]
						: &graph->python->types[type];
}

enum gm_stage gm_graph_stage(const struct gm_graph *graph, uint32_t node)
{
	/* The garbage is found before what is less sure. */
	static const enum gm_stage order[] = {GM_STAGE_MODULES, GM_STAGE_THREADS, GM_STAGE_REST,
					      GM_STAGE_GARBAGE, GM_STAGE_UNSURE,  GM_STAGE_WEAK,
					      GM_STAGE_UNKNOWN};

	for (unsigned i = 0; i < sizeof(order) / sizeof(*order); i++)
		if (node < graph->stage_end[order[i]])
			return order[i];
	return GM_STAGE_CHANGED;
}

/* ---- blocks ---- */

uint32_t gm_graph_block(const struct gm_graph *graph, uint64_t address)
{
	for (uint32_t at = hash(address) & (graph->block_room - 1); graph->block_room;
	     at = (at + 1) & (graph->block_room - 1)) {
		if (!graph->block_index[at])
			return GM_NO_NODE;
		if (graph->blocks[graph->block_index[at] - 1] == address)
			return graph->block_index[at] - 1;
	}
	return GM_NO_NODE;
}

static bool index_blocks(struct gm_graph *graph)
{
	graph->block_room = 64;
	while (graph->block_room < graph->blocks_count * 4ul)
		graph->block_room *= 2;
	graph->block_index = calloc(graph->block_room, sizeof(*graph->block_index));
	graph->first_holding = calloc(graph->blocks_count + 1ul, sizeof(*graph->first_holding));
	if (!graph->block_index || !graph->first_holding)
		return false;
	for (uint32_t i = 0; i < graph->blocks_count; i++) {
		uint32_t at = hash(graph->blocks[i]) & (graph->block_room - 1);

		while (graph->block_index[at])
			at = (at + 1) & (graph->block_room - 1);
		graph->block_index[at] = i + 1;
	}
	return true;
}

/* True if the dict that is being walked is its parent's __dict__. */
static bool is_own_dict(const struct search *search, const struct gm_type *owner)
{
	const struct gm_node *dict = &search->graph->nodes[search->node];
	uint64_t address = search->graph->nodes[dict->parent].address, word = 0;

	if (owner->flags & GM_TYPE_MANAGED_DICT && search->graph->python->minor >= 11)
		address -= 24;
	else if (owner->dictoffset > 0)
		address += (uint64_t)owner->dictoffset;
	else
		return false;
	return gm_cpython_word(search->graph->python, address, &word) && word == dict->address;
}

/*
 * An int can be what owns the memory, or a note that somebody made of its address: an attribute of
 * an object is taken to own it before a variable is, and a variable before an element of a
 * container.
 */
static uint32_t rank_of_int(const struct search *search, const struct gm_edge *edge)
{
	const struct gm_graph *graph = search->graph;
	const struct gm_type *type = gm_graph_type(graph, search->node), *owner;

	if (edge->how == GM_BY_STR || edge->how == GM_BY_MEMBER)
		return 0;
	if (edge->how == GM_BY_LOCAL || edge->how == GM_BY_NAME)
		return 1;
	if (edge->how != GM_BY_KEY || type->kind != GM_IS_DICT ||
	    graph->nodes[search->node].parent == GM_NO_NODE)
		return 2;
	owner = gm_graph_type(graph, graph->nodes[search->node].parent);
	if (owner->kind == GM_IS_MODULE)
		return 1;
	return is_own_dict(search, owner) ? 0 : 2;
}

/* Adds to the end of a block's list, so that the first one found stays the first. */
static void add_holding(struct search *search, uint32_t block, uint64_t leaf, uint64_t slot,
			uint32_t rank)
{
	struct gm_graph *graph = search->graph;
	uint32_t *link = &graph->first_holding[block], length = 0;

	for (; *link; link = &graph->holdings[*link - 1].next) {
		const struct gm_holding *known = &graph->holdings[*link - 1];

		if ((known->leaf == leaf && known->slot == slot && known->node == search->node) ||
		    ++length == GM_MOST_HOLDINGS)
			return;
	}
	if (!gm_array_grow(&graph->holdings, graph->holdings_count, &graph->holdings_room,
			   sizeof(*graph->holdings))) {
		graph->full = true;
		return;
	}
	/* The array may have moved. */
	link = &graph->first_holding[block];
	while (*link)
		link = &graph->holdings[*link - 1].next;
	graph->holdings[graph->holdings_count] = (struct gm_holding){
		block, search->node, leaf, slot, rank * GM_STAGES + search->stage, search->stage,
		0};
	*link = ++graph->holdings_count;
}

/* Addresses in memory that an object owns. */
static bool search_bytes(struct gm_object_walk *walk, uint64_t address, uint64_t bytes,
			 bool certain)
{
	struct search *search = walk->data;
	uint64_t batch[512];

	(void)certain;
	bytes &= ~7ull;
	while (bytes) {
		uint64_t piece = bytes < sizeof(batch) ? bytes : sizeof(batch);

		if (!gm_memory_read(walk->python->memory, address, batch, piece))
			return true;
		for (uint64_t i = 0; i < piece / 8; i++) {
			uint32_t block = gm_graph_block(search->graph, batch[i]);

			if (block != GM_NO_NODE)
				add_holding(search, block, 0, address + i * 8, 0);
		}
		address += piece;
		bytes -= piece;
	}
	return true;
}

/* ---- the search ---- */

static int compare_addresses(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* A frame that runs is the thread's, whoever else refers to it. */
static bool is_running(const struct search *search, uint64_t frame)
{
	return search->frames_count && search->stage == GM_STAGE_MODULES &&
	       bsearch(&frame, search->frames, search->frames_count, sizeof(frame),
		       compare_addresses);
}

/* Nothing is searched in these. */
static bool is_leaf(const struct gm_type *type)
{
	return (type->kind == GM_IS_LEAF || type->kind == GM_IS_INT) && !type->dictoffset &&
	       !type->members_count && !(type->flags & GM_TYPE_MANAGED_DICT);
}

/* True if this stage may take an object that the collector tracks and that was not reached. */
static bool may_take(const struct search *search, uint64_t object)
{
	const struct gm_unreached *unreached = search->graph->unreached;
	uint32_t number;

	number = find(unreached->nodes, unreached->index, unreached->index_room, object);
	if (number == GM_NO_NODE)
		return true;
	return (search->stage == GM_STAGE_GARBAGE) == !unreached->held[number];
}

/*
 * Garbage keeps a tensor's memory only if nothing else does: a count of 1 after the vtable, in 32
 * or 64 bits (c10/util/intrusive_ptr.h).
 */
static bool may_take_cpp(const struct search *search, uint64_t object, const struct gm_type *type)
{
	uint32_t count = 0;

	if (type->kind == GM_IS_CPP)
		return false;
	if (search->stage != GM_STAGE_GARBAGE || type->kind > GM_IS_STORAGE_IMPL)
		return true;
	gm_memory_read(search->walk.python->memory, object + 8, &count, sizeof(count));
	return count == 1;
}

static bool is_dict(const struct gm_graph *graph, uint32_t node)
{
	return gm_graph_type(graph, node)->kind == GM_IS_DICT;
}

/* Notes a dict whose keys are to be searched later; strings never are. */
static bool put_off(struct search *search, uint64_t key)
{
	const struct gm_type *type = gm_cpython_type_of(search->graph->python, key);

	if (!type || (is_leaf(type) && type->kind != GM_IS_INT) ||
	    (search->keyed_count && search->keyed[search->keyed_count - 1] == search->node))
		return true;
	if (!gm_array_grow(&search->keyed, search->keyed_count, &search->keyed_room,
			   sizeof(*search->keyed)))
		return false;
	search->keyed[search->keyed_count++] = search->node;
	return true;
}

static bool search_edge(struct gm_object_walk *walk, const struct gm_edge *edge)
{
	struct search *search = walk->data;
	struct gm_graph *graph = search->graph;
	const struct gm_type *type;
	uint64_t value;
	uint32_t block;

	graph->references++;
	if (edge->weak) {
		if (search->stage <= GM_STAGE_REST &&
		    gm_array_grow(&search->weak, search->weak_count, &search->weak_room,
				  sizeof(*search->weak)) &&
		    (!search->weak_count || search->weak[search->weak_count - 1] != search->node))
			search->weak[search->weak_count++] = search->node;
		return true;
	}
	if (find_node(graph, edge->child) != GM_NO_NODE)
		return true;
	if (edge->how == GM_AS_KEY && !search->keys && is_dict(graph, search->node))
		return put_off(search, edge->child);
	type = edge->cpp ? gm_torch_type_of(graph->python, edge->child)
			 : gm_cpython_type_of(graph->python, edge->child);
	if (!type || (edge->cpp && !may_take_cpp(search, edge->child, type)))
		return true;
	if (type->kind == GM_IS_INT && gm_cpython_int(graph->python, edge->child, &value)) {
		block = gm_graph_block(graph, value);
		if (block != GM_NO_NODE && edge->sure)
			add_holding(search, block, edge->child, 0, rank_of_int(search, edge));
	}
	if (is_leaf(type) || (type->kind == GM_IS_FRAME && is_running(search, edge->child)) ||
	    !may_take(search, edge->child))
		return true;
	return add_node(graph, edge->child, search->node, type_number(graph, type));
}

static void walk_node(struct search *search, uint32_t node)
{
	struct gm_type type = *gm_graph_type(search->graph, node); /* types may move */

	search->node = node;
	gm_walk_object(&search->walk, search->graph->nodes[node].address, &type);
}

static void unsure_of(struct search *search, uint32_t node)
{
	const struct gm_type *type = gm_graph_type(search->graph, node);

	if (!type->opaque_to && type->kind != GM_IS_RUNNING && type->kind != GM_IS_FRAME)
		return;
	search->walk.unsure = true;
	walk_node(search, node);
	search->walk.unsure = false;
}

/* Walks all nodes from `from` on, also those that are added meanwhile. */
static void walk_from(struct search *search, uint32_t from)
{
	struct gm_graph *graph = search->graph;

	for (uint32_t i = from; i < graph->count && !graph->full; i++) {
		walk_node(search, i);
		if (search->stage == GM_STAGE_UNSURE)
			unsure_of(search, i);
	}
}

/* Walks all nodes from `from` on, and then the keys that were put off, until there are no more. */
static void breadth_first(struct search *search, uint32_t from)
{
	struct gm_graph *graph = search->graph;

	walk_from(search, from);
	while (search->keyed_count && !graph->full) {
		uint32_t more = graph->count, dict = search->keyed[--search->keyed_count];

		search->keys = true;
		walk_node(search, dict);
		search->keys = false;
		walk_from(search, more);
	}
}

static void end_stage(struct search *search)
{
	search->graph->stage_end[search->stage] = search->graph->count;
}

/* ---- threads ---- */

void gm_thread_frames(struct gm_cpython *python, uint64_t thread,
		      bool (*each)(uint64_t frame, void *data), void *data)
{
	const struct gm_python_offsets *at = python->offsets;
	uint64_t frame = 0, cframe;
	unsigned char owner = 0;

	if (python->minor == 11 || python->minor == 12) {
		if (!gm_cpython_word(python, thread + at->frame, &cframe) ||
		    !gm_cpython_word(python, cframe + (python->minor == 11 ? 8 : 0), &frame))
			return;
	} else if (!gm_cpython_word(python, thread + at->frame, &frame)) {
		return;
	}
	for (unsigned i = 0; frame && i < MOST_FRAMES; i++) {
		if (python->minor >= 11 &&
		    !gm_memory_read(python->memory, frame + at->frame_owner, &owner, 1))
			return;
		/* 3 and above: an entry of the interpreter's own, without code */
		if (owner < 3 && !each(frame, data))
			return;
		if (!gm_cpython_word(python, frame + at->frame_previous, &frame))
			return;
	}
}

static bool note_frame(uint64_t frame, void *data)
{
	struct search *search = data;

	if (!gm_array_grow(&search->frames, search->frames_count, &search->frames_room,
			   sizeof(*search->frames)))
		return false;
	search->frames[search->frames_count++] = frame;
	return true;
}

/* The threads of an interpreter, or the interpreters: a list linked by the word at `next`. */
static bool next_of(struct gm_cpython *python, uint64_t *state, unsigned next)
{
	return gm_cpython_word(python, *state + next, state) && *state;
}

static uint64_t first_interpreter(struct gm_cpython *python)
{
	uint64_t interpreter = 0;

	gm_cpython_word(python, python->runtime + python->offsets->first_interpreter, &interpreter);
	return interpreter;
}

/* The outermost frame first: what it hands down is its own. */
static void add_frames(struct search *search, uint32_t thread, uint32_t from)
{
	struct gm_graph *graph = search->graph;

	for (uint32_t i = search->frames_count; i > from; i--) {
		uint64_t frame = search->frames[i - 1];
		const struct gm_type *type;

		if (find_node(graph, frame) != GM_NO_NODE)
			continue;
		if (graph->python->minor >= 11) {
			add_node(graph, frame, thread, PSEUDO(RUNNING));
			continue;
		}
		type = gm_cpython_type_of(graph->python, frame);
		if (type && type->kind == GM_IS_FRAME)
			add_node(graph, frame, thread, type_number(graph, type));
	}
}

/* Their frames' addresses are noted before anything is searched, and added as nodes afterwards. */
static void each_thread(struct search *search, bool adding)
{
	struct gm_cpython *python = search->graph->python;
	uint64_t interpreter = first_interpreter(python), thread;
	unsigned count = 0;

	for (; interpreter && count < MOST_THREADS; count++) {
		thread = interpreter + python->offsets->threads;
		for (unsigned next = 0; count < MOST_THREADS && next_of(python, &thread, next);
		     next = 8, count++) {
			uint32_t from = search->frames_count;

			gm_thread_frames(python, thread, note_frame, search);
			if (adding && add_node(search->graph, thread, GM_NO_NODE, PSEUDO(THREAD)))
				add_frames(search, search->graph->count - 1, from);
		}
		if (!next_of(python, &interpreter, python->offsets->next))
			break;
	}
}

/* ---- garbage ---- */

/*
 * Reads a list of the collector, which is linked both ways; an object that does not link back ends
 * it.
 */
static bool read_generation(struct search *search, uint64_t head)
{
	struct gm_graph *graph = search->graph;
	struct gm_unreached *unreached = graph->unreached;
	uint64_t at = head, link[2];

	if (!gm_memory_read(graph->python->memory, head, link, sizeof(link)))
		return false;
	for (uint32_t i = 0; i < MOST_NODES; i++) {
		uint64_t next = link[0] & ~3ull, object = next + GM_GC_HEAD;
		const struct gm_type *type;

		if (next == head)
			return true;
		if (!gm_memory_read(graph->python->memory, next, link, sizeof(link)) ||
		    (link[1] & ~3ull) != at)
			return false;
		at = next;
		graph->tracked++;
		if (find_node(graph, object) != GM_NO_NODE ||
		    find(unreached->nodes, unreached->index, unreached->index_room, object) !=
			    GM_NO_NODE)
			continue;
		type = gm_cpython_type_of(graph->python, object);
		if (!type || !(type->flags & GM_TYPE_GC))
			continue;
		if (!add(&unreached->nodes, &unreached->count, &unreached->room, &unreached->index,
			 &unreached->index_room,
			 (struct gm_node){object, GM_NO_NODE, type_number(graph, type)}))
			return false;
	}
	return false;
}

static void read_tracked(struct search *search)
{
	struct gm_cpython *python = search->graph->python;
	uint64_t interpreter = first_interpreter(python);

	for (unsigned i = 0; interpreter && i < MOST_THREADS; i++) {
		uint64_t generations = (python->minor == 8 ? python->runtime : interpreter) +
				       python->offsets->generations;
		unsigned permanent = python->minor <= 13 ? 80 : 72;

		/* A list that changes meanwhile is read again, as far as it goes. */
		for (unsigned k = 0; k < 4; k++)
			for (unsigned attempt = 0; attempt < 3; attempt++) {
				if (read_generation(search,
						    generations + (k < 3 ? k * 24 : permanent)))
					break;
				gm_memory_forget(python->memory);
			}
		if (python->minor == 8 || !next_of(python, &interpreter, python->offsets->next))
			break;
	}
}

struct counting {
	struct gm_object_walk walk;
	struct gm_unreached *unreached;
	const struct gm_unreached *earlier; /* of a search before this one; may be NULL */
	uint32_t *queue, queued; /* marking: what is held and not walked yet */
	uint32_t *degree;	 /* trimming: references to garbage */
	uint32_t from;
	uint32_t *pairs; /* trimming: referrer and referent */
	uint32_t pairs_count, pairs_room;
	bool failed;
};

static uint32_t counted(struct counting *counting, const struct gm_edge *edge)
{
	struct gm_unreached *unreached = counting->unreached;

	return edge->weak ? GM_NO_NODE
			  : find(unreached->nodes, unreached->index, unreached->index_room,
				 edge->child);
}

static uint64_t mix(uint64_t seen, uint64_t value)
{
	return (seen ^ value) * 0x9E3779B97F4A7C15u + (seen >> 29);
}

static bool subtract(struct gm_object_walk *walk, const struct gm_edge *edge)
{
	struct counting *counting = walk->data;
	uint64_t *seen = &counting->unreached->seen[counting->from];
	uint32_t number = counted(counting, edge);

	if (!edge->weak)
		*seen = mix(*seen, edge->child);
	if (number != GM_NO_NODE && edge->tag != GM_TAG_BORROWED)
		counting->unreached->refs[number]--;
	return true;
}

static bool mark(struct gm_object_walk *walk, const struct gm_edge *edge)
{
	struct counting *counting = walk->data;
	uint32_t number = counted(counting, edge);

	if (number != GM_NO_NODE && !counting->unreached->held[number]) {
		counting->unreached->held[number] = 1;
		counting->queue[counting->queued++] = number;
	}
	return true;
}

static bool pair(struct gm_object_walk *walk, const struct gm_edge *edge)
{
	struct counting *counting = walk->data;
	uint32_t number = counted(counting, edge);

	if (number == GM_NO_NODE || counting->unreached->held[number])
		return true;
	counting->failed |= !gm_array_grow(&counting->pairs, counting->pairs_count + 1,
					   &counting->pairs_room, sizeof(*counting->pairs));
	if (counting->failed)
		return false;
	counting->pairs[counting->pairs_count++] = counting->from;
	counting->pairs[counting->pairs_count++] = number;
	counting->degree[counting->from]++;
	return true;
}

static void walk_unreached(struct counting *counting, struct gm_cpython *python, uint32_t number)
{
	const struct gm_node *node = &counting->unreached->nodes[number];
	struct gm_type type = python->types[node->type];

	counting->from = number;
	gm_walk_object(&counting->walk, node->address, &type);
}

/*
 * True if an object may be garbage: all its references come from objects that were not reached. Of
 * a process that runs, counts and references are read at different moments, and a reference that
 * moves meanwhile can be missed. What was read twice, and was the same both times, was so at the
 * moment between the two searches (the double collect of Afek et al., "Atomic Snapshots of Shared
 * Memory", 1993); an object whose count or references differ counts as held, as does all that it
 * leads to.
 */
static bool is_unheld(const struct counting *counting, uint32_t number)
{
	const struct gm_unreached *unreached = counting->unreached, *earlier = counting->earlier;
	uint32_t before;

	if (unreached->refs[number] || !earlier)
		return !unreached->refs[number];
	before = find(earlier->nodes, earlier->index, earlier->index_room,
		      unreached->nodes[number].address);
	return before != GM_NO_NODE && !earlier->held[before] &&
	       earlier->seen[before] == unreached->seen[number];
}

/* Finds the objects that are held from outside: update_refs, subtract_refs, move_unreachable. */
static bool find_held(struct counting *counting, struct gm_cpython *python)
{
	struct gm_unreached *unreached = counting->unreached;

	for (uint32_t i = 0; i < unreached->count; i++) {
		if (!gm_memory_read(python->memory, unreached->nodes[i].address,
				    &unreached->refs[i], 8))
			unreached->refs[i] = INT64_MAX;
		unreached->refs[i] =
			(int64_t)gm_cpython_count(python, (uint64_t)unreached->refs[i]);
		unreached->seen[i] = (uint64_t)unreached->refs[i];
	}
	counting->walk.edge = subtract;
	for (uint32_t i = 0; i < unreached->count; i++)
		walk_unreached(counting, python, i);
	for (uint32_t i = 0; i < unreached->count; i++)
		if (!is_unheld(counting, i)) {
			unreached->held[i] = 1;
			counting->queue[counting->queued++] = i;
		}
	counting->walk.edge = mark;
	for (uint32_t i = 0; i < counting->queued; i++)
		walk_unreached(counting, python, counting->queue[i]);
	return true;
}

/*
 * Garbage from which a cycle is reached: what is left after those that refer to no other garbage
 * were taken away again and again. A chain begins at one of these. `degree` is above 0 for them.
 */
static bool trim(struct counting *counting, struct gm_cpython *python)
{
	struct gm_unreached *unreached = counting->unreached;
	uint32_t *first = calloc(unreached->count + 1ul, sizeof(*first)), *by_child, queued = 0;

	counting->walk.edge = pair;
	for (uint32_t i = 0; i < unreached->count; i++)
		if (!unreached->held[i])
			walk_unreached(counting, python, i);
	by_child = calloc(counting->pairs_count / 2 + 1ul, sizeof(*by_child));
	if (!first || !by_child || counting->failed) {
		free(first);
		free(by_child);
		return false;
	}
	for (uint32_t i = 0; i < counting->pairs_count; i += 2)
		first[counting->pairs[i + 1]]++;
	for (uint32_t i = 0, sum = 0; i <= unreached->count; i++) {
		uint32_t own = i < unreached->count ? first[i] : 0;

		first[i] = sum;
		sum += own;
	}
	for (uint32_t i = counting->pairs_count; i; i -= 2)
		by_child[first[counting->pairs[i - 1]]++] = counting->pairs[i - 2];
	/* first[i] is now where the list of i ends, and that of i - 1 where it begins. */
	for (uint32_t i = 0; i < unreached->count; i++)
		if (!unreached->held[i] && !counting->degree[i])
			counting->queue[queued++] = i;
	for (uint32_t i = 0; i < queued; i++) {
		uint32_t child = counting->queue[i];

		for (uint32_t k = child ? first[child - 1] : 0; k < first[child]; k++)
			if (--counting->degree[by_child[k]] == 0)
				counting->queue[queued++] = by_child[k];
	}
	free(first);
	free(by_child);
	return true;
}

static bool allocate(struct gm_unreached *unreached, struct counting *counting)
{
	size_t count = unreached->count + 1ul;

	unreached->refs = calloc(count, sizeof(*unreached->refs));
	unreached->seen = calloc(count, sizeof(*unreached->seen));
	unreached->held = calloc(count, 1);
	counting->queue = calloc(count, sizeof(*counting->queue));
	counting->degree = calloc(count, sizeof(*counting->degree));
	return unreached->refs && unreached->seen && unreached->held && counting->queue &&
	       counting->degree;
}

/* True of the unreached objects at which chains of the stage begin; of garbage, cycles first. */
static bool begins_chain(const struct gm_unreached *unreached, const struct counting *counting,
			 enum gm_stage stage, uint32_t number, bool cycles)
{
	if (stage == GM_STAGE_GARBAGE)
		return !unreached->held[number] && (counting->degree[number] > 0) == cycles;
	return unreached->held[number] && (stage == GM_STAGE_CHANGED) == !unreached->refs[number];
}

static void take_roots(struct search *search, const struct counting *counting, bool cycles)
{
	struct gm_graph *graph = search->graph;
	struct gm_unreached *unreached = graph->unreached;

	for (uint32_t i = 0; i < unreached->count; i++) {
		const struct gm_node *node = &unreached->nodes[i];
		uint32_t from = graph->count;

		if (!begins_chain(unreached, counting, search->stage, i, cycles) ||
		    find_node(graph, node->address) != GM_NO_NODE)
			continue;
		if (!add_node(graph, node->address, GM_NO_NODE, node->type))
			return;
		breadth_first(search, from);
	}
}

/* ---- all stages ---- */

static void search_modules(struct search *search)
{
	struct gm_graph *graph = search->graph;
	struct gm_cpython *python = graph->python;
	uint64_t interpreter = first_interpreter(python);
	const struct gm_type *type;
	uint64_t modules, main;

	for (unsigned i = 0; interpreter && i < MOST_THREADS; i++) {
		if (!add_node(graph, interpreter, GM_NO_NODE, PSEUDO(ROOTS)))
			return;
		search->node = graph->count - 1;
		if (gm_cpython_word(python, interpreter + python->offsets->modules, &modules) &&
		    (type = gm_cpython_type_of(python, modules)) && type->kind == GM_IS_DICT &&
		    add_node(graph, modules, search->node, type_number(graph, type))) {
			search->node = graph->count - 1;
			main = gm_cpython_lookup(python, modules, "__main__");
			type = main ? gm_cpython_type_of(python, main) : NULL;
			if (type && find_node(graph, main) == GM_NO_NODE)
				add_node(graph, main, search->node, type_number(graph, type));
		}
		if (!next_of(python, &interpreter, python->offsets->next))
			break;
	}
	for (uint32_t i = 0; i < graph->count && !graph->full; i++)
		if (graph->nodes[i].type != PSEUDO(ROOTS))
			walk_node(search, i);
	breadth_first(search, graph->count);
}

static void search_threads(struct search *search)
{
	struct gm_graph *graph = search->graph;
	uint32_t from = graph->count, frames;

	each_thread(search, true);
	frames = graph->count;
	/* Frames before the rest of the threads' state. */
	for (uint32_t i = from; i < graph->count && !graph->full; i++)
		if (graph->nodes[i].type != PSEUDO(THREAD))
			walk_node(search, i);
	breadth_first(search, graph->count);
	for (uint32_t i = from; i < frames; i++)
		if (graph->nodes[i].type == PSEUDO(THREAD)) {
			uint32_t more = graph->count;

			walk_node(search, i);
			breadth_first(search, more);
		}
}

static void search_rest(struct search *search)
{
	struct gm_graph *graph = search->graph;

	for (uint32_t i = 0; i < graph->stage_end[GM_STAGE_MODULES]; i++)
		if (graph->nodes[i].type == PSEUDO(ROOTS)) {
			uint32_t more = graph->count;

			walk_node(search, i);
			breadth_first(search, more);
		}
}

static void search_unsure(struct search *search)
{
	struct gm_graph *graph = search->graph;
	uint32_t end = graph->stage_end[GM_STAGE_REST], from = graph->count;

	for (uint32_t i = 0; i < end && !graph->full; i++)
		unsure_of(search, i);
	breadth_first(search, from);
}

static void search_weak(struct search *search)
{
	struct gm_graph *graph = search->graph;
	uint32_t from = graph->count;

	for (uint32_t i = 0; i < search->weak_count; i++) {
		uint64_t referent = 0;
		const struct gm_type *type;

		gm_cpython_word(graph->python, graph->nodes[search->weak[i]].address + 16,
				&referent);
		type = gm_cpython_type_of(graph->python, referent);
		if (type && !is_leaf(type) && find_node(graph, referent) == GM_NO_NODE &&
		    may_take(search, referent))
			add_node(graph, referent, search->weak[i], type_number(graph, type));
	}
	breadth_first(search, from);
}

static void search_unreached(struct search *search, const struct gm_unreached *earlier)
{
	struct gm_graph *graph = search->graph;
	struct gm_unreached *unreached = graph->unreached;
	struct counting counting = {.unreached = unreached, .earlier = earlier};
	bool enough;

	counting.walk = (struct gm_object_walk){.python = graph->python, .data = &counting};
	read_tracked(search);
	enough = allocate(unreached, &counting) && find_held(&counting, graph->python) &&
		 trim(&counting, graph->python);
	graph->full |= !enough;
	search->stage = GM_STAGE_GARBAGE;
	for (unsigned pass = 0; enough && pass < 2; pass++)
		take_roots(search, &counting, pass == 0);
	end_stage(search);
	search->stage = GM_STAGE_UNSURE;
	search_unsure(search);
	end_stage(search);
	search->stage = GM_STAGE_WEAK;
	search_weak(search);
	end_stage(search);
	for (unsigned pass = 0; pass < 2; pass++) {
		search->stage = pass ? GM_STAGE_CHANGED : GM_STAGE_UNKNOWN;
		if (enough)
			take_roots(search, &counting, false);
		end_stage(search);
	}
	free(unreached->refs);
	unreached->refs = NULL;
	free(counting.queue);
	free(counting.degree);
	free(counting.pairs);
}

bool gm_graph_build(struct gm_graph *graph, struct gm_cpython *python, const uint64_t *blocks,
		    uint32_t count, const struct gm_graph *earlier)
{
	struct search search = {.graph = graph};

	*graph = (struct gm_graph){.python = python,
				   .blocks = blocks,
				   .blocks_count = count,
				   .unreached = calloc(1, sizeof(*graph->unreached))};
	search.walk = (struct gm_object_walk){
		.python = python, .edge = search_edge, .bytes = search_bytes, .data = &search};
	if (!graph->unreached || !index_blocks(graph))
		return false;
	each_thread(&search, false);
	if (search.frames_count)
		qsort(search.frames, search.frames_count, sizeof(*search.frames),
		      compare_addresses);
	search_modules(&search);
	end_stage(&search);
	search.stage = GM_STAGE_THREADS;
	search.frames_count = 0;
	search_threads(&search);
	end_stage(&search);
	search.stage = GM_STAGE_REST;
	search_rest(&search);
	end_stage(&search);
	search_unreached(&search, earlier ? earlier->unreached : NULL);
	free(search.frames);
	free(search.weak);
	free(search.keyed);
	return true;
}

void gm_graph_free(struct gm_graph *graph)
{
	if (graph->unreached) {
		free(graph->unreached->nodes);
		free(graph->unreached->index);
		free(graph->unreached->seen);
		free(graph->unreached->held);
	}
	free(graph->unreached);
	free(graph->nodes);
	free(graph->index);
	free(graph->block_index);
	free(graph->holdings);
	free(graph->first_holding);
}
