/*
 * What holds a handle's memory beside its mappings to addresses: bindings to multicast objects and
 * tiles of sparse arrays, neither of which has memory of its own. A hold ends when it is undone or when
 * its object is gone.
 */
#include "track/state.h"

struct hold {
	struct hold *next;
	uint64_t object;	/* multicast object or array, by `space` */
	uint64_t place, bytes;	/* offset in the object; of a tile any number that tells it from others */
	uint32_t owner;		/* the handle's record that holds the memory */
	int16_t device;
	uint8_t space;
};

static struct hold *holds;

void gm_holds_reset(void)
{
	holds = NULL; /* the arena went with everything in it */
}

static void drop(struct hold **at)
{
	struct hold *hold = *at;
	uint32_t owner = hold->owner;

	*at = hold->next;
	gm_arena_free(&gm_track_arena, hold, sizeof(*hold));
	gm_vmm_let_go(owner);
}

static void add(const struct gm_event *event, uint64_t place, uint32_t owner_number)
{
	struct gm_alloc_record *owner = gm_store_record(GM_TABLE_ALLOCS, owner_number);
	struct hold *hold = owner ? gm_arena_alloc(&gm_track_arena, sizeof(*hold)) : NULL;

	if (!hold)
		return;
	*hold = (struct hold){holds, event->key, place, event->bytes, owner_number, owner->device,
			      event->space};
	holds = hold;
	owner->mappings++;
}

void gm_holder_gone(unsigned space, uint64_t object)
{
	struct hold **at = &holds;

	while (*at) {
		if ((*at)->object == object && (*at)->space == space)
			drop(at);
		else
			at = &(*at)->next;
	}
}

/* ---- multicast ---- */

/* Handle of the memory that is mapped at an address inside a mapping. */
static uint32_t owner_at(uint64_t address)
{
	uint32_t number, count = gm_file->tables[GM_TABLE_ALLOCS].count;

	for (number = 0; number < count; number++) {
		struct gm_alloc_record *record = gm_store_record(GM_TABLE_ALLOCS, number);

		if (record->state == GM_STATE_LIVE && record->space == GM_SPACE_MAPPING &&
		    address >= record->key && address - record->key < record->bytes)
			return record->owner;
	}
	return GM_NONE;
}

static uint32_t owner_of(uint64_t handle)
{
	uint32_t number;

	return gm_live_find(GM_SPACE_HANDLE, handle, &number) ? number : GM_NONE;
}

void gm_track_bind(const struct gm_event *event, uint64_t offset, uint64_t handle, uint64_t address)
{
	if (!gm_file)
		return;
	gm_track_enter();
	gm_file->events++;
	add(event, offset, handle ? owner_of(handle) : owner_at(address));
	gm_track_leave();
}

void gm_track_unbind(const struct gm_event *event, uint64_t offset)
{
	struct hold **at = &holds;

	if (!gm_file)
		return;
	gm_track_enter();
	gm_file->events++;
	while (*at) {
		struct hold *hold = *at;

		if (hold->object == event->key && hold->space == event->space &&
		    hold->device == event->device && hold->place >= offset &&
		    hold->place - offset < event->bytes)
			drop(at);
		else
			at = &hold->next;
	}
	gm_track_leave();
}

/* ---- tiles ---- */

static void drop_tile(const struct gm_event *event, uint64_t tile)
{
	struct hold **at = &holds;

	while (*at && ((*at)->object != event->key || (*at)->space != event->space ||
		       (*at)->place != tile))
		at = &(*at)->next;
	if (*at)
		drop(at);
}

void gm_track_tile(const struct gm_event *event, uint64_t tile, uint64_t handle)
{
	if (!gm_file)
		return;
	gm_track_enter();
	gm_file->events++;
	drop_tile(event, tile);
	if (handle)
		add(event, tile, owner_of(handle));
	gm_track_leave();
}
