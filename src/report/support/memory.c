/*
 * The zone of memory.h: a chain of blocks, each as large as what it was made for or a standard
 * size. Calls libc only.
 */
#include "report/support/memory.h"
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES (256u << 10)

struct gm_zone_block {
	struct gm_zone_block *next;
	size_t used, size;
	_Alignas(16) unsigned char bytes[];
};

void gm_no_memory(void)
{
	fputs("gpumem-report: out of memory; a larger machine or a smaller file is needed\n",
	      stderr);
	exit(3);
}

void *gm_realloc(void *memory, size_t size)
{
	void *grown = realloc(memory, size ? size : 1);

	if (!grown)
		gm_no_memory();
	return grown;
}

void *gm_zone_alloc(struct gm_zone *zone, size_t count, size_t size)
{
	struct gm_zone_block *block = zone->blocks;
	size_t bytes;
	void *memory;

	if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2)
		gm_no_memory();
	bytes = (bytes + 15) & ~(size_t)15;
	if (!block || block->size - block->used < bytes) {
		size_t room = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;

		block = calloc(1, sizeof(*block) + room);
		if (!block)
			gm_no_memory();
		block->size = room;
		block->next = zone->blocks;
		zone->blocks = block;
	}
	memory = block->bytes + block->used;
	block->used += bytes;
	return memory;
}

char *gm_zone_strndup(struct gm_zone *zone, const char *text, size_t length)
{
	char *copy = gm_zone_alloc(zone, length + 1, 1);

	memcpy(copy, text, length);
	return copy;
}

char *gm_zone_strdup(struct gm_zone *zone, const char *text)
{
	return gm_zone_strndup(zone, text, strlen(text));
}

char *gm_zone_printf(struct gm_zone *zone, const char *format, ...)
{
	va_list args;
	char *text, *copy;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		gm_no_memory();
	va_end(args);
	copy = gm_zone_strdup(zone, text);
	free(text);
	return copy;
}

/* Grows an array that has a block to itself; NULL if it has not. */
static void *grow_block(struct gm_zone *zone, const void *array, size_t bytes, size_t grown_bytes)
{
	struct gm_zone_block **link = &zone->blocks, *block;

	if (bytes <= BLOCK_BYTES)
		return NULL;
	while (*link && (*link)->bytes != array)
		link = &(*link)->next;
	if (!*link || (*link)->used != (*link)->size)
		return NULL;
	block = gm_realloc(*link, sizeof(*block) + grown_bytes);
	block->used = block->size = grown_bytes;
	*link = block;
	return block->bytes;
}

void *gm_zone_push(struct gm_zone *zone, void *array, unsigned *count, size_t size)
{
	void **slot = array, *element;

	/* Powers of two are where the array is full. */
	if ((*count & (*count - 1)) == 0) {
		void *grown = grow_block(zone, *slot, *count * size, 2 * (size_t)*count * size);

		if (!grown) {
			grown = gm_zone_alloc(zone, *count ? 2 * (size_t)*count : 1, size);
			if (*count)
				memcpy(grown, *slot, *count * size);
		}
		*slot = grown;
	}
	element = (char *)*slot + (size_t)(*count)++ * size;
	return memset(element, 0, size);
}

void gm_zone_free(struct gm_zone *zone)
{
	while (zone->blocks) {
		struct gm_zone_block *next = zone->blocks->next;

		free(zone->blocks);
		zone->blocks = next;
	}
}
