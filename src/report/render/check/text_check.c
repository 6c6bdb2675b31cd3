/*
 * Gates for people: a line each, and what failed with its bytes and stacks. Also the list of
 * changes of `diff`.
 */
#include "report/render/check/text_check.h"
#include "report/doc/enum_names.h"
#include "report/render/text/text_stack.h"
#include "report/stacks/labels.h"
#include "report/support/format.h"
#include "report/support/print.h"
#include <string.h>

#define DETAILS 8 /* indent of what belongs to a gate's line */

const char *gm_gate_figure(char text[GM_FORMAT_BYTES], const struct gm_gate *gate, uint64_t value)
{
	if (value == GM_NO_BYTES)
		snprintf(text, GM_FORMAT_BYTES, "not known");
	else if (strcmp(gate->unit, "bytes") == 0)
		gm_format_size(text, value);
	else
		snprintf(text, GM_FORMAT_BYTES, "%llu%s%s", (unsigned long long)value,
			 *gate->unit ? " " : "", gate->unit);
	return text;
}

uint64_t gm_gate_site_bytes(const struct gm_gate *gate, const struct gm_site *site)
{
	return gate->of_work ? site->work_bytes : site->record.live_bytes;
}

uint64_t gm_gate_site_count(const struct gm_gate *gate, const struct gm_site *site)
{
	return gate->of_work ? site->work_count : site->record.live_count;
}

static void print_culprits(struct gm_out *out, struct gm_doc *doc, const struct gm_gate *gate)
{
	char size[GM_FORMAT_BYTES], text[512];

	for (unsigned i = 0; i < gate->sites_count && i < out->top; i++) {
		const struct gm_site *site = &doc->sites[gate->sites[i]];

		if (strncmp(gate->gate, "max-peak", 8) == 0) {
			gm_print(out, GM_BOLD, "      %s",
				 gm_format_size(size, site->record.bytes_at_peak));
			gm_printf(out->file, " at the peak, %s, the %s\n",
				gm_kind_name(site->record.kind),
				gate->gate[8] ? "site that grew most" : "largest part of it");
		} else {
			gm_print(out, GM_BOLD, "      %s",
				 gm_format_size(size, gm_gate_site_bytes(gate, site)));
			if (site->record.allocations)
				snprintf(text, sizeof(text),
					 " live in %llu of %llu allocations, %s, %s",
					 (unsigned long long)gm_gate_site_count(gate, site),
					 (unsigned long long)site->record.allocations,
					 gm_kind_name(site->record.kind), site->why);
			else
				snprintf(text, sizeof(text), " live: no allocation succeeded here");
			gm_wrap_from(out, 6 + (unsigned)strlen(size), DETAILS, text);
		}
		gm_print_stack(out, site->stack, 10);
	}
	if (gate->sites_count > out->top)
		gm_printf(out->file, "      %u more sites (--top)\n", gate->sites_count - out->top);
}

static void print_ooms(struct gm_out *out, struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->ooms_count && i < out->top; i++) {
		char size[GM_FORMAT_BYTES];

		gm_print(out, GM_BOLD, "      %s", doc->ooms[i].verdict);
		gm_printf(out->file, ": %s asked for %s\n",
			doc->ooms[i].api ? doc->ooms[i].api : "the framework",
			gm_format_size(size, doc->ooms[i].record.requested_bytes));
		gm_print_stack(out, doc->ooms[i].stack, 10);
	}
	gm_print_more(out, "      ", doc->ooms_count, "event");
}

static void print_errors(struct gm_out *out, struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->errors_count && i < out->top; i++) {
		gm_print(out, GM_BOLD, "      %s", doc->errors[i].type);
		gm_printf(out->file, " by %s, %llu time%s\n",
			doc->errors[i].api ? doc->errors[i].api : "a free",
			(unsigned long long)doc->errors[i].record.count,
			doc->errors[i].record.count == 1 ? "" : "s");
		gm_print_stack(out, doc->errors[i].stack, 10);
		if (doc->errors[i].first_free_stack) {
			gm_printf(out->file, "        freed before by\n");
			gm_print_stack(out, doc->errors[i].first_free_stack, 10);
		}
		if (doc->errors[i].record.victim_site < doc->sites_count) {
			gm_printf(out->file, "        memory that was allocated by\n");
			gm_print_stack(out, doc->sites[doc->errors[i].record.victim_site].stack,
				       10);
		}
	}
	gm_print_more(out, "      ", doc->errors_count, "error");
}

