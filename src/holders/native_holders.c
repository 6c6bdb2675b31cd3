/*
 * Searching a process's writable memory for words that equal an address (native_holders.h). A word
 * in a library's or program's data is a global variable; a word in an object of the heap makes the
 * search go on for the address of that object. What is found is a graph, in which the shortest way
 * from a global variable to each block is taken. Only a chain that begins at a global variable is
 * shown, or of a process with Python one that begins with an object of C++, which has a class by
 * its vtable: a word elsewhere may be left over from something that is gone. Data of CUDA's
 * libraries and of the shim, which note every address, hold nothing.
 *
 * Objects of the heap are those of glibc's malloc: chunks that follow each other from the beginning
 * of the [heap] mapping and in the heaps of other arenas, which threads use, each with its size in
 * the second word, and a bit of the next one's size that says that it is in use; large ones have
 * mappings of their own (malloc/malloc.c).
 */
#include "holders/native_holders.h"

#include "holders/array.h"
#include "holders/cpp_class.h"
#include "holders/elf_dynamic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH	    (1u << 15) /* words */
#define MOST_NODES  (1u << 20)
#define MOST_EDGES  (1u << 22)
#define MOST_CHUNKS (1u << 22)
#define MOST_ROUNDS 4u
#define MOST_DEPTH  64u /* objects of a chain */
#define PAGE	    4096u
#define NONE	    UINT32_MAX
/* Bits of a chunk's size. */
#define IN_USE		1u /* of the chunk before */
#define IS_MAPPED	2u
#define NOT_MAIN_ARENA	4u
#define HEAP_MAX_BYTES	(64ull << 20) /* of an arena's heap: twice DEFAULT_MMAP_THRESHOLD_MAX */
#define MOST_ARENA_HEAD 4096u	      /* heap_info and malloc_state */

/* An address that is looked for: a block, or an object of the heap on the way to one. */
struct node {
	uint64_t address, vtable; /* an object's first word if that is a class's; 0 */
	uint32_t bytes;		  /* of an object */
	uint32_t held, holders;	  /* its first edge as holder and as what is held, + 1 */
	uint32_t way;		  /* the edge by which it is reached, + 1; 0: not yet */
};

/* A word at `slot` that has the address of `held`. */
struct edge {
	uint32_t holder, held; /* nodes; a holder NONE is a global variable of the object `path` */
	uint64_t slot;
	const char *path;
	uint32_t next_held, next_holder; /* of the same holder, of the same held node; + 1 */
};

struct chunk {
	uint64_t address, bytes;
};

struct search {
	struct gm_memory *memory;
	struct node *nodes; /* the blocks first */
	uint32_t count, room, blocks;
	uint32_t from; /* nodes of the round: from here on */
	struct edge *edges;
	uint32_t edges_count, edges_room;
	uint32_t *index, index_room; /* of nodes by address */
	uint32_t *queue;
	struct chunk *chunks;
	uint32_t chunks_count, chunks_room;
	struct gm_native_chain *chains;
	bool cpp, failed;
};

/* ---- nodes ---- */

static uint32_t hash(uint64_t address)
{
	return (uint32_t)((address >> 3) * 0x9E3779B97F4A7C15u >> 32);
}

static uint32_t find_node(const struct search *search, uint64_t address)
{
	uint32_t at = hash(address) & (search->index_room - 1);

	for (; search->index[at]; at = (at + 1) & (search->index_room - 1))
		if (search->nodes[search->index[at] - 1].address == address)
			return search->index[at] - 1;
	return NONE;
}

static bool widen_index(struct search *search)
{
	uint32_t room = search->index_room ? search->index_room * 2 : 4096;
	uint32_t *index = calloc(room, sizeof(*index));

	if (!index)
		return false;
	for (uint32_t i = 0; i < search->count; i++) {
		uint32_t at = hash(search->nodes[i].address) & (room - 1);

		while (index[at])
			at = (at + 1) & (room - 1);
		index[at] = i + 1;
	}
	free(search->index);
	search->index = index;
	search->index_room = room;
	return true;
}

/* The caller has looked whether it is there. NONE if memory ran out. */
static uint32_t add_node(struct search *search, struct node node)
{
	uint32_t at;

	if ((search->count * 4ul >= search->index_room && !widen_index(search)) ||
	    !gm_array_grow(&search->nodes, search->count, &search->room, sizeof(*search->nodes))) {
		search->failed = true;
		return NONE;
	}
	at = hash(node.address) & (search->index_room - 1);
	while (search->index[at])
		at = (at + 1) & (search->index_room - 1);
	search->nodes[search->count] = node;
	search->index[at] = search->count + 1;
	return search->count++;
}

