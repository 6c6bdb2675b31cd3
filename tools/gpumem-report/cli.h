/*
 * The command line: what was asked, the tables of commands and options, and what commands share.
 * Commands parse nothing themselves; main.c fills `struct gm_cli` by the option table.
 */
#ifndef GPUMEM_REPORT_CLI_H
#define GPUMEM_REPORT_CLI_H

#include "report/gate/gates.h"
#include "report/open/inputs.h"
#include "report/job/job.h"
#include "report/plan/plan.h"
#include "report/whatif/whatif.h"
#include "report/render/text/text.h"
#include "report/doc/options.h"

/* Exit codes of contract.md, section 3. */
enum gm_exit {
	GM_EXIT_FINE = 0,
	GM_EXIT_LEAK = 1,
	GM_EXIT_USAGE = 2,
	GM_EXIT_INPUT = 3,
	GM_EXIT_OOM = 4,
	GM_EXIT_GATE = 5
};

/* Commands as bits, for the options that only some of them take. */
enum gm_command {
	GM_SUMMARY = 1,
	GM_LEAKS = 2,
	GM_SITES = 4,
	GM_FRAGMENTATION = 8,
	GM_OOM = 16,
	GM_TIMELINE = 32,
	GM_DIFF = 64,
	GM_CHECK = 128,
	GM_RUN = 256,
	GM_EXPORT = 512,
	GM_HTML = 1024,
	GM_TOP = 2048,
	GM_PLAN = 4096,
	GM_WHATIF = 8192,
	GM_HOLDERS = 16384,
	GM_BLOCKS = 32768,
	GM_WATCH = 65536,
	GM_RANGES = 131072,
	GM_EVERY = 262143, /* that reads files */
	GM_START = 262144,
	GM_STOP = 524288,
	GM_ATTACH = 1048576,
	GM_DETACH = 2097152,
	GM_PROCESS = GM_WATCH | GM_START | GM_STOP | GM_ATTACH | GM_DETACH /* that changes one */
};

/* Files for those who review a change (cmd_check.c has their writers). */
enum gm_check_file { GM_JUNIT, GM_SARIF, GM_MARKDOWN, GM_GITHUB, GM_GITLAB, GM_CHECK_FILES };

struct gm_cli {
	struct gm_options options;
	struct gm_gate_options gates;
	struct gm_plan_options plan;
	bool plan_search; /* plan --search */
	struct gm_whatif_options whatif;
	bool gates_given; /* run: --check */
	bool once;	  /* top */
	bool interrupt;	  /* attach, detach: --interrupt */
	uint64_t wait_ms; /* start, stop, attach, detach, watch: --wait */
	uint64_t for_ms;  /* watch: --for */
	int copy_pid;	  /* holders: the shim's copy of a process; 0: none */
	const char *moment; /* at which it was made */
	uint64_t least_bytes, most_bytes; /* blocks */
	bool address_given;		  /* blocks --address: */
	uint64_t address;
	const char *out_path, *format, *baseline;
	const char *check_files[GM_CHECK_FILES]; /* files that check writes beside its text; NULL */
	struct gm_zone texts; /* that options point into, beside the command line's own */
	char **words;	      /* files, or run's program and its arguments */
	unsigned words_count;
	struct gm_inputs inputs; /* the files of `words`, also those in directories */
	bool input_failed;	 /* a file could not be read */
};

/* A row of the table of options. */
struct gm_option {
	const char *name, *argument; /* argument NULL: a switch */
	unsigned commands;	     /* those that take it */
	bool gate;		     /* --check of run takes it too */
	/* Reads the argument; NULL, what it should have been, or "" after its own sentence. */
	const char *(*read)(struct gm_cli *cli, const char *text);
	const char *help;
	const char *alias; /* another name of it, in no list of names; NULL */
};

extern const struct gm_option gm_plan_option_rows[];
extern const unsigned gm_plan_option_rows_count;
extern const struct gm_option gm_whatif_option_rows[];
extern const unsigned gm_whatif_option_rows_count;
extern const struct gm_option gm_gate_option_rows[];
extern const unsigned gm_gate_option_rows_count;

/* Reads which leaks fail: "exit", "grow" or "off". Returns NULL, or the values that are allowed. */
const char *gm_read_leak_gate(struct gm_cli *cli, const char *text);

/* True if --max-peak-growth was given and --baseline was not. */
bool gm_gates_lack_baseline(const struct gm_cli *cli);

