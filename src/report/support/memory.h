/*
 * Memory for the report tool: an arena that a document and everything it points at live in, freed
 * as one. The tool cannot go on without memory, so running out ends it with a sentence and
 * status 3.
 */
#ifndef GM_REPORT_SUPPORT_MEMORY_H
#define GM_REPORT_SUPPORT_MEMORY_H

#include <stddef.h>

struct gm_arena {
	struct gm_arena_block *blocks;
};

/* Zeroed memory that lives as long as the arena. `count` things of `size` bytes. */
void *gm_arena_alloc(struct gm_arena *arena, size_t count, size_t size);

/* Copies of text in the arena; gm_arena_printf formats as printf. */
char *gm_arena_strndup(struct gm_arena *arena, const char *text, size_t length);
char *gm_arena_strdup(struct gm_arena *arena, const char *text);
char *gm_arena_printf(struct gm_arena *arena, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Room for one more element at the end of an array that lives in the arena: `array` is replaced
 * when it must move, `count` is raised. Returns the new, zeroed element.
 */
void *gm_arena_push(struct gm_arena *arena, void *array, unsigned *count, size_t size);

void gm_arena_free(struct gm_arena *arena);

/* malloc and realloc that do not return NULL. */
void *gm_realloc(void *memory, size_t size);

#endif
