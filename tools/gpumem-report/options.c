/*
 * The table of options: which commands take them, what they mean, how their argument is read.
 * --help is printed from it.
 */
#include "cli.h"
#include "nearest.h"
#include "base/size_text.h"
#include "report/doc/enum_names.h"
#include "report/doc/options.h"
#include "report/render/export/export.h"
#include "report/render/top/top.h"
#include "report/stacks/rules.h"
#include "report/render/text/text_sites.h"
#include "report/support/print.h"
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int gm_usage_error(const char *format, ...)
{
	va_list args;

	fputs("gpumem-report: ", stderr);
	va_start(args, format);
	gm_vprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return GM_EXIT_USAGE;
}

bool gm_read_number(const char *text, uint64_t least, uint64_t most, uint64_t *number)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*number = strtoull(text, &end, 10);
	return !errno && *end == '\0' && *number >= least && *number <= most;
}

static const char *json(struct gm_cli *cli, const char *text)
{
	(void)text;
	cli->options.json = true;
	return NULL;
}

static const char *top(struct gm_cli *cli, const char *text)
{
	uint64_t number;

	if (!gm_read_number(text, 0, 1000000, &number))
		return "a number";
	cli->options.top = (unsigned)number;
	cli->options.top_given = true;
	return NULL;
}

static const char *device(struct gm_cli *cli, const char *text)
{
	uint64_t number;

	if (!gm_read_number(text, 0, 4095, &number))
		return "the number of a device, from 0";
	cli->options.device = (int)number;
	return NULL;
}

static const char *kind(struct gm_cli *cli, const char *text)
{
	cli->options.kind = gm_kind_number(text);
	return cli->options.kind > GM_KIND_NONE ? NULL
						: "device, managed, array, async, vmm, graph, "
						  "pinned, registered or imported";
}

static const char *level(struct gm_cli *cli, const char *text)
{
	cli->options.level = gm_level_number(text);
	return cli->options.level >= 0 ? NULL : "driver, torch or custom";
}

static const char *suppressions(struct gm_cli *cli, const char *text)
{
	if (cli->options.suppressions_count == GM_MOST_SUPPRESSIONS)
		return "given eight times at most";
	cli->options.suppressions[cli->options.suppressions_count++] = text;
	return NULL;
}

static const char *no_shipped(struct gm_cli *cli, const char *text)
{
	(void)text;
	cli->options.no_shipped_suppressions = true;
	return NULL;
}

/* Read at once: the rules hold for every file. */
static const char *rules(struct gm_cli *cli, const char *text)
{
	char error[512];

	(void)cli;
	if (gm_rules_extend(text, error, sizeof(error)))
		return NULL;
	gm_usage_error("%s", error);
	return "";
}

static const char *no_symbols(struct gm_cli *cli, const char *text)
{
	(void)text;
	cli->options.symbols = false;
	return NULL;
}

static const char *no_symbol_cache(struct gm_cli *cli, const char *text)
{
	(void)text;
	cli->options.symbol_cache = false;
	return NULL;
}

static const char *color(struct gm_cli *cli, const char *text)
{
	static const char *const names[] = {"never", "always", "auto"};

	for (int i = 0; i < 3; i++)
		if (strcmp(text, names[i]) == 0) {
			cli->options.color = i;
			return NULL;
		}
	return "auto, always or never";
}

static const char *quiet(struct gm_cli *cli, const char *text)
{
	(void)text;
	cli->options.quiet = true;
	return NULL;
}

static const char *full(struct gm_cli *cli, const char *text)
{
	(void)text;
	cli->options.full = true;
	return NULL;
}

static const char *all(struct gm_cli *cli, const char *text)
{
	(void)text;
	cli->options.all = true;
	return NULL;
}

static const char *sort(struct gm_cli *cli, const char *text)
{
	static const char *const names[] = {"live", "peak", "total", "count", "churn"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(text, names[i]) == 0) {
			cli->options.sort = names[i];
			return NULL;
		}
	return gm_sort_keys();
}

static const char *top_sort(struct gm_cli *cli, const char *text)
{
	cli->options.sort = text;
	return gm_top_sort_number(text) >= 0 ? NULL : "live, growth, peak, total or count";
}

