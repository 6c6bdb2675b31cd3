/*
 * SARIF 2.1.0 for code scanning: a rule per gate, a result per site that broke one, at the
 * innermost frame of the program that has a file and line, with the whole stack.
 */
#include "report/render/check/sarif.h"
#include "report/doc/frames.h"
#include "report/doc/enum_names.h"
#include "report/render/check/text_check.h"
#include "report/render/json/json.h"
#include "report/render/json/json_values.h"
#include <string.h>

#define BASE_ID "RUNROOT" /* the directory that the program ran in */

/* An identifier and a sentence for each gate, as GitHub and the reference validator want them. */
static const struct {
	const char *gate, *name, *text, *full, *help;
} rules[] = {
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

static json_t *rule_list(void)
{
	json_t *list = json_array();

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		json_array_append_new(
			list,
			json_pack("{s:s, s:s, s:{s:s}, s:{s:s}, s:{s:s}}", "id", rules[i].gate,
				  "name", rules[i].name, "shortDescription", "text", rules[i].text,
				  "fullDescription", "text", rules[i].full, "help", "text",
				  rules[i].help));
	return list;
}

/* A path as a URI: what RFC 3986 reserves is written in hexadecimal. */
static json_t *uri(const char *path)
{
	char text[3 * 1024 + 8], *to = text;

	if (*path == '/')
		to += sprintf(to, "file://");
	for (; *path && to < text + sizeof(text) - 4; path++)
		if (strchr("/._-~", *path) || (*path >= '0' && *path <= '9') ||
		    (*path >= 'a' && *path <= 'z') || (*path >= 'A' && *path <= 'Z'))
			*to++ = *path;
		else
			to += sprintf(to, "%%%02X", (unsigned char)*path);
	return json_stringn(text, (size_t)(to - text));
}

/* What is below the run's directory is named from there, as readers of a repository want it. */
static json_t *artifact(const struct gm_doc *doc, const char *path)
{
	size_t length = doc->cwd ? strlen(doc->cwd) : 0;

	if (length > 1 && strncmp(path, doc->cwd, length) == 0 && path[length] == '/')
		return json_pack("{s:o, s:s}", "uri", uri(path + length + 1), "uriBaseId",
				 BASE_ID);
	return json_pack("{s:o}", "uri", uri(path));
}

static json_t *location(const struct gm_doc *doc, const struct gm_frame *frame)
{
	json_t *physical = json_pack("{s:o}", "artifactLocation", artifact(doc, frame->file));

	if (frame->line)
		json_object_set_new(physical, "region",
				    json_pack("{s:i}", "startLine", (int)frame->line));
	return json_pack("{s:o}", "physicalLocation", physical);
}

/* The file of the run as a whole: it has no lines. */
static json_t *whole_file(const struct gm_doc *doc)
{
	return json_pack("{s:{s:o, s:{s:i, s:I}}}", "physicalLocation", "artifactLocation",
			 artifact(doc, doc->path), "region", "byteOffset", 0, "byteLength",
			 (json_int_t)gm_reader_bytes(doc->reader));
}

static json_t *stack_list(const struct gm_doc *doc, const struct gm_stack *stack)
{
	json_t *frames = json_array();

	for (unsigned i = 0; stack && i < stack->count; i++) {
		const struct gm_frame *frame = stack->frames[i];
		json_t *at = frame->file ? location(doc, frame) : json_object();

		json_object_set_new(
			at, "message",
			json_pack("{s:o}", "text", gm_json_string(gm_format_frame_short(frame))));
		json_array_append_new(frames, json_pack("{s:o}", "location", at));
	}
	return json_pack("[{s:o}]", "frames", frames);
}

/* The line a person can act on: own code with a file; else any frame with one. */
static const struct gm_frame *place(const struct gm_stack *stack)
{
	const struct gm_frame *any = NULL;

	for (unsigned i = 0; stack && i < stack->count; i++) {
		if (!stack->frames[i]->file)
			continue;
		if (!stack->frames[i]->plumbing)
			return stack->frames[i];
		any = any ? any : stack->frames[i];
	}
	return any;
}

static void add_result(json_t *results, const struct gm_doc *doc, const struct gm_gate *gate,
		       const struct gm_stack *stack, const char *message, const char *id)
{
	const struct gm_frame *frame = place(stack);
	const char *rule = strncmp(gate->gate, "mark:", 5) == 0 ? "leaks" : gate->gate;
	json_t *result = json_pack("{s:s, s:s, s:{s:o}}", "ruleId", rule, "level",
				   gate->unmeasured ? "none" : "error", "message", "text",
				   gm_json_string(message));
	json_t *locations = json_array();

	if (gate->unmeasured)
		json_object_set_new(result, "kind", json_string("open"));

	if (frame)
		json_array_append_new(locations, location(doc, frame));
	else if (doc)
		json_array_append_new(locations, whole_file(doc));
	json_object_set_new(result, "locations", locations);
	if (stack && stack->count)
		json_object_set_new(result, "stacks", stack_list(doc, stack));
	if (id)
		json_object_set_new(result, "partialFingerprints",
				    json_pack("{s:s}", "gpumemtraceSite/v1", id));
	json_array_append_new(results, result);
}

/* SARIF calls a rule open that could not be evaluated; such a result has no level. */
static void add_unmeasured(json_t *results, const struct gm_doc *doc, const struct gm_gate *gate)
{
	char message[512];

	snprintf(message, sizeof(message), "%s: not measured: %s.", gate->note, gate->unmeasured);
	add_result(results, doc, gate, NULL, message, NULL);
}

/* "276.0 MiB, limit 0 B" */
static const char *figures_of(struct gm_doc *doc, const struct gm_gate *gate)
{
	char value[GM_FORMAT_BYTES], limit[GM_FORMAT_BYTES];

	return gm_doc_printf(doc, "%s, limit %s", gm_gate_figure(value, gate, gate->value),
			     gm_gate_figure(limit, gate, gate->limit));
}

static void add_gate(json_t *results, struct gm_doc *doc, const struct gm_gate *gate)
{
	const char *figures = figures_of(doc, gate);
	bool oom = strcmp(gate->gate, "no-oom") == 0, errors = strcmp(gate->gate, "no-errors") == 0;

	for (unsigned i = 0; oom && i < doc->ooms_count; i++)
		add_result(results, doc, gate, doc->ooms[i].stack,
			   gm_doc_printf(doc, "out of memory (%s): %s asked for %s; events: %s.",
					 doc->ooms[i].verdict,
					 doc->ooms[i].api ? doc->ooms[i].api : "the framework",
					 gm_size(doc, doc->ooms[i].record.requested_bytes),
					 figures),
			   NULL);
	for (unsigned i = 0; errors && i < doc->errors_count; i++)
		add_result(results, doc, gate, doc->errors[i].stack,
			   gm_doc_printf(doc, "%s by %s, %llu times; bad frees: %s.",
					 doc->errors[i].type,
					 doc->errors[i].api ? doc->errors[i].api : "a free",
					 (unsigned long long)doc->errors[i].record.count, figures),
			   NULL);
	for (unsigned i = 0; !errors && i < gate->sites_count; i++) {
		const struct gm_site *site = &doc->sites[gate->sites[i]];

		add_result(results, doc, gate, site->stack,
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
		add_result(results, doc, gate, NULL,
			   gm_doc_printf(doc, "%s: %s.", gate->note, figures),
			   NULL);
}

int gm_sarif_write(const struct gm_job *job, FILE *file)
{
	json_t *results = json_array(), *run;

	for (unsigned i = 0; i < job->count; i++)
		for (unsigned k = 0; k < job->docs[i]->gates_count; k++) {
			const struct gm_gate *gate = &job->docs[i]->gates[k];

			if (gate->unmeasured)
				add_unmeasured(results, job->docs[i], gate);
			else if (!gate->passed)
				add_gate(results, job->docs[i], gate);
		}
	for (unsigned i = 0; !job->count && i < job->gates_count; i++)
		add_unmeasured(results, NULL, &job->gates[i]);
	run = json_pack("{s:{s:{s:s, s:s, s:o}}, s:o, s:s}", "tool", "driver", "name",
			"gpumem-report", "version", GM_VERSION, "rules", rule_list(), "results",
			results, "columnKind", "unicodeCodePoints");
	if (job->count && job->docs[0]->cwd)
		json_object_set_new(run, "originalUriBaseIds",
				    json_pack("{s:{s:o}}", BASE_ID, "uri",
					      uri(gm_zone_printf(&job->docs[0]->zone, "%s/",
								 job->docs[0]->cwd))));
	return gm_json_write(json_pack("{s:s, s:s, s:[o]}", "$schema",
				       "https://json.schemastore.org/sarif-2.1.0.json", "version",
				       "2.1.0", "runs", run),
			     file);
}