static void add_edge(struct search *search, struct edge edge)
{
	struct node *held = &search->nodes[edge.held];

	if (search->edges_count >= MOST_EDGES ||
	    !gm_array_grow(&search->edges, search->edges_count, &search->edges_room,
			   sizeof(*search->edges)))
		return;
	edge.next_holder = held->holders;
	held->holders = search->edges_count + 1;
	if (edge.holder != NONE) {
		edge.next_held = search->nodes[edge.holder].held;
		search->nodes[edge.holder].held = search->edges_count + 1;
	}
	search->edges[search->edges_count++] = edge;
}

/* ---- the heap ---- */

/* The object whose data a mapping is: its own file, or the one before it of which it is the rest.
 */
static const char *object_of(const struct gm_mapping *mappings, unsigned number)
{
	const struct gm_mapping *mapping = &mappings[number];

	if (mapping->path[0] == '/')
		return mapping->path;
	if (!mapping->path[0] && number && mappings[number - 1].end == mapping->start &&
	    mappings[number - 1].path[0] == '/' && mappings[number - 1].writable)
		return mappings[number - 1].path;
	return NULL;
}

static bool add_chunk(struct search *search, uint64_t address, uint64_t bytes)
{
	if (search->chunks_count == MOST_CHUNKS ||
	    !gm_array_grow(&search->chunks, search->chunks_count, &search->chunks_room,
			   sizeof(*search->chunks)))
		return false;
	search->chunks[search->chunks_count++] = (struct chunk){address, bytes};
	return true;
}

/*
 * The chunks that follow each other from `at`; `flags` are set in the size of each but the last,
 * which is what is left over. Returns where the next one would begin.
 */
static uint64_t read_chunks(struct search *search, uint64_t at, uint64_t end, uint64_t flags)
{
	bool first = true;
	uint64_t size;

	while (at + 16 < end && gm_memory_read(search->memory, at + 8, &size, sizeof(size))) {
		uint64_t bytes = size & ~15ull;

		if (bytes < 32 || bytes > end - at ||
		    ((size & flags) != flags && bytes != end - at) || !add_chunk(search, at, bytes))
			break;
		if (!first && !(size & IN_USE)) /* the one before is free */
			search->chunks[search->chunks_count - 2].bytes = 0;
		first = false;
		at += bytes;
	}
	return at;
}

/* A core file does not say which mapping is the main heap: that whose chunks lead to its end. */
static void read_main_heap(struct search *search, const struct gm_mapping *mapping)
{
	uint32_t before = search->chunks_count;

	if (strcmp(mapping->path, "[heap]") == 0)
		read_chunks(search, mapping->start, mapping->end, 0);
	else if (!mapping->path[0] && gm_memory_is_core(search->memory) &&
		 read_chunks(search, mapping->start, mapping->end, 0) != mapping->end)
		search->chunks_count = before;
}

/*
 * A heap of an arena other than the main one: at a multiple of HEAP_MAX_BYTES heap_info says whose
 * it is, which was before it, and its size. The chunks begin behind it, in an arena's first heap
 * behind malloc_state too, whose size is not the same in all versions: the place is right from
 * which chunks lead to the heap's end (malloc/arena.c).
 */
static void read_arena_heap(struct search *search, uint64_t start, uint64_t mapping_end)
{
	uint32_t before = search->chunks_count;
	uint64_t info[3], end;

	if (!gm_memory_read(search->memory, start, info, sizeof(info)) || info[0] % 16 ||
	    info[2] < PAGE || info[2] % PAGE || info[2] > mapping_end - start)
		return;
	end = start + info[2];
	for (uint64_t at = start + 32; at <= start + MOST_ARENA_HEAD; at += 16) {
		if (read_chunks(search, at, end, NOT_MAIN_ARENA) == end)
			return;
		search->chunks_count = before;
	}
}

/* Chunks with mappings of their own, of which the kernel shows neighbours as one. */
static void read_mapped_chunks(struct search *search, uint64_t at, uint64_t end)
{
	uint64_t head[2];

	while (at + PAGE <= end && gm_memory_read(search->memory, at, head, sizeof(head)) &&
	       !head[0] && (head[1] & (PAGE - 1)) == IS_MAPPED && head[1] >= PAGE &&
	       head[1] - IS_MAPPED <= end - at) {
		/* no other chunk follows, in whose first word this one's memory would end */
		if (!add_chunk(search, at, head[1] - IS_MAPPED - 8))
			return;
		at += head[1] - IS_MAPPED;
	}
}