static const char *copy(struct gm_cli *cli, const char *text)
{
	uint64_t pid;

	if (!gm_read_number(text, 1, INT32_MAX, &pid))
		return "the number of a process";
	cli->copy_pid = (int)pid;
	return NULL;
}

static const char *moment(struct gm_cli *cli, const char *text)
{
	cli->moment = text;
	return NULL;
}

static const char *once(struct gm_cli *cli, const char *text)
{
	(void)text;
	cli->once = true;
	return NULL;
}

/* Reads a time, in seconds or with a unit. */
static bool read_time(const char *text, uint64_t *ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"", 1e9}, {"s", 1e9},    {"ms", 1e6},  {"us", 1e3},
		     {"ns", 1}, {"min", 60e9}, {"m", 60e9}, {"h", 3600e9}};
	char *end;
	double number = strtod(text, &end);

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]) && end != text; i++)
		if (strcmp(end, units[i].name) == 0 && number >= 0 && number * units[i].ns < 1e18) {
			*ns = (uint64_t)(number * units[i].ns + 0.5);
			return true;
		}
	return false;
}

/* Since the first event. */
static const char *at_time(struct gm_cli *cli, const char *text)
{
	cli->options.at = read_time(text, &cli->options.at_ns);
	return cli->options.at ? NULL : "a time since the first event, like 12.5 or 300ms";
}

static const char *at(struct gm_cli *cli, const char *text)
{
	if (strcmp(text, "peak") == 0) {
		cli->options.at_peak = true;
		return NULL;
	}
	return at_time(cli, text) ? "peak, or a time since the first event, like 12.5 or 300ms"
				  : NULL;
}

static const char *out_path(struct gm_cli *cli, const char *text)
{
	cli->out_path = text;
	return NULL;
}

static const char *format(struct gm_cli *cli, const char *text)
{
	cli->format = text;
	return NULL;
}

static const char *run_check(struct gm_cli *cli, const char *text)
{
	cli->gates_given = true;
	return gm_cli_parse_gates(cli, text) ? "" : NULL;
}

static const char *wait_time(struct gm_cli *cli, const char *text)
{
	uint64_t ns;

	if (!read_time(text, &ns) || ns > 86400000000000u)
		return "a time up to a day, like 10 or 500ms";
	cli->wait_ms = ns / 1000000;
	return NULL;
}

static const char *for_time(struct gm_cli *cli, const char *text)
{
	uint64_t ns;

	if (!read_time(text, &ns) || ns < 1000000)
		return "a time, like 10m or 90s";
	cli->for_ms = ns / 1000000;
	return NULL;
}

static const char *interrupt(struct gm_cli *cli, const char *text)
{
	(void)text;
	cli->interrupt = true;
	return NULL;
}

static const char *least_bytes(struct gm_cli *cli, const char *text)
{
	return gm_parse_size(text, &cli->least_bytes) ? NULL : "a size, like 1MiB";
}

static const char *most_bytes(struct gm_cli *cli, const char *text)
{
	return gm_parse_size(text, &cli->most_bytes) ? NULL : "a size, like 64MiB";
}

static const char *site_bytes(struct gm_cli *cli, const char *text)
{
	return gm_parse_size(text, &cli->options.min_site_bytes) ? NULL : "a size, like 1MiB";
}

static const char *address(struct gm_cli *cli, const char *text)
{
	char *end;

	errno = 0;
	cli->address = strtoull(text, &end, 16);
	cli->address_given = true;
	return *text && !*end && !errno ? NULL : "an address, like 0x7f0000001000";
}

