/*
 * Memory for which a handle for other processes was taken: which one, and what was freed of it.
 */
#ifndef GM_TRACK_EXPORTS_H
#define GM_TRACK_EXPORTS_H

#include "store/layout.h"

/*
 * A handle of the memory was taken (GM_ALLOC_EXPORTED). `ipc` is the number of the handle
 * (gm_handle_number), 0 if it is a file descriptor, which has none. Takes the tracker's lock.
 */
void gm_track_exported(uint8_t space, uint64_t key, uint32_t ipc);

/* ---- for track/, under the lock ---- */

/*
 * Keeps what an allocation was that is about to end, if a handle of it was taken. `stack` is that
 * of the free, or GM_NONE. Of more than GM_FREED_EXPORTS_KEPT the oldest is replaced.
 */
void gm_export_freed(const struct gm_alloc_record *record, uint32_t stack);

#endif
