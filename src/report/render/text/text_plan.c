/*
 * A plan for people: the parts with their rules, what follows for batches and GPUs, and what other
 * ways would change.
 */
#include "report/render/text/text_plan.h"
#include "report/support/format.h"
#include "report/support/print.h"
#include <math.h>
#include <string.h>

static const struct gm_plan_part *find_part(const struct gm_plan *plan, const char *what)
{
	for (unsigned i = 0; plan && i < plan->parts_count; i++)
		if (strcmp(plan->parts[i].what, what) == 0)
			return &plan->parts[i];
	return NULL;
}

static void size_of_part(struct gm_table *table, const struct gm_plan *plan,
			 const struct gm_plan_part *part)
{
	gm_table_size(table, part ? gm_whole_bytes(gm_part_bytes(plan, part)) : GM_NO_BYTES);
}

/* The parts; beside an estimate both figures, and at the end what only the estimate has. */
static void print_parts(struct gm_out *out, const struct gm_plan *plan)
{
	static const char *const alone[] = {"<what", "bytes", "<rule", NULL};
	static const char *const both[] = {"<what", "measured", "estimated", "<rule", NULL};
	const struct gm_plan *estimate = plan->estimate;
	struct gm_table table;

	gm_table_begin(&table, estimate ? both : alone);
	for (unsigned i = 0; i < plan->parts_count; i++) {
		const struct gm_plan_part *part = &plan->parts[i];

		gm_table_cell(&table, "%s", part->what);
		size_of_part(&table, plan, part);
		if (estimate)
			size_of_part(&table, estimate, find_part(estimate, part->what));
		gm_table_cell(&table, "%s", part->rule);
	}
	for (unsigned i = 0; estimate && i < estimate->parts_count; i++) {
		const struct gm_plan_part *part = &estimate->parts[i];

		if (find_part(plan, part->what))
			continue;
		gm_table_cell(&table, "%s", part->what);
		gm_table_size(&table, GM_NO_BYTES);
		size_of_part(&table, estimate, part);
		gm_table_cell(&table, "%s", part->rule);
	}
	table.whole = true;
	gm_table_cell(&table, "all");
	gm_table_size(&table, plan->total_bytes);
	if (estimate)
		gm_table_size(&table, estimate->total_bytes);
	gm_table_cell(&table, "at batch %llu", (unsigned long long)plan->batch);
	gm_table_end(out, &table);
}

static void print_line(struct gm_out *out, const struct gm_plan *plan)
{
	char fixed[GM_FORMAT_BYTES], slope[GM_FORMAT_BYTES], text[GM_FORMAT_BYTES];
	char runs[48] = "", error[64] = "";

	if (plan->runs > 1)
		snprintf(runs, sizeof(runs), " (measured in %u runs)", plan->runs);
	if (plan->fit_error > 0)
		snprintf(error, sizeof(error), ", at most %s off the line",
			 gm_format_size(text, gm_whole_bytes(plan->fit_error)));
	gm_print(out, GM_BOLD, "Needs: ");
	gm_wrapf(out, 7, "%s, and %s for each sample%s%s",
		 gm_format_size(fixed, plan->fixed_bytes),
		 gm_format_size(slope, plan->per_batch_bytes), runs, error);
}

static void print_batches(struct gm_out *out, const struct gm_plan *plan)
{
	char limit[GM_FORMAT_BYTES], most[64], device[160] = "";

	if (plan->limit_bytes == GM_NO_BYTES)
		return;
	if (plan->device_name)
		snprintf(device, sizeof(device), " (%s)", plan->device_name);
	gm_print(out, GM_BOLD, "Largest batch: ");
	gm_format_size(limit, plan->limit_bytes);
	snprintf(most, sizeof(most), "; %llu without a margin",
		 (unsigned long long)plan->max_batch);
	if (plan->safe_batch == GM_NO_BYTES)
		gm_wrapf(out, 15, "nothing follows the batch, so nothing bounds it in %s%s", limit,
			 device);
	else
		gm_wrapf(out, 15, "%llu in %s%s with %s%u %% to spare%s",
			 (unsigned long long)plan->safe_batch, limit, device,
			 plan->fragmentation > 0 ? "the measured fragmentation and " : "",
			 plan->margin_percent, most);
	if (plan->accumulation == GM_NO_BYTES)
		return;
	gm_print(out, GM_BOLD, "Effective batch %llu: ", (unsigned long long)plan->target_batch);
	if (plan->accumulation == 1)
		gm_printf(out->file, "fits as it is\n");
	else
		gm_printf(out->file, "%llu steps of %llu accumulated\n",
			(unsigned long long)plan->accumulation,
			(unsigned long long)((plan->target_batch + plan->accumulation - 1) /
					     plan->accumulation));
}

