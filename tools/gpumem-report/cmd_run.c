/*
 * run: starts a program under the shim, waits for it, finds the files that it and its descendants
 * wrote and prints their summary, with gates if asked. The exit status is the program's own.
 */
#include "cli.h"
#include "program_check.h"
#include "run_files.h"
#include "report/job/job_open.h"
#include "report/support/print.h"
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEFAULT_OUT "gpumemtrace.%p.gmt"

static volatile sig_atomic_t child_pid;

static const int forwarded[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

/*
 * A terminal sends its signals to the program too, so only those that were meant for us are passed
 * on.
 */
static void forward(int number, siginfo_t *info, void *context)
{
	(void)context;
	if (child_pid > 0 && info->si_code != SI_KERNEL)
		kill(child_pid, number);
}

/*
 * A preload that is there already stays in front: of one that turns cudaMalloc into other calls (a
 * memory saver) we then see these and nothing twice, and a sanitizer's must be the first. Without
 * `shim` the program runs untraced.
 */
static bool set_environment(const char *shim, const char *out)
{
	const char *before = getenv("LD_PRELOAD");
	char *preload;
	bool ok;

	if (!shim)
		return true;
	if (asprintf(&preload, "%s%s%s", before && *before ? before : "",
		     before && *before ? ":" : "", shim) < 0)
		return false;
	ok = setenv("LD_PRELOAD", preload, 1) == 0 && setenv("GPUMEMTRACE_OUT", out, 1) == 0;
	free(preload);
	return ok;
}

/* Runs in the child: never returns. */
static void start_program(struct gm_cli *cli, const char *shim, const char *out,
			  const sigset_t *mask)
{
	int error;

	sigprocmask(SIG_SETMASK, mask, NULL);
	if (!set_environment(shim, out)) {
		fputs("gpumem-report: out of memory\n", stderr);
		_exit(126);
	}
	execvp(cli->words[0], cli->words);
	error = errno;
	gm_printf(stderr, "gpumem-report: %s cannot be run: %s\n", cli->words[0], strerror(error));
	_exit(error == ENOENT ? 127 : 126);
}

/* Runs the program to its end; its wait status, or -1 after a sentence. */
static int run_program(struct gm_cli *cli, const char *shim, const char *out)
{
	struct sigaction action = {.sa_sigaction = forward, .sa_flags = SA_SIGINFO | SA_RESTART};
	sigset_t all, mask;
	int status;

	fflush(NULL);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &mask);
	child_pid = fork();
	if (child_pid == 0)
		start_program(cli, shim, out, &mask);
	for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++)
		sigaction(forwarded[i], &action, NULL);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	if (child_pid < 0) {
		gm_usage_error("the program cannot be started: %s", strerror(errno));
		return -1;
	}
	while (waitpid(child_pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return status;
}

/* The files are read once, and with --json there is one document. */
static int show_and_check(struct gm_cli *cli)
{
	struct gm_job *job = gm_cli_open(cli);
	int rc;

	if (!job)
		return GM_EXIT_INPUT;
	if (!cli->options.json)
		gm_cli_print_summary(cli, job);
	rc = gm_cli_check(cli, job, NULL);
	gm_job_close(job);
	return rc;
}

/* No file is there, and `why` says why: a sentence, and gates that were not measured. */
static int check_without_file(struct gm_cli *cli, const char *why)
{
	struct gm_job nothing = {.several = true};
	int rc;

	gm_printf(stderr, "gpumem-report: %s; there is no file\n", why);
	if (!cli->gates_given)
		return GM_EXIT_FINE;
	rc = gm_cli_check(cli, &nothing, why);
	gm_zone_free(&nothing.zone);
	return rc;
}

/* The sentence why `run` cannot start anything with that shim; NULL. */
static const char *unusable(struct gm_zone *zone, const char *shim)
{
	if (!shim)
		return "libgpumemtrace.so is not where it is built or installed; set LD_PRELOAD to "
		       "it and run the program without run";
	if (strpbrk(shim, " :"))
		return gm_zone_printf(zone,
				      "%s cannot be preloaded: the loader takes spaces and colons "
				      "for the end of a name; move its folder to another path",
				      shim);
	return NULL;
}

int gm_cmd_run(struct gm_cli *cli)
{
	const char *pattern = cli->out_path ? cli->out_path : getenv("GPUMEMTRACE_OUT");
	char *shim = gm_cli_find_shim(),
	     *out = gm_cli_absolute(cli, pattern && *pattern ? pattern : DEFAULT_OUT);
	const char *problem = unusable(&cli->texts, shim), *no_output, *token;
	struct gm_program_check program;
	int status, own, rc;

	if (problem)
		return gm_usage_error("%s", problem);
	program = gm_check_program(&cli->texts, cli->words);
	no_output = gm_check_output(&cli->texts, out);
	if (program.untraceable)
		gm_usage_error("%s", program.untraceable);
	if (no_output)
		gm_usage_error("the tracer's file cannot be written: %s", no_output);
	token = gm_run_token_set(&cli->texts);
	status = token ? run_program(cli, program.breaks ? NULL : shim, out) : -1;
	if (status < 0)
		return GM_EXIT_USAGE;
	own = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	gm_run_find_files(cli, out, token);
	if (cli->words_count)
		rc = cli->gates_given ? show_and_check(cli) : gm_cmd_summary(cli);
	else if (own == 126 || own == 127)
		rc = own;
	else
		rc = check_without_file(
			cli, program.untraceable ? program.untraceable
			     : no_output
				     ? gm_zone_printf(&cli->texts, "no file could be written: %s",
						      no_output)
				     : "the program made no CUDA call that the shim saw");
	cli->input_failed = false; /* the program's status is the answer */
	return own ? own : cli->gates_given ? rc : 0;
}
