/*
 * gpumem-report as the tests run it: the tool itself, and each JSON document that it writes is
 * checked by check.py before the test sees the end of the command. Status BROKEN and a sentence on
 * stderr if a document contradicts itself. TESTED_REPORT names another build of the tool.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define BROKEN 98

static const char *tool(void)
{
	const char *other = getenv("TESTED_REPORT");

	return other ? other : REPORT_TOOL;
}

static bool is_among(const char *word, const char *const *words)
{
	for (; *words; words++)
		if (!strcmp(word, *words))
			return true;
	return false;
}

/* The value of an option that is given as two words or with "=", or NULL. */
static const char *value_of(const char *option, char **words)
{
	size_t length = strlen(option);

	for (; *words && strcmp(*words, "--"); words++) {
		if (!strcmp(*words, option))
			return words[1];
		if (!strncmp(*words, option, length) && (*words)[length] == '=')
			return *words + length + 1;
	}
	return NULL;
}

/* Whether a document is asked for. `run` has the program's output beside it, `top` a screen. */
static bool wants_document(char **argv)
{
	static const char *const other[] = {"run", "top", "html", NULL};
	const char *format = value_of("--format", argv);
	char **word;

	if (!argv[1] || is_among(argv[1], other))
		return false;
	if (!strcmp(argv[1], "export"))
		return format && (!strcmp(format, "json") || !strcmp(format, "jsonl"));
	for (word = argv + 1; *word && strcmp(*word, "--"); word++)
		if (!strcmp(*word, "--json"))
			return true;
	return false;
}

static void write_all(int to, const char *bytes, ssize_t count)
{
	while (count > 0) {
		ssize_t written = write(to, bytes, (size_t)count);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return;
		bytes += written;
		count -= written;
	}
}

static void copy(int from, int to, int also_to)
{
	char bytes[1 << 16];
	ssize_t count;

	while ((count = read(from, bytes, sizeof(bytes))) > 0 || (count < 0 && errno == EINTR)) {
		if (to >= 0)
			write_all(to, bytes, count);
		write_all(also_to, bytes, count);
	}
}

/* Runs a program with one of its descriptors replaced, and returns its status as wait does. */
static pid_t start(const char *program, char **argv, int descriptor, int by)
{
	pid_t parent = getpid(), child = fork();

	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	dup2(by, descriptor);
	execv(program, argv);
	_exit(127);
}

static int wait_for(pid_t child)
{
	int status = 0;

	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* 0 if the document holds together. Messages name it by the command. */
static int check(int document, char **argv, int words)
{
	char **command = calloc((size_t)words + 6, sizeof(*command));
	int count = 0, i, status;

	command[count++] = (char *)PYTHON;
	command[count++] = (char *)"-I";
	command[count++] = (char *)"-S";
	command[count++] = (char *)CHECK;
	for (i = 0; i < words; i++)
		command[count++] = argv[i];
	lseek(document, 0, SEEK_SET);
	unsetenv("LD_PRELOAD"); /* a test's hook for the tool is not for Python */
	status = wait_for(start(PYTHON, command, 0, document));
	free(command);
	return status;
}

/* A file or a pipe. Of what cannot be written, or of a terminal, the tool is to see itself. */
static bool can_pass_on(int descriptor)
{
	struct stat output;

	return !fstat(descriptor, &output) && (S_ISREG(output.st_mode) || S_ISFIFO(output.st_mode));
}

/* With bad usage and unreadable files the tool writes no document. */
static bool has_written(int status)
{
	return WIFEXITED(status) && WEXITSTATUS(status) != 2 && WEXITSTATUS(status) != 3;
}

int main(int argc, char **argv)
{
	const char *path = value_of("-o", argv);
	int pipes[2], document, status;
	pid_t child;

	if (!path)
		path = value_of("--output", argv);
	if (!wants_document(argv) || (!path && !can_pass_on(1)) || pipe2(pipes, O_CLOEXEC) ||
	    (document = memfd_create("document", MFD_CLOEXEC)) < 0) {
		execv(tool(), argv);
		return 127;
	}
	child = start(tool(), argv, path ? 0 : 1, path ? 0 : pipes[1]);
	close(pipes[1]);
	signal(SIGPIPE, SIG_IGN);
	copy(pipes[0], 1, document);
	status = wait_for(child);
	if (path && has_written(status)) {
		int written = open(path, O_RDONLY | O_CLOEXEC);

		copy(written, -1, document);
		close(written);
	}
	if (WIFSIGNALED(status)) {
		signal(WTERMSIG(status), SIG_DFL);
		raise(WTERMSIG(status));
	}
	if (lseek(document, 0, SEEK_CUR) > 0 && check(document, argv, argc))
		return BROKEN;
	return WEXITSTATUS(status);
}
