/*
 * Drives the tracker without a shim: events straight into track/, on a file of its own.
 */
#ifndef TESTS_TRACK_DRIVE_H
#define TESTS_TRACK_DRIVE_H

#include "store/writer.h"
#include "track/event.h"
#include "track/functions.h"
#include "track/track.h"

/* Opens a file at `path`; false if that fails. */
static inline bool drive_open(const char *path, uint64_t cap_bytes)
{
	if (gm_store_create(path, cap_bytes) != 0)
		return false;
	gm_track_start(true);
	return true;
}

/* An event of a family at a key; the number of different stacks is bounded, as a program's is. */
static inline struct gm_event drive_event(uint64_t key, unsigned kind, unsigned space,
					  unsigned level)
{
	return (struct gm_event){
		.key = key,
		.bytes = 512 + key % 4096,
		.stack = GM_NONE,
		.caller_module = GM_NONE,
		.function = gm_track_function((unsigned)(key % 64), "cudaMalloc", GM_LAYER_RUNTIME),
		.owner = GM_NONE,
		.context = GM_NONE,
		.kind = (uint8_t)kind,
		.space = (uint8_t)space,
		.level = (uint8_t)level,
	};
}

#endif
