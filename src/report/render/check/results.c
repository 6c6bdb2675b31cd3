/*
 * The entries that made a check fail (results.h).
 */
#include "report/render/check/results.h"
#include "report/doc/enum_names.h"
#include "report/render/check/text_check.h"
#include "report/stacks/labels.h"
#include <stdlib.h>
#include <string.h>

const struct gm_rule gm_rules[] = {
	{"leaks", "GpuMemoryLeaks", "GPU memory leaks.",
	 "Memory keeps growing, or was not freed at the end of the run.",
	 "gpumem-report leaks FILE shows the sites with their stacks."},
	{"no-oom", "GpuMemoryExhausted", "The program ran out of GPU memory.",
	 "An allocation was refused for want of GPU memory.",
	 "gpumem-report oom FILE says what was asked for, who held the memory and what to do."},
	{"max-growth", "GpuMemoryGrowth", "GPU memory keeps growing beyond its limit.",
	 "All sites that keep growing hold more at the end of the work than --max-growth allows.",
	 "gpumem-report leaks FILE shows the sites with their stacks."},
	{"max-peak", "GpuMemoryPeak", "The peak of GPU memory exceeds its limit.",
	 "The highest peak of a device is above --max-peak.",
	 "gpumem-report sites --at peak FILE shows what the peak is made of."},
	{"max-peak-growth", "GpuMemoryPeakGrowth",
	 "The peak of GPU memory exceeds the baseline's by more than allowed.",
	 "The highest peak of a device is above the baseline's by more than --max-peak-growth.",
	 "gpumem-report diff OLD NEW shows what changed."},
	{"max-fragmentation", "GpuMemoryFragmentation",
	 "GPU memory is fragmented beyond its limit.",
	 "More of what a level reserved was idle at its peak than --max-fragmentation allows.",
	 "gpumem-report fragmentation FILE shows the blocks that pin segments."},
	{"max-retries", "GpuMemoryRetries",
	 "Allocations had to be repeated more often than allowed.",
	 "Allocations were repeated for want of memory more often than --max-retries allows.",
	 "gpumem-report oom FILE shows the retries."},
	{"no-errors", "GpuMemoryErrors", "GPU memory was freed wrongly.",
	 "CUDA refused to free memory: it was freed twice, by the wrong call, or never allocated.",
	 "gpumem-report check --fail-on-errors FILE shows the stacks of both frees."},
};

const unsigned gm_rules_count = sizeof(gm_rules) / sizeof(gm_rules[0]);

struct results {
	void (*each)(void *context, const struct gm_result *result);
	void *context;
};

/* The line that a person can act on: of the program's own code; else of any but plumbing. */
static const struct gm_frame *place(const struct gm_stack *stack)
{
	const struct gm_frame *other = NULL, *any = NULL;

	for (unsigned i = 0; stack && i < stack->count; i++) {
		const struct gm_frame *frame = gm_stack_frame(stack, i);

		if (!frame->file)
			continue;
		if (gm_frame_own(frame))
			return frame;
		if (!frame->plumbing && !other)
			other = frame;
		any = any ? any : frame;
	}
	return other ? other : any;
}

/* A gate of a mark is one of leaks. */
static const struct gm_rule *rule_of(const struct gm_gate *gate)
{
	for (unsigned i = 0; i < gm_rules_count; i++)
		if (strcmp(gm_rules[i].gate, gate->gate) == 0)
			return &gm_rules[i];
	return &gm_rules[0];
}

static void add(const struct results *results, const struct gm_doc *doc, const struct gm_gate *gate,
		const struct gm_stack *stack, const char *message, const char *id)
{
	const struct gm_result result = {.doc = doc, .gate = gate, .rule = rule_of(gate),
					 .stack = stack, .place = place(stack),
					 .message = message, .id = id};

	results->each(results->context, &result);
}

