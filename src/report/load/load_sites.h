/*
 * Figures that follow from those of sites once they are right.
 */
#ifndef GM_REPORT_LOAD_LOAD_SITES_H
#define GM_REPORT_LOAD_LOAD_SITES_H

#include "report/doc/doc.h"

/* Fills the sites' bytes at the peak, leaks at exit and physical bytes. */
void gm_finish_sites(struct gm_doc *doc);

/* Fills `freed_blocks` and the sites' figures at the work's end, once the moment is settled. */
void gm_load_work(struct gm_doc *doc);

#endif
