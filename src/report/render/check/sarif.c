/*
 * SARIF 2.1.0 for code scanning: a rule per gate, a result per site that broke one, at the
 * innermost frame of the program that has a file and line, with the whole stack.
 */
#include "report/render/check/sarif.h"
#include "report/doc/frames.h"
#include "report/render/check/results.h"
#include "report/render/json/json.h"
#include "report/render/json/json_values.h"
#include <string.h>

#define BASE_ID "RUNROOT" /* the directory that the program ran in */

static json_t *rule_list(void)
{
	json_t *list = json_array();

	for (const struct gm_rule *rule = gm_rules; rule < gm_rules + gm_rules_count; rule++)
		json_array_append_new(
			list,
			json_pack("{s:s, s:s, s:{s:s}, s:{s:s}, s:{s:s}}", "id", rule->gate, "name",
				  rule->name, "shortDescription", "text", rule->text,
				  "fullDescription", "text", rule->full, "help", "text",
				  rule->help));
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

/* Names a path below the run's directory from there, as readers of a repository want it. */
static json_t *artifact(const struct gm_doc *doc, const char *path)
{
	const char *below = gm_path_below(path, doc->cwd);

	if (below)
		return json_pack("{s:o, s:s}", "uri", uri(below), "uriBaseId", BASE_ID);
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
		const struct gm_frame *frame = gm_stack_frame(stack, i);
		json_t *at = frame->file ? location(doc, frame) : json_object();

		json_object_set_new(
			at, "message",
			json_pack("{s:o}", "text", gm_json_string(gm_format_frame_short(frame))));
		json_array_append_new(frames, json_pack("{s:o}", "location", at));
	}
	return json_pack("[{s:o}]", "frames", frames);
}

/* SARIF calls a rule open that could not be evaluated; such a result has no level. */
static void add_result(void *context, const struct gm_result *from)
{
	bool open = from->gate->unmeasured != NULL;
	json_t *results = context;
	json_t *result = json_pack("{s:s, s:s, s:{s:o}}", "ruleId", from->rule->gate, "level",
				   open ? "none" : "error", "message", "text",
				   gm_json_string(from->message));
	json_t *locations = json_array();

	if (open)
		json_object_set_new(result, "kind", json_string("open"));
	if (from->place)
		json_array_append_new(locations, location(from->doc, from->place));
	else if (from->doc)
		json_array_append_new(locations, whole_file(from->doc));
	json_object_set_new(result, "locations", locations);
	if (from->stack && from->stack->count)
		json_object_set_new(result, "stacks", stack_list(from->doc, from->stack));
	if (from->id)
		json_object_set_new(result, "partialFingerprints",
				    json_pack("{s:s}", "gpumemtraceSite/v1", from->id));
	json_array_append_new(results, result);
}

int gm_sarif_write(const struct gm_job *job, FILE *file)
{
	json_t *results = json_array(), *run;

	gm_each_result(job, add_result, results);
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
