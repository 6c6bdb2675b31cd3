/*
 * Functions that commands share: opening the files, choosing the output, showing one document or
 * several.
 */
#include "cli.h"
#include "report/support/progress.h"
#include "report/render/json/json.h"
#include "report/job/job_open.h"
#include "report/open/find_process.h"
#include "report/render/text/text.h"
#include "report/render/text/text_job.h"
#include "report/support/print.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void gm_cli_complain(const char *sentence)
{
	gm_progress_end();
	gm_printf(stderr, "gpumem-report: %s\n", sentence);
}

struct gm_out gm_cli_out(const struct gm_cli *cli)
{
	int color = cli->options.color;
	bool terminal = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");

	return (struct gm_out){stdout, color == 1 || (color == 2 && terminal), cli->options.top,
			       cli->options.full, gm_screen_width()};
}

void gm_cli_find_inputs(struct gm_cli *cli)
{
	if (cli->inputs.count || cli->inputs.failed)
		return; /* found already */
	cli->inputs = gm_inputs_find(cli->words, cli->words_count, gm_cli_complain);
	free(cli->words);
	cli->words = calloc(cli->inputs.count + 1, sizeof(*cli->words));
	cli->words_count = cli->words ? cli->inputs.count : 0;
	for (unsigned i = 0; i < cli->words_count; i++)
		cli->words[i] = cli->inputs.paths[i];
	cli->input_failed = cli->inputs.failed;
}

char *gm_cli_find_file(const char *word, int *pid, char *error, size_t error_bytes)
{
	bool digits = *word && strspn(word, "0123456789") == strlen(word) && strlen(word) < 10;

	*pid = digits && access(word, F_OK) != 0 ? atoi(word) : 0;
	return *pid ? gm_find_process_file(*pid, error, error_bytes) : strdup(word);
}

bool gm_cli_find_processes(struct gm_cli *cli)
{
	char error[1024] = "out of memory";
	unsigned found = 0, asked = cli->words_count;

	for (unsigned i = 0; i < asked; i++) {
		int pid;
		char *path = gm_cli_find_file(cli->words[i], &pid, error, sizeof(error));

		if (path)
			cli->words[found++] = gm_zone_strdup(&cli->texts, path);
		else
			gm_cli_complain(error);
		free(path);
	}
	cli->words_count = found;
	return found == asked;
}

/* Lists of a device that is nowhere are empty, which reads like good news. */
static void say_absent_device(const struct gm_cli *cli, const struct gm_job *job)
{
	for (unsigned i = 0; i < job->count; i++)
		if (job->docs[i]->devices_count || job->docs[i]->levels_count)
			return;
	gm_printf(stderr,
		"gpumem-report: no process here used a device %d; summary lists those that were\n",
		cli->options.device);
}

struct gm_job *gm_cli_open(struct gm_cli *cli)
{
	struct gm_job *job;

	gm_cli_find_inputs(cli);
	job = cli->words_count
		      ? gm_job_open(cli->words, cli->words_count, &cli->options, gm_cli_complain)
		      : NULL;
	gm_progress_end();
	if (!job || job->count < cli->words_count)
		cli->input_failed = true;
	if (job && cli->options.device >= 0)
		say_absent_device(cli, job);
	return job;
}

static void print_one(struct gm_out *out, struct gm_doc *doc, const struct gm_cli *cli,
		      gm_cli_body body)
{
	const char *sampled = gm_sampled(doc);

	if (sampled)
		gm_wrapf(out, 0, "Figures of sites are estimates: %s", sampled);
	body(out, doc, cli);
}

void gm_cli_print(struct gm_cli *cli, struct gm_job *job, gm_cli_body body)
{
	struct gm_out out = gm_cli_out(cli);
	struct gm_doc **docs;
	unsigned shown, more;

	if (job->count == 1) {
		print_one(&out, job->docs[0], cli, body);
		return;
	}
	gm_text_job(&out, job);
	shown = gm_text_order(&out, job, &docs);
	more = job->count - shown;
	for (unsigned i = 0; i < shown; i++) {
		gm_heading(&out, "=== %s", docs[i]->path);
		print_one(&out, docs[i], cli, body);
	}
	if (more)
		gm_heading(&out, "=== %u more file%s (--top, or name %s)", more,
			   more == 1 ? "" : "s", more == 1 ? "it" : "one of them");
}

int gm_cli_show(struct gm_cli *cli, gm_cli_body body)
{
	struct gm_job *job = gm_cli_open(cli);

	if (!job)
		return GM_EXIT_INPUT;
	if (cli->options.json)
		gm_json_write_job(job, NULL, NULL, stdout);
	else
		gm_cli_print(cli, job, body);
	gm_job_close(job);
	return GM_EXIT_FINE;
}

static bool same_file(const char *path, const struct stat *other)
{
	struct stat st;

	return path && stat(path, &st) == 0 && st.st_dev == other->st_dev &&
	       st.st_ino == other->st_ino;
}

bool gm_cli_may_write(const struct gm_cli *cli, const char *path)
{
	struct stat st;
	bool given;

	if (stat(path, &st) != 0)
		return true;
	given = same_file(cli->baseline, &st);
	for (unsigned i = 0; i < cli->words_count && !given; i++)
		given = same_file(cli->words[i], &st);
	if (given)
		gm_usage_error("%s is one of the files to read; name another one to write", path);
	return !given;
}
