/*
 * plan: what a run needs, the largest batch and the GPUs it fits; from runs, from rules, or both.
 */
#include "cli.h"
#include "plan_search.h"
#include "report/plan/plan.h"
#include "report/render/json/json.h"
#include "report/render/text/text_plan.h"
#include "report/job/job_open.h"
#include "report/plan/estimate.h"
#include "report/plan/measure.h"
#include "report/plan/vary.h"
#include "report/render/json/json_plan.h"
#include "report/support/format.h"
#include <stdlib.h>
#include <string.h>

/* The number behind --batch-size=8, --batch 8, -b 8 and the like in the traced command; 0. */
static uint64_t batch_in_command(const struct gm_doc *doc)
{
	static const char *const names[] = {"--batch-size",
					    "--batch_size",
					    "--batch",
					    "-b",
					    "--bs",
					    "--per_device_train_batch_size",
					    "--micro-batch-size"};

	for (unsigned i = 0; i < doc->command_count; i++)
		for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
			size_t length = strlen(names[n]);
			const char *word = doc->command[i], *value = NULL;
			char *end;
			unsigned long long number;

			if (strncmp(word, names[n], length) != 0)
				continue;
			if (word[length] == '=')
				value = word + length + 1;
			else if (!word[length] && i + 1 < doc->command_count)
				value = doc->command[i + 1];
			number = value ? strtoull(value, &end, 10) : 0;
			if (number && !*end && *value != '-')
				return number;
		}
	return 0;
}

/* Finds the batch of each document: as given, in the order of the files, or by its command. */
static bool find_batches(const struct gm_cli *cli, const struct gm_job *job, uint64_t *batches)
{
	const struct gm_plan_options *plan = &cli->plan;

	if (plan->batches_count > 1 && plan->batches_count != cli->words_count) {
		gm_usage_error("plan: %u batches and %u files; --batch gives one for each file",
			       plan->batches_count, cli->words_count);
		return false;
	}
	for (unsigned i = 0; i < job->count; i++) {
		batches[i] = 0;
		for (unsigned k = 0; k < cli->words_count && plan->batches_count; k++)
			if (strcmp(job->docs[i]->path, cli->words[k]) == 0)
				batches[i] = plan->batches[plan->batches_count > 1 ? k : 0];
		if (!batches[i] && plan->batches_count == 1)
			batches[i] = plan->batches[0];
		if (!batches[i])
			batches[i] = batch_in_command(job->docs[i]);
		if (!batches[i] && job->count > 1) {
			gm_usage_error(
				"plan: the batch of %s is not known; give those of all files "
				"by --batch N1,N2",
				job->docs[i]->path);
			return false;
		}
	}
	return true;
}

/* Ranks of one job have one batch each: the fullest is what has to fit. */
static struct gm_doc *fullest(struct gm_job *job)
{
	struct gm_doc *most = job->docs[0];
	uint64_t peak = 0;

	for (unsigned i = 0; i < job->count; i++) {
		uint64_t own = 0;

		for (unsigned k = 0; k < job->docs[i]->levels_count; k++)
			if (job->docs[i]->levels[k].level == GM_LEVEL_DRIVER &&
			    job->docs[i]->levels[k].device >= 0)
				own += job->docs[i]->levels[k].physical_peak_bytes;
		if (own > peak) {
			peak = own;
			most = job->docs[i];
		}
	}
	return most;
}

static void print(struct gm_cli *cli, struct gm_doc *doc, const struct gm_plan *plan)
{
	struct gm_out out = gm_cli_out(cli);

	if (!cli->options.json) {
		gm_text_plan(&out, plan);
		return;
	}
	gm_json_write_doc(doc, "plan", gm_json_plan(plan), stdout);
}

