/*
 * What the corpus's C and C++ programs share: checked calls, a step's work, memory that the program
 * keeps, and the ways in which a program ends. A program is a table of behaviours; PROGRAM
 * BEHAVIOUR [END] runs one of them.
 */
#ifndef TESTS_VERDICTS_GPU_H
#define TESTS_VERDICTS_GPU_H

#include "cuda_calls.h"
#include "gpumemtrace.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, int direction);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *executable, cudaGraph_t graph,
					  unsigned long long flags);
#ifdef __cplusplus
}
#endif

#define KIB (1ull << 10)
#define MIB (1ull << 20)
#define GIB (1ull << 30)

/* A place in the program that the compiler neither copies nor folds into another. */
#define PLACE __attribute__((noinline, noclone))

#define MUST(call)                                                                                 \
	do {                                                                                       \
		int answer = (int)(call);                                                          \
		if (answer) {                                                                      \
			fprintf(stderr, "%s answered %d\n", #call, answer);                        \
			_exit(99);                                                                 \
		}                                                                                  \
	} while (0)

static inline void *device_memory(size_t bytes)
{
	void *memory = NULL;

	MUST(cudaMalloc(&memory, bytes));
	return memory;
}

static void *work_input; /* what the steps work on */

/* The work of a step: a batch is copied to the device and `launches` kernels run. */
static inline void work(unsigned launches)
{
	static const unsigned int image[16] = {0x464c457f};
	static char batch[4096];
	static CUfunction kernel;
	CUmodule module;

	if (!work_input) {
		work_input = device_memory(sizeof(batch));
		MUST(cuModuleLoadData(&module, image));
		MUST(cuModuleGetFunction(&kernel, module, "kernel"));
	}
	MUST(cudaMemcpy(work_input, batch, sizeof(batch), 1));
	while (launches--)
		MUST(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
	MUST(cudaDeviceSynchronize());
}

#define STEP_LAUNCHES 400

/* A step of a loop without a leak: `bytes` of scratch memory, work, and the scratch is given back.
 */
PLACE static void clean_step(size_t bytes)
{
	void *scratch = device_memory(bytes);

	work(STEP_LAUNCHES);
	MUST(cudaFree(scratch));
}

/* ---- memory that the program keeps, and what becomes of it at the end ---- */

static struct {
	void *memory[65536];
	unsigned count;
} kept;

static inline void keep(void *memory)
{
	kept.memory[kept.count++] = memory;
}

/* From a destructor CUDA answers 4 (cudaErrorCudartUnloading); programs do not look at that. */
static inline void release_kept(void)
{
	while (kept.count)
		cudaFree(kept.memory[--kept.count]);
	cudaFree(work_input);
	work_input = NULL;
}

static const char *end_name = "return";

__attribute__((destructor)) static void destroy(void)
{
	if (!strcmp(end_name, "destructor"))
		release_kept();
}

static inline void on_term(int signal)
{
	(void)signal;
	release_kept();
	_exit(0);
}

/*
 * Ends the program as END says; only "return" and "destructor" come back. Whatever is freed here is
 * teardown: the work is over.
 */
static inline void end_program(void)
{
	static const struct {
		const char *name;
		int signal;
	} signals[] = {{"abort", SIGABRT},
		       {"kill", SIGKILL},
		       {"term", SIGTERM},
		       {"int", SIGINT},
		       {"segv", SIGSEGV}};

	for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (!strcmp(end_name, signals[i].name))
			raise(signals[i].signal);
	if (!strcmp(end_name, "free"))
		release_kept();
	else if (!strcmp(end_name, "atexit"))
		atexit(release_kept);
	else if (!strcmp(end_name, "reset"))
		MUST(cudaDeviceReset());
	else if (!strcmp(end_name, "handler"))
		signal(SIGTERM, on_term), raise(SIGTERM);
	else if (!strcmp(end_name, "exit"))
		exit(0);
	else if (!strcmp(end_name, "_exit"))
		_exit(0);
	else if (!strcmp(end_name, "quick"))
		quick_exit(0);
}

struct behaviour {
	const char *name;
	void (*run)(void);
};

static inline int run_behaviour(const struct behaviour *list, unsigned count, int argc, char **argv)
{
	if (argc > 2)
		end_name = argv[2];
	for (unsigned i = 0; argc > 1 && i < count; i++) {
		if (strcmp(list[i].name, argv[1]))
			continue;
		list[i].run();
		end_program();
		return 0;
	}
	fprintf(stderr, "no such behaviour\n");
	return 98;
}

#define BEHAVIOURS(list)                                                                           \
	int main(int argc, char **argv)                                                            \
	{                                                                                          \
		return run_behaviour(list, sizeof(list) / sizeof(list[0]), argc, argv);            \
	}

/* Reproducible noise: a linear congruential generator (Knuth's MMIX), the upper bits of it. */
static inline unsigned noise(unsigned below)
{
	static unsigned long long state = 20250101;

	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(state >> 33) % below;
}

#endif
