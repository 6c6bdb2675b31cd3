/*
 * The results of other settings, for people: the best one, a row for each, and the reasons why
 * figures are not certain.
 */
#include "report/render/text/text_whatif.h"
#include "report/stacks/labels.h"
#include "report/support/format.h"
#include "report/support/print.h"
#include <string.h>

static void print_run(struct gm_out *out, const struct gm_whatif *whatif)
{
	char reserved[GM_FORMAT_BYTES], bound[GM_FORMAT_BYTES], plan[GM_FORMAT_BYTES];
	bool planned = whatif->plan_peak_bytes != GM_NO_BYTES;

	gm_print(out, GM_BOLD, "Recorded: ");
	gm_wrapf(out, 10, "%s reserved under %s; the model %s",
		 gm_format_size(reserved, whatif->recorded_reserved_peak_bytes),
		 whatif->recorded_conf ? whatif->recorded_conf : "a setting that is not recorded",
		 whatif->reproduced ? "took the same segments from the driver"
				    : "did not take the same segments from the driver");
	gm_print(out, GM_BOLD, "No less than: ");
	gm_wrapf(out, 14, "%s were live at once%s%s",
		 gm_format_size(bound, whatif->lower_bound_bytes),
		 planned ? "; a plan that knows the future needs " : "",
		 planned ? gm_format_size(plan, whatif->plan_peak_bytes) : "");
}

/* Of settings none of which fits the best is that which gets furthest. */
static void print_furthest(struct gm_out *out, const struct gm_whatif *whatif)
{
	const struct gm_whatif_row *best = &whatif->rows[whatif->best];
	bool alone = whatif->rows_count == 1;
	const char *label = alone ? "Result: " : "None fits: ";
	bool met = best->oom_ns != GM_NO_BYTES;
	char when[GM_FORMAT_BYTES] = "";

	gm_print(out, GM_BOLD, "%s", label);
	gm_wrapf(out, (unsigned)strlen(label), "%s %s%s%s", best->conf,
		 alone ? "does not fit" : "gets furthest", met ? ", out of memory after " : "",
		 met ? gm_format_time(when, gm_seconds(best->oom_ns)) : "");
}

static void print_best(struct gm_out *out, const struct gm_whatif *whatif, const char *gpu)
{
	const struct gm_whatif_row *best = &whatif->rows[whatif->best];
	uint64_t recorded = whatif->recorded_reserved_peak_bytes;
	const char *label = whatif->rows_count > 1 ? "Best: " : "Result: ";
	char reserved[GM_FORMAT_BYTES], idle[GM_FORMAT_BYTES], change[32] = "";

	if (best->fits == GM_FITS_NOT) {
		print_furthest(out, whatif);
		return;
	}
	if (recorded)
		snprintf(change, sizeof(change), " (%+.1f %%)",
			 100.0 * ((double)best->reserved_peak_bytes - (double)recorded) /
				 (double)recorded);
	gm_print(out, GM_BOLD, "%s", label);
	gm_wrapf(out, (unsigned)strlen(label), "%s with %s%s, %s of it idle at the peak%s%s%s",
		 best->conf, gm_format_size(reserved, best->reserved_peak_bytes), change,
		 gm_format_size(idle, best->idle_at_peak_bytes), gpu ? "; " : "", gpu ? gpu : "",
		 gpu ? " would do" : "");
}

static void print_rows(struct gm_out *out, const struct gm_whatif *whatif)
{
	static const char *const titles[] = {"reserved", "at most",  "retries", "<fits",
					     "<exact",	 "<setting", NULL};
	struct gm_table table;

	gm_table_begin(&table, titles);
	for (unsigned i = 0; i < whatif->rows_count; i++) {
		const struct gm_whatif_row *row = &whatif->rows[i];

		gm_table_size(&table, row->reserved_peak_bytes);
		gm_table_size(&table, row->reserved_high_bytes);
		gm_table_count(&table, row->retries);
		gm_table_cell(&table, "%s",
			      row->fits == GM_FITS	 ? "yes"
			      : row->fits == GM_FITS_NOT ? "no"
							 : "unknown");
		gm_table_cell(&table, "%s", row->exact ? "yes" : "no");
		gm_table_cell(&table, "%s", row->conf);
	}
	gm_table_end(out, &table);
}

/*
 * Prints the requests at which settings run out of memory: settings that do so at the same request
 * together.
 */
static void print_ooms(struct gm_out *out, struct gm_doc *doc, const struct gm_whatif *whatif)
{
	char when[GM_FORMAT_BYTES];

	for (unsigned i = 0; i < whatif->rows_count; i++) {
		const struct gm_whatif_row *row = &whatif->rows[i];
		unsigned count = 0, before = 0;

		for (unsigned k = 0; row->ooms && k < whatif->rows_count; k++)
			if (whatif->rows[k].oom_ns == row->oom_ns) {
				count++;
				before += k < i;
			}
		if (!count || before)
			continue;
		gm_printf(out->file, "- ");
		gm_wrap(out, 2,
			gm_doc_printf(
				doc, "%s%s: out of memory after %s%s%s", row->conf,
				count > 1 ? gm_doc_printf(doc, " and %u more", count - 1) : "",
				gm_format_time(when, gm_seconds(row->oom_ns)),
				row->oom_site == GM_NO_SITE ? "" : " at ",
				row->oom_site == GM_NO_SITE
					? ""
					: gm_stack_label(doc, doc->sites[row->oom_site].stack)));
	}
}

/* Each reason once, with the settings that it is about. */
static void print_reasons(struct gm_out *out, struct gm_doc *doc, const struct gm_whatif *whatif)
{
	for (unsigned i = 0; i < whatif->rows_count; i++) {
		const char *why = whatif->rows[i].why;
		unsigned count = 0, before = 0;

		for (unsigned k = 0; why && k < whatif->rows_count; k++)
			if (whatif->rows[k].why && strcmp(whatif->rows[k].why, why) == 0) {
				count++;
				before += k < i;
			}
		if (!count || before)
			continue;
		gm_printf(out->file, "- ");
		gm_wrap(out, 2,
			count == whatif->rows_count && count > 1
				? gm_doc_printf(doc, "all settings: %s", why)
			: count > 1 ? gm_doc_printf(doc, "%s and %u more: %s", whatif->rows[i].conf,
						    count - 1, why)
				    : gm_doc_printf(doc, "%s: %s", whatif->rows[i].conf, why));
	}
}

void gm_text_whatif(struct gm_out *out, struct gm_doc *doc, const struct gm_whatif *whatif,
		    const char *gpu)
{
	struct gm_out rows = *out; /* all settings are shown, whatever --top is */

	print_run(out, whatif);
	print_best(out, whatif, gpu);
	fputc('\n', out->file);
	rows.top = whatif->rows_count;
	print_rows(&rows, whatif);
	fputc('\n', out->file);
	print_ooms(out, doc, whatif);
	print_reasons(out, doc, whatif);
	for (unsigned i = 0; i < whatif->notes_count; i++) {
		gm_printf(out->file, "- ");
		gm_wrap(out, 2, whatif->notes[i]);
	}
}