/* All chunks, by address. */
static void read_heaps(struct search *search)
{
	unsigned count;
	const struct gm_mapping *mappings = gm_memory_mappings(search->memory, &count);

	for (unsigned i = 0; i < count; i++) {
		const struct gm_mapping *mapping = &mappings[i];
		const char *object = object_of(mappings, i);
		uint64_t at = mapping->start, heap;

		if (!mapping->readable || !mapping->writable || mapping->shared)
			continue;
		read_main_heap(search, mapping);
		if (mapping->path[0])
			continue;
		if (object)
			at = (gm_object_end(search->memory, object) + PAGE - 1) & ~(PAGE - 1ull);
		if (at < mapping->start)
			at = mapping->start;
		read_mapped_chunks(search, at, mapping->end);
		heap = (at + HEAP_MAX_BYTES - 1) & ~(HEAP_MAX_BYTES - 1);
		for (; heap < mapping->end; heap += HEAP_MAX_BYTES)
			read_arena_heap(search, heap, mapping->end);
	}
}

/* The object of the heap that holds a word; NULL if none that is in use does. */
static const struct chunk *chunk_of(const struct search *search, uint64_t slot)
{
	uint32_t low = 0, high = search->chunks_count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (search->chunks[middle].address + 16 <= slot)
			low = middle + 1;
		else
			high = middle;
	}
	/* An object's last word is the first of the chunk after it. */
	if (!low || slot + 8 > search->chunks[low - 1].address + 8 + search->chunks[low - 1].bytes)
		return NULL;
	return &search->chunks[low - 1];
}

/* ---- finding words ---- */

