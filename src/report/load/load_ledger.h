/*
 * The ledger of each device.
 */
#ifndef GM_REPORT_LOAD_LOAD_LEDGER_H
#define GM_REPORT_LOAD_LOAD_LEDGER_H

#include "report/doc/doc.h"

/* Fills `doc->ledger` with its rows. After the sites are classified and holes are found. */
void gm_load_ledger(struct gm_doc *doc);

#endif
