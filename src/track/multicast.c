/*
 * Bindings of memory to multicast objects. A multicast object is a handle without memory of its own; a
 * binding holds the memory it binds as a mapping does, until it is unbound or the object is gone.
 */
#include "track/state.h"

struct binding {
	struct binding *next;
	uint64_t object, offset, bytes;
	uint32_t owner; /* the handle's record that holds the memory */
	int16_t device;
};

static struct binding *bindings;

void gm_multicast_reset(void)
{
	bindings = NULL; /* the arena went with everything in it */
}

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

void gm_track_bind(const struct gm_event *event, uint64_t offset, uint64_t handle, uint64_t address)
{
	struct gm_alloc_record *owner;
	struct binding *binding;
	uint32_t number = GM_NONE;

	if (!gm_file)
		return;
	gm_track_enter();
	gm_file->events++;
	if (!handle)
		number = owner_at(address);
	else if (!gm_live_find(GM_SPACE_HANDLE, handle, &number))
		number = GM_NONE;
	owner = gm_store_record(GM_TABLE_ALLOCS, number);
	binding = owner ? gm_arena_alloc(&gm_track.arena, sizeof(*binding)) : NULL;
	if (binding) {
		*binding = (struct binding){bindings, event->key, offset, event->bytes, number,
					    owner->device};
		bindings = binding;
		owner->mappings++;
	}
	gm_track_leave();
}

static void drop(struct binding **at)
{
	struct binding *binding = *at;
	uint32_t owner = binding->owner;

	*at = binding->next;
	gm_arena_free(&gm_track.arena, binding, sizeof(*binding));
	gm_vmm_let_go(owner);
}

void gm_track_unbind(const struct gm_event *event, uint64_t offset)
{
	struct binding **at = &bindings;

	if (!gm_file)
		return;
	gm_track_enter();
	gm_file->events++;
	while (*at) {
		if ((*at)->object == event->key && (*at)->device == event->device &&
		    (*at)->offset >= offset && (*at)->offset - offset < event->bytes)
			drop(at);
		else
			at = &(*at)->next;
	}
	gm_track_leave();
}

void gm_multicast_gone(uint64_t object)
{
	struct binding **at = &bindings;

	while (*at) {
		if ((*at)->object == object)
			drop(at);
		else
			at = &(*at)->next;
	}
}
