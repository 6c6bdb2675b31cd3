/*
 * An array that doubles.
 */
#ifndef GM_HOLDERS_ARRAY_H
#define GM_HOLDERS_ARRAY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * Makes room for one more element of `size` bytes. `array` is the address of the pointer to the
 * elements, of which `count` of `room` are in use. False if memory ran out; nothing has changed
 * then.
 */
static inline bool gm_array_grow(void *array, uint32_t count, uint32_t *room, size_t size)
{
	void *more, *old;

	if (count < *room)
		return true;
	memcpy(&old, array, sizeof(old));
	more = realloc(old, (*room ? *room * 2ul : 1024ul) * size);
	if (!more)
		return false;
	*room = *room ? *room * 2 : 1024;
	memcpy(array, &more, sizeof(more));
	return true;
}

#endif
