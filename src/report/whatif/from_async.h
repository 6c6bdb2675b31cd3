/*
 * The requests of one device's pool of stream-ordered memory (cudaMallocAsync), from the complete
 * history of an output file: sizes as they were asked for, and streams.
 */
#ifndef GM_REPORT_WHATIF_FROM_ASYNC_H
#define GM_REPORT_WHATIF_FROM_ASYNC_H

#include "report/doc/doc.h"
#include "report/whatif/requests.h"

/*
 * Fills `requests`, which is empty; `device` is the one to take, -1 for the one whose pool reserved
 * most. False if the file has no complete history, or no stream-ordered memory in it.
 */
bool gm_requests_from_async(struct gm_requests *requests, struct gm_doc *doc, int device);

#endif
