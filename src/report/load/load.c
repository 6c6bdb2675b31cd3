/*
 * The order in which the parts of a document are loaded, see load.h.
 */
#include "report/load/load.h"
#include "report/load/internal.h"

void gm_load(struct gm_doc *doc)
{
	gm_load_process(doc);
	gm_warn_history(doc);
	gm_load_launch(doc);
	gm_load_tables(doc);
	gm_load_sites(doc);
	gm_load_events(doc);
	gm_repair(doc);
	if (gm_reader_failed(doc->reader)) {
		doc->complete = false;
		doc->lacking = GM_ALL_TABLES;
		gm_doc_warn(doc, "a part of the file could not be read");
	}
}
