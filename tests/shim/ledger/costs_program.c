/*
 * What takes memory of the device beside allocations: costs WHAT [MORE]. It prints its own books:
 * `used`, what the process uses by the driver's free bytes at the end of the work, and what it
 * knows of the parts.
 */
#include "sim_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MIB 1048576ul
#define PLACE __attribute__((noinline, noclone))

static const char ptx[] = ".version 7.0\n.target sm_80\n.entry k(){}";
static CUcontext context;
static CUmodule module;
static CUfunction kernel;
static size_t total;

static size_t used(void)
{
	size_t free_bytes;

	cuMemGetInfo_v2(&free_bytes, &total);
	return total - free_bytes;
}

static void open_device(void)
{
	cuInit(0);
	cuDevicePrimaryCtxRetain(&context, 0);
	cuCtxSetCurrent(context);
	cuModuleLoadData(&module, ptx);
	cuModuleGetFunction(&kernel, module, "k");
}

static void spend(long ns)
{
	struct timespec begun, now;

	clock_gettime(CLOCK_MONOTONIC, &begun);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - begun.tv_sec) * 1000000000l + now.tv_nsec - begun.tv_nsec < ns);
}

/* A request of half a millisecond that leaves nothing behind. */
static void request(void)
{
	CUdeviceptr memory;

	cuMemAlloc_v2(&memory, 4 * MIB);
	cuMemFree_v2(memory);
	spend(500000);
}

PLACE static void make_context(void)
{
	CUcontext made;

	if (cuCtxCreate_v2(&made, 0, 0) || cuCtxPopCurrent_v2(&made))
		exit(3);
}

PLACE static void open_stream(void)
{
	CUstream stream;

	cuStreamCreate(&stream, 0);
}

PLACE static CUmodule compile(void)
{
	CUmodule made;

	cuModuleLoadData(&made, ptx);
	return made;
}

PLACE static CUgraphExec capture(unsigned nodes)
{
	CUDA_KERNEL_NODE_PARAMS params = {.func = kernel,
					  .gridDimX = 1,
					  .gridDimY = 1,
					  .gridDimZ = 1,
					  .blockDimX = 1,
					  .blockDimY = 1,
					  .blockDimZ = 1};
	CUgraphNode node = NULL;
	CUgraphExec exec;
	CUgraph graph;

	cuGraphCreate(&graph, 0);
	for (unsigned i = 0; i < nodes; i++)
		cuGraphAddKernelNode_v2(&node, graph, &node, i ? 1 : 0, &params);
	cuGraphInstantiateWithFlags(&exec, graph, 0);
	cuGraphLaunch(exec, NULL);
	cuGraphDestroy(graph);
	return exec;
}

PLACE static void launch(void)
{
	cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

/* A module and the first launch of its kernel. */
PLACE static void load_code(void)
{
	cuModuleGetFunction(&kernel, compile(), "k");
	launch();
}

/* The library's end resets the device, and with it goes what the program has. */
PLACE static void close_library(void)
{
	cudaDeviceReset();
}

static int reset(void)
{
	void *mine[3];

	for (int i = 0; i < 3; i++)
		cudaMalloc(&mine[i], MIB);
	close_library();
	for (int i = 0; i < 3; i++)
		cudaFree(mine[i]);
	return 0;
}

/* Three blocks in one graph, each freed before the next, launched twice. */
static int turns(void)
{
	unsigned long high = 0;
	cudaGraphExec_t exec;
	cudaStream_t stream;
	cudaGraph_t graph;
	void *block;

	cudaStreamCreate(&stream);
	cudaStreamBeginCapture(stream, (enum cudaStreamCaptureMode)1); /* thread-local */
	for (int i = 0; i < 3; i++) {
		cudaMallocAsync(&block, 64 * MIB, stream);
		cudaFreeAsync(block, stream);
	}
	cudaStreamEndCapture(stream, &graph);
	cudaGraphInstantiateWithFlags(&exec, graph, 0);
	cudaGraphLaunch(exec, stream);
	cudaGraphLaunch(exec, stream);
	cudaStreamSynchronize(stream);
	cudaDeviceGetGraphMemAttribute(0, (enum cudaGraphMemAttributeType)1,
				       &high); /* the most used */
	printf("{\"high\": %lu}\n", high);
	return 0;
}

int main(int count, char **arguments)
{
	const char *what = count > 1 ? arguments[1] : "";
	unsigned times = count > 2 ? (unsigned)atoi(arguments[2]) : 200;
	CUgraphExec exec;
	size_t before;

	if (strcmp(what, "reset") == 0 || strcmp(what, "turns") == 0)
		return strcmp(what, "reset") == 0 ? reset() : turns();
	open_device();
	launch();
	before = used();
	for (volatile unsigned i = 0; i < times; i++) {
		if (strcmp(what, "burst") == 0 || strcmp(what, "code") == 0) {
			if (strcmp(what, "burst") == 0)
				open_stream();
			else
				load_code();
			if (strcmp(what, "code") == 0 && i % 500 == 250)
				open_stream();
			spend(200000);
			continue;
		} else if (strcmp(what, "contexts") == 0)
			make_context();
		else if (strcmp(what, "streams") == 0)
			open_stream();
		else if (strcmp(what, "modules") == 0)
			compile();
		else if (strcmp(what, "reloaded") == 0)
			cuModuleUnload(compile());
		else if (strcmp(what, "graphs") == 0)
			capture(1000 + 10 * i);
		else if (strcmp(what, "recaptured") == 0) {
			exec = capture(1000);
			cuGraphExecDestroy(exec);
		} else
			launch();
		request();
	}
	if (strcmp(what, "burst") == 0 || strcmp(what, "code") == 0)
		request();
	printf("{\"used\": %zu, \"rise\": %zu}\n", used(), used() - before);
	return 0;
}
