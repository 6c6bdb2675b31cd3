/*
 * The shim's queries end no capture, whatever of them a capture forbids: code that is loaded while
 * a stream is captured has its cost measured, and what is allocated elsewhere meanwhile is in a
 * pool, which is asked.
 */
#include "family.h"

#include <pthread.h>

#define GLOBAL	     0
#define THREAD_LOCAL 1
#define ROUNDS	     3

/* those that the simulated runtime does not make itself */
static const char queries[] = "cuMemGetInfo_v2,cuMemPoolGetAttribute,cuDeviceGetGraphMemAttribute,"
			      "cuMemGetAddressRange_v2,cuMemRetainAllocationHandle";
static const char image[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			    ".visible .entry k()\n{\n\tret;\n}\n";
static cudaStream_t captured, other;

NAMED void load_code(void)
{
	CUmodule module;
	CUfunction function;

	OK(cuModuleLoadData(&module, image));
	OK(cuModuleGetFunction(&function, module, "k"));
	OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, captured, NULL, NULL));
}

NAMED void pool_memory(void)
{
	void *p;

	OK(cudaMallocAsync(&p, 3 * MIB, other));
	OK(cudaFreeAsync(p, other));
}

static void *in_a_thread(void *unused)
{
	pool_memory();
	return unused;
}

static void capture(int mode)
{
	cudaGraph_t graph;
	pthread_t thread;
	void *node;

	OK(cudaStreamBeginCapture(captured, (enum cudaStreamCaptureMode)mode));
	OK(cudaMallocAsync(&node, MIB, captured));
	load_code();
	if (mode == THREAD_LOCAL) {
		pthread_create(&thread, NULL, in_a_thread, NULL);
		pthread_join(thread, NULL);
	}
	OK(cudaFreeAsync(node, captured));
	OK(cudaStreamEndCapture(captured, &graph));
	OK(cudaGraphDestroy(graph));
}

int main(void)
{
	int i;

	setenv("GPUSIM_UNSAFE", queries, 1);
	OK(cudaFree(0));
	OK(cudaStreamCreateWithFlags(&captured, 1));
	OK(cudaStreamCreateWithFlags(&other, 1));
	for (i = 0; i < ROUNDS; i++) {
		pool_memory();
		capture(GLOBAL);
		capture(THREAD_LOCAL);
	}
	expect("usage.async.0.allocations", 2 * ROUNDS);
	expect("usage.async.0.frees", 2 * ROUNDS);
	return 0;
}
