/*
 * The last look at the findings: what another finding contradicts goes. See internal.h.
 */
#include "report/judge/internal.h"
#include <string.h>

static bool has(const struct gm_doc *doc, const char *id, int device)
{
	for (unsigned i = 0; i < doc->findings_count; i++)
		if (doc->findings[i].device == device && strcmp(doc->findings[i].id, id) == 0)
			return true;
	return false;
}

/*
 * Room for a larger batch is no advice where a request was refused, whatever the peak was.
 */
static bool is_contradicted(const struct gm_doc *doc, const struct gm_finding *finding)
{
	if (strcmp(finding->id, "utilization.low") == 0)
		return has(doc, "oom", finding->device);
	return false;
}

void gm_remove_contradictions(struct gm_doc *doc)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < doc->findings_count; i++)
		if (!is_contradicted(doc, &doc->findings[i]))
			doc->findings[kept++] = doc->findings[i];
	doc->findings_count = kept;
}