static const struct gm_option options[] = {
	{"--for", "TIME", GM_WATCH, false, for_time, "how long to watch, like 10m or 90s (1m)"},
	{"--wait", "TIME", GM_PROCESS, false, wait_time, "how long to wait for the process (10s)"},
	{"--interrupt", NULL, GM_ATTACH | GM_DETACH | GM_WATCH, false, interrupt,
	 "at once also a thread whose wait then begins anew, such as one in epoll_wait"},
	{"--address", "ADDRESS", GM_BLOCKS, false, address,
	 "what this address belonged to: who owned it when, and who freed it"},
	{"--min-bytes", "SIZE", GM_BLOCKS, false, least_bytes, "only blocks of this size and more"},
	{"--max-bytes", "SIZE", GM_BLOCKS, false, most_bytes, "only blocks of this size and less"},
	{"--min-bytes", "SIZE", GM_LEAKS | GM_SITES, false, site_bytes,
	 "only sites whose live bytes, for sites whose peak, are this size and more"},
	{"--all", NULL, GM_LEAKS, false, all, "also what is held, cached or suppressed"},
	{"--sort", "KEY", GM_SITES | GM_EXPORT, false, sort,
	 "live, peak, total, count or churn (live)"},
	{"--sort", "KEY", GM_TOP, false, top_sort, "live, growth, peak, total or count (live)"},
	{"--once", NULL, GM_TOP, false, once, "print one screen and end"},
	{"--copy", "PID", GM_HOLDERS, false, copy,
	 "for the shim: look in this copy of the process, and replace FILE by the result"},
	{"--moment", "NAME", GM_HOLDERS, false, moment, "for the shim: when the copy was made"},
	{"--at", "TIME", GM_SITES | GM_EXPORT, false, at,
	 "as it was at that time, like 12.5 or 300ms; peak: the make-up of the peak"},
	{"--at", "TIME",
	 GM_EVERY & ~(GM_SITES | GM_EXPORT | GM_RUN | GM_TOP | GM_HOLDERS | GM_WATCH), false,
	 at_time, "as it was at that time since the first event, like 12.5 or 300ms"},
	{"--check", "GATES", GM_RUN | GM_WATCH, false, run_check,
	 "options of the command check in one word: --check \"--leaks exit\""},
	{"-o", "OUT", GM_RUN | GM_EXPORT | GM_HTML | GM_ATTACH | GM_WATCH, false, out_path,
	 "the file to write (also --output)", "--output"},
	{"--format", "FORMAT", GM_EXPORT, false, format, "one of the formats below"},
	{"--json", NULL, GM_EVERY & ~(GM_EXPORT | GM_HTML), false, json,
	 "the whole document as JSON"},
	{"--top", "N", GM_EVERY, false, top, "entries of each list (20; of JSON all)"},
	{"--device", "N", GM_EVERY, false, device, "this device only"},
	{"--kind", "KIND", GM_EVERY, false, kind,
	 "this kind only: device, managed, array, async, vmm, graph, pinned, registered, imported"},
	{"--level", "LEVEL", GM_EVERY, false, level, "driver, torch or custom only"},
	{"--suppressions", "FILE", GM_EVERY, true, suppressions,
	 "leak:PATTERN lines, as LSan's; several lists add up"},
	{"--no-shipped-suppressions", NULL, GM_EVERY, true, no_shipped,
	 "also what libraries keep on purpose"},
	{"--rules", "FILE", GM_EVERY, true, rules,
	 "more rules of what frames mean, before the built-in ones"},
	{"--no-symbols", NULL, GM_EVERY, false, no_symbols, "do not look up functions and lines"},
	{"--no-symbol-cache", NULL, GM_EVERY, false, no_symbol_cache,
	 "look them up anew; neither use nor keep a cache"},
	{"--full", NULL, GM_EVERY, false, full, "whole stacks and names"},
	{"--color", "WHEN", GM_EVERY, false, color, "auto, always or never"},
	{"-q", NULL, GM_EVERY | GM_PROCESS, false, quiet, "less: only the answer (also --quiet)",
	 "--quiet"},
};

/* All options, one after the other; NULL past the last. A command's own come first. */
static const struct gm_option *option_at(size_t number)
{
	if (number < gm_plan_option_rows_count)
		return &gm_plan_option_rows[number];
	number -= gm_plan_option_rows_count;
	if (number < gm_whatif_option_rows_count)
		return &gm_whatif_option_rows[number];
	number -= gm_whatif_option_rows_count;
	if (number < gm_gate_option_rows_count)
		return &gm_gate_option_rows[number];
	number -= gm_gate_option_rows_count;
	return number < sizeof(options) / sizeof(options[0]) ? &options[number] : NULL;
}

static bool is_name(const char *name, const char *word, size_t length)
{
	return name && strlen(name) == length && strncmp(name, word, length) == 0;
}

static const struct gm_option *find_option(const char *name, size_t length, unsigned commands,
					   bool gates)
{
	const struct gm_option *option;

	for (size_t i = 0; (option = option_at(i)); i++)
		if ((is_name(option->name, name, length) || is_name(option->alias, name, length)) &&
		    ((option->commands & commands) || (gates && option->gate)))
			return option;
	return NULL;
}

