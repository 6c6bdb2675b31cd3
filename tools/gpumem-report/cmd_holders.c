/*
 * holders: what keeps memory alive in a running process, or in a core file of it.
 */
#include "cli.h"
#include "report/holders/find_holders.h"
#include "report/holders/stored_holders.h"
#include "report/job/job_open.h"
#include "report/render/json/json.h"
#include "report/render/text/text_holders.h"
#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static bool is_core(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf64_Ehdr head;
	bool core = fd >= 0 && pread(fd, &head, sizeof(head), 0) == (ssize_t)sizeof(head) &&
		    memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 && head.e_type == ET_CORE;

	if (fd >= 0)
		close(fd);
	return core;
}

static void body(struct gm_out *out, struct gm_doc *doc, const struct gm_cli *cli)
{
	(void)cli;
	gm_text_holders(out, doc);
}

/*
 * For the shim: `words[0]` is its copy of the output file, OUT.holders<n>.new, which the result
 * replaces.
 */
static int of_copy(struct gm_cli *cli)
{
	char error[1024] = "", *path = cli->words[0];
	size_t length = strlen(path);
	struct gm_job *job = gm_cli_open(cli);
	int rc = GM_EXIT_INPUT;

	if (job && length > strlen(".new") &&
	    gm_find_holders_of_copy(job->docs[0], cli->copy_pid, cli->moment, error,
				    sizeof(error))) {
		char *result = gm_zone_strndup(&cli->texts, path, length - strlen(".new"));

		rc = gm_store_holders(job->docs[0], result) == 0 ? GM_EXIT_FINE : GM_EXIT_USAGE;
	}
	if (job)
		gm_job_close(job);
	unlink(path);
	return rc;
}

int gm_cmd_holders(struct gm_cli *cli)
{
	const char *core = cli->words_count && is_core(cli->words[0]) ? cli->words[0] : NULL;
	int rc = GM_EXIT_FINE;
	struct gm_job *job;

	if (cli->copy_pid && cli->moment && cli->words_count == 1)
		return of_copy(cli);
	if (core && cli->words_count != 2)
		return gm_usage_error(
			"%s is a core file, which does not say which addresses are live "
			"blocks: name the output file of the process after it",
			core);
	if (core)
		cli->words[0] = cli->words[--cli->words_count];
	if (!gm_cli_find_processes(cli) || !(job = gm_cli_open(cli)))
		return GM_EXIT_INPUT;
	for (unsigned i = 0; i < job->count; i++) {
		char error[1024] = "";

		/* The shim's own result is shown of a process that does not run any more. */
		if (gm_find_holders(job->docs[i], core, error, sizeof(error)) ||
		    (!core && job->docs[i]->holders_when &&
		     strcmp(job->docs[i]->end, "running") != 0))
			continue;
		gm_cli_complain(error);
		rc = GM_EXIT_INPUT;
	}
	if (rc == GM_EXIT_FINE && cli->options.json)
		gm_json_write_job(job, NULL, NULL, stdout);
	else if (rc == GM_EXIT_FINE)
		gm_cli_print(cli, job, body);
	gm_job_close(job);
	return rc;
}