void gm_text_unmeasured(struct gm_out *out, const struct gm_gate *gate)
{
	gm_print(out, gate->excused ? GM_YELLOW : GM_RED, "  ----");
	gm_printf(out->file, "  ");
	gm_wrapf(out, DETAILS, "%-18s not measured: %s (%s)", gate->gate, gate->unmeasured,
		 gate->note);
}

void gm_text_gates(struct gm_out *out, struct gm_doc *doc, bool quiet)
{
	char value[GM_FORMAT_BYTES], limit[GM_FORMAT_BYTES];

	for (unsigned i = 0; i < doc->gates_count; i++) {
		const struct gm_gate *gate = &doc->gates[i];

		if (gate->passed && quiet)
			continue;
		if (gate->unmeasured) {
			gm_text_unmeasured(out, gate);
			continue;
		}
		gm_print(out, gate->passed ? GM_GREEN : GM_RED, "  %s",
			 gate->passed ? "pass" : "FAIL");
		gm_gate_figure(value, gate, gate->value);
		gm_gate_figure(limit, gate, gate->limit);
		gm_printf(out->file, "  ");
		if (strcmp(gate->gate, "leaks") != 0)
			gm_wrapf(out, DETAILS, "%-18s %s, at most %s (%s)", gate->gate, value,
				 limit, gate->note);
		else if (gate->limit)
			gm_wrapf(out, DETAILS, "%-18s %s, sites of %s and more (%s)", gate->gate,
				 value, limit, gate->note);
		else
			gm_wrapf(out, DETAILS, "%-18s %s (%s)", gate->gate, value, gate->note);
		if (gate->passed)
			continue;
		if (strcmp(gate->gate, "no-oom") == 0)
			print_ooms(out, doc);
		else if (strcmp(gate->gate, "no-errors") == 0)
			print_errors(out, doc);
		else
			print_culprits(out, doc, gate);
	}
	for (unsigned i = 0; i < doc->warnings_count && i < out->top && !doc->complete; i++) {
		gm_print(out, GM_YELLOW, "  incomplete file: ");
		gm_wrap(out, DETAILS, doc->warnings[i]);
	}
	for (unsigned i = 0; i < doc->suppressed_count && i < out->top && !quiet; i++)
		gm_printf(out->file, "  suppressed: %s in %llu by leak:%s\n",
			gm_format_size(value, doc->suppressed[i].bytes),
			(unsigned long long)doc->suppressed[i].count, doc->suppressed[i].pattern);
	for (unsigned i = 0; i < doc->unused_suppressions_count && i < out->top && !quiet; i++)
		gm_printf(out->file, "  unused suppression: leak:%s\n",
			  doc->unused_suppressions[i]);
}

static void print_change(struct gm_out *out, const struct gm_change *change)
{
	const struct gm_site *site = change->new_site ? change->new_site : change->old_site;
	const uint64_t *before = change->before, *after = change->after;
	char text[GM_FORMAT_BYTES], old_size[GM_FORMAT_BYTES], new_size[GM_FORMAT_BYTES];
	char old_peak[GM_FORMAT_BYTES], new_peak[GM_FORMAT_BYTES], line[256];

	gm_print(out, after[GM_MEASURE_LIVE] > before[GM_MEASURE_LIVE] ? GM_RED : GM_GREEN,
		 "\n  %11s",
		 gm_format_change(text, before[GM_MEASURE_LIVE], after[GM_MEASURE_LIVE]));
	gm_print(out, GM_BOLD, "  %s", gm_change_name(change));
	snprintf(line, sizeof(line), ": live %s -> %s, peak %s -> %s, %llu -> %llu allocations",
		 gm_format_size(old_size, before[GM_MEASURE_LIVE]),
		 gm_format_size(new_size, after[GM_MEASURE_LIVE]),
		 gm_format_size(old_peak, before[GM_MEASURE_PEAK]),
		 gm_format_size(new_peak, after[GM_MEASURE_PEAK]),
		 (unsigned long long)before[GM_MEASURE_ALLOCATIONS],
		 (unsigned long long)after[GM_MEASURE_ALLOCATIONS]);
	gm_wrap_from(out, 15 + (unsigned)strlen(gm_change_name(change)), 15, line);
	gm_print_stack(out, site->stack, 15);
}

