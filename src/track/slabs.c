/*
 * Slabs, and what the driver holds for an allocation.
 */
#include "track/slabs.h"

#include <string.h>

struct gm_slabs gm_slabs;

void gm_slabs_reset(void)
{
	memset(&gm_slabs, 0, sizeof(gm_slabs)); /* the arena was freed as a whole */
}

struct gm_slab_sums gm_slab_sums(int device)
{
	return gm_slabs.sums[gm_slot(device)];
}

bool gm_slab_begin(uint64_t number)
{
	return gm_index_add(&gm_slabs.index, &gm_track_arena, 0, number, 0, 1);
}

int64_t gm_physical_add(const struct gm_alloc_record *alloc)
{
	if (gm_in_pool(alloc))
		return 0;
	if (!gm_in_slab(alloc))
		return (int64_t)alloc->physical_bytes;
	return (int64_t)gm_slab_add(alloc->device, alloc->key, alloc->physical_bytes);
}

int64_t gm_physical_remove(const struct gm_alloc_record *alloc)
{
	if (gm_in_pool(alloc))
		return 0;
	if (!gm_in_slab(alloc))
		return -(int64_t)alloc->physical_bytes;
	return -(int64_t)gm_slab_remove(alloc->device, alloc);
}