static void add_unmeasured(const struct results *results, const struct gm_doc *doc,
			   const struct gm_gate *gate)
{
	char message[512];

	snprintf(message, sizeof(message), "%s: not measured: %s.", gate->note, gate->unmeasured);
	add(results, doc, gate, NULL, message, NULL);
}

/* "276.0 MiB, limit 0 B" */
static const char *figures_of(struct gm_doc *doc, const struct gm_gate *gate)
{
	char value[GM_FORMAT_BYTES], limit[GM_FORMAT_BYTES];

	return gm_doc_printf(doc, "%s, limit %s", gm_gate_figure(value, gate, gate->value),
			     gm_gate_figure(limit, gate, gate->limit));
}

static void add_gate(const struct results *results, struct gm_doc *doc, const struct gm_gate *gate)
{
	const char *figures = figures_of(doc, gate);
	bool oom = strcmp(gate->gate, "no-oom") == 0, errors = strcmp(gate->gate, "no-errors") == 0;

	for (unsigned i = 0; oom && i < doc->ooms_count; i++)
		add(results, doc, gate, doc->ooms[i].stack,
			   gm_doc_printf(doc, "out of memory (%s): %s asked for %s; events: %s.",
					 doc->ooms[i].verdict,
					 doc->ooms[i].api ? doc->ooms[i].api : "the framework",
					 gm_size(doc, doc->ooms[i].record.requested_bytes),
					 figures),
			   NULL);
	for (unsigned i = 0; errors && i < doc->errors_count; i++)
		add(results, doc, gate, doc->errors[i].stack,
			   gm_doc_printf(doc, "%s by %s, %llu times; bad frees: %s.",
					 doc->errors[i].type,
					 doc->errors[i].api ? doc->errors[i].api : "a free",
					 (unsigned long long)doc->errors[i].record.count, figures),
			   NULL);
	for (unsigned i = 0; !errors && i < gate->sites_count; i++) {
		const struct gm_site *site = &doc->sites[gate->sites[i]];

		add(results, doc, gate, site->stack,
			   gm_doc_printf(
				   doc,
				   "%s (%s): %s of %s memory live in %llu of %llu allocations; %s.",
				   gate->note, figures,
				   gm_size(doc, gm_gate_site_bytes(gate, site)),
				   gm_kind_name(site->record.kind),
				   (unsigned long long)gm_gate_site_count(gate, site),
				   (unsigned long long)site->record.allocations, site->why),
			   site->id);
	}
	if (!oom && !errors && !gate->sites_count)
		add(results, doc, gate, NULL,
			   gm_doc_printf(doc, "%s: %s.", gate->note, figures),
			   NULL);
}

void gm_each_result(const struct gm_job *job,
		    void (*each)(void *context, const struct gm_result *result), void *context)
{
	const struct results results = {each, context};

	for (unsigned i = 0; i < job->count; i++)
		for (unsigned k = 0; k < job->docs[i]->gates_count; k++) {
			const struct gm_gate *gate = &job->docs[i]->gates[k];

			if (gate->unmeasured)
				add_unmeasured(&results, job->docs[i], gate);
			else if (!gate->passed)
				add_gate(&results, job->docs[i], gate);
		}
	for (unsigned i = 0; !job->count && i < job->gates_count; i++)
		add_unmeasured(&results, NULL, &job->gates[i]);
}

const char *gm_path_below(const char *path, const char *folder)
{
	size_t length = folder ? strlen(folder) : 0;

	while (length && folder[length - 1] == '/')
		length--;
	if (!length || strncmp(path, folder, length) != 0 || path[length] != '/')
		return NULL;
	return path + length + 1;
}

const char *gm_repository_path(const struct gm_doc *doc, const char *path)
{
	const char *const folders[] = {getenv("GITHUB_WORKSPACE"), getenv("CI_PROJECT_DIR"),
				       doc->cwd};

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		const char *below = gm_path_below(path, folders[i]);

		if (below)
			return below;
	}
	return strncmp(path, "./", 2) == 0 ? path + 2 : path;
}
