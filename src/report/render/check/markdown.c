/*
 * Gates as Markdown (markdown.h). Names come from the program, so what Markdown or HTML would take
 * for its own is escaped.
 */
#include "report/render/check/markdown.h"
#include "report/doc/frames.h"
#include "report/gate/gates.h"
#include "report/render/check/results.h"
#include "report/render/check/text_check.h"
#include "report/support/print.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PLACES 20 /* that are listed: a host takes 1 MiB of summary from a step */

static void put_escaped(FILE *file, const char *text, const char *special)
{
	char *harmless = gm_harmless(text);

	for (const char *at = harmless; at && *at; at++) {
		if (strchr(special, *at))
			fputc('\\', file);
		fputc(*at, file);
	}
	free(harmless);
}

/* Text of a paragraph or of a table's cell. */
static void put_text(FILE *file, const char *text)
{
	put_escaped(file, text, "\\`*_[]<>#|~&");
}

/* Text inside of an HTML element that Markdown leaves alone. */
static void put_html(FILE *file, const char *text)
{
	char *harmless = gm_harmless(text);

	for (const char *at = harmless; at && *at; at++)
		if (*at == '&' || *at == '<' || *at == '>')
			fprintf(file, "&#%d;", *at);
		else
			fputc(*at, file);
	free(harmless);
}

static void put_gate(FILE *file, const struct gm_gate *gate)
{
	char figure[GM_FORMAT_BYTES];

	fputs("| ", file);
	put_text(file, gate->gate);
	fprintf(file, " | %s | ",
		gate->unmeasured ? "not measured"
		: gate->passed	 ? "passed"
				 : "**failed**");
	put_text(file, gate->unmeasured ? "" : gm_gate_figure(figure, gate, gate->value));
	fputs(" | ", file);
	put_text(file, gate->unmeasured ? "" : gm_gate_figure(figure, gate, gate->limit));
	fputs(" | ", file);
	put_text(file, gate->note ? gate->note : "");
	if (gate->unmeasured) {
		fputs(": ", file);
		put_text(file, gate->unmeasured);
	}
	fputs(" |\n", file);
}

struct places {
	FILE *file;
	unsigned count;
};

static void put_place(void *context, const struct gm_result *result)
{
	struct places *places = context;
	const struct gm_stack *stack = result->stack;

	if (!stack || !stack->count || places->count++ >= PLACES)
		return;
	fputs("\n<details><summary><b>", places->file);
	if (result->place) {
		put_html(places->file, gm_repository_path(result->doc, result->place->file));
		if (result->place->line)
			fprintf(places->file, ":%u", result->place->line);
	} else {
		put_html(places->file, gm_format_frame_short(gm_stack_frame(stack, 0)));
	}
	fputs("</b> ", places->file);
	put_html(places->file, result->message);
	fputs("</summary>\n\n", places->file);
	for (unsigned i = 0; i < stack->count; i++) { /* indented: code, whatever is in it */
		const struct gm_frame *frame = gm_stack_frame(stack, i);

		if (!frame->plumbing)
			gm_printf(places->file, "    %s\n", gm_format_frame_short(frame));
	}
	fputs("\n</details>\n", places->file);
}

int gm_markdown_write(const struct gm_job *job, FILE *file)
{
	struct places places = {file, 0};
	unsigned failed = 0, unmeasured = 0;

	for (unsigned i = 0; i < job->gates_count; i++) {
		failed += gm_gate_failed(&job->gates[i]);
		unmeasured += job->gates[i].unmeasured != NULL;
	}
	fprintf(file, "## GPU memory: ");
	if (failed)
		fprintf(file, "%u of %u gates failed", failed, job->gates_count);
	else
		fprintf(file, "%u of %u gates passed", job->gates_count - unmeasured,
			job->gates_count);
	fprintf(file, unmeasured ? ", %u not measured\n\n" : "\n\n", unmeasured);
	fputs("| gate | result | value | limit | of |\n|---|---|---|---|---|\n", file);
	for (unsigned i = 0; i < job->gates_count; i++)
		put_gate(file, &job->gates[i]);
	gm_each_result(job, put_place, &places);
	if (places.count > PLACES)
		fprintf(file, "\n%u more places: `gpumem-report check` prints them.\n",
			places.count - PLACES);
	return fflush(file) == 0 && !ferror(file) ? 0 : -EIO;
}