static int unknown_option(const char *word, size_t length, unsigned commands, bool gates,
			  const char *where)
{
	struct gm_zone zone = {0};
	struct gm_nearest nearest = {.word = gm_zone_strndup(&zone, word, length)};
	const struct gm_option *option;

	option = find_option(word, length, 0, true);
	if (option && commands & (GM_RUN | GM_WATCH)) {
		gm_usage_error("%s does not know the option %s, which is a gate: write --check "
			       "\"%s%s%s\"",
			       where, option->name, option->name, option->argument ? " " : "",
			       option->argument ? option->argument : "");
		gm_zone_free(&zone);
		return GM_EXIT_USAGE;
	}
	for (size_t i = 0; (option = option_at(i)); i++)
		if ((option->commands & commands) || (gates && option->gate))
			gm_nearest_try(&nearest, option->name);
	gm_usage_error("%s does not know the option %s; %s%s%sgpumem-report %s --help lists them",
		       where, nearest.word, nearest.name ? "did you mean " : "",
		       nearest.name ? nearest.name : "", nearest.name ? "? " : "", where);
	gm_zone_free(&zone);
	return GM_EXIT_USAGE;
}

/* Reads the option at argv[*i] and its argument; 0 or GM_EXIT_USAGE. */
static int read_option(struct gm_cli *cli, unsigned commands, bool gates, const char *where,
		       int argc, char **argv, int *i)
{
	const char *word = argv[*i],
		   *equals = strncmp(word, "--", 2) == 0 ? strchr(word, '=') : NULL;
	size_t length = equals ? (size_t)(equals - word) : strlen(word);
	const struct gm_option *option = find_option(word, length, commands, gates);
	const char *argument = equals ? equals + 1 : NULL, *wanted;

	if (!option)
		return unknown_option(word, length, commands, gates, where);
	if (!option->argument && argument)
		return gm_usage_error("%s takes no argument", option->name);
	if (option->argument && !argument) {
		/* run --check -- PROGRAM: the gates that are on by default */
		if (option->read == run_check && *i + 1 < argc && strcmp(argv[*i + 1], "--") == 0)
			return run_check(cli, "") != NULL;
		if (*i + 1 >= argc && !commands) /* within run --check GATES */
			return gm_usage_error("%s needs an argument, in one word with it: "
					      "--check \"%s %s\"",
					      option->name, option->name, option->argument);
		if (*i + 1 >= argc)
			return gm_usage_error("%s needs an argument: %s", option->name,
					      option->argument);
		argument = argv[++*i];
	}
	wanted = option->read(cli, argument);
	if (wanted && !*wanted)
		return GM_EXIT_USAGE;
	if (wanted)
		return gm_usage_error("%s \"%s\": it should be %s", option->name, argument, wanted);
	return 0;
}

static void defaults(struct gm_cli *cli)
{
	cli->options = (struct gm_options){
		.symbols = true,
		.symbol_cache = true,
		.device = -1,
		.kind = -1,
		.level = -1,
		.warmup = GM_WARMUP_WINDOWS,
		.top = 20,
		.color = 2,
	};
	cli->most_bytes = UINT64_MAX;
	cli->plan.margin_percent = 15;
	cli->wait_ms = 10000;
	cli->for_ms = 60000;
	cli->gates = gm_gate_defaults();
	cli->gates.warmup = GM_WARMUP_WINDOWS;
}

/* run: words before the program are options, "--" ends them. */
int gm_cli_parse(struct gm_cli *cli, const struct gm_command_row *command, int argc, char **argv)
{
	bool literal = false;
	int rc;

	defaults(cli);
	cli->words = calloc((size_t)argc + 1, sizeof(*cli->words));
	if (!cli->words)
		return gm_usage_error("out of memory");
	for (int i = 0; i < argc; i++) {
		bool option = argv[i][0] == '-' && argv[i][1] && !literal;

		if (option && (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)) {
			gm_cli_help(command);
			return -1;
		}
		if (option && strcmp(argv[i], "--") == 0) {
			literal = true;
			continue;
		}
		if (!option) {
			cli->words[cli->words_count++] = argv[i];
			literal = literal || command->bit == GM_RUN;
			continue;
		}
		rc = read_option(cli, command->bit, false, command->name, argc, argv, &i);
		if (rc)
			return rc;
	}
	if (!cli->words_count && command->bit != GM_PLAN)
		return gm_usage_error(
			"%s needs %s; gpumem-report %s --help says more", command->name,
			command->bit == GM_RUN		 ? "a program to run"
			: command->bit & GM_PROCESS ? "a process"
						    : "a file",
			command->name);
	if (gm_gates_lack_baseline(cli))
		return gm_usage_error("--max-peak-growth compares with an earlier run: name its "
				      "file with --baseline FILE");
	return 0;
}

