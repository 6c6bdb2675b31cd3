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
};

struct shape {
	uint64_t bytes;
	int32_t site;
	int16_t device;
	uint8_t role, torch;
};

/* The places and shapes that the written changes refer to, each once and in order. */
struct tables {
	const struct gm_page_changes *changes;
	struct place *places;
	struct shape *shapes;
	unsigned places_count, shapes_count;
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

/* Sorts a list from malloc and drops what is there twice; `count` is how many are left. */
static void *unique(void *list, unsigned *count_at, size_t size,
		    int (*compare)(const void *, const void *))
{
	unsigned count = *count_at;
	char *bytes = list;
	unsigned kept = 0;

	if (count)
		qsort(list, count, size, compare);
	for (unsigned i = 0; i < count; i++) {
		if (kept && compare(bytes + (kept - 1) * size, bytes + i * size) == 0)
			continue;
		memmove(bytes + kept++ * size, bytes + i * size, size);
	}
	*count_at = kept;
	return gm_realloc(list, (kept + 1) * size);
}

static bool is_shown(const struct gm_doc *doc, const int *numbers,
		     const struct gm_page_change *change)
{
	return change->came == GM_NONE && written(doc, numbers, change);
}

static struct tables make_tables(const struct gm_doc *doc, const int *numbers,
				 const struct gm_page_changes *changes)
{
	struct tables tables = {.changes = changes};

	tables.places = gm_realloc(NULL, (changes->count + 1) * sizeof(*tables.places));
	for (unsigned i = 0; i < changes->count; i++)
		if (is_shown(doc, numbers, &changes->list[i]))
			tables.places[tables.places_count++] = place_of(&changes->list[i]);
	tables.places =
		unique(tables.places, &tables.places_count, sizeof(struct place), compare_places);
	tables.shapes = gm_realloc(NULL, (changes->count + 1) * sizeof(*tables.shapes));
	for (unsigned i = 0; i < changes->count; i++)
		if (is_shown(doc, numbers, &changes->list[i]))
			tables.shapes[tables.shapes_count++] =
				shape_of(doc, numbers, &changes->list[i]);
	tables.shapes =
		unique(tables.shapes, &tables.shapes_count, sizeof(struct shape), compare_shapes);
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
		return (struct place *)bsearch(&place, tables->places, tables->places_count,
					       sizeof(place), compare_places) -
		       tables->places;
	if (change->came != GM_NONE)
		return -1;
	return (struct shape *)bsearch(&shape, tables->shapes, tables->shapes_count, sizeof(shape),
				       compare_shapes) -
	       tables->shapes;
}

static void put_column(struct gm_json_out *out, const char *name, const struct tables *tables,
		       const struct gm_doc *doc, const int *numbers, enum column column)
{
	uint64_t before = 0;
	bool first = true;

	gm_json_put_name(out, name);
	gm_json_put_text(out, "[");
	for (unsigned i = 0; i < tables->changes->count; i++) {
		const struct gm_page_change *change = &tables->changes->list[i];
		uint64_t now = change->time_ns > before ? change->time_ns : before;

		if (!written(doc, numbers, change))
			continue;
		put_number(out, first,
			   column == TIMES ? (int64_t)(now - before)
					   : number_in(tables, doc, numbers, change, column));
		before = now;
		first = false;
	}
	gm_json_put_text(out, "]");
}

static void put_addresses(struct gm_json_out *out, const struct tables *tables)
{
	uint64_t before = 0;

	gm_json_put_name(out, "address");
	gm_json_put_text(out, "[");
	for (unsigned i = 0; i < tables->places_count; i++) {
		bool known = !(tables->places[i].class >> 31);
		uint64_t now = known ? tables->places[i].address : before;

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
		for (unsigned i = 0; i < tables->shapes_count; i++) {
			const struct shape *shape = &tables->shapes[i];
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

	for (unsigned i = 0; i < changes->start; i++)
		start += written(doc, numbers, &changes->list[i]);
	return start;
}

void gm_page_put_history(struct gm_json_out *out, struct gm_doc *doc, const int *numbers)
{
	struct gm_page_changes changes = gm_page_find_changes(doc);
	bool known = changes.from_ns != GM_NO_BYTES;
	struct tables tables;

	if (!known)
		changes.count = changes.start = 0;
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
	free(tables.places);
	free(tables.shapes);
	gm_page_changes_free(&changes);
}
