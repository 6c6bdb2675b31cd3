/*
 * plan --search: the largest batch by running the program, under the shim and a capacity.
 */
#include "plan_search.h"
#include "report/open/open.h"
#include "report/render/json/json.h"
#include "report/render/text/text.h"
#include "report/support/format.h"
#include "report/support/print.h"
#include <errno.h>
#include <glob.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLACE	   "{}"
#define MOST_BATCH (1u << 24)
#define MOST_RUNS  64
#define SAME_PEAKS 10 /* doublings after which a peak that stayed as it was is not the batch's */

enum outcome { FITS, OUT_OF_MEMORY, FAILED, NO_MEMORY };

struct attempt {
	uint64_t batch, peak_bytes;
	enum outcome outcome;
	int status; /* as a shell has it */
};

struct search {
	struct gm_cli *cli;
	char folder[PATH_MAX];
	uint64_t capacity_bytes;
	struct attempt attempts[MOST_RUNS];
	unsigned count;
};

/* ---- one run ---- */

/* The word with the batch in each place. */
static char *with_batch(struct gm_zone *zone, const char *word, uint64_t batch)
{
	char *text = gm_zone_strdup(zone, "");
	const char *place;

	for (; (place = strstr(word, PLACE)); word = place + strlen(PLACE))
		text = gm_zone_printf(zone, "%s%.*s%llu", text, (int)(place - word), word,
				      (unsigned long long)batch);
	return gm_zone_printf(zone, "%s%s", text, word);
}

/*
 * Runs in the child: never returns. The command `run` is called and not started anew: the file that
 * this process executes may be the loader (of the portable folder) and not the tool. The program's
 * output goes to our standard error.
 */
static void start_run(struct search *search, uint64_t batch)
{
	struct gm_cli *cli = search->cli, run = {.options = cli->options};
	int status;

	run.no_report = true;
	run.out_path = gm_zone_printf(&run.texts, "%s/%%p.gmt", search->folder);
	run.words = gm_realloc(NULL, (cli->words_count + 1) * sizeof(*run.words));
	for (; run.words_count < cli->words_count; run.words_count++)
		run.words[run.words_count] =
			with_batch(&run.texts, cli->words[run.words_count], batch);
	run.words[run.words_count] = NULL;
	dup2(STDERR_FILENO, STDOUT_FILENO);
	setenv("GPUMEMTRACE_CAPACITY",
	       gm_zone_printf(&run.texts, "%llu", (unsigned long long)search->capacity_bytes), 1);
	status = gm_cmd_run(&run);
	fflush(NULL);
	_exit(status);
}

/* Reads and removes what the run recorded: refused requests, and the highest peak of a device. */
static uint64_t read_files(struct search *search, struct attempt *attempt)
{
	char *pattern = gm_zone_printf(&search->cli->texts, "%s/*", search->folder), error[1024];
	struct gm_options options = search->cli->options;
	uint64_t refused = 0;
	glob_t files;

	options.symbols = false; /* no name is asked for */
	if (glob(pattern, 0, NULL, &files) != 0)
		return 0;
	for (size_t i = 0; i < files.gl_pathc; i++) {
		struct gm_doc *doc =
			gm_doc_open(files.gl_pathv[i], &options, error, sizeof(error));

		refused += doc ? doc->header->oom_events : 0;
		for (unsigned k = 0; doc && k < doc->levels_count; k++)
			if (doc->levels[k].level == GM_LEVEL_DRIVER && doc->levels[k].device >= 0 &&
			    doc->levels[k].physical_peak_bytes > attempt->peak_bytes)
				attempt->peak_bytes = doc->levels[k].physical_peak_bytes;
		gm_doc_close(doc);
		unlink(files.gl_pathv[i]);
	}
	globfree(&files);
	return refused;
}

static enum outcome run_once(struct search *search, uint64_t batch)
{
	struct attempt *attempt = &search->attempts[search->count++];
	char peak[GM_FORMAT_BYTES];
	uint64_t refused;
	int status;
	pid_t pid;

	*attempt = (struct attempt){.batch = batch};
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		start_run(search, batch);
	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			pid = -1;
	attempt->status = pid < 0		? 126
			  : WIFSIGNALED(status) ? 128 + WTERMSIG(status)
						: WEXITSTATUS(status);
	refused = read_files(search, attempt);
	attempt->outcome = refused		 ? OUT_OF_MEMORY
			   : attempt->status	 ? FAILED
			   : attempt->peak_bytes ? FITS
						 : NO_MEMORY;
	if (!search->cli->options.quiet)
		gm_printf(stderr, "gpumem-report: batch %llu %s, peak %s\n",
			  (unsigned long long)batch,
			  attempt->outcome == FITS	      ? "fits"
			  : attempt->outcome == OUT_OF_MEMORY ? "does not fit"
			  : attempt->outcome == NO_MEMORY     ? "took no device memory"
							      : "failed",
			  gm_format_size(peak, attempt->peak_bytes));
	return attempt->outcome;
}

