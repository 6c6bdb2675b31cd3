/*
 * Writing what came and went into the page, see internal.h.
 */
#include "account/kinds.h"
#include "account/sizes.h"
#include "report/render/json/json_values.h"
#include "report/render/page/internal.h"
#include "report/support/memory.h"
#include <stdlib.h>
#include <string.h>

/* The place of memory: an allocation and its free have the same place. */
struct place {
	uint64_t address; /* or another key, of memory without an address */
	uint32_t class;	  /* space, level, device */
} __attribute__((packed, aligned(4)));

struct shape {
	uint64_t bytes;
	int32_t site;
	int16_t device;
	uint8_t role, torch;
};

/* A list of which each element is kept once. */
struct set {
	size_t size; /* of an element */
	int (*compare)(const void *, const void *);
	char *list; /* after set_sort in order */
	unsigned count, room;
};

/* The places and shapes that the written changes refer to. */
struct tables {
	const struct gm_page_changes *changes;
	struct set places, shapes;
};

/* Blocks of PyTorch and of programs' pools have an address, whatever their name space is. */
static bool placed(const struct gm_page_change *change)
{
	return (change->level != GM_LEVEL_DRIVER || change->space == GM_SPACE_POINTER ||
		change->space == GM_SPACE_MAPPING || change->space == GM_SPACE_RESERVATION) &&
	       change->bytes > 0 && change->bytes <= UINT64_MAX - change->address;
}

static enum gm_page_role role_of(const struct gm_page_change *change)
{
	const struct gm_alloc_record alloc = {.bytes = change->bytes,
					      .space = change->space,
					      .kind = change->kind,
					      .level = change->level};

	if (!placed(change))
		return GM_PAGE_NO_ADDRESS;
	if (change->level != GM_LEVEL_DRIVER)
		return GM_PAGE_BLOCK;
	if (change->space == GM_SPACE_MAPPING)
		return GM_PAGE_MAPPING;
	if (change->space == GM_SPACE_RESERVATION)
		return GM_PAGE_RESERVATION;
	if (gm_in_slab(&alloc))
		return GM_PAGE_SLAB;
	if (gm_is_divisible(&alloc))
		return GM_PAGE_DIVISIBLE;
	return gm_kind_owned(change->kind) ? GM_PAGE_ALLOCATION : GM_PAGE_NO_ADDRESS;
}

static struct place place_of(const struct gm_page_change *change)
{
	return (struct place){change->address,
			      (placed(change) ? 0u : 1u << 31) | (uint32_t)change->space << 24 |
				      (uint32_t)change->level << 16 | (uint16_t)change->device};
}

static struct shape shape_of(const struct gm_doc *doc, const int *numbers,
			     const struct gm_page_change *change)
{
	bool known = change->site < doc->sites_count;

	return (struct shape){.bytes = change->bytes,
			      .site = known ? numbers[change->site] : -1,
			      .device = change->device,
			      .role = (uint8_t)role_of(change),
			      .torch = known &&
				       doc->sites[change->site].record.flags & GM_SITE_TORCH};
}

/* --device, --kind and --level leave sites out; mappings and reservations need none. */
static bool written(const struct gm_doc *doc, const int *numbers,
		    const struct gm_page_change *change)
{
	if (change->site < doc->sites_count)
		return numbers[change->site] >= 0;
	return change->space == GM_SPACE_MAPPING || change->space == GM_SPACE_RESERVATION;
}

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->class != y->class)
		return x->class < y->class ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

static int compare_shapes(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct shape));
}

/* Sorts the elements, and drops those that are there twice. */
static void set_sort(struct set *set)
{
	unsigned kept = 0, front = 1;

	while (front < set->count &&
	       set->compare(set->list + (front - 1) * set->size, set->list + front * set->size) < 0)
		front++;
	if (front >= set->count)
		return;
	qsort(set->list, set->count, set->size, set->compare);
	for (unsigned i = 0; i < set->count; i++) {
		char *last = set->list + kept * set->size, *next = set->list + i * set->size;

		if (!kept || set->compare(last - set->size, next) != 0)
			memmove(set->list + kept++ * set->size, next, set->size);
	}
	set->count = kept;
}

/* The list grows when half of it is needed without what is there twice. */
static void set_add(struct set *set, const void *element)
{
	if (set->count == set->room) {
		set_sort(set);
		if (set->count >= set->room / 2) {
			set->room = set->room ? 2 * set->room : 4096;
			set->list = gm_realloc(set->list, set->room * set->size);
		}
	}
	memcpy(set->list + set->count++ * set->size, element, set->size);
}

/* Returns the number of an element of a sorted set. */
static int64_t set_number(const struct set *set, const void *element)
{
	const char *found = bsearch(element, set->list, set->count, set->size, set->compare);

	return (found - set->list) / (int64_t)set->size;
}

static struct tables make_tables(const struct gm_doc *doc, const int *numbers,
				 const struct gm_page_changes *changes)
{
	struct tables tables = {.changes = changes,
				.places = {sizeof(struct place), compare_places},
				.shapes = {sizeof(struct shape), compare_shapes}};

	for (unsigned i = 0; i < gm_page_changes_count(changes); i++) {
		const struct gm_page_change change = gm_page_change_at(changes, i);
		const struct place place = place_of(&change);
		const struct shape shape = shape_of(doc, numbers, &change);

		if (change.came != GM_NONE || !written(doc, numbers, &change))
			continue;
		set_add(&tables.places, &place);
		set_add(&tables.shapes, &shape);
	}
	set_sort(&tables.places);
	set_sort(&tables.shapes);
	return tables;
}

