/*
 * Files whose memory was taken by an allocator that has no model in this folder: its name, and the
 * means by which a user can learn more.
 */
#ifndef GM_REPORT_WHATIF_UNMODELLED_H
#define GM_REPORT_WHATIF_UNMODELLED_H

#include "report/doc/doc.h"

/*
 * Returns a sentence, in the document's zone, that names the allocator through which most of the
 * device's memory was taken at its peak, says why it is not replayed, and tells the user how to go
 * on. `device` is -1 for all of them. NULL if PyTorch's allocator was there, or no memory of a
 * device is known.
 */
const char *gm_whatif_unmodelled(struct gm_doc *doc, int device);

#endif
