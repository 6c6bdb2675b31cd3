/*
 * attach, detach: record a process that was started without the shim, and leave it again.
 */
#include "process_control.h"
#include "attach/attach.h"
#include "report/open/find_process.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEFAULT_OUT "gpumemtrace.%p.gmt"
#define ELSEWHERE   "/tmp/gpumemtrace.%p.gmt" /* of a process that does not see our folder */
#define POLL_MS	    2

static void print_refusal(const char *text)
{
	fprintf(stderr, "gpumem-report: %s\n", text);
}

static bool read_pid(const struct gm_cli *cli, int *pid)
{
	uint64_t number;

	if (cli->words_count != 1 || !gm_read_number(cli->words[0], 1, 1u << 30, &number))
		return false;
	*pid = (int)number;
	return true;
}

/*
 * Returns the path to which the process is to write: as asked, else in our folder if the process
 * sees that.
 */
static const char *out_for(struct gm_cli *cli, int pid)
{
	const char *here = gm_cli_absolute(cli, ".");

	if (cli->out_path)
		return gm_cli_absolute(cli, cli->out_path);
	return gm_sees_file(pid, here) ? gm_cli_absolute(cli, DEFAULT_OUT) : ELSEWHERE;
}

/* Settings for the shim: its own variables in our environment, and the file. */
static char *settings_for(struct gm_cli *cli, int pid)
{
	extern char **environ;
	char *text = gm_zone_printf(&cli->texts, "GPUMEMTRACE_QUIET=1\n");

	for (char **entry = environ; *entry; entry++)
		if (strncmp(*entry, "GPUMEMTRACE_", 12) == 0 && !strchr(*entry, '\n') &&
		    strncmp(*entry, "GPUMEMTRACE_OUT=", 16) != 0 &&
		    strncmp(*entry, "GPUMEMTRACE_DISABLE=", 20) != 0 &&
		    strncmp(*entry, "GPUMEMTRACE_BACKEND=", 20) != 0 &&
		    strncmp(*entry, "GPUMEMTRACE_START=", 18) != 0)
			text = gm_zone_printf(&cli->texts, "%s%s\n", text, *entry);
	return gm_zone_printf(&cli->texts, "%sGPUMEMTRACE_OUT=%s\n", text, out_for(cli, pid));
}

/* CUPTI serves one subscriber in a process: GPUMEMTRACE_BACKEND=preload leaves it to others. */
static bool uses_cupti(void)
{
	const char *backend = getenv("GPUMEMTRACE_BACKEND");

	return !backend || strcmp(backend, "preload") != 0;
}

