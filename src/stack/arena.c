/*
 * The private arena (arena.h). Pieces up to LARGE come from chunks, in classes of a quarter power
 * of two (at most 25 % waste); larger ones are mapped one by one and unmapped when freed.
 */
#include "stack/arena.h"

#include <sys/mman.h>

#define SMALLEST 16u
#define LARGE	 32768u
#define CHUNK	 (256u << 10)
#define PAGE	 4096u
#define LINE	 64u /* of the cache */

/* At the start of every mapping: one cache line. */
struct gm_arena_map {
	struct gm_arena_map *older, *newer;
	size_t bytes;
	char padding[64 - 2 * sizeof(void *) - sizeof(size_t)];
};
_Static_assert(sizeof(struct gm_arena_map) == 64, "one cache line");

/* The size class of a request and the bytes of its pieces. */
static unsigned size_class(size_t bytes, size_t *piece)
{
	unsigned power, quarter;
	size_t step;

	if (bytes <= 64) {
		unsigned number = bytes ? (bytes - 1) / SMALLEST : 0;

		*piece = (number + 1) * SMALLEST;
		return number;
	}
	power = 63 - __builtin_clzll(bytes - 1); /* 2^power < bytes <= 2^(power + 1) */
	step = (size_t)1 << (power - 2);
	quarter = (bytes - 1 - ((size_t)1 << power)) / step;
	*piece = ((size_t)1 << power) + (quarter + 1) * step;
	return 4 + (power - 6) * 4 + quarter;
}

static struct gm_arena_map *map_pages(struct gm_arena *arena, size_t bytes)
{
	struct gm_arena_map *map =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		return NULL;
	map->bytes = bytes;
	map->older = arena->maps;
	if (arena->maps)
		arena->maps->newer = map;
	arena->maps = map;
	arena->mapped_bytes += bytes;
	return map;
}

static size_t large_bytes(size_t bytes)
{
	return (bytes + sizeof(struct gm_arena_map) + PAGE - 1) & ~(size_t)(PAGE - 1);
}

void *gm_arena_alloc(struct gm_arena *arena, size_t bytes)
{
	struct gm_arena_map *map;
	unsigned number;
	size_t piece, gap;
	void *memory;

	if (bytes > LARGE) {
		if (bytes > SIZE_MAX / 2)
			return NULL;
		map = map_pages(arena, large_bytes(bytes));
		return map ? map + 1 : NULL;
	}
	number = size_class(bytes, &piece);
	memory = arena->free[number];
	if (memory) {
		arena->free[number] = *(void **)memory;
		return memory;
	}
	gap = piece < LINE ? 0 : -(uintptr_t)arena->next % LINE;
	if ((size_t)(arena->end - arena->next) < piece + gap) {
		map = map_pages(arena, CHUNK);
		if (!map)
			return NULL;
		arena->next = (char *)(map + 1);
		arena->end = (char *)map + CHUNK;
		gap = 0;
	}
	memory = arena->next + gap;
	arena->next += gap + piece;
	return memory;
}

void gm_arena_free(struct gm_arena *arena, void *memory, size_t bytes)
{
	struct gm_arena_map *map;
	unsigned number;
	size_t piece;

	if (!memory)
		return;
	if (bytes <= LARGE) {
		number = size_class(bytes, &piece);
		*(void **)memory = arena->free[number];
		arena->free[number] = memory;
		return;
	}
	map = (struct gm_arena_map *)memory - 1;
	if (map->older)
		map->older->newer = map->newer;
	if (map->newer)
		map->newer->older = map->older;
	else
		arena->maps = map->older;
	arena->mapped_bytes -= map->bytes;
	munmap(map, map->bytes);
}

uint64_t gm_arena_bytes(const struct gm_arena *arena)
{
	return arena->mapped_bytes;
}

void gm_arena_reset(struct gm_arena *arena)
{
	struct gm_arena_map *map = arena->maps;

	*arena = (struct gm_arena){0};
	while (map) {
		struct gm_arena_map *older = map->older;

		munmap(map, map->bytes);
		map = older;
	}
}
