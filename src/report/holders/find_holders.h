/*
 * From a document's live blocks to what keeps them alive in the process that the document is of, or
 * in a core file of it.
 */
#ifndef GM_REPORT_HOLDERS_FIND_HOLDERS_H
#define GM_REPORT_HOLDERS_FIND_HOLDERS_H

#include "report/doc/doc.h"
#include <stdbool.h>

/*
 * Looks for holders in process `pid`, a copy of the document's process that was made when the
 * document was, at a moment that `moment` names.
 */
bool gm_find_holders_of_copy(struct gm_doc *doc, int pid, const char *moment, char *error,
			     size_t error_bytes);

/*
 * Fills `doc->holders`. `core`: a core file of the process, NULL for the running process. False and
 * a sentence in `error` if the process has ended, may not be read, or its objects cannot be read.
 */
bool gm_find_holders(struct gm_doc *doc, const char *core, char *error, size_t error_bytes);

#endif