/* ---- writing ---- */

static void put_number(struct gm_json_out *out, bool first, int64_t value)
{
	if (!first)
		gm_json_put(out, ",", 1);
	gm_json_put_integer(out, value);
}

enum column { TIMES, PLACES, SHAPES };

static int64_t number_in(const struct tables *tables, const struct gm_doc *doc, const int *numbers,
			 const struct gm_page_change *change, enum column column)
{
	const struct place place = place_of(change);
	const struct shape shape = shape_of(doc, numbers, change);

	if (column == PLACES)
		return set_number(&tables->places, &place);
	return change->came == GM_NONE ? set_number(&tables->shapes, &shape) : -1;
}

static void put_column(struct gm_json_out *out, const char *name, const struct tables *tables,
		       const struct gm_doc *doc, const int *numbers, enum column column)
{
	uint64_t before = 0;
	bool first = true;

	gm_json_put_name(out, name);
	gm_json_put_text(out, "[");
	for (unsigned i = 0; i < gm_page_changes_count(tables->changes); i++) {
		const struct gm_page_change change = gm_page_change_at(tables->changes, i);
		uint64_t now = change.time_ns > before ? change.time_ns : before;

		if (!written(doc, numbers, &change))
			continue;
		put_number(out, first,
			   column == TIMES ? (int64_t)(now - before)
					   : number_in(tables, doc, numbers, &change, column));
		before = now;
		first = false;
	}
	gm_json_put_text(out, "]");
}

static void put_addresses(struct gm_json_out *out, const struct tables *tables)
{
	const struct place *places = (const struct place *)tables->places.list;
	uint64_t before = 0;

	gm_json_put_name(out, "address");
	gm_json_put_text(out, "[");
	for (unsigned i = 0; i < tables->places.count; i++) {
		bool known = !(places[i].class >> 31);
		uint64_t now = known ? places[i].address : before;

		put_number(out, i == 0, (int64_t)(now - before));
		before = now;
	}
	gm_json_put_text(out, "]");
}

static void put_shapes(struct gm_json_out *out, const struct tables *tables)
{
	static const char *const names[] = {"{\"site\": [", "],\"bytes\": [", "],\"role\": [",
					    "],\"device\": [", "],\"torch\": ["};

	gm_json_put_name(out, "shapes");
	for (unsigned column = 0; column < 5; column++) {
		gm_json_put_text(out, names[column]);
		for (unsigned i = 0; i < tables->shapes.count; i++) {
			const struct shape *shape = (struct shape *)tables->shapes.list + i;
			const int64_t values[] = {shape->site, (int64_t)shape->bytes, shape->role,
						  shape->device, shape->torch};

			put_number(out, i == 0, values[column]);
		}
	}
	gm_json_put_text(out, "]}");
}

static json_t *failures(const struct gm_doc *doc, const int *numbers,
			const struct gm_page_changes *changes)
{
	json_t *times = json_array(), *sites = json_array(), *bytes = json_array();

	for (unsigned i = 0; i < changes->failures_count; i++) {
		const struct gm_page_failure *failure = &changes->failures[i];
		bool known = failure->site < doc->sites_count;

		json_array_append_new(times, json_real((double)failure->time_ns / 1e9));
		json_array_append_new(
			sites,
			json_integer(known ? numbers[doc->sites[failure->site].merged] : -1));
		json_array_append_new(bytes, gm_json_bytes(failure->bytes));
	}
	return json_pack("{s:o, s:o, s:o}", "time_s", times, "site", sites, "bytes", bytes);
}

/* Counts the written changes that were live at `from_ns`. */
static unsigned start_of(const struct gm_doc *doc, const int *numbers,
			 const struct gm_page_changes *changes)
{
	unsigned start = 0;

	for (unsigned i = 0; i < changes->start; i++) {
		const struct gm_page_change change = gm_page_change_at(changes, i);

		start += written(doc, numbers, &change);
	}
	return start;
}

void gm_page_put_history(struct gm_json_out *out, struct gm_doc *doc, const int *numbers)
{
	struct gm_page_changes changes = gm_page_find_changes(doc);
	bool known = changes.from_ns != GM_NO_BYTES;
	struct tables tables;

	if (!known)
		changes.count = changes.blocks_count = changes.start = 0;
	tables = make_tables(doc, numbers, &changes);
	gm_json_put_text(out, "{\"from_s\": ");
	gm_json_put_value(out, known ? json_real((double)changes.from_ns / 1e9) : json_null());
	gm_json_put_key(out, "complete", json_boolean(!changes.reason));
	gm_json_put_key(out, "reason", gm_json_string(changes.reason));
	gm_json_put_key(out, "thinned", json_boolean(changes.thinned));
	gm_json_put_key(out, "changes", gm_json_bytes(changes.seen));
	gm_json_put_key(out, "start", json_integer(start_of(doc, numbers, &changes)));
	put_column(out, "dt_ns", &tables, doc, numbers, TIMES);
	put_column(out, "place", &tables, doc, numbers, PLACES);
	put_column(out, "shape", &tables, doc, numbers, SHAPES);
	put_addresses(out, &tables);
	put_shapes(out, &tables);
	gm_json_put_key(out, "slab_bytes", gm_json_bytes(GM_SLAB_BYTES));
	gm_json_put_key(out, "failures", failures(doc, numbers, &changes));
	gm_json_put_text(out, "}");
	free(tables.places.list);
	free(tables.shapes.list);
	gm_page_changes_free(&changes);
}
