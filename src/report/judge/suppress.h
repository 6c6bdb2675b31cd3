/*
 * Suppressions in LeakSanitizer's syntax: "leak:PATTERN" a line, '#' comments; '*' stands for
 * anything, '^' and '$' for the beginning and the end. A pattern is held against function, module
 * and file of every frame.
 */
#ifndef GM_REPORT_JUDGE_SUPPRESS_H
#define GM_REPORT_JUDGE_SUPPRESS_H

#include "report/doc/doc.h"

struct gm_suppressions;

/*
 * Reads a file of suppressions and adds it to `list` (NULL: a new one), which is returned; NULL and
 * a sentence in `error` if it cannot be read or has a bad line.
 */
struct gm_suppressions *gm_suppressions_read(struct gm_zone *zone, struct gm_suppressions *list,
					     const char *path, char *error, size_t error_bytes);

/*
 * Returns the suppressions that are built in (suppressions.txt): memory that libraries keep on
 * purpose.
 */
struct gm_suppressions *gm_suppressions_shipped(struct gm_zone *zone);

/* True if `text` matches a pattern. */
bool gm_suppression_matches(const char *pattern, const char *text);

/* Marks the sites that match, and fills `suppressed[]` and `unused_suppressions[]`. */
void gm_suppress(struct gm_doc *doc, const struct gm_suppressions *suppressions);

#endif
