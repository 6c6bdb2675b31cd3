/*
 * JUnit XML as Jenkins and GitLab read it: a suite per file, a test case per gate, the culprits'
 * stacks in the failure's text.
 */
#include "report/render/check/junit.h"
#include "report/gate/gates.h"
#include "report/render/check/text_check.h"
#include "report/support/print.h"
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

/* Escapes a name, which stays on its line. */
static void escape_name(FILE *file, const char *text)
{
	char *harmless = gm_harmless(text);

	escape(file, harmless);
	free(harmless);
}

/* The gate's part of the check as people read it, for the failure's text. */
static void write_details(FILE *file, struct gm_doc *doc, const struct gm_gate *gate)
{
	struct gm_gate *gates = doc->gates;
	unsigned count = doc->gates_count;
	char *text = NULL;
	size_t bytes = 0;
	struct gm_out out = {open_memstream(&text, &bytes), false, 20, false, GM_WIDTH_PIPED};

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

struct counts {
	unsigned tests, failures, errors, skipped;
};

static void count_gates(struct counts *counts, const struct gm_gate *gates, unsigned count)
{
	counts->tests += count;
	for (unsigned i = 0; i < count; i++) {
		counts->failures += gm_gate_failed(&gates[i]);
		counts->errors += gates[i].unmeasured && !gates[i].excused;
		counts->skipped += gates[i].excused;
	}
}

static void write_failure(FILE *file, struct gm_doc *doc, const struct gm_gate *gate)
{
	char value[GM_FORMAT_BYTES], limit[GM_FORMAT_BYTES];

	fprintf(file, "      <failure type=\"");
	escape_name(file, gate->gate);
	fprintf(file, "\" message=\"%s, limit %s: ", gm_gate_figure(value, gate, gate->value),
		gm_gate_figure(limit, gate, gate->limit));
	escape_name(file, gate->note);
	fprintf(file, "\">");
	write_details(file, doc, gate);
	fprintf(file, "</failure>\n");
}

/* A test that could not be carried out is an error; one that may be left out is skipped. */
static void write_unmeasured(FILE *file, const struct gm_gate *gate)
{
	fprintf(file, gate->excused ? "      <skipped" : "      <error type=\"not-measured\"");
	fprintf(file, " message=\"not measured: ");
	escape_name(file, gate->unmeasured);
	fprintf(file, "\"/>\n");
}

/* `doc` is NULL where there is no file. */
static void write_suite(FILE *file, struct gm_doc *doc, const struct gm_gate *gates, unsigned count)
{
	struct counts counts = {0};

	count_gates(&counts, gates, count);
	fprintf(file, "  <testsuite name=\"gpumemtrace: ");
	escape_name(file, doc ? doc->path : "no file");
	fprintf(file, "\" tests=\"%u\" failures=\"%u\" errors=\"%u\" skipped=\"%u\">\n",
		counts.tests, counts.failures, counts.errors, counts.skipped);
	for (unsigned i = 0; i < count; i++) {
		fprintf(file, "    <testcase classname=\"gpumemtrace\" name=\"");
		escape_name(file, gates[i].gate); /* a mark's name is in it */
		fputs(gates[i].passed ? "\"/>\n" : "\">\n", file);
		if (gates[i].passed)
			continue;
		if (gates[i].unmeasured)
			write_unmeasured(file, &gates[i]);
		else
			write_failure(file, doc, &gates[i]);
		fprintf(file, "    </testcase>\n");
	}
	fprintf(file, "  </testsuite>\n");
}

int gm_junit_write(const struct gm_job *job, FILE *file)
{
	struct counts counts = {0};

	for (unsigned i = 0; i < job->count; i++)
		count_gates(&counts, job->docs[i]->gates, job->docs[i]->gates_count);
	if (!job->count)
		count_gates(&counts, job->gates, job->gates_count);
	fprintf(file,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<testsuites name=\"gpumemtrace\" tests=\"%u\" failures=\"%u\" errors=\"%u\">\n",
		counts.tests, counts.failures, counts.errors);
	for (unsigned i = 0; i < job->count; i++)
		write_suite(file, job->docs[i], job->docs[i]->gates, job->docs[i]->gates_count);
	if (!job->count)
		write_suite(file, NULL, job->gates, job->gates_count);
	fprintf(file, "</testsuites>\n");
	return fflush(file) == 0 && !ferror(file) ? 0 : -EIO;
}
