/*
 * Files whose memory no model of this folder hands out: by which allocator it was taken instead,
 * and what would tell more.
 */
#ifndef GM_REPORT_WHATIF_UNMODELLED_H
#define GM_REPORT_WHATIF_UNMODELLED_H

#include "report/doc/doc.h"

/*
 * A sentence, in the document's zone, that names the allocator through which most of the device's
 * memory was taken at its peak, says why it is not replayed, and what the user can do. `device` is
 * -1 for all of them. NULL if PyTorch's allocator was there, or no memory of a device is known.
 */
const char *gm_whatif_unmodelled(struct gm_doc *doc, int device);

#endif
