/*
 * Stacks for flame graphs: "outermost;...;innermost BYTES" lines, which flamegraph.pl, speedscope
 * and inferno read.
 */
#include "report/render/export.h"
#include <inttypes.h>
#include <string.h>

/* ';' separates frames and a newline ends a line: neither can be in a name. */
static void write_name(FILE *file, const struct gm_frame *frame)
{
	const char *module = frame->module ? strrchr(frame->module, '/') : NULL;

	if (!frame->function) {
		fprintf(file, "%s+0x%" PRIx64,
			module		? module + 1
			: frame->module ? frame->module
					: "unknown",
			frame->offset);
		return;
	}
	for (const char *at = frame->function; *at; at++)
		fputc(*at == ';' || *at == '\n' ? ',' : *at, file);
	if (frame->python && frame->file) {
		const char *slash = strrchr(frame->file, '/');

		fprintf(file, " (%s:%u)", slash ? slash + 1 : frame->file, frame->line);
	}
}

int gm_export_collapsed(struct gm_doc *doc, const struct gm_options *options, FILE *file)
{
	for (unsigned i = 0; i < doc->sites_count; i++) {
		const struct gm_site *site = &doc->sites[i];
		unsigned count = site->stack ? site->stack->count : 0;

		/* One level, or the same bytes would be counted twice. */
		if (site->hidden || !gm_site_value(site, options) ||
		    (options->level < 0 && site->record.level != GM_LEVEL_DRIVER))
			continue;
		if (!count)
			fputs(site->function ? site->function : "unknown", file);
		for (unsigned k = count; k-- > 0;) {
			write_name(file, &site->stack->frames[k]);
			if (k)
				fputc(';', file);
		}
		fprintf(file, " %" PRIu64 "\n", gm_site_value(site, options));
	}
	return gm_export_end(file);
}
