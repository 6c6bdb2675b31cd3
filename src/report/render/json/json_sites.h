/*
 * The sites of the JSON document.
 */
#ifndef GM_REPORT_RENDER_JSON_JSON_SITES_H
#define GM_REPORT_RENDER_JSON_JSON_SITES_H

#include "report/doc/doc.h"

/*
 * Returns each site's place in the list `sites[]` of the document, -1 if it is not there. In the
 * zone.
 */
int *gm_json_site_numbers(struct gm_doc *doc);

#endif
