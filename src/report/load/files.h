/*
 * Opening what a path names.
 */
#ifndef GM_REPORT_LOAD_FILES_H
#define GM_REPORT_LOAD_FILES_H

#include "report/doc/doc.h"

/* The reader and the history of a path; false after a sentence. What is lost of it is a warning. */
bool gm_open_files(struct gm_doc *doc, const char *path, char *error, size_t error_bytes);

/* Closes both. */
void gm_close_files(struct gm_doc *doc);

#endif
