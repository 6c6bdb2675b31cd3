/*
 * whatif: the recorded history of PyTorch's allocator under other settings, and the options of the
 * command.
 */
#include "cli.h"
#include "base/size_text.h"
#include "report/job/job_open.h"
#include "report/plan/plan.h"
#include "report/render/json/json.h"
#include "report/render/json/json_whatif.h"
#include "report/render/text/text_whatif.h"
#include "report/support/print.h"
#include <stdlib.h>
#include <string.h>

#define MOST_CONFS 1024
#define GIB	   1073741824.0

static const char *conf(struct gm_cli *cli, const char *text)
{
	char *rest = gm_zone_strdup(&cli->texts, text), *word;

	while ((word = strsep(&rest, ";"))) {
		const char **place;

		if (!*word)
			continue;
		if (cli->whatif.confs_count == MOST_CONFS)
			return "at most 1024 settings";
		place = gm_zone_push(&cli->texts, &cli->whatif.confs, &cli->whatif.confs_count,
				     sizeof(*place));
		*place = word;
	}
	return cli->whatif.confs_count ? NULL
				       : "settings as of PYTORCH_CUDA_ALLOC_CONF with semicolons "
					 "between them, like "
					 "\"default;expandable_segments:True\"";
}

static const char *capacity(struct gm_cli *cli, const char *text)
{
	return gm_parse_size(text, &cli->whatif.capacity_bytes) && cli->whatif.capacity_bytes
		       ? NULL
		       : "a size, like 24GiB";
}

static const char *fraction(struct gm_cli *cli, const char *text)
{
	char *end;

	cli->whatif.fraction = strtod(text, &end);
	return end != text && !*end && cli->whatif.fraction > 0 && cli->whatif.fraction <= 1
		       ? NULL
		       : "a number above 0 and up to 1";
}

/* "2.7", and also "2.7.1" or "2.11.0+cu130". */
static const char *torch_version(struct gm_cli *cli, const char *text)
{
	unsigned long major, minor;
	char *end;

	major = strtoul(text, &end, 10);
	if (end == text || *end != '.' || major > 9)
		return "a version of PyTorch, like 2.7";
	text = end + 1;
	minor = strtoul(text, &end, 10);
	if (end == text || minor > 99 || (*end && *end != '.' && *end != '+'))
		return "a version of PyTorch, like 2.7";
	cli->whatif.version = (unsigned)(100 * major + minor);
	return NULL;
}

const struct gm_option gm_whatif_option_rows[] = {
	{"--conf", "A;B;...", GM_WHATIF, false, conf,
	 "settings as of PYTORCH_CUDA_ALLOC_CONF, or default (a list of 24, and the best of them)"},
	{"--capacity", "SIZE", GM_WHATIF, false, capacity,
	 "memory of the device (what the run shows)"},
	{"--fraction", "X", GM_WHATIF, false, fraction,
	 "as torch.cuda.set_per_process_memory_fraction(X) before the first allocation"},
	{"--torch", "VERSION", GM_WHATIF, false, torch_version,
	 "the version of PyTorch that ran, 2.6 to 2.12"},
};

const unsigned gm_whatif_option_rows_count =
	sizeof(gm_whatif_option_rows) / sizeof(gm_whatif_option_rows[0]);

/* The smallest GPU on which the best setting fits; NULL. */
static const char *smallest_gpu(const struct gm_whatif *whatif)
{
	double needed = (double)whatif->rows[whatif->best].reserved_high_bytes +
			(double)whatif->other_bytes;
	const struct gm_gpu *smallest = NULL;

	for (unsigned i = 0; i < gm_gpus_count; i++)
		if (gm_gpus[i].gib * GIB >= needed && (!smallest || gm_gpus[i].gib < smallest->gib))
			smallest = &gm_gpus[i];
	return smallest ? smallest->name : NULL;
}

