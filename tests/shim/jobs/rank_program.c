/*
 * A rank of a job: does what its arguments say, in their order.
 *
 *   device N      works on device N from here on (cudaSetDevice and a first allocation)
 *   keep BYTES    allocates and never frees
 *   use BYTES     allocates and frees
 *   oom BYTES     asks for that much and goes on when it is refused
 *   export PATH   writes the IPC handle of what was kept last
 *   import PATH   opens the handle there and leaves it open
 *   die           kills itself
 */
#include "cuda_calls.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *kept;

__attribute__((noinline)) static int keep(size_t bytes)
{
	return cudaMalloc(&kept, bytes);
}

__attribute__((noinline)) static int use(size_t bytes)
{
	void *memory = NULL;
	cudaError_t error = cudaMalloc(&memory, bytes);

	return error ? error : cudaFree(memory);
}

__attribute__((noinline)) static int too_much(size_t bytes)
{
	void *memory = NULL;

	return cudaMalloc(&memory, bytes) == 2 ? 0 : 1;
}

static int export_to(const char *path)
{
	FILE *file = fopen(path, "w");
	cudaIpcMemHandle_t out;
	int error = !file || cudaIpcGetMemHandle(&out, kept);

	if (!error && fwrite(&out, sizeof(out), 1, file) != 1)
		error = 1;
	return file && fclose(file) == 0 ? error : 1;
}

static int import_from(const char *path)
{
	FILE *file = fopen(path, "r");
	cudaIpcMemHandle_t from;
	void *memory = NULL;
	int error = !file || fread(&from, sizeof(from), 1, file) != 1;

	if (file)
		fclose(file);
	return error ? error : cudaIpcOpenMemHandle(&memory, from, 1);
}

static int obey(const char *what, const char *argument)
{
	if (!strcmp(what, "device"))
		return cudaSetDevice(atoi(argument)) || use(64);
	if (!strcmp(what, "keep"))
		return keep(strtoull(argument, NULL, 10));
	if (!strcmp(what, "use"))
		return use(strtoull(argument, NULL, 10));
	if (!strcmp(what, "oom"))
		return too_much(strtoull(argument, NULL, 10));
	if (!strcmp(what, "export"))
		return export_to(argument);
	if (!strcmp(what, "import"))
		return import_from(argument);
	return 1;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i += 2) {
		int error;

		if (!strcmp(argv[i], "die"))
			kill(getpid(), SIGKILL);
		error = i + 1 < argc ? obey(argv[i], argv[i + 1]) : 1;
		if (error) {
			fprintf(stderr, "%s: error %d\n", argv[i], error);
			return 1;
		}
	}
	return 0;
}
