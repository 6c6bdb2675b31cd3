/*
 * JUnit XML as Jenkins and GitLab read it: a suite per file, a test case per gate, the culprits'
 * stacks in the failure's text.
 */
#include "report/render/check/junit.h"
#include "report/render/check/text_check.h"
#include "store/reader.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void escape_byte(FILE *file, char c)
{
	switch (c) {
	case '&':
		fputs("&amp;", file);
		break;
	case '<':
		fputs("&lt;", file);
		break;
	case '>':
		fputs("&gt;", file);
		break;
	case '"':
		fputs("&quot;", file);
		break;
	default:
		/* Controls do not exist in XML 1.0, however they are written. */
		fputc((unsigned char)c < 0x20 && c != '\n' && c != '\t' ? '?' : c, file);
	}
}

/* A path need not be UTF-8, XML must. */
static void escape(FILE *file, const char *text)
{
	while (*text) {
		unsigned length = gm_utf8_length((const unsigned char *)text, strnlen(text, 4));

		if (length > 1)
			fwrite(text, 1, length, file);
		else
			escape_byte(file, length ? *text : '?');
		text += length ? length : 1;
	}
}

/* The gate's part of the check as people read it, for the failure's text. */
static void write_details(FILE *file, struct gm_doc *doc, const struct gm_gate *gate)
{
	struct gm_gate *gates = doc->gates;
	unsigned count = doc->gates_count;
	char *text = NULL;
	size_t bytes = 0;
	struct gm_out out = {open_memstream(&text, &bytes), false, 20, false};

	if (!out.file)
		return;
	doc->gates = (struct gm_gate *)gate;
	doc->gates_count = 1;
	gm_text_gates(&out, doc, true);
	doc->gates = gates;
	doc->gates_count = count;
	fclose(out.file);
	escape(file, text);
	free(text);
}

static void write_suite(FILE *file, struct gm_doc *doc)
{
	unsigned failures = 0;

	for (unsigned i = 0; i < doc->gates_count; i++)
		failures += !doc->gates[i].passed;
	fprintf(file, "  <testsuite name=\"gpumemtrace: ");
	escape(file, doc->path);
	fprintf(file, "\" tests=\"%u\" failures=\"%u\" errors=\"0\" skipped=\"0\">\n",
		doc->gates_count, failures);
	for (unsigned i = 0; i < doc->gates_count; i++) {
		const struct gm_gate *gate = &doc->gates[i];
		char value[GM_FORMAT_BYTES], limit[GM_FORMAT_BYTES];

		fprintf(file, "    <testcase classname=\"gpumemtrace\" name=\"");
		escape(file, gate->gate); /* a mark's name is in it */
		fputc('"', file);
		if (gate->passed) {
			fprintf(file, "/>\n");
			continue;
		}
		fprintf(file, ">\n      <failure type=\"");
		escape(file, gate->gate);
		fprintf(file,
			"\" message=\"%s, limit %s: ", gm_gate_figure(value, gate, gate->value),
			gm_gate_figure(limit, gate, gate->limit));
		escape(file, gate->note);
		fprintf(file, "\">");
		write_details(file, doc, gate);
		fprintf(file, "</failure>\n    </testcase>\n");
	}
	fprintf(file, "  </testsuite>\n");
}

int gm_junit_write(const struct gm_job *job, FILE *file)
{
	unsigned tests = 0, failures = 0;

	for (unsigned i = 0; i < job->count; i++) {
		tests += job->docs[i]->gates_count;
		for (unsigned k = 0; k < job->docs[i]->gates_count; k++)
			failures += !job->docs[i]->gates[k].passed;
	}
	fprintf(file,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<testsuites name=\"gpumemtrace\" tests=\"%u\" failures=\"%u\">\n",
		tests, failures);
	for (unsigned i = 0; i < job->count; i++)
		write_suite(file, job->docs[i]);
	fprintf(file, "</testsuites>\n");
	return fflush(file) == 0 && !ferror(file) ? 0 : -EIO;
}
