/*
 * Opens the simulated libc10_cuda.so as Python opens PyTorch's (RTLD_LOCAL) and replays a trace:
 *   replay TRACE VARIANT FOLDER [THREADS]
 * At each mark: a mark, and a snapshot FOLDER/N.gmt. At the end, what reached libc10 as JSON.
 */
#include "../../sim/torch/c10.h"
#include "../../sim/torch/c10_cuda.h"
#include "gpumemtrace.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int (*replay)(const char *, unsigned, void (*)(const char *));
static const char *trace, *folder;
static unsigned variant, marks;

static void mark(const char *name)
{
	char path[4096];
	int error;

	if (strcmp(name, "kill") == 0)
		raise(SIGKILL);
	gpumemtrace_mark(name);
	snprintf(path, sizeof(path), "%s/%u.gmt", folder, marks++);
	error = gpumemtrace_snapshot(path);
	if (error)
		fprintf(stderr, "snapshot %s: %d\n", path, error);
}

static void no_mark(const char *name)
{
	(void)name;
}

static void *in_thread(void *unused)
{
	(void)unused;
	return replay(trace, variant, no_mark) ? &marks : NULL;
}

static int in_threads(int count)
{
	pthread_t threads[64];
	void *failed;
	int i, failures = 0;

	for (i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, in_thread, NULL))
			return 1;
	for (i = 0; i < count; i++) {
		pthread_join(threads[i], &failed);
		failures += failed != NULL;
	}
	return failures;
}

int main(int argc, char **argv)
{
	void *c10_cuda = dlopen("libc10_cuda.so", RTLD_NOW | RTLD_LOCAL);
	void *c10 = dlopen("libc10.so", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
	const struct gpusim_c10 *seen = c10 ? dlsym(c10, "gpusim_c10") : NULL;
	int failed;

	if (argc < 4 || !c10_cuda || !seen)
		return 2;
	replay = (int (*)(const char *, unsigned, void (*)(const char *)))dlsym(
		c10_cuda, "gpusim_torch_replay");
	trace = argv[1];
	variant = (unsigned)atoi(argv[2]);
	folder = argv[3];
	failed = argc > 4 ? in_threads(atoi(argv[4])) : replay(trace, variant, mark);
	printf("{\"blocks\": %lu, \"ooms\": %lu, \"bytes\": %ld, \"checksum\": %lu}\n",
	       seen->calls[variant], seen->calls[C10_VARIANTS + variant], seen->bytes,
	       seen->checksum);
	return failed;
}
