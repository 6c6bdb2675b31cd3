/*
 * What the page holds beside the document of --json: facts of the file that only a picture needs.
 * Each function returns a new reference. Sites are given by their place in the document's
 * `sites[]`, -1 where there is none.
 */
#ifndef GM_REPORT_RENDER_PAGE_INTERNAL_H
#define GM_REPORT_RENDER_PAGE_INTERNAL_H

#include "report/doc/doc.h"
#include <jansson.h>

/* Most events of a page: the last ones, of which some ten bytes each are left after compression. */
#define GM_PAGE_EVENTS 1000000u

/* Most blocks of a memory map: the smallest are left out first, and counted. */
#define GM_MAP_BLOCKS 200000u

/*
 * Memory as address ranges, with the live blocks in them:
 * {segments {device[], type[], kind[], address[], bytes[], used_bytes[], site[], first_block[]},
 *  blocks {offset[], bytes[], site[], time_us[]}, omitted_blocks, omitted_bytes, unplaced_bytes}.
 * `type`: segment (PyTorch's), expandable, pool (a program's own), slab, mapping, allocation.
 * `unplaced_bytes`: live owned memory without an address (arrays, handles that are not mapped).
 */
json_t *gm_page_memory_map(struct gm_doc *doc, const int *numbers);

/*
 * What each event did to its site's live bytes, as far back as that can be told:
 * {from_s, complete, reason, dt_ns[], site[], bytes[], failures {time_s[], site[], bytes[]}}.
 * `reason` says, where `complete` is false, why it does not reach back to the start.
 */
json_t *gm_page_history(struct gm_doc *doc, const int *numbers);

/*
 * Of each of the document's sites {place, own_frame, plumbing}: its place in words, the number of
 * the frame that a person looks for (-1), and a string with a "1" for each frame that nobody looks
 * for.
 */
json_t *gm_page_sites(struct gm_doc *doc, const int *numbers);

#endif
