/*
 * Findings: making one, advice, and their order.
 */
#ifndef GM_REPORT_JUDGE_FINDINGS_H
#define GM_REPORT_JUDGE_FINDINGS_H

#include "report/doc/doc.h"

/* Most severe first; of one severity OOMs, then the largest; else as they were. */
void gm_sort_findings(struct gm_finding *findings, unsigned count);

/*
 * Compares findings in the order of gm_sort_findings: most severe first; of one severity an OOM,
 * which outranks a leak as in the exit status however little was asked for; then the largest. 0
 * where the order of the judges decides.
 */
int gm_compare_findings(const struct gm_finding *a, const struct gm_finding *b);

/*
 * A new finding; `device` GM_HOST and `site` GM_NO_SITE for none. Texts must outlive the document.
 */
struct gm_finding *gm_finding_new(struct gm_doc *doc, const char *id, enum gm_severity severity,
				  int device, uint64_t bytes, uint32_t site);

/* Adds a sentence, as printf, to the advice of a finding or of an out-of-memory event. */
#define gm_advise(doc, what, ...)                                                                  \
	gm_advice_add(doc, &(what)->advice, &(what)->advice_count, __VA_ARGS__)
void gm_advice_add(struct gm_doc *doc, const char ***advice, unsigned *count, const char *format,
		   ...) __attribute__((format(printf, 4, 5)));

#endif
