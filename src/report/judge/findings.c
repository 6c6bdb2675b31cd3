/*
 * Making and sorting findings, see findings.h.
 */
#include "report/judge/findings.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct gm_finding *gm_finding_new(struct gm_doc *doc, const char *id, enum gm_severity severity,
			   int device, uint64_t bytes, uint32_t site)
{
	struct gm_finding *finding =
		gm_zone_push(&doc->zone, &doc->findings, &doc->findings_count, sizeof(*finding));

	finding->id = id;
	finding->severity = severity;
	finding->device = device;
	finding->bytes = bytes;
	finding->site = site;
	return finding;
}

void gm_advice_add(struct gm_doc *doc, const char ***advice, unsigned *count, const char *format,
		   ...)
{
	const char **slot;
	va_list args;
	char text[1024];

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	slot = gm_zone_push(&doc->zone, advice, count, sizeof(*slot));
	*slot = gm_zone_strdup(&doc->zone, text);
}

static bool is_oom(const struct gm_finding *finding)
{
	return strcmp(finding->id, "oom") == 0;
}

int gm_compare_findings(const struct gm_finding *a, const struct gm_finding *b)
{
	uint64_t x = a->bytes == GM_NO_BYTES ? 0 : a->bytes,
		 y = b->bytes == GM_NO_BYTES ? 0 : b->bytes;

	if (a->severity != b->severity)
		return a->severity < b->severity ? 1 : -1;
	if (is_oom(a) != is_oom(b))
		return is_oom(a) ? -1 : 1;
	return x < y ? 1 : x > y ? -1 : 0;
}

/* Insertion sort: stable, and findings are few. */
void gm_sort_findings(struct gm_finding *findings, unsigned count)
{
	for (unsigned i = 1; i < count; i++) {
		struct gm_finding finding = findings[i];
		unsigned k = i;

		while (k > 0 && gm_compare_findings(&findings[k - 1], &finding) > 0) {
			findings[k] = findings[k - 1];
			k--;
		}
		findings[k] = finding;
	}
}
