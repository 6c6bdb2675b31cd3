/*
 * The parts of the page beside the document of --json: facts of the file that only a picture needs.
 * Sites are given by their place in the document's `sites[]`, -1 where there is none.
 */
#ifndef GM_REPORT_RENDER_PAGE_INTERNAL_H
#define GM_REPORT_RENDER_PAGE_INTERNAL_H

#include "account/counters.h"
#include "report/doc/doc.h"
#include "report/render/json/json_out.h"
#include <jansson.h>

/* Most changes of live memory that a page holds, of which some ten bytes each are left after
 * compression. A longer history is thinned. */
#define GM_PAGE_CHANGES 1000000u

/* Most failed allocations that a page holds: the first ones. */
#define GM_PAGE_FAILURES 10000u

/* Most blocks of a memory map: the smallest are left out first, and counted. */
#define GM_MAP_BLOCKS 200000u

/* A piece of memory came or went. */
struct gm_page_change {
	uint64_t time_ns, number; /* the time, and how many changes came before this one */
	uint64_t address, bytes;
	uint32_t site;	/* GM_NONE */
	uint32_t came;	/* of what went: the number in the list of the change by which it came;
			   GM_NONE: it came */
	uint32_t index; /* of the record in the table of live allocations, where that is known */
	int16_t device;
	uint8_t level, space, kind;
};

struct gm_page_failure {
	uint64_t time_ns, bytes;
	uint32_t site; /* GM_NONE */
};

/*
 * Changes in order, the first `start` of which are what was live at `from_ns`: `count` of them in
 * `list`, and blocks of the document that came among these, which can be a million and are not
 * copied.
 */
struct gm_page_changes {
	const struct gm_doc *doc;
	struct gm_page_change *list;
	unsigned count, room, start;
	uint32_t *blocks; /* numbers in doc->blocks */
	unsigned blocks_count;
	unsigned blocks_at; /* that many of `list` come before them */
	uint64_t seen;	    /* changes of the history, before it was thinned */
	uint64_t from_ns;   /* The changes are known from here on; GM_NO_BYTES: they are not */
	const char *reason; /* reason why they are not known from the start; NULL: they are */
	bool thinned;	    /* Only the states after the last change of each time are true ones. */
	struct gm_page_failure *failures;
	unsigned failures_count, failures_room;
};

/* The changes of the document's history. The caller frees them with gm_page_changes_free. */
struct gm_page_changes gm_page_find_changes(struct gm_doc *doc);

void gm_page_changes_free(struct gm_page_changes *changes);

/* Returns how many there are, and one of them. */
unsigned gm_page_changes_count(const struct gm_page_changes *changes);
struct gm_page_change gm_page_change_at(const struct gm_page_changes *changes, unsigned number);

/* Appends a change and returns it, zero but for `came`, which is GM_NONE. */
struct gm_page_change *gm_page_add_change(struct gm_page_changes *changes);

/*
 * Thinning: of a long history the page keeps the moments at which the memory of each device and
 * level was highest and lowest in each of many equal stretches of changes. What came and went
 * between two such moments is left out, and everything else happens at the next moment, so that the
 * state at each moment is exact and no peak of a stretch is lost.
 */
struct gm_page_thinning;

struct gm_page_thinning *gm_page_thinning_new(void);
void gm_page_thinning_free(struct gm_page_thinning *thinning);

/* Notes the last change, which has counted in `total` of its device and level. */
void gm_page_thinning_note(struct gm_page_thinning *thinning, const struct gm_page_change *change,
			   uint64_t total);

/* Thins a list until it has at most `most` changes. False where more than that were live at one of
 * the moments. */
bool gm_page_thin(struct gm_page_thinning *thinning, struct gm_page_changes *changes,
		  unsigned most);

/*
 * Writes memory as address ranges, with the live blocks in them:
 * {segments {device[], type[], kind[], address[], bytes[], used_bytes[], site[], first_block[]},
 *  blocks {offset[], bytes[], site[], time_us[]}, omitted_blocks, omitted_bytes, unplaced_bytes}.
 * `type`: segment (PyTorch's), expandable, pool (a program's own), slab, mapping, allocation.
 * `unplaced_bytes`: live owned memory without an address (arrays, handles that are not mapped).
 */
void gm_page_put_memory_map(struct gm_json_out *out, struct gm_doc *doc, const int *numbers);

/* The role of a shape of gm_page_put_history on the memory map. */
enum gm_page_role {
	GM_PAGE_BLOCK,	    /* of PyTorch or of a program's own pool */
	GM_PAGE_DIVISIBLE,  /* driver memory: a segment where blocks lie in it */
	GM_PAGE_SLAB,	    /* the same, else a part of a slab */
	GM_PAGE_MAPPING,    /* of physical memory, which is counted as a handle */
	GM_PAGE_ALLOCATION, /* memory that nobody divides */
	GM_PAGE_NO_ADDRESS, /* not on the map */
	GM_PAGE_RESERVATION /* of addresses: no segment goes on where one begins */
};

/*
 * Writes what came and went, as far back as that can be told:
 * {from_s, complete, reason, thinned, changes, start, dt_ns[], place[], shape[], address[],
 *  shapes {site[], bytes[], role[], device[], torch[]}, slab_bytes,
 *  failures {time_s[], site[], bytes[]}}.
 * dt_ns, place and shape have an element for each change, the first `start` of which are what was
 * live at `from_s`. What came has a number in `shapes`, what went has -1 and the `place` at which
 * it came: a number in `address`, whose elements are differences from the one before (0 where there
 * is no address). `role` is an enum gm_page_role; `torch` says that PyTorch took the memory.
 * `reason` says, where `complete` is false, why the changes do not reach back to the start.
 */
void gm_page_put_history(struct gm_json_out *out, struct gm_doc *doc, const int *numbers);

/*
 * Writes for each of the document's sites {place, own_frame, plumbing}: its place in words, the
 * number of the frame that a person looks for (-1), and a string with a "1" for each frame that
 * nobody looks for.
 */
void gm_page_put_sites(struct gm_json_out *out, struct gm_doc *doc, const int *numbers);

#endif