static int plan_runs(struct gm_cli *cli, struct gm_job *job, struct gm_zone *zone)
{
	uint64_t *batches = gm_zone_alloc(zone, job->count, sizeof(*batches));
	struct gm_doc **docs = job->docs, *one;
	unsigned count = job->count;
	struct gm_plan *plan;
	bool unknown;
	char error[1024];

	if (!find_batches(cli, job, batches))
		return GM_EXIT_USAGE;
	if (count > 1 && cli->plan.batches_count == 1) {
		one = fullest(job);
		docs = &one;
		count = 1;
	}
	if (!cli->plan.world_size && docs[0]->header->world_size > 1)
		cli->plan.world_size = (unsigned)docs[0]->header->world_size;
	unknown = !batches[0];
	batches[0] = unknown ? 1 : batches[0];
	plan = gm_plan_measure(zone, docs, batches, count, &cli->plan, error, sizeof(error));
	if (!plan)
		return gm_usage_error("plan: %s", error);
	if (unknown)
		gm_plan_note(
			zone, plan,
			"the run's batch was not given and is counted as 1: a largest batch of "
			"3 is three times what ran (--batch N)");
	gm_plan_finish(zone, plan, &cli->plan);
	gm_plan_vary(zone, plan, &cli->plan);
	if (cli->plan.parameters > 0) {
		struct gm_plan_options options = cli->plan;

		options.batches[0] = plan->batch;
		options.batches_count = 1;
		if (!options.capacity_bytes)
			options.capacity_bytes =
				plan->limit_bytes != GM_NO_BYTES ? plan->limit_bytes : 0;
		plan->estimate = gm_plan_estimate(zone, &options);
		gm_plan_finish(zone, plan->estimate, &options);
	}
	print(cli, docs[count - 1], plan);
	return GM_EXIT_FINE;
}

static int plan_by_rules(struct gm_cli *cli, struct gm_zone *zone)
{
	struct gm_plan *plan;

	if (cli->plan.parameters <= 0)
		return gm_usage_error(
			"plan needs a run or a model: gpumem-report plan FILE --batch N, or "
			"gpumem-report plan --params 7B --precision bf16");
	plan = gm_plan_estimate(zone, &cli->plan);
	gm_plan_finish(zone, plan, &cli->plan);
	gm_plan_vary(zone, plan, &cli->plan);
	print(cli, NULL, plan);
	return GM_EXIT_FINE;
}

/* Refuses options that contradict each other, with a sentence; true if there are any. */
static bool refuse(const struct gm_plan_options *plan, unsigned files)
{
	const char *why = NULL;

	if (plan->zero && plan->world_size < 2 && !files)
		why = "--zero divides among ranks; give their number by --world N";
	else if (plan->inference && (plan->zero || plan->trainable_share > 0))
		why = "--inference trains nothing: --zero and --trainable do not go with it";
	else if (plan->heads && plan->hidden && plan->heads > plan->hidden)
		why = "--heads cannot be more than --hidden";
	else if (plan->capacity_bytes && plan->gpu)
		why = "--capacity and --gpu both say what to plan for; give one";
	if (why)
		gm_usage_error("plan: %s", why);
	return why != NULL;
}

static int search(struct gm_cli *cli)
{
	const struct gm_gpu *gpu = cli->plan.gpu ? gm_gpu_find(cli->plan.gpu) : NULL;
	uint64_t capacity = gpu ? gm_whole_bytes(gpu->gib * 1024 * 1024 * 1024)
				: cli->plan.capacity_bytes;
	bool placed = false;

	for (unsigned i = 0; i < cli->words_count; i++)
		placed |= strstr(cli->words[i], "{}") != NULL;
	if (!placed)
		return gm_usage_error("plan --search needs a program with {} where the batch "
				      "belongs: plan --search --capacity 24GiB -- python train.py "
				      "--batch {}");
	if (!capacity)
		return gm_usage_error("plan --search needs a limit: --capacity SIZE or --gpu NAME");
	return gm_plan_search(cli, capacity);
}

int gm_cmd_plan(struct gm_cli *cli)
{
	struct gm_zone zone = {0};
	struct gm_job *job;
	int rc;

	if (refuse(&cli->plan, cli->words_count))
		return GM_EXIT_USAGE;
	if (cli->plan_search)
		return search(cli);
	if (!cli->words_count) {
		rc = plan_by_rules(cli, &zone);
	} else {
		job = gm_cli_open(cli);
		if (!job)
			return GM_EXIT_INPUT;
		rc = plan_runs(cli, job, &zone);
		gm_job_close(job);
	}
	gm_zone_free(&zone);
	return rc;
}
