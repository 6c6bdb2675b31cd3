/*
 * Several files: a row per process, then the whole.
 */
#include "report/format.h"
#include "report/render/text.h"
#include <string.h>

static unsigned growing(const struct gm_doc *doc)
{
	unsigned count = 0;

	for (unsigned i = 0; i < doc->sites_count; i++)
		count += doc->sites[i].verdict == GM_GROW && !doc->sites[i].hidden;
	return count;
}

void gm_text_ranks(struct gm_out *out, struct gm_job *job)
{
	static const char *const titles[] = {"rank",	"pid",		 "<host", "<end",
					     "device",	"current",	 "peak",  "not freed",
					     "growing", "out of memory", NULL};
	struct gm_table table;

	gm_table_begin(&table, titles);
	for (unsigned i = 0; i < job->count; i++) {
		const struct gm_doc *doc = job->docs[i];
		unsigned rows = 0;

		for (unsigned k = 0; k < doc->levels_count || !rows; k++) {
			const struct gm_level_record *level =
				k < doc->levels_count ? &doc->levels[k] : NULL;

			if (level && (level->level != GM_LEVEL_DRIVER || level->device < 0))
				continue;
			if (!level && rows)
				break;
			if (doc->header->rank >= 0)
				gm_table_cell(&table, "%d", doc->header->rank);
			else
				gm_table_cell(&table, "-");
			gm_table_cell(&table, "%u", doc->header->pid);
			gm_table_cell(&table, "%s", doc->host ? doc->host : "");
			gm_table_cell(&table, "%s", doc->end);
			if (level)
				gm_table_cell(&table, "%d", level->device);
			else
				gm_table_cell(&table, "-");
			gm_table_size(&table, level ? level->current_bytes : GM_NO_BYTES);
			gm_table_size(&table, level ? level->peak_bytes : GM_NO_BYTES);
			gm_table_size(&table, doc->exit_bytes);
			gm_table_cell(&table, "%u", growing(doc));
			gm_table_cell(&table, "%u", doc->ooms_count);
			rows++;
		}
	}
	gm_table_end(out, &table);
}

void gm_text_job(struct gm_out *out, struct gm_job *job)
{
	static const char *const titles[] = {"device",	     "current",	    "live",
					     "sum of peaks", "allocations", NULL};
	struct gm_table table;

	gm_heading(out, "All %u processes", job->count);
	gm_table_begin(&table, titles);
	for (unsigned i = 0; i < job->totals_count; i++) {
		gm_table_cell(&table, "%d", job->totals[i].device);
		gm_table_size(&table, job->totals[i].current_bytes);
		gm_table_count(&table, job->totals[i].current_count);
		gm_table_size(&table, job->totals[i].peak_bytes);
		gm_table_count(&table, job->totals[i].allocations);
	}
	gm_table_end(out, &table);
	gm_text_findings(out, job->findings, job->findings_count);
}
