/*
 * Searching a process's writable memory for words that equal an address (native_holders.h). A word
 * in a library's or program's data is a global variable; a word in an object of the main heap makes
 * the search go on for the address of that object. Only a chain that begins at a global variable is
 * shown, or of a process with Python one that begins with an object of C++, which has a class by
 * its vtable: a word elsewhere may be left over from something that is gone. Data of CUDA's
 * libraries and of the shim, which note every address, hold nothing.
 *
 * Objects of the heap are those of glibc's malloc: chunks that follow each other from the beginning
 * of the [heap] mapping, each with its size in the second word, and a bit of the next one's size
 * that says that it is in use (malloc/malloc.c).
 */
#include "holders/native_holders.h"

#include "holders/array.h"
#include "holders/cpp_class.h"
#include "holders/elf_dynamic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH	    (1u << 15) /* words */
#define MOST_WANTED (1u << 20)
#define MOST_CHUNKS (1u << 22)
#define IN_USE	    1u

/* The target of a search: a block, or an object of the heap on the way to one. */
struct wanted {
	uint64_t address;
	uint32_t block;
	uint32_t next;	/* index of the object that this one holds; UINT32_MAX of a block */
	uint64_t slot;	/* in this object, the word that does */
	uint32_t bytes; /* of the object */
	uint64_t vtable; /* its first word if that is one; 0 */
};

struct chunk {
	uint64_t address, bytes;
};

struct search {
	struct gm_memory *memory;
	struct wanted *wanted;
	uint32_t count, room, from; /* those of the round: from `from` on */
	uint32_t *index, index_room;
	struct chunk *chunks;
	uint32_t chunks_count, chunks_room;
	uint64_t heap_start, heap_end;
	struct gm_native_chain *chains;
	bool cpp, failed;
};

static uint32_t hash(uint64_t address)
{
	return (uint32_t)((address >> 3) * 0x9E3779B97F4A7C15u >> 32);
}

static bool index_wanted(struct search *search)
{
	free(search->index);
	search->index_room = 64;
	while (search->index_room < (search->count - search->from) * 4ul)
		search->index_room *= 2;
	search->index = calloc(search->index_room, sizeof(*search->index));
	if (!search->index)
		return false;
	for (uint32_t i = search->from; i < search->count; i++) {
		uint32_t at = hash(search->wanted[i].address) & (search->index_room - 1);

		while (search->index[at])
			at = (at + 1) & (search->index_room - 1);
		search->index[at] = i + 1;
	}
	return true;
}

static uint32_t find_wanted(const struct search *search, uint64_t address)
{
	uint32_t at = hash(address) & (search->index_room - 1);

	for (; search->index[at]; at = (at + 1) & (search->index_room - 1))
		if (search->wanted[search->index[at] - 1].address == address)
			return search->index[at] - 1;
	return UINT32_MAX;
}

/* ---- the heap ---- */

static void read_heap(struct search *search)
{
	unsigned count;
	const struct gm_mapping *mappings = gm_memory_mappings(search->memory, &count);
	uint64_t at = 0, end = 0, size;

	for (unsigned i = 0; i < count && !end; i++)
		if (strcmp(mappings[i].path, "[heap]") == 0) {
			at = search->heap_start = mappings[i].start;
			end = search->heap_end = mappings[i].end;
		}
	while (at + 16 < end && gm_memory_read(search->memory, at + 8, &size, sizeof(size))) {
		uint64_t bytes = size & ~15ull;

		if (bytes < 32 || bytes > end - at || search->chunks_count == MOST_CHUNKS ||
		    !gm_array_grow(&search->chunks, search->chunks_count, &search->chunks_room,
				   sizeof(*search->chunks)))
			break;
		if (search->chunks_count && !(size & IN_USE)) /* the one before is free */
			search->chunks[search->chunks_count - 1].bytes = 0;
		search->chunks[search->chunks_count++] = (struct chunk){at, bytes};
		at += bytes;
	}
}

/* The object of the heap that holds a word; NULL if none that is in use does. */
static const struct chunk *chunk_of(const struct search *search, uint64_t slot)
{
	uint32_t low = 0, high = search->chunks_count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (search->chunks[middle].address <= slot)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || slot < search->chunks[low - 1].address + 16 ||
	    slot + 8 > search->chunks[low - 1].address + 8 + search->chunks[low - 1].bytes)
		return NULL;
	return &search->chunks[low - 1];
}

/* ---- chains ---- */

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

/*
 * True if every word of a chain is as it was: the one at `slot`, of a global variable or 0, and of
 * each object its vtable and the word that holds the next.
 */
static bool holds(const struct search *search, uint32_t number, uint64_t slot)
{
	uint64_t addresses[GM_NATIVE_STEPS * 2], words[GM_NATIVE_STEPS * 2],
		values[GM_NATIVE_STEPS * 2];
	const struct wanted *at = &search->wanted[number];
	unsigned count = 0;

	if (gm_memory_still(search->memory))
		return true;
	if (slot) {
		addresses[count] = slot;
		values[count++] = at->address;
	}
	for (; at->next != UINT32_MAX && count + 2 <= GM_NATIVE_STEPS * 2;
	     at = &search->wanted[at->next]) {
		addresses[count] = at->slot;
		values[count++] = search->wanted[at->next].address;
		addresses[count] = at->address;
		values[count] = at->vtable;
		count += at->vtable != 0;
	}
	return gm_memory_words(search->memory, addresses, words, count) &&
	       memcmp(words, values, count * sizeof(*words)) == 0;
}

