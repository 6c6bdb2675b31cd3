/*
 * The parts of loading a document, in the order in which they run: see gm_doc_open. Internal to the
 * report; each fills its members of the document from the reader and from what ran before.
 */
#ifndef GM_REPORT_LOAD_LOAD_H
#define GM_REPORT_LOAD_LOAD_H

#include "report/doc/doc.h"

/* The reader and the history of a path; false after a sentence. What is lost of it is a warning. */
bool gm_open_files(struct gm_doc *doc, const char *path, char *error, size_t error_bytes);
void gm_warn_history(struct gm_doc *doc);

/* Process and file: header fields, command, how it ended. */
void gm_load_process(struct gm_doc *doc);

/* What the launcher's variables say of the job. */
void gm_load_launch(struct gm_doc *doc);

/* Sorts `blocks` by device and key. */
void gm_sort_blocks(struct gm_doc *doc);

/* Every table that is a plain list of figures. */
void gm_load_tables(struct gm_doc *doc);

/* Stacks (without their frames), sites and live allocations. */
void gm_load_sites(struct gm_doc *doc);

/* Errors and out-of-memory events, which point at stacks and sites. */
void gm_load_events(struct gm_doc *doc);

/* Recomputes counters from the live records if an update was under way when the file ended; brings up to date
 * what is left behind among PyTorch's blocks (struct gm_torch_record). */
void gm_repair(struct gm_doc *doc);

/* What the driver must hold for the live allocations of a device, pools' reserves left out. */
uint64_t gm_sum_physical(const struct gm_doc *doc, int device);

/* What follows from the counters once they are right: bytes at the peak, leaks at exit. */
void gm_finish_sites(struct gm_doc *doc);

/* The largest hole in PyTorch's segments at an OOM, from the blocks that were live then. */
void gm_load_oom_hole(struct gm_doc *doc, struct gm_oom *oom);

/* The same per level, as `holes` of the event. */
void gm_load_oom_levels(struct gm_doc *doc, struct gm_oom *oom);

/* Holes: `fragmentation[]`, and which sites' driver memory PyTorch divides (torch_segments). */
void gm_load_fragmentation(struct gm_doc *doc);

/* The ledger's rows. */
void gm_load_ledger(struct gm_doc *doc);

/* The stack of a GM_TABLE_STACKS number, symbolized when first asked for; NULL for GM_NONE. */
const struct gm_stack *gm_doc_stack(struct gm_doc *doc, uint32_t stack);

/*
 * How many of a stack's innermost frames are CUDA's entry points and what lies below them in the same
 * object: allocation-shim frames, which no stack shows. 0 if nothing would be left.
 */
unsigned gm_entry_frames(const struct gm_frame *frames, unsigned count);

/* A figure of the file for the document: GM_NO_BYTES stays absent. */
double gm_seconds(uint64_t ns);

#endif