/* A gate as people write it in one word: "--leaks=exit", "leaks=exit", "no-errors", "exit". */
static int read_gate(struct gm_cli *cli, int argc, char **argv, int *i)
{
	const struct gm_option *option;
	char *word = argv[*i];
	int rc;

	if (strcmp(word, "exit") == 0 || strcmp(word, "grow") == 0 || strcmp(word, "off") == 0)
		return gm_read_leak_gate(cli, word) != NULL;
	if (strcmp(word, "leaks") == 0 || strcmp(word, "default") == 0) {
		/* "leaks exit", or "leaks" alone: the gate as it is by default */
		if (*word == 'l' && *i + 1 < argc && gm_read_leak_gate(cli, argv[*i + 1]) == NULL)
			(*i)++;
		return 0;
	}
	if (*word != '-') {
		char *spelled = gm_zone_printf(&cli->texts, "--%s", word);

		option = find_option(spelled, strcspn(spelled, "="), GM_CHECK, true);
		if (!option)
			return gm_usage_error(
				"--check: \"%s\" is no gate; gpumem-report check --help "
				"lists them",
				word);
		argv[*i] = spelled;
	}
	rc = read_option(cli, 0, true, "check", argc, argv, i);
	return rc;
}

int gm_cli_parse_gates(struct gm_cli *cli, const char *text)
{
	char *argv[64], *rest = gm_zone_strdup(&cli->texts, text), *word;
	int argc = 0, rc = 0;

	while (rest && argc < 64 && (word = strsep(&rest, " \t,")))
		if (*word)
			argv[argc++] = word;
	for (int i = 0; i < argc && !rc; i++)
		rc = read_gate(cli, argc, argv, &i);
	return rc;
}

/* Prints the options of a command, or without one those of all commands. */
static void print_options(const struct gm_command_row *command)
{
	const struct gm_option *option;

	for (size_t i = 0; (option = option_at(i)); i++) {
		char name[64];

		if (command ? !(option->commands & command->bit)
			    : ((option->commands | GM_EXPORT | GM_HTML | GM_TOP) & GM_EVERY) !=
				      GM_EVERY)
			continue;
		snprintf(name, sizeof(name), "%s%s%s", option->name, option->argument ? " " : "",
			 option->argument ? option->argument : "");
		printf("  %-28s %s\n", name, option->help);
	}
}

void gm_cli_help(const struct gm_command_row *command)
{
	if (command) {
		printf("gpumem-report %s %s\n  %s\n\nOptions:\n", command->name, command->arguments,
		       command->help);
	} else {
		printf("gpumem-report COMMAND [OPTIONS] FILE...\n"
		       "Reads what libgpumemtrace.so recorded. A file alone means summary.\n\n"
		       "Commands:\n");
		for (unsigned i = 0; i < gm_commands_count; i++)
			printf("  %-14s %s\n", gm_commands[i].name, gm_commands[i].help);
		printf("\nOptions of all commands (gpumem-report COMMAND --help lists its own):\n");
	}
	print_options(command);
	if (command && command->bit == GM_EXPORT)
		printf("\nFormats:\n");
	for (unsigned i = 0; command && command->bit == GM_EXPORT && i < gm_export_formats_count;
	     i++)
		printf("  %-28s %s\n", gm_export_formats[i].name, gm_export_formats[i].help);
	printf("\nExit status: 0 fine, 1 a leak gate failed, 2 bad usage, 3 an input cannot be "
	       "read\n"
	       "or a gate was not measured, 4 an out-of-memory gate failed, 5 another gate "
	       "failed.\n");
}
