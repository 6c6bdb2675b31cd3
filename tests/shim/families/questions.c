/*
 * How often the driver is asked for an allocation and its free: whose context it is, and what else
 * cannot be known. Pools are asked now and then, by the clock, which is not counted here, and the
 * ledger is sampled now and then, by the clock too, which takes a few questions each time.
 */
#include "family.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

void gpusim_after(void (*callback)(const char *function));
CUresult cuMemAllocAsync(CUdeviceptr *p, size_t bytes, CUstream stream);

#define PAIRS	1000u
#define WARM_UP 600u /* more than a pool is asked in any case */

static unsigned long calls, samples;

#define OF_A_SAMPLE 6u /* questions at most, one of them for the free bytes */

static void called(const char *function)
{
	calls += strcmp(function, "cuMemPoolGetAttribute") &&
		 strcmp(function, "cuThreadExchangeStreamCaptureMode"); /* around the others */
	samples += strcmp(function, "cuMemGetInfo_v2") == 0;
}

static void async_pairs(CUstream stream, unsigned pairs)
{
	CUdeviceptr p;

	for (; pairs; pairs--) {
		OK(cuMemAllocAsync(&p, KIB, stream));
		OK(cuMemFreeAsync(p, stream));
	}
}

static void device_pairs(CUstream unused, unsigned pairs)
{
	CUdeviceptr p;

	(void)unused;
	for (; pairs; pairs--) {
		OK(cuMemAlloc_v2(&p, KIB));
		OK(cuMemFree_v2(p));
	}
}

/* The tracker's calls of a pair: all, less the pair's own two. */
static void asks(const char *what, void (*pairs_of)(CUstream, unsigned), CUstream stream,
		 unsigned questions)
{
	unsigned long before, sampled, expected = PAIRS * (2 + questions);

	pairs_of(stream, WARM_UP);
	before = calls;
	sampled = samples;
	pairs_of(stream, PAIRS);
	if (calls - before >= expected &&
	    calls - before <= expected + (samples - sampled) * OF_A_SAMPLE)
		return;
	fprintf(stderr, "%s: %lu calls of the driver for %u pairs and %u questions each\n", what,
		calls - before, PAIRS, questions);
	exit(3);
}

/*
 * `context`: whose context it is, which is asked where it can be another; `more`: a question that
 * several devices add, on a stream that may be of any.
 */
static void on_devices(unsigned context, unsigned more)
{
	CUstream stream, captured;
	CUgraph graph;
	CUcontext second;

	gpusim_after(called);
	OK(cudaFree(0));
	OK(cudaStreamCreate((cudaStream_t *)&stream));
	OK(cudaStreamCreateWithFlags((cudaStream_t *)&captured, 1));
	asks("device", device_pairs, NULL, context);
	asks("async", async_pairs, stream, context + more);
	asks("async, no stream", async_pairs, NULL, context);
	OK(cuStreamBeginCapture(captured, (CUstreamCaptureMode)2));
	asks("async beside a capture", async_pairs, stream, 2 + more);
	FAILS(cuStreamEndCapture(stream, &graph), 401);
	asks("async beside the same capture", async_pairs, stream, 2 + more);
	OK(cuStreamEndCapture(captured, &graph));
	asks("async after a capture", async_pairs, stream, context + more);
	OK(cuCtxCreate_v2(&second, 0, 0));
	asks("device, beside a second context", device_pairs, NULL, 1);
	OK(cuCtxDestroy_v2(second));
	asks("device, after a second context", device_pairs, NULL, context);
}

int main(void)
{
	int status;

	fflush(NULL);
	if (!fork()) {
		setenv("GPUSIM_DEVICES", "2", 1);
		on_devices(1, 1);
		return 0;
	}
	if (wait(&status) < 0 || status) {
		fprintf(stderr, "with two devices: status %d\n", status);
		return 4;
	}
	on_devices(0, 0);
	dlsym(dlopen("libcuda.so.1", RTLD_NOW),
	      "cuCtxCreate_v99"); /* might make contexts, and is no row */
	asks("device, with a function that is not known", device_pairs, NULL, 1);
	expect("usage.device.0.frees", 4 * (WARM_UP + PAIRS));
	expect("usage.async.0.frees", 5 * (WARM_UP + PAIRS));
	expect("totals.0.current_bytes", 0);
	return 0;
}
