/*
 * Writing files as a whole (output.h).
 */
#include "output.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const int ends[] = {SIGHUP, SIGINT, SIGTERM};
static const char *volatile unfinished; /* removed if a signal ends the tool */

static void end(int number)
{
	const char *path = unfinished;

	if (path)
		unlink(path);
	signal(number, SIG_DFL);
	raise(number);
}

static void guard(const char *path)
{
	unfinished = path;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (signal(ends[i], path ? end : SIG_DFL) == SIG_IGN)
			signal(ends[i], SIG_IGN);
}

/* Returns the permissions that the owner, the group and others have for all of the inputs. */
static mode_t mode_of_inputs(const struct gm_cli *cli)
{
	mode_t mode = 0666, mask = umask(0);
	struct stat st;

	umask(mask);
	for (unsigned i = 0; i < cli->words_count; i++)
		mode &= stat(cli->words[i], &st) == 0 && S_ISREG(st.st_mode) ? st.st_mode : 0600;
	return (mode & ~mask) | 0600;
}

/* Opens a file that can be put in the place of `target`. */
static bool begin_beside(struct gm_output *output, const struct gm_cli *cli)
{
	const char *slash = strrchr(output->target, '/');
	int directory = slash ? (int)(slash + 1 - output->target) : 0, fd;
	sigset_t all, mask;

	if (asprintf(&output->temporary, "%.*s.gpumem-report-XXXXXX", directory, output->target) <
	    0)
		output->temporary = NULL;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &mask); /* until the file can be removed by its name */
	fd = output->temporary ? mkostemp(output->temporary, O_CLOEXEC) : -1;
	if (fd >= 0)
		guard(output->temporary);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	if (fd < 0) {
		free(output->temporary);
		output->temporary = NULL;
		return false;
	}
	signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit fails instead */
	fchmod(fd, mode_of_inputs(cli));
	output->file = fdopen(fd, "w");
	return output->file != NULL;
}

static void forget(struct gm_output *output)
{
	if (output->temporary)
		unlink(output->temporary);
	guard(NULL);
	free(output->temporary);
	free(output->target);
	*output = (struct gm_output){0};
}

bool gm_output_begin(struct gm_output *output, const struct gm_cli *cli, const char *path)
{
	struct stat st;
	bool there;

	*output = (struct gm_output){.file = stdout};
	if (!path || strcmp(path, "-") == 0)
		return true;
	if (!gm_cli_may_write(cli, path))
		return false;
	there = stat(path, &st) == 0;
	output->file = NULL;
	if (there && S_ISDIR(st.st_mode)) {
		errno = EISDIR;
	} else if (there && !S_ISREG(st.st_mode)) {
		output->file = fopen(path, "we"); /* a device or a pipe */
	} else if (there && access(path, W_OK) < 0) {
		; /* a file that was made read-only is to stay */
	} else {
		output->target = there ? realpath(path, NULL) : strdup(path);
		if (output->target)
			begin_beside(output, cli);
	}
	if (output->file)
		return true;
	gm_usage_error("%s cannot be written: %s", path, strerror(errno));
	forget(output);
	return false;
}

bool gm_output_end(struct gm_output *output, bool failed)
{
	bool to_stdout = output->file == stdout;

	errno = 0;
	if (!to_stdout && fclose(output->file) != 0)
		failed = true;
	if (!failed && output->temporary) {
		failed = rename(output->temporary, output->target) != 0;
		if (!failed) {
			free(output->temporary);
			output->temporary = NULL;
		}
	}
	if (failed && !to_stdout)
		gm_usage_error("%s could not be written whole%s%s; what was there is unchanged",
			       output->target ? output->target : "the output", errno ? ": " : "",
			       errno ? strerror(errno) : "");
	forget(output);
	return !failed;
}

bool gm_output_prepare(const struct gm_cli *cli, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	signal(SIGXFSZ, SIG_IGN);
	if (fd < 0)
		return false;
	fchmod(fd, mode_of_inputs(cli));
	close(fd);
	return true;
}
