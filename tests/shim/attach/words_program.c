/*
 * Looks at another process from outside, for the tests of attaching:
 *
 *   words words PID     prints how many words of its writable and RELRO memory lead into the shim's
 *                       code, but those in the shim's own memory, on stacks and on the heap
 *   words mappings PID  prints the protections of its mapped libraries, but those of the shim, of
 *                       what the shim opens, and of the plug-in that comes and goes
 *   words trace PID     is its tracer until it is killed; prints a line when it is
 *   words allow COMMAND ARG...
 *                       becomes the command, to which Yama lets every process of the user attach
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

struct line {
	uint64_t start, end;
	char permissions[8], path[4096];
};

static bool next_line(FILE *maps, struct line *line)
{
	char text[5000];
	unsigned long long start, end;

	if (!fgets(text, sizeof(text), maps))
		return false;
	line->path[0] = '\0';
	if (sscanf(text, "%llx-%llx %7s %*s %*s %*s %4095s", &start, &end, line->permissions,
		   line->path) < 3)
		return false;
	line->start = start;
	line->end = end;
	return true;
}

static FILE *open_maps(int pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	return fopen(path, "r");
}

static bool is_shim(const struct line *line)
{
	return strstr(line->path, "libgpumemtrace") != NULL;
}

/* Of mapped files alone, and of the zeroed memory behind them. */
static int count_words(int pid)
{
	uint64_t start = 0, end = 0, count = 0;
	struct line line, before = {0};
	FILE *maps = open_maps(pid);

	while (maps && next_line(maps, &line))
		if (is_shim(&line) && line.permissions[2] == 'x') {
			start = line.start;
			end = line.end;
		}
	rewind(maps);
	while (next_line(maps, &line)) {
		bool file =
			line.path[0] == '/' && !is_shim(&line) && strstr(line.path, ".gmt") == NULL;
		/* libc's list of fork handlers keeps those of the shim, which stays loaded. */
		bool zeroed = !line.path[0] && before.path[0] == '/' && !is_shim(&before) &&
			      !strstr(before.path, "/libc.so") && line.start == before.end;
		uint64_t words[512];

		before = line;
		if ((!file && !zeroed) || line.permissions[0] != 'r' || line.permissions[2] == 'x')
			continue;
		for (uint64_t at = line.start; at < line.end; at += sizeof(words)) {
			struct iovec local = {words, sizeof(words)};
			struct iovec remote = {(void *)(uintptr_t)at, sizeof(words)};

			if (process_vm_readv(pid, &local, 1, &remote, 1, 0) != sizeof(words))
				continue;
			for (unsigned i = 0; i < 512; i++)
				count += words[i] >= start && words[i] < end;
		}
	}
	fclose(maps);
	printf("%llu\n", (unsigned long long)count);
	return 0;
}

static int print_mappings(int pid)
{
	FILE *maps = open_maps(pid);
	struct line line;

	if (!maps)
		return 1;
	while (next_line(maps, &line))
		if (line.path[0] == '/' && !is_shim(&line) && strstr(line.path, ".so") &&
		    !strstr(line.path, "plugin") && !strstr(line.path, "libnvidia-ml") &&
		    !strstr(line.path, "libgcc_s"))
			printf("%s %s\n", line.permissions, line.path);
	fclose(maps);
	return 0;
}

static int trace(int pid)
{
	int status;

	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL))
		return 1;
	puts("traced");
	fflush(stdout);
	while (waitpid(pid, &status, __WALL) == pid && !WIFEXITED(status))
		;
	return 0;
}

int main(int argc, char **argv)
{
	int pid = argc > 2 ? atoi(argv[2]) : 0;

	if (argc > 2 && !strcmp(argv[1], "allow")) {
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); /* fails where there is no Yama */
		execvp(argv[2], argv + 2);
		return 127;
	}
	if (pid && !strcmp(argv[1], "words"))
		return count_words(pid);
	if (pid && !strcmp(argv[1], "mappings"))
		return print_mappings(pid);
	if (pid && !strcmp(argv[1], "trace"))
		return trace(pid);
	return 2;
}
