/*
 * The parts of loading a document, in the order in which load.c runs them. Each fills its members
 * of the document from the reader and from what ran before.
 */
#ifndef GM_REPORT_LOAD_INTERNAL_H
#define GM_REPORT_LOAD_INTERNAL_H

#include "report/doc/doc.h"

/* Process and file: header fields, command, how it ended. */
void gm_load_process(struct gm_doc *doc);

/* Adds a warning where the complete history lacks events (files.c). */
void gm_warn_history(struct gm_doc *doc);

/* Loads the launcher's variables that describe the job. */
void gm_load_launch(struct gm_doc *doc);

/* Every table that is a plain list of figures. */
void gm_load_tables(struct gm_doc *doc);

/* Stacks (without their frames), sites and live allocations. */
void gm_load_sites(struct gm_doc *doc);

/* Errors and out-of-memory events, which point at stacks and sites. */
void gm_load_events(struct gm_doc *doc);

/*
 * Recomputes counters from the live records if an update was under way when the file ended; brings
 * up to date what is left behind among PyTorch's blocks (struct gm_torch_record).
 */
void gm_repair(struct gm_doc *doc);

#endif
