/*
 * watch: records a running process for a while, leaves it as it was, and judges what it did.
 */
#include "process_control.h"
#include "report/job/job_open.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define POLL_MS 50

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

/* Waits for the time, for the end of the process, or for Ctrl-C; all three end the period. */
static void wait_for_period(const struct gm_cli *cli, const char *path, int pid)
{
	const struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};
	const struct sigaction action = {.sa_handler = on_signal};
	struct timespec began, now;
	struct gm_control control;
	char error[1024];
	bool alive;

	if (!gm_control_open(&control, path, pid, error, sizeof(error)))
		return; /* it has ended already */
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	clock_gettime(CLOCK_MONOTONIC, &began);
	do {
		nanosleep(&pause, NULL);
		clock_gettime(CLOCK_MONOTONIC, &now);
		alive = gm_control_alive(&control);
	} while (alive && !interrupted &&
		 (uint64_t)(now.tv_sec - began.tv_sec) * 1000 + (uint64_t)(now.tv_nsec / 1000000) <
			 cli->for_ms + (uint64_t)(began.tv_nsec / 1000000));
	gm_control_close(&control);
}

/* Leaves the process as it was. A process that has ended has nothing to be left. */
static int leave(struct gm_cli *cli, const char *path, int pid, bool attached)
{
	struct gm_control control;
	char error[1024];

	if (path && !gm_control_open(&control, path, pid, error, sizeof(error)))
		return GM_EXIT_FINE;
	if (path)
		gm_control_close(&control);
	return attached ? gm_detach_process(cli, pid)
			: gm_ask_process(cli, path, pid, GM_WANT_SLEEP);
}

static int judge(struct gm_cli *cli)
{
	struct gm_job *job = gm_cli_open(cli);
	int rc = GM_EXIT_FINE;

	if (!job)
		return GM_EXIT_INPUT;
	if (!cli->options.json)
		gm_cli_print_summary(cli, job);
	if (cli->gates_given || cli->options.json)
		rc = gm_cli_check(cli, job, NULL);
	gm_job_close(job);
	return cli->gates_given ? rc : GM_EXIT_FINE;
}

int gm_cmd_watch(struct gm_cli *cli)
{
	bool quiet = cli->options.quiet, attached;
	uint64_t number;
	char *path;
	int rc, left;

	if (cli->words_count != 1 || !gm_read_number(cli->words[0], 1, 1u << 30, &number))
		return gm_usage_error("one process at a time, by its number: PID");
	cli->options.quiet = true; /* of what happens in between */
	rc = gm_attach_process(cli, (int)number, &path, &attached);
	if (rc == GM_EXIT_FINE)
		wait_for_period(cli, path, (int)number);
	left = path || attached ? leave(cli, path, (int)number, attached) : rc;
	cli->options.quiet = quiet;
	if (rc == GM_EXIT_FINE) {
		cli->words[0] = gm_zone_strdup(&cli->texts, path);
		rc = judge(cli);
	}
	free(path);
	return rc ? rc : left;
}
