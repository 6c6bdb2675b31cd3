/*
 * run: starts a program under the shim, waits for it, finds the files that it and its children
 * wrote and prints their summary, with gates if asked. The exit status is the program's own.
 */
#include "cli.h"
#include "store/reader.h"
#include "report/job/job_open.h"
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_OUT "gpumemtrace.%p.gmt"
#define MAX_FILES   4096

static volatile sig_atomic_t child_pid;

static const int forwarded[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

/* What a terminal sends, it sends to the program too: only what was meant for us is passed on. */
static void forward(int number, siginfo_t *info, void *context)
{
	(void)context;
	if (child_pid > 0 && info->si_code != SI_KERNEL)
		kill(child_pid, number);
}

/*
 * The shim beside this tool: in the build tree, installed, or in the portable folder, whose tool is
 * run by the loader beside it. NULL if it is in none of these places.
 */
static char *find_shim(void)
{
	static const char *const places[] = {
		"../../src/interpose/libgpumemtrace.so",
		"../lib/libgpumemtrace.so",
		"../" GM_LIBDIR "/libgpumemtrace.so",
		"libgpumemtrace.so",
		"../libgpumemtrace.so",
	};
	static char found[PATH_MAX];
	char self[PATH_MAX], *slash, path[2 * PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (length <= 0)
		return NULL;
	self[length] = '\0';
	slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", self, places[i]);
		if (realpath(path, found))
			return found;
	}
	return NULL;
}

/* Our own working directory is meant by a relative name, wherever the program goes. */
static char *absolute(struct gm_cli *cli, const char *pattern)
{
	char here[PATH_MAX];

	if (pattern[0] == '/' || !getcwd(here, sizeof(here)))
		return gm_zone_strdup(&cli->texts, pattern);
	return gm_zone_printf(&cli->texts, "%s/%s", here, pattern);
}

/*
 * A preload that is there already stays in front: of one that turns cudaMalloc into other calls (a
 * memory saver) we then see these and nothing twice, and a sanitizer's must be the first.
 */
static bool set_environment(const char *shim, const char *out)
{
	const char *before = getenv("LD_PRELOAD");
	char *preload;
	bool ok;

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
	fprintf(stderr, "gpumem-report: %s cannot be run: %s\n", cli->words[0], strerror(error));
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

/* The pattern as a glob: what the shim fills in may be anything, the rest is meant literally. */
static char *glob_pattern(const char *out, const char *tail)
{
	char *text = malloc(2 * strlen(out) + strlen(tail) + 1), *to = text;

	if (!text)
		return NULL;
	for (; *out; out++) {
		if (*out == '%' && out[1] && strchr("phrn", out[1])) {
			*to++ = '*';
			out++;
		} else if (*out == '%' && out[1] == '%') {
			*to++ = '%';
			out++;
		} else {
			if (strchr("*?[\\", *out))
				*to++ = '\\';
			*to++ = *out;
		}
	}
	strcpy(to, tail);
	return text;
}

struct found {
	char *path;
	uint32_t pid, ppid;
	bool ours;
};

/* Adds the files of a glob that processes began after `since_ns` wrote. */
static unsigned add_files(struct gm_cli *cli, const char *pattern, uint64_t since_ns,
			  struct found *files, unsigned count)
{
	char error[512];
	glob_t names;

	if (!pattern || glob(pattern, 0, NULL, &names) != 0)
		return count;
	for (size_t i = 0; i < names.gl_pathc && count < MAX_FILES; i++) {
		const char *path = names.gl_pathv[i];
		struct gm_reader *reader;
		const struct gm_header *header;
		bool known = strstr(path, ".snap") || strstr(path, ".events");

		for (unsigned k = 0; k < count && !known; k++)
			known = strcmp(files[k].path, path) == 0;
		reader = known ? NULL : gm_reader_open(path, error, sizeof(error));
		if (!reader)
			continue;
		header = gm_reader_header(reader);
		if (header->started_realtime_ns >= since_ns)
			files[count++] = (struct found){gm_zone_strdup(&cli->texts, path),
							header->pid, header->ppid, false};
		gm_reader_close(reader);
	}
	globfree(&names);
	return count;
}

/* The program's own file and those of its descendants become the words of the command line. */
static void find_files(struct gm_cli *cli, const char *out, uint64_t since_ns)
{
	struct found *files = calloc(MAX_FILES, sizeof(*files));
	char *pattern = glob_pattern(out, ""), *others = glob_pattern(out, ".*");
	unsigned count = 0;
	bool more = true;

	cli->words_count = 0;
	if (files) {
		count = add_files(cli, pattern, since_ns, files, 0);
		count = add_files(cli, others, since_ns, files, count);
	}
	while (more) {
		more = false;
		for (unsigned i = 0; i < count; i++) {
			bool ours = files[i].pid == (uint32_t)child_pid ||
				    files[i].ppid == (uint32_t)child_pid;

			for (unsigned k = 0; k < count && !ours; k++)
				ours = files[k].ours && files[k].pid == files[i].ppid;
			more = more || (ours && !files[i].ours);
			files[i].ours = files[i].ours || ours;
		}
	}
	free(cli->words);
	cli->words = calloc(count + 1, sizeof(*cli->words));
	for (unsigned i = 0; cli->words && i < count; i++)
		if (files[i].ours)
			cli->words[cli->words_count++] = files[i].path;
	free(pattern);
	free(others);
	free(files);
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
	rc = gm_cli_check(cli, job);
	gm_job_close(job);
	return rc;
}

int gm_cmd_run(struct gm_cli *cli)
{
	const char *pattern = cli->out_path ? cli->out_path : getenv("GPUMEMTRACE_OUT");
	char *shim = find_shim(), *out = absolute(cli, pattern && *pattern ? pattern : DEFAULT_OUT);
	struct timespec now;
	int status, own, rc;

	if (!shim)
		return gm_usage_error(
			"libgpumemtrace.so is not where it is built or installed; set "
			"LD_PRELOAD to it and run the program without run");
	if (strpbrk(shim, " :"))
		return gm_usage_error("%s cannot be preloaded: the loader takes spaces and colons "
				      "for the end of a "
				      "name; move its folder to another path",
				      shim);
	clock_gettime(CLOCK_REALTIME, &now);
	status = run_program(cli, shim, out);
	if (status < 0)
		return GM_EXIT_USAGE;
	own = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	find_files(cli, out, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
	if (!cli->words_count) {
		if (own != 127 && own != 126)
			fprintf(stderr,
				"gpumem-report: the program made no CUDA call that the shim saw; "
				"there is no file\n");
		return own;
	}
	rc = cli->gates_given ? show_and_check(cli) : gm_cmd_summary(cli);
	cli->input_failed = false; /* the program's status is the answer */
	return own ? own : cli->gates_given ? rc : 0;
}
