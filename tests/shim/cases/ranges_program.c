/*
 * Ranges by the public header, in the way the first argument names:
 *   steps     ten steps with two passes each; step 7 keeps 3 MiB, step 4 needs 96 MiB
 *   requests  N requests of one name each (second argument); request 471 keeps 5 MiB
 *   threads   eight threads with a range each, at the same time
 *   operators three operators as PyTorch's emit_nvtx names them; each keeps 1 and 2 MiB by stacks
 *             whose three innermost functions are the same
 *   oom       a request of 1 TiB fails in "step 3 / forward"; the ranges before are closed
 *   early     a range is opened before the first CUDA call; in it two with nothing in use
 *   unclosed  a thread leaves ranges open and pops more than it pushed
 *   pairs     N empty ranges, for counting instructions
 */
#include "cuda_calls.h"
#include "gpumemtrace.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

static void check(int error)
{
	if (error)
		exit(2);
}

static __attribute__((noinline)) void *keep(size_t bytes)
{
	void *memory = NULL;

	check(cudaMalloc(&memory, bytes));
	return memory;
}

static void use(size_t bytes)
{
	check(cudaFree(keep(bytes)));
}

static void push_number(const char *name, int number)
{
	char text[64];

	snprintf(text, sizeof(text), "%s %d", name, number);
	gpumemtrace_range_push(text);
}

static int steps(void)
{
	keep(16 * MIB);
	for (int i = 0; i < 10; i++) {
		void *activations;

		push_number("step", i);
		gpumemtrace_range_push("forward");
		activations = keep(8 * MIB);
		for (int layer = 0; layer < 3; layer++) {
			push_number("layer", layer);
			use((size_t)(layer + 1) * 4 * MIB);
			gpumemtrace_range_pop();
		}
		gpumemtrace_range_pop();
		gpumemtrace_range_push("backward");
		use(i == 4 ? 96 * MIB : 24 * MIB);
		check(cudaFree(activations));
		gpumemtrace_range_pop();
		if (i == 7)
			keep(3 * MIB);
		gpumemtrace_range_pop();
	}
	return 0;
}

static __attribute__((noinline)) void *keep_deeper(size_t bytes)
{
	void *memory = keep(bytes);

	check(!memory);
	return memory;
}

static __attribute__((noinline)) void *keep_deepest(size_t bytes)
{
	void *memory = keep_deeper(bytes);

	check(!memory);
	return memory;
}

static int operators(void)
{
	gpumemtrace_range_push("evaluation, op_id = 1");
	for (int i = 0; i < 3; i++) {
		char text[64];

		snprintf(text, sizeof(text), "aten::addmm, seq = %d, op_id = %d", 168 + i, 2 + i);
		gpumemtrace_range_push(text);
		keep_deepest(MIB);
		keep_deepest(2 * MIB);
		gpumemtrace_range_pop();
	}
	gpumemtrace_range_pop();
	return 0;
}

static int oom(void)
{
	void *memory = NULL;

	keep(MIB);
	for (int i = 0; i < 4; i++) {
		push_number("step", i);
		gpumemtrace_range_push("load");
		gpumemtrace_range_pop();
		gpumemtrace_range_push("forward");
		if (i == 3 && cudaMalloc(&memory, MIB << 20) == 0)
			return 1;
		gpumemtrace_range_pop();
		gpumemtrace_range_pop();
	}
	return 0;
}

static int requests(int count)
{
	keep(16 * MIB);
	for (int i = 0; i < count; i++) {
		push_number("request", i);
		if (i == 471)
			keep(5 * MIB);
		if (i == count - 100)
			use(64 * MIB);
		gpumemtrace_range_pop();
	}
	return 0;
}

static pthread_barrier_t barrier;

static void *work(void *number)
{
	push_number("worker", (int)(size_t)number);
	pthread_barrier_wait(&barrier);
	keep(MIB << ((size_t)number & 3));
	pthread_barrier_wait(&barrier);
	gpumemtrace_range_pop();
	return NULL;
}

static int threads(void)
{
	pthread_t all[8];

	keep(16 * MIB);
	pthread_barrier_init(&barrier, NULL, 8);
	for (size_t i = 0; i < 8; i++)
		check(pthread_create(&all[i], NULL, work, (void *)i));
	for (size_t i = 0; i < 8; i++)
		pthread_join(all[i], NULL);
	return 0;
}

static int early(void)
{
	gpumemtrace_range_push("train");
	check(cudaFree(NULL));
	gpumemtrace_range_push("read");
	gpumemtrace_range_push("sort");
	gpumemtrace_range_pop();
	gpumemtrace_range_pop();
	keep(16 * MIB);
	use(32 * MIB);
	gpumemtrace_range_pop();
	return 0;
}

static int unclosed(void)
{
	keep(16 * MIB);
	gpumemtrace_range_pop();
	for (int i = 0; i < 100; i++)
		gpumemtrace_range_push("deep");
	use(2 * MIB);
	for (int i = 0; i < 40; i++)
		gpumemtrace_range_pop();
	keep(4 * MIB);
	return 0;
}

static int pairs(int count)
{
	keep(16 * MIB);
	for (int i = 0; i < count; i++) {
		gpumemtrace_range_push("step");
		gpumemtrace_range_pop();
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";
	int count = argc > 2 ? atoi(argv[2]) : 1000;

	if (strcmp(way, "steps") == 0)
		return steps();
	if (strcmp(way, "requests") == 0)
		return requests(count);
	if (strcmp(way, "threads") == 0)
		return threads();
	if (strcmp(way, "operators") == 0)
		return operators();
	if (strcmp(way, "oom") == 0)
		return oom();
	if (strcmp(way, "early") == 0)
		return early();
	if (strcmp(way, "unclosed") == 0)
		return unclosed();
	return strcmp(way, "pairs") == 0 ? pairs(count) : 1;
}
