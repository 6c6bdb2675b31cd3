/*
 * Makes many live allocations from many call sites of its own making, so that the file grows, and
 * does to itself what its argument says, before or in between.
 */
#include "cuda_calls.h"
#include "gpumemtrace.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCKS 100000

extern char **environ;

static void fill(unsigned blocks)
{
	while (blocks--) {
		void *memory;

		if (cudaMalloc(&memory, 256))
			exit(3);
	}
}

static void lower_file_limit(void)
{
	struct rlimit limit = {4096, 4096};

	fill(1000);
	setrlimit(RLIMIT_FSIZE, &limit);
	gpumemtrace_snapshot("/tmp/gpumemtrace-never-written");
	execl("/nowhere/at/all", "x", (char *)NULL);
	fill(BLOCKS / 2);
}

static void replace(const char *path, int with_another)
{
	FILE *file;

	fill(1000);
	unlink(path);
	if (!with_another)
		return;
	file = fopen(path, "w");
	fputs("somebody else's", file);
	fclose(file);
}

/* Descriptors 0, 1 and 2 become the same file of the program's. */
static void close_all(const char *path)
{
	int i, fd;

	fill(10);
	for (i = 0; i < 1024; i++)
		close(i);
	for (i = 0; i < 3; i++)
		fd = open(path, O_RDWR | O_CREAT, 0600);
	fill(20000);
	if (write(fd, "the program's own", 17) != 17)
		exit(4);
}

static void *cancelled(void *unused)
{
	void *memory;

	pthread_cancel(pthread_self());
	if (cudaMalloc(&memory, 1000))
		exit(5);
	pthread_testcancel();
	return unused;
}

static void cancel(void)
{
	pthread_t thread;
	void *result;

	pthread_create(&thread, NULL, cancelled, NULL);
	pthread_join(thread, &result);
	if (result != PTHREAD_CANCELED)
		exit(6);
	fill(10); /* waits for ever if the thread took a lock with it */
}

static void pipe_as_stderr(int read_end)
{
	int ends[2];
	char byte = 0;

	if (pipe(ends) < 0)
		exit(7);
	dup2(ends[1], STDERR_FILENO);
	if (!read_end)
		close(ends[0]);
	fcntl(ends[1], F_SETFL, O_NONBLOCK);
	while (read_end && write(ends[1], &byte, 1) == 1)
		;
	fcntl(ends[1], F_SETFL, 0);
	unsetenv("GPUMEMTRACE_QUIET");
}

static void overwrite_environment(void)
{
	char **entry;

	for (entry = environ; *entry; entry++)
		memset(*entry, 'x', strlen(*entry));
}

static void wait_for(const char *path)
{
	fill(10);
	while (access(path, F_OK) < 0)
		sched_yield();
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "", *path = argc > 2 ? argv[2] : "";
	struct rlimit none = {0, 0};
	int devices;

	if (!strcmp(way, "fsize"))
		lower_file_limit();
	else if (!strcmp(way, "delete") || !strcmp(way, "replace"))
		replace(path, way[0] == 'r');
	else if (!strcmp(way, "close"))
		close_all(path);
	else if (!strcmp(way, "cancel"))
		cancel();
	else if (!strcmp(way, "closed-pipe") || !strcmp(way, "full-pipe"))
		pipe_as_stderr(way[0] == 'f');
	else if (!strcmp(way, "title"))
		overwrite_environment();
	else if (!strcmp(way, "wait"))
		wait_for(path);
	else if (!strcmp(way, "no-descriptors") && cudaGetDeviceCount(&devices) == 0)
		setrlimit(RLIMIT_NOFILE,
			  &none); /* the driver is loaded, our file is not open yet */
	fill(*way ? 100 : BLOCKS);
	return 0;
}