/* True if nothing but the time differs. */
static bool as_before(const struct gm_change *change)
{
	for (unsigned m = 0; m < GM_MEASURE_TIME; m++)
		if (gm_change_differs(change, m))
			return false;
	return change->old_site && change->new_site;
}

void gm_text_changes(struct gm_out *out, const struct gm_change *changes, unsigned count)
{
	unsigned shown = 0, same = 0;

	for (unsigned i = 0; i < count; i++) {
		same += as_before(&changes[i]);
		if (strcmp(gm_change_name(&changes[i]), "same") == 0)
			continue;
		if (shown++ < out->top)
			print_change(out, &changes[i]);
	}
	if (shown > out->top)
		gm_printf(out->file, "\n  %u more (--top)\n", shown - out->top);
	if (same)
		gm_printf(out->file, "\n  %u site%s as before\n", same,
			  same == 1 ? " is" : "s are");
	if (!count)
		gm_printf(out->file, "\n  neither run has an allocation site\n");
}

static const char *format_ns(char text[GM_FORMAT_BYTES], uint64_t ns)
{
	return gm_format_time(text, gm_seconds(ns));
}

static const struct {
	const char *title;
	const char *(*format)(char text[GM_FORMAT_BYTES], uint64_t value);
} measures[GM_MEASURES] = {
	[GM_MEASURE_LIVE] = {"live", gm_format_size},
	[GM_MEASURE_AT_PEAK] = {"at the peak", gm_format_size},
	[GM_MEASURE_ALLOCATED] = {"allocated", gm_format_size},
	[GM_MEASURE_ALLOCATIONS] = {"allocations", gm_format_count},
	[GM_MEASURE_TIME] = {"allocating for", format_ns},
};

static void add_change(struct gm_table *table, const struct gm_change *change, unsigned measure)
{
	const struct gm_site *site = change->new_site ? change->new_site : change->old_site;
	uint64_t before = change->before[measure], after = change->after[measure];
	char text[GM_FORMAT_BYTES];

	gm_table_cell(table, "%s", measures[measure].format(text, after));
	gm_table_cell(table, "%s", measures[measure].format(text, before));
	gm_table_cell(
		table, "%c%s", after > before ? '+' : '-',
		measures[measure].format(text, after > before ? after - before : before - after));
	gm_table_cell(table, "%s", gm_stack_label(change->doc, site->stack));
}

static void print_measure(struct gm_out *out, struct gm_change *changes, unsigned count,
			  unsigned measure)
{
	const char *const titles[] = {measures[measure].title, "before", "change", "<where", NULL};
	struct gm_table table;
	unsigned shown = 0;

	gm_sort_changes(changes, count, measure);
	gm_table_begin(&table, titles);
	for (unsigned i = 0; i < count; i++)
		if (gm_change_differs(&changes[i], measure) && shown++ < out->top)
			add_change(&table, &changes[i], measure);
	if (shown)
		fputc('\n', out->file);
	gm_table_end(out, &table);
	if (shown > out->top)
		gm_printf(out->file, "  %u more (--top)\n", shown - out->top);
}

void gm_text_measures(struct gm_out *out, struct gm_change *changes, unsigned count, bool live)
{
	if (live)
		print_measure(out, changes, count, GM_MEASURE_LIVE);
	for (unsigned m = GM_MEASURE_AT_PEAK; m < GM_MEASURES; m++)
		print_measure(out, changes, count, m);
}
