/*
 * The options of the command check, which `run --check` takes too: rows of the option table (cli.h)
 * and how their arguments are read.
 */
#include "cli.h"
#include "base/size_text.h"
#include <ctype.h>
#include <string.h>

const char *gm_read_leak_gate(struct gm_cli *cli, const char *text)
{
	static const char *const names[] = {"default", "exit", "grow", "off"};

	for (int i = 1; i < 4; i++)
		if (strcmp(text, names[i]) == 0) {
			cli->gates.leaks = (enum gm_leak_gate)i;
			return NULL;
		}
	return "exit, grow or off";
}

static const char *min_bytes(struct gm_cli *cli, const char *text)
{
	return gm_parse_size(text, &cli->gates.min_bytes) ? NULL : "a size, like 1MiB";
}

static const char *warmup(struct gm_cli *cli, const char *text)
{
	uint64_t number;

	if (!gm_read_number(text, 0, 1000000, &number))
		return "a number of marks or windows";
	cli->options.warmup = cli->gates.warmup = (unsigned)number;
	return NULL;
}

static const char *since(struct gm_cli *cli, const char *text)
{
	cli->options.since = text;
	return NULL;
}

static const char *until(struct gm_cli *cli, const char *text)
{
	cli->options.until = text;
	return NULL;
}

static const char *per_mark(struct gm_cli *cli, const char *text)
{
	(void)text;
	cli->gates.per_mark = true;
	return NULL;
}

static const char *max_peak(struct gm_cli *cli, const char *text)
{
	return gm_parse_size(text, &cli->gates.max_peak_bytes) ? NULL : "a size, like 10GiB";
}

static const char *max_growth(struct gm_cli *cli, const char *text)
{
	return gm_parse_size(text, &cli->gates.max_growth_bytes) ? NULL : "a size, like 64MiB";
}

/* "5" or "5%" */
static bool read_percent(const char *text, uint64_t most, uint64_t *percent)
{
	size_t length = strlen(text);
	uint64_t number;
	char digits[16];

	length -= length && text[length - 1] == '%';
	snprintf(digits, sizeof(digits), "%.*s", (int)length, text);
	if (length >= sizeof(digits) || !gm_read_number(digits, 0, most, &number))
		return false;
	*percent = number;
	return true;
}

static const char *max_fragmentation(struct gm_cli *cli, const char *text)
{
	return read_percent(text, 100, &cli->gates.max_fragmentation_percent)
		       ? NULL
		       : "a percentage from 0 to 100";
}

/* The last of several counts. A size has a unit here: a number alone is a percentage. */
static const char *max_peak_growth(struct gm_cli *cli, const char *text)
{
	size_t length = strlen(text);

	cli->gates.max_peak_growth_percent = cli->gates.max_peak_growth_bytes = GM_NO_BYTES;
	if (read_percent(text, 10000, &cli->gates.max_peak_growth_percent) ||
	    (length && isalpha((unsigned char)text[length - 1]) &&
	     gm_parse_size(text, &cli->gates.max_peak_growth_bytes)))
		return NULL;
	return "a percentage up to 10000 or a size with its unit, like 5% or 64MiB";
}

bool gm_gates_lack_baseline(const struct gm_cli *cli)
{
	return !cli->baseline && (cli->gates.max_peak_growth_percent != GM_NO_BYTES ||
				  cli->gates.max_peak_growth_bytes != GM_NO_BYTES);
}

static const char *max_retries(struct gm_cli *cli, const char *text)
{
	uint64_t number;

	if (!gm_read_number(text, 0, 1000000000, &number))
		return "a number";
	cli->gates.max_retries = number;
	return NULL;
}

static const char *no_oom(struct gm_cli *cli, const char *text)
{
	(void)text;
	cli->gates.allow_oom = false;
	return NULL;
}

static const char *allow_oom(struct gm_cli *cli, const char *text)
{
	(void)text;
	cli->gates.allow_oom = true;
	return NULL;
}

static const char *allow_unmeasured(struct gm_cli *cli, const char *text)
{
	(void)text;
	cli->gates.allow_unmeasured = true;
	return NULL;
}

