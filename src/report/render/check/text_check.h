/*
 * The output of `check` and `diff`, and figures of gates as JUnit and SARIF also name them.
 */
#ifndef GM_REPORT_RENDER_CHECK_TEXT_CHECK_H
#define GM_REPORT_RENDER_CHECK_TEXT_CHECK_H

#include "report/gate/compare.h"
#include "report/render/text/text.h"
#include "report/support/format.h"

/* A gate's value or limit in its unit. */
const char *gm_gate_figure(char text[GM_FORMAT_BYTES], const struct gm_gate *gate, uint64_t value);

/* Returns the bytes that a site that broke a gate held, at the end that the gate is about. */
uint64_t gm_gate_site_bytes(const struct gm_gate *gate, const struct gm_site *site);
uint64_t gm_gate_site_count(const struct gm_gate *gate, const struct gm_site *site);

/* The sites whose live bytes changed, with their stacks, in the order of the list. */
void gm_text_changes(struct gm_out *out, const struct gm_change *changes, unsigned count);

/*
 * The sites that differ at the peak, in churn and in time, with `live` first of all in live bytes:
 * a table each, the largest difference first, `top` rows. Sorts the list anew.
 */
void gm_text_measures(struct gm_out *out, struct gm_change *changes, unsigned count, bool live);

/* The line of a gate that was not measured. */
void gm_text_unmeasured(struct gm_out *out, const struct gm_gate *gate);

void gm_text_gates(struct gm_out *out, struct gm_doc *doc, bool quiet);

#endif