/* Waits until the process has a file of ours that records; NULL if it does not in time. */
static char *await_file(struct gm_cli *cli, int pid)
{
	const struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};
	struct gm_control control;
	char error[1024], *path;

	for (uint64_t waited = 0; waited <= cli->wait_ms; waited += POLL_MS) {
		path = gm_find_process_file(pid, error, sizeof(error));
		if (path && gm_control_open(&control, path, pid, error, sizeof(error))) {
			bool done = gm_control_await(&control, GM_RECORDS, 0) == GM_CONTROL_DONE;

			gm_control_close(&control);
			if (done)
				return path;
		}
		free(path);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static const char *describe_routes(const struct gm_attach_result *result, char *text, size_t bytes)
{
	int used = snprintf(text, bytes, "%u relocation slots, %u words of driver tables",
			    result->slots, result->table_words);

	if (result->cupti)
		snprintf(text + used, bytes - (size_t)used, " and CUPTI (%u functions)",
			 result->cupti);
	else
		snprintf(text + used, bytes - (size_t)used, ", not by CUPTI: %s", result->why);
	return text;
}

static void print_attached(const struct gm_cli *cli, int pid, const char *path,
			   const struct gm_attach_result *result)
{
	char routes[1024];

	if (cli->options.quiet)
		return;
	printf("process %d is recorded into %s\n", pid, path);
	printf("  by %s%s; one thread was stopped for %.1f ms\n",
	       describe_routes(result, routes, sizeof(routes)),
	       result->by_memory ? ", the shim copied into its memory" : "",
	       result->paused_us / 1e3);
	if (!result->cupti)
		printf("  not seen: calls by addresses that the program had looked up itself "
		       "before\n");
	printf("  not seen: what a pool other than PyTorch's hands out of memory that it holds\n");
	if (result->failed)
		printf("  %u words could not be changed: calls by them are not seen either\n",
		       result->failed);
}

/* The process was started under the shim: its file says how it is. */
static int wake(struct gm_cli *cli, int pid, char **path)
{
	char error[1024] = "";

	*path = gm_find_process_file(pid, error, sizeof(error));
	if (*path)
		return gm_ask_process(cli, *path, pid, GM_WANT_RECORDING);
	gm_cli_complain(error);
	return GM_EXIT_INPUT;
}

int gm_attach_process(struct gm_cli *cli, int pid, char **path, bool *attached)
{
	struct gm_attach_request request = {.pid = pid,
					    .shim = gm_cli_find_shim(),
					    .cupti = uses_cupti(),
					    .interrupt = cli->interrupt,
					    .wait_ms = (unsigned)cli->wait_ms};
	struct gm_attach_result result;
	char routes[1024];

	*path = NULL;
	*attached = false;
	if (!request.shim)
		return gm_usage_error("libgpumemtrace.so is not where it is built or installed");
	request.settings = settings_for(cli, pid);
	switch (gm_attach(&request, &result)) {
	case GM_ATTACH_PRELOADED:
		return wake(cli, pid, path);
	case GM_ATTACH_REFUSED:
		print_refusal(result.text);
		return GM_EXIT_INPUT;
	default:
		break;
	}
	*attached = true;
	*path = await_file(cli, pid);
	if (*path) {
		print_attached(cli, pid, *path, &result);
		return GM_EXIT_FINE;
	}
	fprintf(stderr,
		"gpumem-report: process %d is attached (by %s) and nothing is recorded yet: it "
		"made no CUDA call that is seen so within %.1f s, or cannot write %s\n",
		pid, describe_routes(&result, routes, sizeof(routes)), (double)cli->wait_ms / 1000,
		out_for(cli, pid));
	return GM_EXIT_INPUT;
}

int gm_detach_process(struct gm_cli *cli, int pid)
{
	struct gm_attach_request request = {.pid = pid,
					    .shim = gm_cli_find_shim(),
					    .interrupt = cli->interrupt,
					    .wait_ms = (unsigned)cli->wait_ms};
	struct gm_attach_result result;
	char error[1024] = "", *path;

	if (!request.shim)
		return gm_usage_error("libgpumemtrace.so is not where it is built or installed");
	path = gm_find_process_file(pid, error, sizeof(error));
	switch (gm_detach(&request, &result)) {
	case GM_ATTACH_PRELOADED:
		if (path) {
			int rc = gm_ask_process(cli, path, pid, GM_WANT_SLEEP);

			free(path);
			return rc;
		}
		gm_cli_complain(error);
		return GM_EXIT_INPUT;
	case GM_ATTACH_REFUSED:
		free(path);
		print_refusal(result.text);
		return GM_EXIT_INPUT;
	default:
		break;
	}
	if (!cli->options.quiet && path)
		printf("process %d is not recorded any more; the file is %s\n", pid, path);
	else if (!cli->options.quiet)
		printf("process %d is not attached any more; it made no call that was recorded\n",
		       pid);
	if (result.lost)
		printf("  %u words could not be restored: calls by them go through the shim, which "
		       "forwards them\n",
		       result.lost);
	free(path);
	return GM_EXIT_FINE;
}

int gm_cmd_attach(struct gm_cli *cli)
{
	char *path;
	bool attached;
	int pid, rc;

	if (!read_pid(cli, &pid))
		return gm_usage_error("one process at a time, by its number: PID");
	rc = gm_attach_process(cli, pid, &path, &attached);
	free(path);
	return rc;
}

int gm_cmd_detach(struct gm_cli *cli)
{
	int pid;

	if (!read_pid(cli, &pid))
		return gm_usage_error("one process at a time, by its number: PID");
	return gm_detach_process(cli, pid);
}
