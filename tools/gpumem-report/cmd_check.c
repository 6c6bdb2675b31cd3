/*
 * check: the gates over every file; the exit status is the worst of them.
 */
#include "cli.h"
#include "output.h"
#include "report/open/open.h"
#include "report/render/check/json_changes.h"
#include "report/render/check/text_check.h"
#include "report/render/json/json.h"
#include "report/job/job_open.h"
#include "report/render/check/annotations.h"
#include "report/render/check/junit.h"
#include "report/render/check/markdown.h"
#include "report/render/check/sarif.h"
#include "report/support/print.h"
#include <string.h>

typedef int write_fn(const struct gm_job *job, FILE *file);

static write_fn *const writers[GM_CHECK_FILES] = {
	[GM_JUNIT] = gm_junit_write,	 [GM_SARIF] = gm_sarif_write,
	[GM_MARKDOWN] = gm_markdown_write, [GM_GITHUB] = gm_github_write,
	[GM_GITLAB] = gm_gitlab_write,
};

/* Writes --junit and the like; false after a sentence. */
static bool write_file(const struct gm_cli *cli, const struct gm_job *job, const char *path,
		       write_fn *write)
{
	struct gm_output output;

	return gm_output_begin(&output, cli, path) &&
	       gm_output_end(&output, write(job, output.file) != 0);
}

/* Each file's sites beside the baseline's. */
static json_t *baseline_list(const struct gm_job *job, struct gm_doc *baseline)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < job->count; i++) {
		unsigned count;
		struct gm_change *changes = gm_compare_docs(baseline, job->docs[i], &count);

		json_array_append_new(
			list, gm_json_changes(baseline->path, job->docs[i]->path, changes, count));
	}
	return list;
}

static void print_changes(struct gm_out *out, struct gm_doc *doc, struct gm_doc *baseline)
{
	unsigned count;
	struct gm_change *changes = gm_compare_docs(baseline, doc, &count);

	gm_text_measures(out, changes, count, true);
}

static void print(struct gm_cli *cli, struct gm_job *job, struct gm_doc *baseline)
{
	struct gm_out out = gm_cli_out(cli);
	unsigned failed = 0, unmeasured = 0;

	for (unsigned i = 0; i < job->count; i++) {
		if (job->count > 1 && !cli->options.quiet)
			gm_printf(out.file, "%s\n", job->docs[i]->path);
		gm_text_gates(&out, job->docs[i], cli->options.quiet);
		if (baseline && !cli->options.quiet)
			print_changes(&out, job->docs[i], baseline);
	}
	if (baseline && !cli->options.quiet)
		fputc('\n', out.file);
	for (unsigned i = 0; i < job->gates_count; i++) {
		failed += gm_gate_failed(&job->gates[i]);
		unmeasured += job->gates[i].unmeasured != NULL;
		if (!job->count)
			gm_text_unmeasured(&out, &job->gates[i]);
	}
	if (failed)
		gm_print(&out, GM_RED, "%u of %u gates failed", failed, job->gates_count);
	else if (unmeasured || !cli->options.quiet)
		gm_print(&out, unmeasured ? GM_YELLOW : GM_GREEN, "%u of %u gates passed",
			 job->gates_count - unmeasured, job->gates_count);
	if (unmeasured)
		gm_printf(out.file, ", %u not measured", unmeasured);
	if (failed || unmeasured || !cli->options.quiet)
		fputc('\n', out.file);
}

int gm_cli_check(struct gm_cli *cli, struct gm_job *job, const char *why)
{
	struct gm_doc *baseline = NULL;
	char error[1024];
	bool written = true;
	int rc;

	if (cli->baseline) {
		baseline = gm_doc_open(cli->baseline, &cli->options, error, sizeof(error));
		if (!baseline) {
			gm_cli_complain(error);
			return GM_EXIT_INPUT;
		}
	}
	for (unsigned i = 0; i < job->count; i++)
		gm_run_gates(job->docs[i], &cli->gates, baseline);
	gm_gather_gates(job);
	if (!job->count)
		gm_gates_without_file(job, &cli->gates, baseline, why);
	for (unsigned i = 0; i < GM_CHECK_FILES; i++)
		if (cli->check_files[i])
			written = write_file(cli, job, cli->check_files[i], writers[i]) && written;
	if (cli->options.json)
		gm_json_write_job(job, baseline ? "baseline" : NULL,
				  baseline ? baseline_list(job, baseline) : NULL, stdout);
	else
		print(cli, job, baseline);
	rc = gm_gates_exit(job->gates, job->gates_count);
	gm_doc_close(baseline);
	return rc ? rc : written ? GM_EXIT_FINE : GM_EXIT_USAGE;
}

int gm_cmd_check(struct gm_cli *cli)
{
	struct gm_job *job = gm_cli_open(cli);
	int rc = job ? gm_cli_check(cli, job, NULL) : GM_EXIT_INPUT;

	gm_job_close(job);
	return rc;
}
