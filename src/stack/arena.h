/*
 * Private memory for the tracker: mapped pages cut into size classes, so that nothing of ours is in
 * the program's heap and nothing of its heap's state can bite us. An arena is not thread-safe; its
 * owner's lock guards it. Calls mmap and munmap only.
 */
#ifndef GM_STACK_ARENA_H
#define GM_STACK_ARENA_H

#include <stddef.h>
#include <stdint.h>

#define GM_ARENA_CLASSES 48

/* Zero-initialised is an empty arena. */
struct gm_arena {
	void *free[GM_ARENA_CLASSES]; /* freed pieces by class, linked through their first word */
	struct gm_arena_map *maps;    /* every mapping, newest first */
	char *next, *end;	      /* the rest of the current chunk */
	uint64_t mapped_bytes;
};

/*
 * Memory aligned to 16, from 64 bytes on to a cache line; not zeroed where it was used before. NULL
 * if the system has none.
 */
void *gm_arena_alloc(struct gm_arena *arena, size_t bytes);

/* Gives memory back; `bytes` as it was asked for. NULL is allowed. */
void gm_arena_free(struct gm_arena *arena, void *memory, size_t bytes);

/* The bytes that the arena has mapped, in use or not. */
uint64_t gm_arena_bytes(const struct gm_arena *arena);

/* Unmaps everything. */
void gm_arena_reset(struct gm_arena *arena);

#endif
