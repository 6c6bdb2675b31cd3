/*
 * What a pair of calls costs the program (families.h): medians over rounds, in nanoseconds.
 */
#include "families.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS 40
#define PAIRS  500

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static void pair_device(void)
{
	void *memory;

	OK(cudaMalloc(&memory, MIB));
	OK(cudaFree(memory));
}

static void pair_async(void)
{
	void *memory;

	OK(cudaMallocAsync(&memory, MIB, NULL));
	OK(cudaFreeAsync(memory, NULL));
}

static double median_pair(void (*pair)(void))
{
	double rounds[ROUNDS], start;
	int round, i;

	for (round = 0; round < ROUNDS; round++) {
		start = now_ns();
		for (i = 0; i < PAIRS; i++)
			pair();
		rounds[round] = (now_ns() - start) / PAIRS;
		OK(cudaDeviceSynchronize());
	}
	qsort(rounds, ROUNDS, sizeof(*rounds), by_value);
	return rounds[ROUNDS / 2];
}

void time_pairs(void)
{
	double device = median_pair(pair_device), async = median_pair(pair_async);

	printf("{\"cudaMalloc+cudaFree\": %.0f, \"cudaMallocAsync+cudaFreeAsync\": %.0f}\n", device,
	       async);
}
