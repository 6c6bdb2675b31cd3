/*
 * Events in a loop, for measuring what recording one costs. Run alone, under the shim, or under
 * callgrind (instructions.py):
 *
 *   events block|device|async|map|launch|hook PAIRS [LIVE] [SITES] [DEPTH] [COLD_KIB] [SIZES]
 *
 * block: PyTorch's hook tells of a block and of its return; device, async: an allocation and a
 * free; map: a piece of memory that is made and mapped, as an expandable segment grows by, and that
 * is unmapped and released; launch: two launches of one kernel; hook: two blocks of the CPU's
 * allocator, which are not recorded. LIVE blocks are there at any time, the oldest goes first. They
 * come from SITES different stacks, DEPTH frames deep. COLD_KIB of memory are written between
 * events, as the program itself would do: then what the tracker keeps is in no near cache. Prints
 * the nanoseconds of an event. Callgrind, told to wait for that, counts the PAIRS alone and not
 * what precedes them.
 */
#include "../../sim/torch/c10.h"
#include "cuda_calls.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_STOP_INSTRUMENTATION
#endif

#define MOST_LIVE  32768u
#define WARM_UP	   (2 * MOST_LIVE) /* every ring and table is filled */
#define MOST_SITES 4096u
#define PATH_BITS  12u
#define BARRIER()  __asm__ volatile("" ::: "memory")

enum what { BLOCK, DEVICE, ASYNC, MAP, LAUNCH, HOOK };

static const char *const names[] = {"block", "device", "async", "map", "launch", "hook"};

static enum what what;
static unsigned long pairs, live = 512, sites = 64, depth = 36, sizes = 4096;
static void *blocks[MOST_LIVE];
static uint64_t allocated;
static char *cold;
static int failed;

static void report(void *block, int64_t bytes, int8_t type)
{
	struct c10_device device = {type, 0};

	_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(block, bytes, allocated, 1u << 30,
							      device);
}

static void launch(void)
{
	failed |= cuLaunchKernel((CUfunction)(uintptr_t)0x1000, 1, 1, 1, 1, 1, 1, 0, NULL, NULL,
				 NULL) == 999;
}

#define PIECE_BYTES (2ul << 20)

static CUmemGenericAllocationHandle pieces[MOST_LIVE];
static CUdeviceptr segment; /* where they are mapped */

static bool reserve(void)
{
	return !cuMemAddressReserve(&segment, live * PIECE_BYTES, 0, 0, 0);
}

static void map(unsigned long place)
{
	const CUmemAllocationProp prop = {.type = 1, .location = {.type = 1}};

	failed |= cuMemCreate(&pieces[place], PIECE_BYTES, &prop, 0) ||
		  cuMemMap(segment + place * PIECE_BYTES, PIECE_BYTES, 0, pieces[place], 0);
}

static void unmap(unsigned long place)
{
	failed |= cuMemUnmap(segment + place * PIECE_BYTES, PIECE_BYTES) ||
		  cuMemRelease(pieces[place]);
}

/* Sizes of a training step: powers of two and between. Blocks of a size come from few sites. */
static uint64_t bytes_of(unsigned long number)
{
	return 512 + number % sizes * 7919 % 4096 * 512;
}

__attribute__((noinline)) static void allocate(unsigned long number)
{
	void **block = &blocks[number % live];

	if (what == DEVICE)
		failed |= cudaMalloc(block, 512) != 0;
	else if (what == ASYNC)
		failed |= cudaMallocAsync(block, 512, NULL) != 0;
	else if (what == MAP)
		map(number % live);
	if (what == BLOCK || what == HOOK) {
		*block = (void *)(0x7f0000000000 + (uintptr_t)(number % live) * 0x200000);
		allocated += bytes_of(number);
		report(*block, (int64_t)bytes_of(number), what == BLOCK);
	}
	if (what == LAUNCH)
		launch();
}

