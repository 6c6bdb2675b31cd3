/*
 * Virtual memory: handles (cuMemCreate, allocations of the space GM_SPACE_HANDLE), reserved
 * addresses and mappings; and what else holds a handle's memory.
 */
#ifndef GM_TRACK_VMM_H
#define GM_TRACK_VMM_H

#include "track/event.h"

/* Addresses were reserved, or given back (event->key is the first). They hold no memory. */
void gm_track_reserve(const struct gm_event *event);
void gm_track_unreserve(const struct gm_event *event);

/* A range was mapped to `handle` from `offset` on. */
void gm_track_map(const struct gm_event *event, uint64_t handle, uint64_t offset);

/* Every mapping that begins in the range was unmapped. */
void gm_track_unmap(const struct gm_event *event);

/* Counts another reference to the handle that event->key is. */
void gm_track_retain(const struct gm_event *event);

/* A handle was released. Its memory ends when references and mappings are both gone. */
void gm_track_release(const struct gm_event *event);

/*
 * A tile of the sparse array event->key was mapped to `handle`, or unmapped if that is 0. `tile` is
 * any number that tells the tile from others. A tile holds its memory as a mapping does.
 */
void gm_track_tile(const struct gm_event *event, uint64_t tile, uint64_t handle);

/*
 * Memory was bound to the multicast object event->key from `offset` on: that of `handle`, or if
 * that is 0 what is mapped at `address`. A binding holds its memory as a mapping does.
 */
void gm_track_bind(const struct gm_event *event, uint64_t offset, uint64_t handle,
		   uint64_t address);
void gm_track_unbind(const struct gm_event *event, uint64_t offset);

#endif
