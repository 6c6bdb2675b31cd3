/*
 * What a call takes, as the least of many short runs: whatever else the machine does only makes
 * some of them longer. Run alone, then under the shim (idle.py):
 *
 *   idle block|device|async|launch|hook [RUNS]
 *
 * block: PyTorch's hook tells of a block and of its return; device: an allocation and a free;
 * async: the same in the order of a stream; launch: two launches of one kernel; hook: two blocks
 * of the CPU's allocator. Prints the nanoseconds of a call.
 */
#include "../../sim/torch/c10.h"
#include "cuda_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CALLS 500u /* of a run: some 50 µs, of which the clock is a thousandth */

static int failed;

static void report(int64_t bytes, int8_t type)
{
	struct c10_device device = {type, 0};

	_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE((void *)0x7f0000000000, bytes, 512,
							      1 << 20, device);
}

static void block(void)
{
	report(512, 1);
	report(-512, 1);
}

static void hook(void)
{
	report(512, 0);
	report(-512, 0);
}

static void device(void)
{
	void *memory;

	failed |= cudaMalloc(&memory, 512) != 0;
	failed |= cudaFree(memory) != 0;
}

static void async(void)
{
	void *memory;

	failed |= cudaMallocAsync(&memory, 512, NULL) != 0;
	failed |= cudaFreeAsync(memory, NULL) != 0;
}

static void launch(void)
{
	for (int i = 0; i < 2; i++)
		failed |= cuLaunchKernel((CUfunction)(uintptr_t)0x1000, 1, 1, 1, 1, 1, 1, 0, NULL,
					 NULL, NULL) == 999;
}

static const struct {
	const char *name;
	void (*pair)(void);
} ways[] = {
	{"block", block}, {"device", device}, {"async", async}, {"launch", launch}, {"hook", hook}};

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double least(void (*pair)(void), unsigned long runs)
{
	double found = 1e18;

	while (runs--) {
		double start = now_ns(), spent;

		for (unsigned i = 0; i < CALLS; i += 2)
			pair();
		spent = now_ns() - start;
		if (spent < found)
			found = spent;
	}
	return found / CALLS;
}

int main(int argc, char **argv)
{
	unsigned long runs = argc > 2 ? strtoul(argv[2], NULL, 10) : 2000;

	for (unsigned i = 0; argc > 1 && runs && i < sizeof(ways) / sizeof(*ways); i++)
		if (!strcmp(argv[1], ways[i].name)) {
			if (cudaFree(NULL))
				return 3;
			printf("%.2f\n", least(ways[i].pair, runs));
			return failed ? 4 : 0;
		}
	fprintf(stderr, "usage: idle block|device|async|launch|hook [RUNS]\n");
	return 2;
}
