/*
 * Failed gates at the lines of a change (annotations.h). The rules are those of GitHub's page
 * "Workflow commands" and its toolkit's escapes, and of GitLab's page "Code Quality".
 */
#include "report/render/check/annotations.h"
#include "report/doc/frames.h"
#include "report/render/check/results.h"
#include "report/render/json/json.h"
#include "report/render/json/json_values.h"
#include "report/support/print.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STACK_FRAMES 10 /* of an annotation: what a reader of a change looks at */

/* In a message "%" and the ends of lines are escaped, in a property ":" and "," too. */
static void escape(FILE *file, const char *text, bool property)
{
	char *harmless = gm_harmless(text);

	for (const char *at = harmless; at && *at; at++)
		if (strchr(property ? "%\r\n:," : "%\r\n", *at))
			fprintf(file, "%%%02X", (unsigned char)*at);
		else
			fputc(*at, file);
	free(harmless);
}

static void write_stack(FILE *file, const struct gm_stack *stack)
{
	unsigned shown = 0;

	for (unsigned i = 0; stack && i < stack->count; i++) {
		if (gm_stack_frame(stack, i)->plumbing || shown++ >= STACK_FRAMES)
			continue;
		fputs("%0A  ", file);
		escape(file, gm_format_frame_short(gm_stack_frame(stack, i)), false);
	}
	if (shown > STACK_FRAMES)
		fprintf(file, "%%0A  ... %u more", shown - STACK_FRAMES);
}

static void write_command(void *context, const struct gm_result *result)
{
	const struct gm_gate *gate = result->gate;
	FILE *file = context;

	fputs(!gate->unmeasured ? "::error title=" :
	      gate->excused	? "::notice title=" :
				  "::warning title=",
	      file);
	escape(file, result->rule->text, true);
	if (result->place) {
		fputs(",file=", file);
		escape(file, gm_repository_path(result->doc, result->place->file), true);
		if (result->place->line)
			fprintf(file, ",line=%u", result->place->line);
	}
	fputs("::", file);
	escape(file, result->message, false);
	write_stack(file, result->stack);
	fputc('\n', file);
}

int gm_github_write(const struct gm_job *job, FILE *file)
{
	gm_each_result(job, write_command, file);
	return fflush(file) == 0 && !ferror(file) ? 0 : -EIO;
}

/* FNV-1a, so that a finding keeps its fingerprint from run to run. */
static uint64_t add_hash(uint64_t hash, const char *text)
{
	for (; text && *text; text++)
		hash = (hash ^ (unsigned char)*text) * 1099511628211ull;
	return (hash ^ 0xff) * 1099511628211ull;
}

struct entries {
	json_t *list, *fingerprints;
};

/* Ranks have the same site, and one place can fail several times: it is one entry. */
static void add_entry(void *context, const struct gm_result *result)
{
	const struct gm_frame *place = result->place;
	struct entries *entries = context;
	const char *path = place	 ? gm_repository_path(result->doc, place->file)
			   : result->doc ? gm_repository_path(result->doc, result->doc->path)
					 : "gpumemtrace";
	uint64_t hash = add_hash(14695981039346656037ull, result->gate->gate);
	char fingerprint[32];

	hash = add_hash(hash, result->id ? result->id : path);
	hash = add_hash(hash, result->id || !place ? NULL : place->function);
	snprintf(fingerprint, sizeof(fingerprint), "%016llx", (unsigned long long)hash);
	if (json_object_get(entries->fingerprints, fingerprint))
		return;
	json_object_set_new(entries->fingerprints, fingerprint, json_true());
	json_array_append_new(
		entries->list,
		json_pack("{s:s, s:s, s:o, s:s, s:s, s:{s:o, s:{s:i}}}", "type", "issue",
			  "check_name", result->rule->name, "description",
			  gm_json_string(result->message), "fingerprint", fingerprint, "severity",
			  result->gate->unmeasured ? "info" : "major", "location", "path",
			  gm_json_string(path), "lines", "begin",
			  place && place->line ? (int)place->line : 1));
}

int gm_gitlab_write(const struct gm_job *job, FILE *file)
{
	struct entries entries = {json_array(), json_object()};

	gm_each_result(job, add_entry, &entries);
	json_decref(entries.fingerprints);
	return gm_json_write(entries.list, file);
}