static const char *no_errors(struct gm_cli *cli, const char *text)
{
	(void)text;
	cli->gates.no_errors = true;
	return NULL;
}

static const char *baseline(struct gm_cli *cli, const char *text)
{
	cli->baseline = text;
	return NULL;
}

static const char *junit(struct gm_cli *cli, const char *text)
{
	cli->check_files[GM_JUNIT] = text;
	return NULL;
}

static const char *sarif(struct gm_cli *cli, const char *text)
{
	cli->check_files[GM_SARIF] = text;
	return NULL;
}

static const char *markdown(struct gm_cli *cli, const char *text)
{
	cli->check_files[GM_MARKDOWN] = text;
	return NULL;
}

static const char *github_annotations(struct gm_cli *cli, const char *text)
{
	cli->check_files[GM_GITHUB] = text;
	return NULL;
}

static const char *gitlab_code_quality(struct gm_cli *cli, const char *text)
{
	cli->check_files[GM_GITLAB] = text;
	return NULL;
}

const struct gm_option gm_gate_option_rows[] = {
	{"--leaks", "MODE", GM_CHECK, true, gm_read_leak_gate,
	 "exit, grow or off (grow with a caching framework, else exit)"},
	{"--min-bytes", "SIZE", GM_CHECK, true, min_bytes,
	 "a site under it does not fail the leak gate (0 for exit, 1MiB for grow)"},
	{"--warmup", "N", GM_CHECK | GM_LEAKS | GM_SUMMARY, true, warmup,
	 "marks or windows that do not count for growth (2)"},
	{"--since", "MARK", GM_LEAKS | GM_CHECK, true, since,
	 "only what was allocated after that mark; MARK#2 is the second of the name"},
	{"--until", "MARK", GM_LEAKS | GM_CHECK, true, until,
	 "only what was allocated before that mark"},
	{"--per-mark", NULL, GM_CHECK, true, per_mark,
	 "a gate for each mark: all that was allocated before the next one is freed"},
	{"--max-growth", "SIZE", GM_CHECK, true, max_growth,
	 "limit of the live memory of all growing sites at the end of the work"},
	{"--max-peak", "SIZE", GM_CHECK, true, max_peak, "limit of each device's peak"},
	{"--max-peak-growth", "LIMIT", GM_CHECK, true, max_peak_growth,
	 "how far the peak may exceed the baseline's: 5% or 64MiB"},
	{"--max-fragmentation", "PERCENT", GM_CHECK, true, max_fragmentation,
	 "limit of reserved memory that is not used"},
	{"--max-retries", "N", GM_CHECK, true, max_retries, "limit of repeated allocations"},
	{"--fail-on-oom", NULL, GM_CHECK, true, no_oom,
	 "fail on any out-of-memory event (on by default; also --no-oom)", "--no-oom"},
	{"--allow-oom", NULL, GM_CHECK, true, allow_oom, "out-of-memory events do not fail"},
	{"--allow-unmeasured", NULL, GM_CHECK, true, allow_unmeasured,
	 "a gate that could not be measured does not fail (else exit status 3)"},
	{"--fail-on-errors", NULL, GM_CHECK, true, no_errors,
	 "fail on bad frees (also --no-errors)", "--no-errors"},
	{"--baseline", "FILE", GM_CHECK, true, baseline, "fail only on what is worse than there"},
	{"--junit", "FILE", GM_CHECK, true, junit, "also write the gates as JUnit XML"},
	{"--sarif", "FILE", GM_CHECK, true, sarif, "also write them as SARIF 2.1.0"},
	{"--markdown", "FILE", GM_CHECK, true, markdown,
	 "also write them as Markdown, for a job's summary (- is standard output)"},
	{"--github-annotations", "FILE", GM_CHECK, true, github_annotations,
	 "also write GitHub's ::error commands, which - prints to the job's log"},
	{"--gitlab-code-quality", "FILE", GM_CHECK, true, gitlab_code_quality,
	 "also write GitLab's code quality report"},
};

const unsigned gm_gate_option_rows_count =
	sizeof(gm_gate_option_rows) / sizeof(gm_gate_option_rows[0]);
