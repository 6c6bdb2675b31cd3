/*
 * Judging a loaded document: verdicts of sites, then the findings, one file per diagnosis. A judge
 * reads the document and adds findings with the measured figures in them.
 */
#ifndef GM_REPORT_JUDGE_JUDGE_H
#define GM_REPORT_JUDGE_JUDGE_H

#include "report/doc/doc.h"

/* Fills every site's verdict and `why`. */
void gm_judge_sites(struct gm_doc *doc, unsigned warmup);

/* Runs all judges and sorts the findings, most severe first. */
void gm_judge(struct gm_doc *doc);

/* The judges; each is a row of the table in judge.c. */
void gm_judge_leaks(struct gm_doc *doc);
void gm_judge_ooms(struct gm_doc *doc);
void gm_judge_holes(struct gm_doc *doc);
void gm_judge_pressure(struct gm_doc *doc);
void gm_judge_usage(struct gm_doc *doc);
void gm_judge_pools(struct gm_doc *doc);
void gm_judge_devices(struct gm_doc *doc);
void gm_judge_coverage(struct gm_doc *doc);
void gm_judge_errors(struct gm_doc *doc);
void gm_judge_nccl(struct gm_doc *doc);

/* Most severe first; of one severity OOMs, then the largest; else as they were. */
void gm_sort_findings(struct gm_finding *findings, unsigned count);

/* A new finding; `device` GM_HOST and `site` GM_NO_SITE for none. Texts must outlive the document.
 */
struct gm_finding *gm_find(struct gm_doc *doc, const char *id, enum gm_severity severity,
			   int device, uint64_t bytes, uint32_t site);
void gm_advise(struct gm_doc *doc, struct gm_finding *finding, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Text in the document's zone, as printf. */
#define gm_say(doc, ...) gm_zone_printf(&(doc)->zone, __VA_ARGS__)

/* A size as people read it, "1.50 GiB", in the document's zone. */
const char *gm_size(struct gm_doc *doc, uint64_t bytes);

/* Where a site is: "train.py:41 in step", "leak() at leak.cpp:12", "libfoo.so+0x1234". */
const char *gm_place(struct gm_doc *doc, const struct gm_stack *stack);

/* "s" unless the number is one. */
#define gm_s(number) ((number) == 1 ? "" : "s")

#endif
