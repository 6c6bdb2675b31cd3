/*
 * NCCL's memory: which allocations are its own, and which call made the communicator that they are
 * of. NCCL tells nobody; it is inferred from the stacks (docs/jobs.md).
 */
#ifndef GM_REPORT_STACKS_NCCL_H
#define GM_REPORT_STACKS_NCCL_H

#include "report/doc/doc.h"

/* True if NCCL asked the driver for the memory: its library is in the stack, below no framework's.
 */
bool gm_nccl_owns(const struct gm_site *site);

/*
 * The call by which the program had NCCL ask: "ncclCommInitRank at init (ddp.py:30)", in the
 * document's zone. Memory of NCCL's own threads has no caller, and says so.
 */
const char *gm_nccl_call(struct gm_doc *doc, const struct gm_site *site);

/* NCCL's bytes on a device, at the peak or live; of all devices where `device` is -1. */
uint64_t gm_nccl_bytes(const struct gm_doc *doc, int device, bool at_peak);

#endif
