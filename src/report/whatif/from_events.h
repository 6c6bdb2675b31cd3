/*
 * The requests of one device from the complete history of an output file. It names neither streams
 * nor pools nor the sizes that were asked for; what segments and blocks tell of them is taken.
 */
#ifndef GM_REPORT_WHATIF_FROM_EVENTS_H
#define GM_REPORT_WHATIF_FROM_EVENTS_H

#include "report/doc/doc.h"
#include "report/whatif/requests.h"

/* True if the file has the history of the whole run, with PyTorch's blocks in it. */
bool gm_has_requests(struct gm_doc *doc);

/*
 * Fills `requests`, which is empty; `device` is the one to take, -1 for the one with most blocks.
 * False if there is no complete history. A request and what the driver did for it belong together
 * because PyTorch's allocator holds its lock meanwhile.
 */
bool gm_requests_from_events(struct gm_requests *requests, struct gm_doc *doc, int device);

#endif
