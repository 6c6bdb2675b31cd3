/*
 * A program that takes stream-ordered memory: pool_program KIND THRESHOLD, a kind of 0 to 11 and
 * the release threshold of the device's pool in bytes, "max" or "default". Prints the pool's own
 * figures: reserved and used, the most of each.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB  (1ull << 20)
#define MOST 100000u

/* The driver's functions, declared here so that the program builds without CUDA's headers. */
typedef int CUresult, CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUstream_st *CUstream;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUctx_st *CUcontext;

CUresult cuInit(unsigned flags);
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxSynchronize(void);
CUresult cuStreamCreate(CUstream *stream, unsigned flags);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device);
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value);
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value);
CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream);
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream);

#define RELEASE_THRESHOLD 4 /* CU_MEMPOOL_ATTR_... */
#define RESERVED_MEM_HIGH 6
#define USED_MEM_HIGH	  8
#define NON_BLOCKING	  1

static CUmemoryPool pool;
static CUstream streams[2];
static CUdeviceptr blocks[MOST];
static uint64_t sizes[MOST], held;
static unsigned count;
static uint64_t state;

static void check(CUresult result, const char *call)
{
	if (!result)
		return;
	fprintf(stderr, "%s: error %d\n", call, result);
	exit(1);
}

#define CHECK(call) check(call, #call)

static uint32_t draw(uint32_t below)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(state >> 33) % below;
}

/* Log-uniform. */
static uint64_t between(double low, double high)
{
	return (uint64_t)(low * exp(log(high / low) * draw(1u << 20) / (1u << 20)));
}

static void take(uint64_t bytes, unsigned stream)
{
	if (count == MOST)
		exit(3);
	CHECK(cuMemAllocAsync(&blocks[count], bytes, streams[stream]));
	sizes[count++] = bytes;
	held += bytes;
}

static void give(unsigned number, unsigned stream)
{
	CHECK(cuMemFreeAsync(blocks[number], streams[stream]));
	held -= sizes[number];
	count--;
	blocks[number] = blocks[count];
	sizes[number] = sizes[count];
}

static void wait(void)
{
	CHECK(cuStreamSynchronize(streams[0]));
}

/* Blocks of random sizes and lives. */
static void churn(unsigned operations, double low, double high, uint64_t most, unsigned every)
{
	for (unsigned i = 0; i < operations; i++) {
		uint64_t bytes = between(low, high);

		if (!count || (draw(100) < 55 && held + bytes <= most))
			take(bytes, 0);
		else
			give(draw(count), 0);
		if (every && i % every == every - 1)
			wait();
	}
}

/* Steps of a training: blocks kept, activations, gradients in the reverse order. */
static void steps(unsigned layers, uint64_t unit, bool varying)
{
	for (unsigned i = 0; i < layers; i++)
		take(unit + draw(8) * unit / 4, 0);
	for (unsigned step = 0; step < 12; step++) {
		unsigned first = count;
		uint64_t batch = varying ? unit / 2 + draw(64) * unit / 32 : unit;

		for (unsigned i = 0; i < layers; i++) {
			take(batch + i % 3 * batch / 2, 0);
			take(batch / 3 + 100, 0);
			give(count - 1, 0);
		}
		while (count > first)
			give(count - 1, 0);
		wait();
	}
}

static void run(unsigned kind)
{
	switch (kind) {
	case 0:
		churn(12000, 1, 65536, 200 * MIB, 200);
		return;
	case 1:
		churn(8000, 65536, 4.0 * MIB, 1500 * MIB, 100);
		return;
	case 2:
		churn(3000, 1.0 * MIB, 100.0 * MIB, 6000 * MIB, 50);
		return;
	case 3:
		churn(8000, 512, 64.0 * MIB, 4000 * MIB, 77);
		return;
	case 4:
		steps(24, 6 * MIB, false);
		return;
	case 5:
		steps(24, 5 * MIB + 12345, true);
		return;
	case 6:
		steps(40, 300000, true);
		return;
	case 7: /* ever larger ones */
		for (unsigned i = 1; i < 90; i++) {
			take(i * 3 * MIB, 0);
			if (i > 2)
				give(0, 0);
			if (i % 4 == 0)
				wait();
		}
		return;
	case 8: /* phases */
		for (unsigned phase = 0; phase < 5; phase++) {
			churn(600, 200000, (phase + 2) * 10.0 * MIB, (phase + 1) * 900 * MIB, 40);
			while (count > 3)
				give(count - 1, 0);
			wait();
		}
		return;
	case 9: /* never waited for */
		churn(6000, 4096, 40.0 * MIB, 3000 * MIB, 0);
		return;
	case 10: /* a cache that grows, and a buffer beside it */
		for (unsigned i = 1; i < 400; i++) {
			take(700000 + i * 4096, 0);
			if (count > 40)
				give(draw(10), 0);
			take(20 * MIB + draw(5) * MIB, 0);
			give(count - 1, 0);
			wait();
		}
		return;
	default: /* two streams */
		for (unsigned i = 0; i < 2000; i++) {
			if (!count || (draw(100) < 55 && held < 2500 * MIB))
				take(between(40000, 50.0 * MIB), i % 2);
			else
				give(draw(count), 0);
			if (i % 60 == 59)
				CHECK(cuCtxSynchronize());
		}
	}
}

static unsigned long long figure(int attribute)
{
	uint64_t value = 0;

	CHECK(cuMemPoolGetAttribute(pool, attribute, &value));
	return value;
}

int main(int words, char **word)
{
	CUcontext context;
	CUdevice device;

	if (words != 3)
		return 2;
	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuDeviceGetDefaultMemPool(&pool, device));
	for (unsigned i = 0; i < 2; i++)
		CHECK(cuStreamCreate(&streams[i], NON_BLOCKING));
	if (strcmp(word[2], "default") != 0) {
		uint64_t threshold =
			strcmp(word[2], "max") == 0 ? UINT64_MAX : strtoull(word[2], NULL, 10);

		CHECK(cuMemPoolSetAttribute(pool, RELEASE_THRESHOLD, &threshold));
	}
	state = strtoul(word[1], NULL, 10);
	run((unsigned)state);
	printf("%llu %llu\n", figure(RESERVED_MEM_HIGH), figure(USED_MEM_HIGH));
	return 0;
}