static void print_kv_cache(struct gm_out *out, const struct gm_plan *plan)
{
	char token[GM_FORMAT_BYTES], request[GM_FORMAT_BYTES];

	if (!plan->kv_tokens)
		return;
	gm_print(out, GM_BOLD, "Key/value cache: ");
	gm_wrapf(out, 17, "%s for each token, %s for a request of %u tokens; the batch is the "
			  "requests held at once",
		 gm_format_size(token, plan->kv_token_bytes),
		 gm_format_size(request, plan->kv_token_bytes * plan->kv_tokens), plan->kv_tokens);
}

static void batch_cell(struct gm_table *table, uint64_t batch)
{
	if (batch == GM_NO_BYTES)
		gm_table_cell(table, "-");
	else
		gm_table_cell(table, "%llu", (unsigned long long)batch);
}

static void print_fits(struct gm_out *out, const struct gm_plan *plan)
{
	static const char *const titles[] = {"<GPU", "memory",	      "<fits",
					     "left", "largest batch", NULL};
	struct gm_table table;

	if (plan->measured)
		gm_heading(out, "GPUs, with %.1f %% fragmentation as measured and %u %% to spare",
			   100 * plan->fragmentation, plan->margin_percent);
	else
		gm_heading(out, "GPUs, with %u %% to spare", plan->margin_percent);
	gm_table_begin(&table, titles);
	for (unsigned i = 0; i < plan->fits_count; i++) {
		const struct gm_plan_fit *fit = &plan->fits[i];

		gm_table_cell(&table, "%s", fit->gpu);
		gm_table_size(&table, fit->total_bytes);
		gm_table_cell(&table, "%s",
			      fit->fits			? "yes"
			      : fit->margin_percent > 0 ? "barely"
							: "no");
		gm_table_cell(&table, "%.1f %%", fit->margin_percent);
		batch_cell(&table, fit->max_batch);
	}
	gm_table_end(out, &table);
}

static void print_variants(struct gm_out *out, const struct gm_plan *plan)
{
	static const char *const titles[] = {"<with",	      "all",   "change",
					     "largest batch", "<rule", NULL};
	char change[GM_FORMAT_BYTES];
	struct gm_table table;

	if (!plan->variants_count)
		return;
	gm_heading(out, "What would change it, largest batches with %u %% to spare",
		   plan->margin_percent);
	gm_table_begin(&table, titles);
	for (unsigned i = 0; i < plan->variants_count; i++) {
		const struct gm_plan_variant *variant = &plan->variants[i];

		gm_table_cell(&table, "%s", variant->what);
		gm_table_size(&table, variant->total_bytes);
		gm_table_cell(&table, "%s",
			      gm_format_change(change, plan->total_bytes, variant->total_bytes));
		batch_cell(&table, variant->max_batch);
		gm_table_cell(&table, "%s", variant->rule);
	}
	gm_table_end(out, &table);
}

void gm_text_plan(struct gm_out *out, const struct gm_plan *plan)
{
	print_line(out, plan);
	print_batches(out, plan);
	print_kv_cache(out, plan);
	gm_heading(out, plan->measured ? "Measured" : "Estimated by rules (docs/plan.md), no run");
	print_parts(out, plan);
	print_fits(out, plan);
	print_variants(out, plan);
	for (unsigned i = 0; i < plan->notes_count; i++) {
		gm_printf(out->file, i ? "- " : "\n- ");
		gm_wrap(out, 2, plan->notes[i]);
	}
	for (unsigned i = 0; plan->estimate && i < plan->estimate->notes_count; i++) {
		gm_printf(out->file, "- estimate: ");
		gm_wrap(out, 2, plan->estimate->notes[i]);
	}
}
