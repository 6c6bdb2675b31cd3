/*
 * start, stop: wake a process that sleeps under the shim, and put it back to sleep.
 */
#include "cli.h"
#include "process_control.h"
#include <stdlib.h>

/* Prints the result as a sentence; returns the exit status. */
static int report(const struct gm_cli *cli, const struct gm_control *control, enum gm_wanted wanted,
		  enum gm_control_answer answer)
{
	bool start = wanted == GM_WANT_RECORDING;

	switch (answer) {
	case GM_CONTROL_DONE:
	case GM_CONTROL_ALREADY:
		if (!cli->options.quiet)
			printf("process %d %s%s%s %s\n", control->pid,
			       start ? "is recorded" : "sleeps",
			       answer == GM_CONTROL_ALREADY ? " already" : "",
			       start ? " into" : ", its latest period is in", control->path);
		return GM_EXIT_FINE;
	case GM_CONTROL_WAITING:
		fprintf(stderr,
			"gpumem-report: process %d made no CUDA call within %.1f s; it will %s at "
			"its next one\n",
			control->pid, (double)cli->wait_ms / 1000,
			start ? "begin to record" : "go to sleep");
		return GM_EXIT_INPUT;
	default:
		fprintf(stderr, "gpumem-report: process %d has ended\n", control->pid);
		return GM_EXIT_INPUT;
	}
}

int gm_ask_process(const struct gm_cli *cli, const char *path, int pid, enum gm_wanted wanted)
{
	struct gm_control control;
	char error[1024];
	int rc;

	if (!gm_control_open(&control, path, pid, error, sizeof(error))) {
		gm_cli_complain(error);
		return GM_EXIT_INPUT;
	}
	rc = report(cli, &control, wanted,
		    gm_control_ask(&control, wanted, (unsigned)cli->wait_ms));
	gm_control_close(&control);
	return rc;
}

static int ask(struct gm_cli *cli, enum gm_wanted wanted)
{
	char error[1024] = "out of memory", *path;
	int pid, rc = GM_EXIT_INPUT;

	if (cli->words_count != 1)
		return gm_usage_error("one process at a time: PID or FILE");
	path = gm_cli_find_file(cli->words[0], &pid, error, sizeof(error));
	if (path)
		rc = gm_ask_process(cli, path, pid, wanted);
	else
		gm_cli_complain(error);
	free(path);
	return rc;
}

int gm_cmd_start(struct gm_cli *cli)
{
	return ask(cli, GM_WANT_RECORDING);
}

int gm_cmd_stop(struct gm_cli *cli)
{
	return ask(cli, GM_WANT_SLEEP);
}
