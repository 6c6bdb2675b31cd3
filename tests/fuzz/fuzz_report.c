/*
 * Any bytes as an output file or as a snapshot of PyTorch's, through the whole report: loading,
 * verdicts and findings, the gates against themselves, every way to print them, and a moment
 * halfway.
 */
#include "harness.h"
#include "report/gate/compare.h"
#include "report/gate/gates.h"
#include "report/job/job.h"
#include "report/render/export/export.h"
#include "report/render/json/json.h"
#include "report/render/json/internal.h"
#include "report/render/page/internal.h"
#include "report/render/check/text_check.h"
#include "report/doc/options.h"
#include "report/job/job_open.h"
#include "report/render/check/annotations.h"
#include "report/render/check/junit.h"
#include "report/render/check/markdown.h"
#include "report/render/check/sarif.h"
#include "report/render/json/json_sites.h"
#include "report/render/text/text_events.h"
#include "report/render/text/text_holes.h"
#include "report/render/text/text_job.h"
#include "report/render/text/text_sites.h"
#include "report/render/text/text_summary.h"
#include "report/render/text/text_timeline.h"

static void complain(const char *sentence)
{
	if (!*sentence)
		abort();
}

static void print(struct gm_job *job, struct gm_doc *doc, FILE *nowhere)
{
	struct gm_out out = {nowhere, true, 20, true, 80};

	gm_text_summary(&out, doc, false);
	gm_text_leaks(&out, doc, true);
	gm_text_sites(&out, doc, "churn", false);
	gm_text_fragmentation(&out, doc);
	gm_text_ooms(&out, doc);
	gm_text_timeline(&out, doc);
	gm_text_gates(&out, doc, false);
	gm_text_job(&out, job);
	gm_json_write_job(job, NULL, NULL, nowhere);
	gm_junit_write(job, nowhere);
	gm_sarif_write(job, nowhere);
	gm_markdown_write(job, nowhere);
	gm_github_write(job, nowhere);
	gm_gitlab_write(job, nowhere);
}

static void export(struct gm_doc *doc, const struct gm_options *options, FILE *nowhere)
{
	char error[1024];

	for (unsigned i = 0; i < gm_export_formats_count; i++) {
		const struct gm_export_format *format = &gm_export_formats[i];

		if (format->write)
			format->write(doc, options, nowhere);
		else
			format->write_path(doc, options, ":memory:", error, sizeof(error));
	}
}

static void page(struct gm_doc *doc, FILE *nowhere)
{
	static struct gm_json_out out;
	int *numbers = gm_json_site_numbers(doc);

	out = (struct gm_json_out){.write = gm_json_to_file, .data = nowhere};
	gm_page_put_sites(&out, doc, numbers);
	gm_page_put_memory_map(&out, doc, numbers);
	gm_page_put_history(&out, doc, numbers);
	gm_json_out_end(&out);
}

static void halfway(char **paths, struct gm_options options, const struct gm_doc *doc,
		    FILE *nowhere)
{
	struct gm_job *job;

	if (!(doc->duration_s > 0 && doc->duration_s < 1e9))
		return;
	options.at = true;
	options.at_ns = (uint64_t)(doc->duration_s * 5e8);
	job = gm_job_open(paths, 1, &options, complain);
	if (!job)
		return;
	print(job, job->docs[0], nowhere);
	export(job->docs[0], &options, nowhere);
	page(job->docs[0], nowhere);
	gm_job_close(job);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct gm_options options = {.device = -1, .kind = -1, .level = -1,
				     .warmup = GM_WARMUP_WINDOWS, .top = 20, .fine_timeline = true};
	struct gm_gate_options gates = gm_gate_defaults();
	FILE *nowhere = fopen("/dev/null", "w");
	char path[64], *paths[] = {path};
	struct gm_job *job;
	int fd;

	if (!nowhere)
		abort();
	gates.per_mark = gates.no_errors = true;
	gates.max_peak_bytes = gates.max_retries = gates.max_fragmentation_percent = 1;
	harness_file(data, bytes, &fd, path);
	job = gm_job_open(paths, 1, &options, complain);
	if (job) {
		gm_run_gates(job->docs[0], &gates, job->docs[0]);
		print(job, job->docs[0], nowhere);
		export(job->docs[0], &options, nowhere);
		page(job->docs[0], nowhere);
		halfway(paths, options, job->docs[0], nowhere);
		gm_job_close(job);
	}
	close(fd);
	fclose(nowhere);
	return 0;
}
