/*
 * Copies of the output file onto names that are taken. Arguments: what to do, and for `copy` the
 * path. Prints the results of gpumemtrace_snapshot.
 */
#include "cuda_calls.h"
#include "gpumemtrace.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK (1u << 20)

static int stop;
static long written, received;

static void *use_low_numbers(void *unused)
{
	char byte;

	(void)unused;
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		int i;

		for (i = 0; i < 3; i++) {
			if (write(i, "the program's own text\n", 23) > 0)
				__atomic_fetch_add(&written, 1, __ATOMIC_RELAXED);
			if (read(i, &byte, 1) > 0)
				__atomic_fetch_add(&received, 1, __ATOMIC_RELAXED);
		}
	}
	return NULL;
}

static int allocate(int blocks)
{
	void *memory;
	int i;

	for (i = 0; i < blocks; i++)
		if (cudaMalloc(&memory, BLOCK))
			return 1;
	return 0;
}

/* All three are closed; then the next file that the program opens has number 0. */
static int closed(const char *path)
{
	int report = fcntl(1, F_DUPFD_CLOEXEC, 100), i;
	pthread_t thread;

	if (!dlopen("libcuda.so.1", RTLD_NOW)) /* as the runtime does, with any number */
		return 2;
	for (i = 0; i < 3; i++)
		close(i);
	if (pthread_create(&thread, NULL, use_low_numbers, NULL) || allocate(20))
		return 2;
	dprintf(report, "%d\n", gpumemtrace_snapshot(path));
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	if (open("/dev/null", O_RDWR) != 0 || written || received)
		return 3;
	return allocate(2);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int i;

	if (!strcmp(what, "closed"))
		return closed(argc > 2 ? argv[2] : "");
	if (allocate(1))
		return 2;
	if (!strcmp(what, "wait")) /* until its standard input ends */
		return puts("ready") < 0 || fflush(stdout) || getchar() != EOF || allocate(10);
	if (!strcmp(what, "signal"))
		for (i = 0; i < 3; i++)
			raise(SIGUSR1);
	for (i = 2; i < argc; i++)
		printf("%d\n", -gpumemtrace_snapshot(argv[i]));
	return allocate(10);
}
