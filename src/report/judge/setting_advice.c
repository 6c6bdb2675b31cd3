/*
 * Quoting what-if in advice (setting_advice.h).
 */
#include "report/judge/setting_advice.h"
#include "report/judge/alloc_conf.h"
#include "report/judge/findings.h"
#include "report/whatif/whatif.h"
#include <string.h>

#define LEAST_GAIN 50 /* less than a fiftieth is no reason to change a setting */

/* The first is what PyTorch's own message recommends; it is told of in any case. */
static const char *const settings[] = {
	"expandable_segments:True", "max_split_size_mb:64",  "max_split_size_mb:128",
	"max_split_size_mb:256",    "max_split_size_mb:512",
};

#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

static const struct gm_whatif *replayed(struct gm_doc *doc, int device)
{
	struct gm_whatif_options options = {.confs_count = SETTINGS, .device = -1};
	enum gm_whatif_fault fault;
	char error[512];

	if (!doc->whatif_asked) {
		doc->whatif_asked = true;
		options.confs = gm_zone_alloc(&doc->zone, SETTINGS, sizeof(const char *));
		memcpy(options.confs, settings, sizeof(settings));
		doc->whatif = gm_whatif_make(doc, &options, &fault, error, sizeof(error));
	}
	return doc->whatif && doc->whatif->device == device && doc->whatif->reproduced ? doc->whatif
										       : NULL;
}

static bool helps(const struct gm_whatif *whatif, const struct gm_whatif_row *row, bool refused)
{
	uint64_t recorded = whatif->recorded_reserved_peak_bytes;

	return refused ? row->fits == GM_FITS && !row->ooms
		       : row->fits != GM_FITS_NOT &&
				 row->reserved_high_bytes < recorded - recorded / LEAST_GAIN;
}

/* "reserved 72.70 GiB -> 21.00 GiB", and what else is known of the figure. */
static const char *change(struct gm_doc *doc, const struct gm_whatif *whatif,
			  const struct gm_whatif_row *row, bool percent)
{
	uint64_t recorded = whatif->recorded_reserved_peak_bytes;
	double part = 100.0 * ((double)row->reserved_peak_bytes - (double)recorded) /
		      (double)(recorded ? recorded : 1);
	const char *text = gm_doc_printf(doc, "reserved %s \u2192 %s", gm_size(doc, recorded),
					 gm_size(doc, row->reserved_peak_bytes));

	if (percent)
		text = gm_doc_printf(doc, "%s (%+.1f %%)", text, part);
	if (row->reserved_low_bytes != row->reserved_high_bytes)
		text = gm_doc_printf(doc, "%s, %s to %s by what is not known", text,
				     gm_size(doc, row->reserved_low_bytes),
				     gm_size(doc, row->reserved_high_bytes));
	return text;
}

/* Returns the setting that helps and reserves least; NULL if none helps. */
static const struct gm_whatif_row *best(const struct gm_whatif *whatif, bool refused)
{
	const struct gm_whatif_row *found = NULL;

	for (unsigned i = 0; i < whatif->rows_count; i++)
		if (helps(whatif, &whatif->rows[i], refused) &&
		    (!found || whatif->rows[i].reserved_high_bytes < found->reserved_high_bytes))
			found = &whatif->rows[i];
	return found;
}

bool gm_advise_settings(struct gm_doc *doc, const char ***advice, unsigned *count, int device,
			bool refused)
{
	const struct gm_whatif *whatif = replayed(doc, device);
	const struct gm_whatif_row *first, *chosen;

	if (!whatif)
		return false;
	first = &whatif->rows[0];
	chosen = best(whatif, refused);
	if (chosen)
		gm_advice_add(doc, advice, count, "set %s=%s: %s%s", gm_torch_conf_name(doc),
			      chosen->conf, change(doc, whatif, chosen, !refused),
			      refused ? ", would have fitted" : "");
	if (chosen != first)
		gm_advice_add(doc, advice, count, "%s would not help%s: %s%s", first->conf,
			      chosen ? " as much" : "", change(doc, whatif, first, true),
			      chosen ? "" : "; nor would max_split_size_mb of 64 to 512");
	return true;
}

void gm_advise_history(struct gm_doc *doc, const char ***advice, unsigned *count)
{
	gm_advice_add(doc, advice, count,
		      "a history tells whether the setting helps: record one with "
		      "GPUMEMTRACE_EVENTS=all, then gpumem-report whatif");
}
