/*
 * Frees that CUDA refused.
 */
#include "track/errors.h"
#include "track/freed.h"
#include "track/live.h"

#define ERRORS_KEPT 4096u

static bool same_error(const struct gm_error_record *record, enum gm_error_type type,
		       const struct gm_event *event, uint32_t first_free_stack)
{
	return record->type == type && record->function == event->function &&
	       record->error == event->error && record->stack == event->stack &&
	       record->first_free_stack == first_free_stack;
}

void gm_record_error(enum gm_error_type type, const struct gm_event *event, uint64_t bytes,
		     uint32_t first_free_stack, uint32_t victim_site)
{
	uint32_t index, count = gm_file->tables[GM_TABLE_ERRORS].count;
	struct gm_error_record *record = NULL;

	for (index = 0; index < count; index++) {
		record = gm_store_record(GM_TABLE_ERRORS, index);
		if (same_error(record, type, event, first_free_stack))
			break;
		record = NULL;
	}
	if (!record) {
		if (count >= ERRORS_KEPT) {
			gm_store_dropped(GM_TABLE_ERRORS);
			return;
		}
		record = gm_store_append(GM_TABLE_ERRORS, 1, &index);
		if (!record)
			return;
		record->type = type;
		record->function = event->function;
		record->error = event->error;
		record->stack = event->stack;
		record->first_free_stack = first_free_stack;
		record->time_ns = gm_track.now_ns;
	}
	record->victim_site = victim_site;
	record->pointer = event->key;
	record->count++;
	record->bytes += bytes;
	gm_store_publish(GM_TABLE_ERRORS);
}

/* Looks for the key in the spaces that its free call is not about. */
static struct gm_alloc_record *find_elsewhere(const struct gm_event *event)
{
	static const uint8_t address_spaces[] = {GM_SPACE_POINTER, GM_SPACE_REGISTERED,
						 GM_SPACE_MAPPING, GM_SPACE_RESERVATION,
						 GM_SPACE_ARRAY,   GM_SPACE_MIPMAP};
	struct gm_alloc_record *record;
	uint32_t index;
	unsigned i;

	for (i = 0; i < sizeof(address_spaces); i++) {
		if (address_spaces[i] == event->space)
			continue;
		record = gm_live_find(address_spaces[i], event->key, &index);
		if (record)
			return record;
	}
	return NULL;
}

/* Looks for an allocation that contains the key behind its first address. */
static struct gm_alloc_record *find_around(const struct gm_event *event)
{
	switch (event->space) {
	case GM_SPACE_POINTER:
	case GM_SPACE_REGISTERED:
	case GM_SPACE_MAPPING:
	case GM_SPACE_RESERVATION:
		return gm_live_find_containing(event->space, event->key);
	default: /* handles */
		return NULL;
	}
}

static bool same_family(unsigned free_kind, unsigned alloc_kind)
{
	bool host_free = free_kind == GM_KIND_PINNED, host = alloc_kind == GM_KIND_PINNED;

	if (free_kind == GM_KIND_IMPORTED || alloc_kind == GM_KIND_IMPORTED)
		return free_kind == alloc_kind;
	return host_free == host;
}

void gm_record_free_error(const struct gm_event *event, struct gm_alloc_record *alloc)
{
	const struct gm_freed *freed = gm_freed_find(event->space, event->key);
	struct gm_alloc_record *other;
	uint32_t index;

	if (!alloc && event->space == GM_SPACE_MAPPING) /* an unmap has no ticket */
		alloc = gm_live_find(event->space, event->key, &index);
	if (alloc) {
		gm_record_error(same_family(event->kind, alloc->kind) ? GM_ERROR_FREE_FAILED
								      : GM_ERROR_WRONG_FAMILY,
				event, alloc->bytes, GM_NONE, alloc->site);
		return;
	}
	other = event->space == GM_SPACE_MAPPING ? NULL : find_elsewhere(event);
	if (other)
		gm_record_error(GM_ERROR_WRONG_FAMILY, event, other->bytes, GM_NONE, other->site);
	else if (freed && gm_freed_cause(freed))
		gm_record_error(GM_ERROR_FREE_AFTER_RESET, event, freed->bytes, freed->stack,
				freed->site);
	else if (freed && event->space == GM_SPACE_HANDLE)
		gm_record_error(GM_ERROR_RELEASED_TWICE, event, freed->bytes, freed->stack,
				freed->site);
	else if (freed)
		gm_record_error(GM_ERROR_DOUBLE_FREE, event, freed->bytes, freed->stack,
				freed->site);
	else if ((other = find_around(event)))
		gm_record_error(GM_ERROR_INTERIOR_POINTER, event, other->bytes, GM_NONE,
				other->site);
	else
		gm_record_error(GM_ERROR_UNKNOWN_POINTER, event, 0, GM_NONE, GM_NONE);
}
