/*
 * Memory for the report tool: a zone that a document and everything it points at live in, freed
 * as one. The tool cannot go on without memory, so running out ends it with a sentence and
 * status 3.
 */
#ifndef GM_REPORT_SUPPORT_MEMORY_H
#define GM_REPORT_SUPPORT_MEMORY_H

#include <stddef.h>

struct gm_zone {
	struct gm_zone_block *blocks;
};

/* Zeroed memory that lives as long as the zone. `count` things of `size` bytes. */
void *gm_zone_alloc(struct gm_zone *zone, size_t count, size_t size);

/* Copies of text in the zone; gm_zone_printf formats as printf. */
char *gm_zone_strndup(struct gm_zone *zone, const char *text, size_t length);
char *gm_zone_strdup(struct gm_zone *zone, const char *text);
char *gm_zone_printf(struct gm_zone *zone, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Room for one more element at the end of an array that lives in the zone: `array` is replaced
 * when it must move, `count` is raised. Returns the new, zeroed element.
 */
void *gm_zone_push(struct gm_zone *zone, void *array, unsigned *count, size_t size);

void gm_zone_free(struct gm_zone *zone);

/* Ends the tool with that sentence and status. */
void gm_no_memory(void) __attribute__((noreturn));

/* malloc and realloc that do not return NULL. */
void *gm_realloc(void *memory, size_t size);

#endif
