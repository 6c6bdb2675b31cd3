/*
 * The holders of a handle's memory beside its mappings to addresses: the bindings of multicast
 * objects and the tiles of sparse arrays, neither of which has memory of its own. For track/, under
 * the lock.
 */
#ifndef GM_TRACK_HOLDS_H
#define GM_TRACK_HOLDS_H

#include "store/layout.h"

#include <stdbool.h>

struct gm_hold {
	struct gm_hold *next;
	uint64_t object; /* multicast object or array, by `space` */
	uint64_t offset,
		bytes;	/* in the object; the offset of a tile is any number that tells it apart */
	uint32_t owner; /* index of the handle's record, whose memory is held */
	int16_t device;
	uint8_t space;
};

void gm_holds_reset(void);

/* Adds a copy of a hold, and counts it in the handle's mappings. Without memory nothing is held. */
void gm_hold_add(const struct gm_hold *hold);

/*
 * Removes one hold for which `matches` returns true and returns its owner; GM_NONE if there is
 * none. The handle's mappings still count it.
 */
uint32_t gm_hold_remove(bool (*matches)(const struct gm_hold *, const void *), const void *data);

#endif
