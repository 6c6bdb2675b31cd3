/*
 * gpumem-report: finds the command in its table, parses its options and runs it. A first argument
 * that names a file means `summary`.
 */
#include "cli.h"
#include "nearest.h"
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct gm_command_row gm_commands[] = {
	{GM_SUMMARY, "summary", "FILE...",
	 "what was used, what the peak is made of, what to do next", gm_cmd_summary},
	{GM_LEAKS, "leaks", "FILE...", "sites that grow or were not freed, with stacks",
	 gm_cmd_leaks},
	{GM_SITES, "sites", "FILE...", "all allocation sites", gm_cmd_sites},
	{GM_BLOCKS, "blocks", "FILE...",
	 "live blocks by size; with --address what an address belonged to, and who freed it",
	 gm_cmd_blocks},
	{GM_FRAGMENTATION, "fragmentation", "FILE...", "holes, and the live blocks that keep them",
	 gm_cmd_fragmentation},
	{GM_OOM, "oom", "FILE...", "each out-of-memory event: what, why, who held the memory",
	 gm_cmd_oom},
	{GM_HOLDERS, "holders", "PID|FILE|CORE FILE",
	 "what keeps memory alive: chains of Python objects, of a running process or a core file",
	 gm_cmd_holders},
	{GM_TIMELINE, "timeline", "FILE...", "usage over time", gm_cmd_timeline},
	{GM_RANGES, "ranges", "FILE...",
	 "steps, requests and other named ranges: peaks, and what each retained", gm_cmd_ranges},
	{GM_TOP, "top", "PID|FILE...", "live view of traced processes, or of files", gm_cmd_top},
	{GM_DIFF, "diff", "OLD NEW", "sites that grew, shrank, appeared, vanished", gm_cmd_diff},
	{GM_CHECK, "check", "FILE...",
	 "checks a run against limits, for CI; the exit status says which kind failed",
	 gm_cmd_check},
	{GM_RUN, "run", "[-o OUT] [--check GATES] -- PROGRAM ARG...",
	 "runs a program under the shim and prints its summary", gm_cmd_run},
	{GM_START, "start", "PID|FILE",
	 "wakes a process that sleeps (GPUMEMTRACE_START=asleep, or stop)", gm_cmd_start},
	{GM_STOP, "stop", "PID|FILE", "puts a recorded process to sleep", gm_cmd_stop},
	{GM_ATTACH, "attach", "[-o OUT] PID",
	 "records a process that was started without the shim, from now on", gm_cmd_attach},
	{GM_DETACH, "detach", "PID", "ends that, and gives the process its own functions back",
	 gm_cmd_detach},
	{GM_WATCH, "watch", "--for TIME [--check GATES] [-o OUT] PID",
	 "records a running process for a while and judges what it did", gm_cmd_watch},
	{GM_HTML, "html", "[-o OUT] FILE...",
	 "one page with everything, to open in a browser; of two files also what changed",
	 gm_cmd_html},
	{GM_PLAN, "plan", "[--batch N] [--params N] [FILE...|--search -- PROGRAM ARG...]",
	 "what a run or a model needs: the largest batch, the GPUs it fits, what would change it",
	 gm_cmd_plan},
	{GM_WHATIF, "whatif", "[--conf A;B;...] [--capacity SIZE] [--fraction X] FILE...",
	 "what PyTorch's allocator would have reserved under other settings, and whether it fits",
	 gm_cmd_whatif},
	{GM_EXPORT, "export", "--format FORMAT [-o OUT] FILE...",
	 "writes the data in another format", gm_cmd_export},
};

const unsigned gm_commands_count = sizeof(gm_commands) / sizeof(gm_commands[0]);

static const struct gm_command_row *find_command(const char *name)
{
	for (unsigned i = 0; i < gm_commands_count; i++)
		if (strcmp(gm_commands[i].name, name) == 0)
			return &gm_commands[i];
	return NULL;
}

static int unknown_command(const char *word)
{
	struct gm_nearest nearest = {.word = word};

	for (unsigned i = 0; i < gm_commands_count; i++)
		gm_nearest_try(&nearest, gm_commands[i].name);
	return gm_usage_error("\"%s\" is neither a command nor a file; %s%s%sgpumem-report --help "
			      "lists the commands",
			      word, nearest.name ? "did you mean " : "",
			      nearest.name ? nearest.name : "", nearest.name ? "? " : "");
}

/* No command has such a name: who writes it means a file, whether it is there or not. */
static bool is_file_name(const char *word)
{
	return strpbrk(word, "./") || access(word, F_OK) == 0;
}

/*
 * True if standard output did not arrive, for a full disk or a closed pipe; says so in a sentence.
 */
static bool output_failed(void)
{
	if (!ferror(stdout) && fflush(stdout) == 0)
		return false;
	fprintf(stderr, "gpumem-report: standard output could not be written whole\n");
	return true;
}

int main(int argc, char **argv)
{
	const struct gm_command_row *command;
	struct gm_cli cli = {0};
	int skip = 2, rc;

	setlocale(LC_CTYPE, "");
	if (argc < 2) {
		gm_cli_help(NULL);
		return GM_EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    (strcmp(argv[1], "help") == 0 && argc == 2)) {
		gm_cli_help(NULL);
		return GM_EXIT_FINE;
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("gpumem-report %s\n", GM_VERSION);
		return GM_EXIT_FINE;
	}
	command = find_command(argv[1]);
	if (!command && (argv[1][0] == '-' || is_file_name(argv[1]))) {
		command = &gm_commands[0];
		skip = 1;
	}
	if (!command)
		return unknown_command(argv[1]);
	rc = gm_cli_parse(&cli, command, argc - skip, argv + skip);
	if (!rc)
		rc = command->run(&cli);
	else if (rc < 0)
		rc = GM_EXIT_FINE;
	free(cli.words);
	gm_zone_free(&cli.texts);
	gm_inputs_free(&cli.inputs);
	if (output_failed() && rc == GM_EXIT_FINE && command->bit != GM_RUN)
		rc = GM_EXIT_USAGE;
	/*
	 * An input that could not be read outranks a result over the rest, but not a gate that
	 * failed.
	 */
	return rc == GM_EXIT_FINE && cli.input_failed ? GM_EXIT_INPUT : rc;
}