/* A decimal number from `least` to `most`; false for anything else. */
bool gm_read_number(const char *text, uint64_t least, uint64_t most, uint64_t *number);

struct gm_command_row {
	enum gm_command bit;
	const char *name, *arguments, *help;
	int (*run)(struct gm_cli *cli);
};

extern const struct gm_command_row gm_commands[];
extern const unsigned gm_commands_count;

/*
 * Parses `argv` after the command's name. Returns 0, GM_EXIT_USAGE after a sentence on stderr, or
 * -1 when help was printed.
 */
int gm_cli_parse(struct gm_cli *cli, const struct gm_command_row *command, int argc, char **argv);

/* Parses a string of gate options as of --check, "--leaks exit --max-peak 1GiB". 0 or
 * GM_EXIT_USAGE. */
int gm_cli_parse_gates(struct gm_cli *cli, const char *text);

/* Help of the tool, or of one command. */
void gm_cli_help(const struct gm_command_row *command);

/* A sentence on stderr; returns GM_EXIT_USAGE. */
int gm_usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A sentence about a file on stderr. */
void gm_cli_complain(const char *sentence);

/* Standard output as --color, --top and --full want it. */
struct gm_out gm_cli_out(const struct gm_cli *cli);

/*
 * The file that an argument means: the one that the process of this number has mapped, or the name
 * itself. *pid is 0 for a name. NULL after a sentence in `error`; the caller frees the path.
 */
char *gm_cli_find_file(const char *word, int *pid, char *error, size_t error_bytes);

/*
 * The path of the shim beside this tool: installed, in the portable folder, whose tool is run by
 * the loader beside it, or in the build tree. Static storage; NULL if it is in none of these
 * places, or if others can write to it. (find_shim.c, as the next.)
 */
char *gm_cli_find_shim(void);

/* A name that is meant in our own working directory, wherever another process goes. */
char *gm_cli_absolute(struct gm_cli *cli, const char *name);

/* Replaces directories among the words by the files in them. */
void gm_cli_find_inputs(struct gm_cli *cli);

/* Replaces pids by their processes' files; false if some have none, after a sentence for each. */
bool gm_cli_find_processes(struct gm_cli *cli);

/* Opens the files given; NULL after a sentence where none can be read. */
struct gm_job *gm_cli_open(struct gm_cli *cli);

/* A command's function that prints one document. */
typedef void (*gm_cli_body)(struct gm_out *out, struct gm_doc *doc, const struct gm_cli *cli);

/* Prints a body for each document; of several the whole and the rows of all before. */
void gm_cli_print(struct gm_cli *cli, struct gm_job *job, gm_cli_body body);

/* Prints a body for each of the files given, or their JSON if asked for. */
int gm_cli_show(struct gm_cli *cli, gm_cli_body body);

/* Prints the summary of open files. */
void gm_cli_print_summary(struct gm_cli *cli, struct gm_job *job);

/*
 * Checks open files against the gates and prints those; with --json the document, gates in it. Of a
 * job without a file `why` says, as a clause, why there is none.
 */
int gm_cli_check(struct gm_cli *cli, struct gm_job *job, const char *why);

/* False after a sentence if writing `path` would destroy one of the files that were given to be
 * read. */
bool gm_cli_may_write(const struct gm_cli *cli, const char *path);

int gm_cmd_summary(struct gm_cli *cli);
int gm_cmd_leaks(struct gm_cli *cli);
int gm_cmd_sites(struct gm_cli *cli);
int gm_cmd_fragmentation(struct gm_cli *cli);
int gm_cmd_oom(struct gm_cli *cli);
int gm_cmd_timeline(struct gm_cli *cli);
int gm_cmd_holders(struct gm_cli *cli);
int gm_cmd_diff(struct gm_cli *cli);
int gm_cmd_check(struct gm_cli *cli);
int gm_cmd_run(struct gm_cli *cli);
int gm_cmd_export(struct gm_cli *cli);
int gm_cmd_top(struct gm_cli *cli);
int gm_cmd_html(struct gm_cli *cli);
int gm_cmd_blocks(struct gm_cli *cli);
int gm_cmd_plan(struct gm_cli *cli);
int gm_cmd_ranges(struct gm_cli *cli);
int gm_cmd_start(struct gm_cli *cli);
int gm_cmd_stop(struct gm_cli *cli);
int gm_cmd_attach(struct gm_cli *cli);
int gm_cmd_detach(struct gm_cli *cli);
int gm_cmd_watch(struct gm_cli *cli);
int gm_cmd_whatif(struct gm_cli *cli);

#endif
