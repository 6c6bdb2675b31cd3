/*
 * The holders of a handle's memory beside its mappings.
 */
#include "track/holds.h"
#include "track/state.h"

static struct gm_hold *holds;

void gm_holds_reset(void)
{
	holds = NULL; /* the arena was freed as a whole */
}

void gm_hold_add(const struct gm_hold *hold)
{
	struct gm_alloc_record *owner = gm_store_record(GM_TABLE_ALLOCS, hold->owner);
	struct gm_hold *copy = owner ? gm_arena_alloc(&gm_track_arena, sizeof(*copy)) : NULL;

	if (!copy)
		return;
	*copy = *hold;
	copy->next = holds;
	holds = copy;
	owner->mappings++;
}

uint32_t gm_hold_remove(bool (*matches)(const struct gm_hold *, const void *), const void *data)
{
	struct gm_hold **at = &holds, *hold;
	uint32_t owner;

	while (*at && !matches(*at, data))
		at = &(*at)->next;
	hold = *at;
	if (!hold)
		return GM_NONE;
	owner = hold->owner;
	*at = hold->next;
	gm_arena_free(&gm_track_arena, hold, sizeof(*hold));
	return owner;
}
