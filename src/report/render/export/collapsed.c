/*
 * Stacks for flame graphs: "outermost;...;innermost BYTES" lines, which flamegraph.pl, speedscope
 * and inferno read.
 */
#include "report/doc/options.h"
#include "report/render/export/internal.h"
#include "report/support/print.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ';' separates frames: it cannot be in a name. */
static void write_name(FILE *file, const char *name)
{
	char *harmless = gm_harmless(name);

	for (const char *at = harmless; *at; at++)
		fputc(*at == ';' ? ',' : *at, file);
	free(harmless);
}

static void write_frame(FILE *file, const struct gm_frame *frame)
{
	const char *module = frame->module ? strrchr(frame->module, '/') : NULL;

	if (!frame->function) {
		write_name(file, module		? module + 1
				 : frame->module ? frame->module
						 : "unknown");
		fprintf(file, "+0x%" PRIx64, frame->offset);
		return;
	}
	write_name(file, frame->function);
	if (frame->python && frame->file) {
		const char *slash = strrchr(frame->file, '/');

		fputs(" (", file);
		write_name(file, slash ? slash + 1 : frame->file);
		fprintf(file, ":%u)", frame->line);
	}
}

/* `root` is the outermost frame of every stack; "" for none. */
static void write_stacks(struct gm_doc *doc, const struct gm_options *options, const char *root,
			 FILE *file)
{
	for (unsigned i = 0; i < doc->sites_count; i++) {
		const struct gm_site *site = &doc->sites[i];
		unsigned count = site->stack ? site->stack->count : 0;

		/* Only one level is written, or the same bytes would be counted twice. */
		if (site->hidden || !gm_site_value(site, options) ||
		    (options->level < 0 && site->record.level != GM_LEVEL_DRIVER))
			continue;
		fputs(root, file);
		if (!count)
			write_name(file, site->function ? site->function : "unknown");
		for (unsigned k = count; k-- > 0;) {
			write_frame(file, gm_stack_frame(site->stack, k));
			if (k)
				fputc(';', file);
		}
		fprintf(file, " %" PRIu64 "\n", gm_site_value(site, options));
	}
}

int gm_export_collapsed(struct gm_doc *doc, const struct gm_options *options, FILE *file)
{
	write_stacks(doc, options, "", file);
	return gm_export_end(file);
}

/* Each rank is a frame below everything, so that a graph has them side by side. */
int gm_export_collapsed_job(struct gm_job *job, const struct gm_options *options, FILE *file)
{
	char root[32];

	for (unsigned i = 0; i < job->count; i++) {
		const struct gm_header *header = job->docs[i]->header;

		if (header->rank >= 0)
			snprintf(root, sizeof(root), "rank %d;", header->rank);
		else
			snprintf(root, sizeof(root), "process %u;", header->pid);
		if (!job->docs[i]->superseded)
			write_stacks(job->docs[i], options, root, file);
	}
	return gm_export_end(file);
}