/* The most that PyTorch, or a pool of the driver's, reserved on a device. */
static uint64_t reserved_of(const struct gm_doc *doc)
{
	uint64_t most = 0;

	for (unsigned i = 0; i < doc->torches_count; i++)
		if (doc->torches[i].reserved_peak_bytes != GM_NO_BYTES &&
		    doc->torches[i].reserved_peak_bytes > most)
			most = doc->torches[i].reserved_peak_bytes;
	for (unsigned i = 0; i < doc->pools_count; i++)
		if (doc->pools[i].reserved_peak_bytes > most)
			most = doc->pools[i].reserved_peak_bytes;
	return most;
}

/* The file that reserved most: it decides whether the job fits. */
static struct gm_doc *fullest(struct gm_job *job)
{
	struct gm_doc *most = job->docs[0];

	for (unsigned i = 1; i < job->count; i++)
		if (reserved_of(job->docs[i]) > reserved_of(most))
			most = job->docs[i];
	return most;
}

static struct gm_doc *doc_of(const struct gm_job *job, const char *path)
{
	for (unsigned i = 0; i < job->count; i++)
		if (strcmp(job->docs[i]->path, path) == 0)
			return job->docs[i];
	return NULL;
}

/*
 * The recording with the larger batch is replayed with other sizes, which the other one tells;
 * NULL after a sentence.
 */
static struct gm_doc *for_batch(struct gm_cli *cli, struct gm_job *job)
{
	const struct gm_plan_options *plan = &cli->plan;
	bool second = plan->batches_count == 2 && plan->batches[1] > plan->batches[0];
	struct gm_doc *doc = NULL;

	if (cli->words_count == 2 && plan->batches_count == 2 &&
	    plan->batches[0] != plan->batches[1]) {
		doc = doc_of(job, cli->words[second]);
		cli->whatif.other = doc_of(job, cli->words[!second]);
	}
	if (!doc || !cli->whatif.other) {
		gm_usage_error("whatif: --target-batch needs two files of runs with different "
			       "batches: whatif --batch 8,16 --target-batch 32 small.gmt "
			       "large.gmt");
		return NULL;
	}
	cli->whatif.batch = (double)plan->batches[second];
	cli->whatif.other_batch = (double)plan->batches[!second];
	cli->whatif.target_batch = (double)plan->target_batch;
	return doc;
}

int gm_cmd_whatif(struct gm_cli *cli)
{
	enum gm_whatif_fault fault;
	struct gm_whatif *whatif;
	struct gm_out out = gm_cli_out(cli);
	struct gm_doc *doc;
	struct gm_job *job;
	char error[1024];

	cli->options.needs_blocks = "what-if";
	job = gm_cli_open(cli);
	if (!job)
		return GM_EXIT_INPUT;
	doc = cli->plan.target_batch ? for_batch(cli, job) : fullest(job);
	if (!doc) {
		gm_job_close(job);
		return GM_EXIT_USAGE;
	}
	cli->whatif.device = cli->options.device;
	whatif = gm_whatif_make(doc, &cli->whatif, &fault, error, sizeof(error));
	if (!whatif) {
		gm_usage_error("whatif: %s", error);
	} else if (cli->options.json) {
		gm_json_write_doc(doc, NULL, gm_json_whatif(doc, whatif, smallest_gpu(whatif)),
				  stdout);
	} else {
		if (cli->plan.target_batch)
			gm_printf(stdout, "The run of %s with the batch %.0f\n", doc->path,
				  cli->whatif.target_batch);
		else if (job->count > 1)
			gm_printf(stdout, "%s, which reserved most of %u files\n", doc->path,
				  job->count);
		gm_text_whatif(&out, doc, whatif, smallest_gpu(whatif));
	}
	gm_job_close(job);
	return fault == GM_WHATIF_FINE		? GM_EXIT_FINE
	       : fault == GM_WHATIF_BAD_SETTING ? GM_EXIT_USAGE
						: GM_EXIT_INPUT;
}
