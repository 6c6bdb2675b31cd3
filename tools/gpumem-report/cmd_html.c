/*
 * html: one self-contained page of what the files hold.
 */
#include "cli.h"
#include "output.h"
#include "report/support/print.h"
#include "report/render/page/html.h"
#include "report/job/job_open.h"
#include <errno.h>
#include <string.h>

/* train.html of train.gmt and of the directory train, in the working directory. In cli->texts. */
static const char *chosen_name(struct gm_cli *cli, const char *input)
{
	char *name = gm_zone_strdup(&cli->texts, input), *slash, *suffix;

	while ((slash = strrchr(name, '/')) && !slash[1])
		*slash = '\0';
	name = slash ? slash + 1 : name;
	suffix = strstr(name, ".gmt");
	if (suffix && suffix != name)
		*suffix = '\0';
	if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		name = "gpumemtrace";
	return gm_zone_printf(&cli->texts, "%s.html", name);
}

/* A name that nobody gave must not cost a file: only a page of ours is replaced. */
static bool is_ours_or_absent(const char *path)
{
	char head[4096] = "";
	FILE *file = fopen(path, "re");
	size_t got;

	if (!file)
		return errno == ENOENT;
	got = fread(head, 1, sizeof(head) - 1, file);
	fclose(file);
	return memmem(head, got, GM_HTML_MARK, strlen(GM_HTML_MARK)) != NULL;
}

int gm_cmd_html(struct gm_cli *cli)
{
	const char *path = cli->out_path ? cli->out_path : chosen_name(cli, cli->words[0]);
	struct gm_job *job;
	struct gm_output output;
	bool written;

	if (gm_html_lacks())
		return gm_usage_error("html: %s", gm_html_lacks());
	if (!cli->out_path && !is_ours_or_absent(path))
		return gm_usage_error("%s exists and is no page of gpumem-report; name the page to "
				      "write with -o OUT",
				      path);
	cli->options.keep_records = true;
	cli->options.fine_timeline = true;
	job = gm_cli_open(cli);
	if (!job)
		return GM_EXIT_INPUT;
	if (!gm_output_begin(&output, cli, path)) {
		gm_job_close(job);
		return GM_EXIT_USAGE;
	}
	written = gm_output_end(&output, gm_html_write(job, cli->words, cli->words_count,
						       output.file) != 0);
	gm_job_close(job);
	if (written && !cli->out_path && !cli->options.quiet)
		gm_printf(stdout, "%s\n", path);
	return written ? GM_EXIT_FINE : GM_EXIT_USAGE;
}
