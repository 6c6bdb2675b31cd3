/*
 * What the family programs share. Each does known things to GPU memory and prints, from its own
 * books, what the report must say of it: lines that check.py holds against the document. One source
 * serves the simulated GPU and, with FAMILY_REAL and NVIDIA's headers, a real one.
 *
 *   = PATH VALUE           the document's value at PATH (check.py) is VALUE
 *   ~ PATH VALUE MARGIN    it differs by MARGIN at most
 *   fact TEXT              something to know about the machine, no check
 *   skip TEXT              the program cannot run here
 */
#ifndef FAMILY_H
#define FAMILY_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef FAMILY_REAL
#include <cuda.h>
#include <cuda_runtime_api.h>
#define FAMILY_IS_REAL 1
#else
#include "calls.h"
#define FAMILY_IS_REAL 0
#endif

#define KIB 1024ull
#define MIB (1024ull * 1024)
#define PAGE (2 * MIB)

/* For functions whose name is looked for in a stack: neither inlined, cloned nor left by a jump. */
#define NAMED __attribute__((noipa, noinline)) static

#define OK(call) must((int)(call), 0, #call, __LINE__)
#define FAILS(call, error) must((int)(call), (error), #call, __LINE__)

/* Ends the program unless the call's result is the one expected. */
static inline void must(int result, int expected, const char *call, int line)
{
	if (result == expected)
		return;
	fprintf(stderr, "line %d: %s gave %d, not %d\n", line, call, result, expected);
	exit(2);
}

static inline void expect(const char *path, unsigned long long value)
{
	printf("= %s %llu\n", path, value);
}

static inline void expect_about(const char *path, unsigned long long value,
				unsigned long long margin)
{
	printf("~ %s %llu %llu\n", path, value, margin);
}

static inline unsigned long long free_bytes(void)
{
	size_t free_now, total;

	OK(cudaMemGetInfo(&free_now, &total));
	return free_now;
}

/* What the driver holds for us now against what it held at `before`, 2 MiB a live allocation. */
static inline void expect_physical(unsigned long long before, unsigned live)
{
	unsigned long long now = free_bytes();

	expect_about("totals.0.physical_bytes", before > now ? before - now : 0, live * PAGE);
}

static inline unsigned long long pool_attribute(cudaMemPool_t pool, int attribute)
{
	uint64_t value = 0;

	OK(cudaMemPoolGetAttribute(pool, (enum cudaMemPoolAttr)attribute, &value));
	return value;
}
#define POOL_THRESHOLD 4
#define POOL_RESERVED  5
#define POOL_RESERVED_HIGH 6
#define POOL_USED      7

static inline unsigned long long graph_attribute(int attribute)
{
	uint64_t value = 0;

	OK(cudaDeviceGetGraphMemAttribute(0, (enum cudaGraphMemAttributeType)attribute, &value));
	return value;
}
#define GRAPH_USED     0
#define GRAPH_RESERVED 2

#endif