static void add_step(struct search *search, struct gm_native_chain *chain, const char *text)
{
	char *copy = chain->count < GM_NATIVE_STEPS ? strdup(text) : NULL;

	if (copy)
		chain->steps[chain->count++] = copy;
	else
		search->failed = true;
}

/* The objects of the heap from one to its block. */
static void add_objects(struct search *search, uint32_t number, struct gm_native_chain *chain)
{
	char text[512], name[450];

	for (uint32_t at = number; search->wanted[at].next != UINT32_MAX;
	     at = search->wanted[at].next) {
		const struct wanted *object = &search->wanted[at];

		if (object->vtable &&
		    gm_cpp_class(search->memory, object->vtable, name, sizeof(name)))
			snprintf(text, sizeof(text), "C++ object %s", name);
		else
			snprintf(text, sizeof(text), "heap object of %u bytes, word at +%llu",
				 object->bytes,
				 (unsigned long long)(object->slot - object->address));
		add_step(search, chain, text);
	}
	add_step(search, chain, "block");
}

static void make_chain(struct search *search, uint32_t number, uint64_t slot, const char *path)
{
	struct gm_native_chain *chain = &search->chains[search->wanted[number].block];
	const char *slash = strrchr(path, '/');
	char text[512], name[256];
	uint64_t into;

	if (!holds(search, number, slot))
		return;
	if (gm_variable_at(search->memory, path, slot, name, sizeof(name), &into) && into)
		snprintf(text, sizeof(text), "global %s+%llu (%.200s)", name,
			 (unsigned long long)into, slash + 1);
	else if (name[0])
		snprintf(text, sizeof(text), "global %s (%.200s)", name, slash + 1);
	else
		snprintf(text, sizeof(text), "global variable of %.200s", slash + 1);
	add_step(search, chain, text);
	add_objects(search, number, chain);
}

/*
 * Makes chains that begin at the outermost object of C++, for blocks that no global variable leads
 * to.
 */
static void make_cpp_chains(struct search *search)
{
	for (uint32_t i = search->count; i && !search->failed; i--) {
		struct gm_native_chain *chain = &search->chains[search->wanted[i - 1].block];

		if (chain->count || !search->wanted[i - 1].vtable || !holds(search, i - 1, 0))
			continue;
		chain->cpp = true;
		add_objects(search, i - 1, chain);
	}
}

/* An object of the heap that holds something wanted is wanted in the next round. */
static void want_chunk(struct search *search, uint32_t number, uint64_t slot)
{
	const struct chunk *chunk = chunk_of(search, slot);
	const struct wanted *held = &search->wanted[number];
	uint64_t vtable = 0;
	char name[16];

	if (!chunk || !chunk->bytes || search->count >= MOST_WANTED ||
	    !gm_memory_fresh(search->memory, chunk->address + 16, &vtable, sizeof(vtable)))
		return;
	if (!gm_cpp_class(search->memory, vtable, name, sizeof(name)))
		vtable = 0;
	/* A list of pointers may lie between two objects of C++. */
	if (search->cpp && !vtable && (held->next == UINT32_MAX || !held->vtable))
		return;
	for (uint32_t at = number; at != UINT32_MAX; at = search->wanted[at].next)
		if (search->wanted[at].address == chunk->address + 16)
			return; /* a ring */
	if (!gm_array_grow(&search->wanted, search->count, &search->room,
			   sizeof(*search->wanted))) {
		search->failed = true;
		return;
	}
	search->wanted[search->count++] = (struct wanted){.address = chunk->address + 16,
							  .block = search->wanted[number].block,
							  .next = number,
							  .slot = slot,
							  .bytes = (uint32_t)(chunk->bytes - 8),
							  .vtable = vtable};
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

static void search_mapping(struct search *search, const struct gm_mapping *mappings,
			   unsigned number, uint64_t *batch)
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
			uint32_t found =
				batch[i] > 4096 ? find_wanted(search, batch[i]) : UINT32_MAX;

			if (found == UINT32_MAX ||
			    search->chains[search->wanted[found].block].count)
				continue;
			if (object && is_of(search, mapping, object, at + i * 8))
				make_chain(search, found, at + i * 8, object);
			else if (object)
				continue;
			else if (at >= search->heap_start && at < search->heap_end)
				want_chunk(search, found, at + i * 8);
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
			search_mapping(search, mappings, i, batch);
	search->from = end;
}

bool gm_native_find(struct gm_memory *memory, const uint64_t *addresses, uint32_t count, bool cpp,
		    struct gm_native_chain *chains)
{
	struct search search = {.memory = memory, .chains = chains, .cpp = cpp};
	uint64_t *batch = malloc(BATCH * sizeof(*batch));

	search.failed = !batch;
	for (uint32_t i = 0; i < count && !search.failed; i++) {
		search.failed = !gm_array_grow(&search.wanted, search.count, &search.room,
					       sizeof(*search.wanted));
		if (!search.failed)
			search.wanted[search.count++] = (struct wanted){
				.address = addresses[i], .block = i, .next = UINT32_MAX};
	}
	read_heap(&search);
	for (unsigned round = 0;
	     round < GM_NATIVE_STEPS - 2 && !search.failed && search.from < search.count; round++)
		if (index_wanted(&search))
			search_round(&search, batch);
		else
			search.failed = true;
	if (cpp)
		make_cpp_chains(&search);
	free(batch);
	free(search.wanted);
	free(search.index);
	free(search.chunks);
	return !search.failed;
}