/* The oldest, to make room for that number. */
__attribute__((noinline)) static void release(unsigned long number)
{
	void *block = blocks[number % live];

	if (what == DEVICE)
		failed |= cudaFree(block) != 0;
	else if (what == ASYNC)
		failed |= cudaFreeAsync(block, NULL) != 0;
	else if (what == MAP)
		unmap(number % live);
	if (what == BLOCK || what == HOOK) {
		allocated -= bytes_of(number - live);
		report(block, -(int64_t)bytes_of(number - live), what == BLOCK);
	}
	if (what == LAUNCH)
		launch();
}

static void call(unsigned left, unsigned long path, unsigned long number);

#define SIDE(name)                                                                                 \
	__attribute__((noinline)) static void name(unsigned left, unsigned long path,              \
						   unsigned long number)                           \
	{                                                                                          \
		call(left, path, number);                                                          \
		BARRIER();                                                                         \
	}
SIDE(left_side)
SIDE(right_side)

/* The last PATH_BITS frames go one of two ways each, by the bits of the path. */
static void call(unsigned left, unsigned long path, unsigned long number)
{
	if (!left)
		allocate(number);
	else if (left <= PATH_BITS && path >> (left - 1) & 1)
		left_side(left - 1, path, number);
	else
		right_side(left - 1, path, number);
	BARRIER();
}

static void make_cold(unsigned long cold_kib)
{
	unsigned long i;

	for (i = 0; i < cold_kib << 10; i += 64)
		cold[i]++;
}

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Time of the events alone. Without cold memory the clock is not read in between. */
static __attribute__((noinline)) double run(unsigned long first, unsigned long count,
					    unsigned long cold_kib)
{
	double spent = 0, start = now_ns();
	unsigned long i;

	for (i = first; i < first + count; i++) {
		if (cold_kib) {
			make_cold(cold_kib);
			start = now_ns();
		}
		if (i >= live)
			release(i);
		if (cold_kib) {
			spent += now_ns() - start;
			make_cold(cold_kib);
			start = now_ns();
		}
		call((unsigned)depth, i % sites, i);
		if (cold_kib)
			spent += now_ns() - start;
	}
	return cold_kib ? spent : now_ns() - start;
}

static unsigned long argument(int argc, char **argv, int number, unsigned long otherwise,
			      unsigned long most)
{
	unsigned long value = argc > number ? strtoul(argv[number], NULL, 10) : otherwise;

	return value < most ? value : most;
}

int main(int argc, char **argv)
{
	volatile int phases = 2;
	unsigned long cold_kib;
	double spent = 0;
	int phase;

	while (argc > 1 && what <= HOOK && strcmp(argv[1], names[what]))
		what++;
	if (argc < 3 || what > HOOK) {
		fprintf(stderr, "usage: events block|device|async|map|launch|hook PAIRS [LIVE] "
				"[SITES] [DEPTH] [COLD_KIB] [SIZES]\n");
		return 2;
	}
	pairs = argument(argc, argv, 2, 0, ~0ul);
	live = argument(argc, argv, 3, live, MOST_LIVE);
	sites = argument(argc, argv, 4, sites, MOST_SITES);
	depth = argument(argc, argv, 5, depth, 200);
	cold_kib = argument(argc, argv, 6, 0, 1 << 20);
	sizes = argument(argc, argv, 7, sizes, 4096);
	cold = calloc(cold_kib + 1, 1024);
	if (!live || !sites || !sizes || !cold || cudaFree(NULL) || !reserve())
		return 3;
	/* One call, so that the stacks of the events that count were met before. */
	for (phase = 0; phase < phases; phase++) {
		if (phase)
			CALLGRIND_START_INSTRUMENTATION;
		spent = run(phase ? WARM_UP : 0, phase ? pairs : WARM_UP, phase ? cold_kib : 0);
	}
	CALLGRIND_STOP_INSTRUMENTATION;
	printf("%.1f\n", spent / (double)pairs / 2);
	return failed ? 4 : 0;
}