static bool keeps_books(const char *path)
{
	static const char *const names[] = {"libcuda", "libnvidia", "libgpumemtrace", "libcupti",
					    "libnvrtc"};
	const char *slash = strrchr(path, '/');

	for (unsigned i = 0; slash && i < sizeof(names) / sizeof(*names); i++)
		if (strncmp(slash + 1, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/*
 * True if the mapping belongs to the object. Of anonymous memory after an object's data only its
 * zeroed data does. A file that is no object, such as the recorder's own in a core, has no
 * variables.
 */
static bool is_of(const struct search *search, const struct gm_mapping *mapping, const char *object,
		  uint64_t slot)
{
	uint64_t end = gm_object_end(search->memory, object);

	return end && (mapping->path[0] || slot + 8 <= end);
}

/* An object of the heap that holds something wanted is wanted in the next round. */
static void take_object(struct search *search, uint32_t held, uint64_t slot)
{
	const struct chunk *chunk = chunk_of(search, slot);
	struct node node = {0};
	uint32_t holder;
	char name[16];

	if (!chunk || !chunk->bytes)
		return;
	node.address = chunk->address + 16;
	node.bytes = (uint32_t)(chunk->bytes - 8);
	holder = find_node(search, node.address);
	if (holder == NONE) {
		if (search->count >= MOST_NODES ||
		    !gm_memory_fresh(search->memory, node.address, &node.vtable,
				     sizeof(node.vtable)))
			return;
		if (!gm_cpp_class(search->memory, node.vtable, name, sizeof(name)))
			node.vtable = 0;
		holder = add_node(search, node);
	}
	if (holder != NONE && holder >= search->blocks && holder != held)
		add_edge(search, (struct edge){.holder = holder, .held = held, .slot = slot});
}

static void search_mapping(struct search *search, const struct gm_mapping *mappings,
			   unsigned number, uint32_t end, uint64_t *batch)
{
	const struct gm_mapping *mapping = &mappings[number];
	const char *object = object_of(mappings, number);

	if (object && keeps_books(object))
		return;
	for (uint64_t at = mapping->start; at < mapping->end; at += BATCH * 8) {
		uint64_t bytes = mapping->end - at < BATCH * 8 ? mapping->end - at : BATCH * 8;

		if (!gm_memory_fresh(search->memory, at, batch, bytes))
			return;
		for (uint64_t i = 0; i < bytes / 8; i++) {
			uint32_t found = batch[i] > 4096 ? find_node(search, batch[i]) : NONE;
			struct edge edge = {
				.holder = NONE, .held = found, .slot = at + i * 8, .path = object};

			if (found == NONE || found < search->from || found >= end)
				continue;
			if (object && is_of(search, mapping, object, edge.slot))
				add_edge(search, edge);
			else
				take_object(search, found, edge.slot);
		}
	}
}

static void search_round(struct search *search, uint64_t *batch)
{
	unsigned count;
	const struct gm_mapping *mappings = gm_memory_mappings(search->memory, &count);
	uint32_t end = search->count;

	for (unsigned i = 0; i < count && !search->failed; i++)
		if (mappings[i].readable && mappings[i].writable && !mappings[i].shared)
			search_mapping(search, mappings, i, end, batch);
	search->from = end;
}

/* ---- chains ---- */

/*
 * With Python, an object of the heap is believed if it has a class, or is a list of pointers to one
 * that has.
 */
static bool is_sure(const struct search *search, const struct edge *edge)
{
	return !search->cpp || edge->holder == NONE || search->nodes[edge->holder].vtable ||
	       search->nodes[edge->held].vtable;
}

/* Shortest ways from global variables, through sure edges or all. */
static void find_ways(struct search *search, bool sure)
{
	uint32_t queued = 0;

	for (uint32_t i = 0; i < search->count; i++)
		search->nodes[i].way = 0;
	for (uint32_t i = 0; i < search->edges_count; i++) {
		struct node *held = &search->nodes[search->edges[i].held];

		if (search->edges[i].holder == NONE && !held->way) {
			held->way = i + 1;
			search->queue[queued++] = search->edges[i].held;
		}
	}
	for (uint32_t i = 0; i < queued; i++)
		for (uint32_t at = search->nodes[search->queue[i]].held; at;
		     at = search->edges[at - 1].next_held) {
			struct node *held = &search->nodes[search->edges[at - 1].held];

			if (held->way || (sure && !is_sure(search, &search->edges[at - 1])))
				continue;
			held->way = at;
			search->queue[queued++] = search->edges[at - 1].held;
		}
}

/* The edges of the way to a block, its own last; 0 if they are too many. */
static unsigned way_to(const struct search *search, uint32_t block, uint32_t *edges)
{
	unsigned count = 0;

	for (uint32_t at = search->nodes[block].way; at;
	     at = search->nodes[search->edges[at - 1].holder].way) {
		if (count == MOST_DEPTH)
			return 0;
		edges[count++] = at - 1;
		if (search->edges[at - 1].holder == NONE)
			break;
	}
	for (unsigned i = 0; i < count / 2; i++) {
		uint32_t other = edges[i];

		edges[i] = edges[count - 1 - i];
		edges[count - 1 - i] = other;
	}
	return count;
}

/* The edges from an object of C++ to a block that no global variable leads to. */
static unsigned way_from_cpp(const struct search *search, uint32_t block, uint32_t *edges)
{
	uint32_t way[MOST_ROUNDS + 1], node = block;
	unsigned count = 0, classes = 0;

	while (count < MOST_ROUNDS + 1) {
		uint32_t at = search->nodes[node].holders;

		/* a global variable that led here does not hold it any more */
		while (at && (search->edges[at - 1].holder == NONE ||
			      !is_sure(search, &search->edges[at - 1])))
			at = search->edges[at - 1].next_holder;
		if (!at)
			break;
		way[count++] = at - 1;
		node = search->edges[at - 1].holder;
		if (search->nodes[node].vtable)
			classes = count;
	}
	for (unsigned i = 0; i < classes; i++)
		edges[i] = way[classes - 1 - i];
	return classes;
}

/* True if every word of a chain is as it was, and the vtable of each object. */
static bool holds(const struct search *search, const uint32_t *edges, unsigned count)
{
	uint64_t addresses[MOST_DEPTH * 2], words[MOST_DEPTH * 2], values[MOST_DEPTH * 2];
	unsigned all = 0;

	if (gm_memory_still(search->memory))
		return true;
	for (unsigned i = 0; i < count; i++) {
		const struct edge *edge = &search->edges[edges[i]];

		addresses[all] = edge->slot;
		values[all++] = search->nodes[edge->held].address;
		if (edge->holder == NONE || !search->nodes[edge->holder].vtable)
			continue;
		addresses[all] = search->nodes[edge->holder].address;
		values[all++] = search->nodes[edge->holder].vtable;
	}
	return gm_memory_words(search->memory, addresses, words, all) &&
	       memcmp(words, values, all * sizeof(*words)) == 0;
}

static void add_step(struct search *search, struct gm_native_chain *chain, const char *text)
{
	char *copy = chain->count < GM_NATIVE_STEPS ? strdup(text) : NULL;

	if (copy)
		chain->steps[chain->count++] = copy;
	else
		search->failed = true;
}

static void global_text(const struct search *search, const struct edge *edge, char *text,
			size_t bytes)
{
	const char *slash = strrchr(edge->path, '/');
	char name[256];
	uint64_t into;

	if (gm_variable_at(search->memory, edge->path, edge->slot, name, sizeof(name), &into) &&
	    into)
		snprintf(text, bytes, "global %s+%llu (%.200s)", name, (unsigned long long)into,
			 slash + 1);
	else if (name[0])
		snprintf(text, bytes, "global %s (%.200s)", name, slash + 1);
	else
		snprintf(text, bytes, "global variable of %.200s", slash + 1);
}

/* Equal objects that hold each other by the same word are the elements of a linked list. */
static bool is_repeated(const struct search *search, const struct edge *edge,
			const struct edge *next)
{
	const struct node *object = &search->nodes[edge->holder],
			  *other = &search->nodes[next->holder];

	return object->bytes == other->bytes && object->vtable == other->vtable &&
	       edge->slot - object->address == next->slot - other->address;
}

static void object_text(const struct search *search, const struct edge *edge, bool repeated,
			char *text, size_t bytes)
{
	const struct node *object = &search->nodes[edge->holder];
	char name[450];

	if (object->vtable && gm_cpp_class(search->memory, object->vtable, name, sizeof(name)))
		snprintf(text, bytes, "C++ object%s %s", repeated ? "s" : "", name);
	else
		snprintf(text, bytes, "heap object%s of %u bytes, word at +%llu%s",
			 repeated ? "s" : "", object->bytes,
			 (unsigned long long)(edge->slot - object->address),
			 repeated ? " of each" : "");
}

static void make_chain(struct search *search, uint32_t block, const uint32_t *edges, unsigned count)
{
	struct gm_native_chain *chain = &search->chains[block];
	unsigned i = 0, to;
	char text[512];

	if (!count || !holds(search, edges, count))
		return;
	for (; i < count && chain->count < GM_NATIVE_STEPS - 1; i = to) {
		const struct edge *edge = &search->edges[edges[i]];

		to = i + 1;
		if (edge->holder == NONE) {
			global_text(search, edge, text, sizeof(text));
		} else {
			while (to < count && is_repeated(search, edge, &search->edges[edges[to]]))
				to++;
			object_text(search, edge, to - i > 1, text, sizeof(text));
		}
		add_step(search, chain, text);
	}
	if (i == count) {
		add_step(search, chain, "block");
		return;
	}
	while (chain->count) /* it has too many steps */
		free(chain->steps[--chain->count]);
}

static void make_chains(struct search *search, bool sure)
{
	uint32_t edges[MOST_DEPTH];

	find_ways(search, sure);
	for (uint32_t i = 0; i < search->blocks && !search->failed; i++) {
		struct gm_native_chain *chain = &search->chains[i];

		if (chain->count)
			continue;
		make_chain(search, i, edges, way_to(search, i, edges));
		chain->loose = !sure;
		if (chain->count || !search->cpp || !sure)
			continue;
		make_chain(search, i, edges, way_from_cpp(search, i, edges));
		chain->cpp = chain->count > 0;
	}
}

bool gm_native_find(struct gm_memory *memory, const uint64_t *addresses, uint32_t count, bool cpp,
		    struct gm_native_chain *chains)
{
	struct search search = {.memory = memory, .chains = chains, .blocks = count, .cpp = cpp};
	uint64_t *batch = malloc(BATCH * sizeof(*batch));

	search.failed = !batch;
	for (uint32_t i = 0; i < count && !search.failed; i++)
		add_node(&search, (struct node){.address = addresses[i]});
	read_heaps(&search);
	for (unsigned i = 0; i < MOST_ROUNDS && !search.failed && search.from < search.count; i++)
		search_round(&search, batch);
	search.queue = malloc((search.count + 1ul) * sizeof(*search.queue));
	search.failed = search.failed || !search.queue;
	if (!search.failed)
		make_chains(&search, true);
	if (cpp && !search.failed)
		make_chains(&search, false);
	free(batch);
	free(search.nodes);
	free(search.edges);
	free(search.index);
	free(search.queue);
	free(search.chunks);
	return !search.failed;
}