/* ---- the search ---- */

/* True if the batch has been doubled many times and the peak is that of the first run. */
static bool peak_stays(const struct search *search)
{
	return search->count > SAME_PEAKS && search->attempts[search->count - 1].outcome == FITS &&
	       search->attempts[search->count - 1].peak_bytes == search->attempts[0].peak_bytes;
}

/*
 * Doubles from `first` until a batch does not fit, then halves the interval. Returns the largest
 * that ran; GM_NO_BYTES if the program failed for another reason than memory, took none, or takes
 * as much whatever the batch is.
 */
static uint64_t find_largest(struct search *search, uint64_t first)
{
	uint64_t fits = 0, fails = 0, batch = first;

	while (search->count < MOST_RUNS && (!fails || fails - fits > 1)) {
		enum outcome outcome = run_once(search, batch);

		if (outcome == FAILED || outcome == NO_MEMORY || (!fails && peak_stays(search)))
			return GM_NO_BYTES;
		if (outcome == FITS)
			fits = batch;
		else
			fails = batch;
		if (!fails && fits >= MOST_BATCH)
			break;
		batch = fails ? fits + (fails - fits) / 2 : 2 * fits;
	}
	return fits;
}

static json_t *as_json(const struct search *search, uint64_t largest)
{
	static const char *const names[] = {"fits", "out-of-memory", "failed", "no-memory"};
	json_t *runs = json_array();

	for (unsigned i = 0; i < search->count; i++) {
		const struct attempt *attempt = &search->attempts[i];

		json_array_append_new(runs, json_pack("{s:I, s:s, s:I, s:i}", "batch",
						      (json_int_t)attempt->batch, "outcome",
						      names[attempt->outcome], "peak_bytes",
						      (json_int_t)attempt->peak_bytes, "status",
						      attempt->status));
	}
	return json_pack("{s:I, s:o, s:o}", "capacity_bytes", (json_int_t)search->capacity_bytes,
			 "largest_batch",
			 largest == GM_NO_BYTES ? json_null() : json_integer((json_int_t)largest),
			 "runs", runs);
}

static void print_result(const struct search *search, uint64_t largest)
{
	char limit[GM_FORMAT_BYTES];
	struct gm_out out = gm_cli_out(search->cli);

	gm_print(&out, GM_BOLD, "Largest batch: ");
	if (largest >= MOST_BATCH)
		gm_wrapf(&out, 15, "%llu or more in %s; the search ends there",
			 (unsigned long long)largest,
			 gm_format_size(limit, search->capacity_bytes));
	else
		gm_wrapf(&out, 15, "%llu in %s, found by %u runs under that capacity",
			 (unsigned long long)largest, gm_format_size(limit, search->capacity_bytes),
			 search->count);
}

/* Says why no batch was found. */
static void refuse(const struct search *search)
{
	const struct attempt *last = &search->attempts[search->count - 1];
	char peak[GM_FORMAT_BYTES];

	if (last->outcome == NO_MEMORY)
		gm_usage_error("plan --search: the program took no device memory at batch %llu (it "
			       "made no CUDA call that was recorded); check that it uses the GPU, "
			       "by gpumem-report run",
			       (unsigned long long)last->batch);
	else if (last->outcome == FITS)
		gm_usage_error("plan --search: the peak is %s at batch %llu and at batch %llu: "
			       "the program does not use the batch, or its memory does not "
			       "depend on it",
			       gm_format_size(peak, last->peak_bytes),
			       (unsigned long long)search->attempts[0].batch,
			       (unsigned long long)last->batch);
	else
		gm_usage_error("plan --search: the program ended with status %d at batch %llu, and "
			       "no request for memory was refused",
			       last->status, (unsigned long long)last->batch);
}

int gm_plan_search(struct gm_cli *cli, uint64_t capacity_bytes)
{
	struct search search = {.cli = cli, .capacity_bytes = capacity_bytes};
	const char *parent = getenv("TMPDIR");
	uint64_t largest, first = cli->plan.batches_count ? cli->plan.batches[0] : 1;

	snprintf(search.folder, sizeof(search.folder), "%s/gpumem-search-XXXXXX",
		 parent && *parent ? parent : "/tmp");
	if (!mkdtemp(search.folder))
		return gm_usage_error("plan --search: no folder can be made in %s: %s",
				      parent && *parent ? parent : "/tmp", strerror(errno));
	largest = find_largest(&search, first);
	rmdir(search.folder);
	if (cli->options.json)
		gm_json_write_doc(NULL, "plan_search", as_json(&search, largest), stdout);
	else if (largest != GM_NO_BYTES)
		print_result(&search, largest);
	if (largest != GM_NO_BYTES)
		return GM_EXIT_FINE;
	refuse(&search);
	return GM_EXIT_INPUT;
}
