/*
 * Calls that fail: refused CALL makes one call of the driver that GPUSIM_FAIL answers "out of
 * memory", and prints its result; failed CAUSE makes an allocation fail for another cause than want
 * of memory.
 */
#include "sim_api.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB 1048576ul
#define PLACE __attribute__((noinline, noclone))

static const char ptx[] = ".version 7.0\n.target sm_80\n.entry k(){}";
static CUcontext context;
static CUmodule module;
static CUfunction kernel;

static void open_device(void)
{
	cuInit(0);
	cuDevicePrimaryCtxRetain(&context, 0);
	cuCtxSetCurrent(context);
	cuModuleLoadData(&module, ptx);
	cuModuleGetFunction(&kernel, module, "k");
}

PLACE static int launch(void)
{
	return cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

PLACE static int refused_call(const char *call)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemGenericAllocationHandle handle;
	CUgraphExec exec;
	CUdeviceptr range;
	CUstream stream;
	CUcontext other;
	CUgraph graph;
	int result = 0;

	if (strcmp(call, "stream") == 0)
		return cuStreamCreate(&stream, 0);
	if (strcmp(call, "module") == 0)
		return cuModuleLoadData(&module, ptx);
	if (strcmp(call, "context") == 0)
		return cuCtxCreate_v2(&other, 0, 0);
	if (strcmp(call, "limit") == 0)
		return cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 65536);
	if (strcmp(call, "map") == 0) {
		cuMemAddressReserve(&range, 2 * MIB, 0, 0, 0);
		cuMemCreate(&handle, 2 * MIB, &prop, 0);
		return cuMemMap(range, 2 * MIB, 0, handle, 0);
	}
	if (strncmp(call, "graph", 5) == 0) {
		cuGraphCreate(&graph, 0);
		result = (int)cuGraphInstantiateWithFlags(&exec, graph, 0);
		return result ? result : (int)cuGraphLaunch(exec, NULL);
	}
	for (volatile int i = 0; i < 5;
	     i++) /* the fifth launch of a kernel is as good as the first */
		result |= launch();
	return result;
}

PLACE static int workspace(void)
{
	void *memory;

	return cudaMalloc(&memory, 32 * MIB);
}

static int failed_call(const char *cause)
{
	static char range[8192];
	cudaStream_t stream;
	cudaGraph_t graph;
	CUdeviceptr none;
	int result = 0;

	if (strcmp(cause, "capture") == 0) {
		cudaStreamCreate(&stream);
		cudaStreamBeginCapture(stream, (enum cudaStreamCaptureMode)1); /* thread-local */
		result = workspace();
		cudaStreamEndCapture(stream, &graph);
	} else if (strcmp(cause, "zero") == 0) {
		open_device();
		result = cuMemAlloc_v2(&none, 0);
	} else if (strcmp(cause, "registered") == 0) {
		cudaHostRegister(range, 4096, 0);
		result = cudaHostRegister(range, 4096, 0);
	} else if (strcmp(cause, "fork") == 0) {
		open_device();
		if (fork() == 0)
			_exit(workspace());
		wait(&result);
		result = WEXITSTATUS(result);
	}
	return result;
}

int main(int count, char **arguments)
{
	int result;

	if (count < 3)
		return 2;
	if (strcmp(arguments[1], "refused") == 0)
		open_device();
	result = strcmp(arguments[1], "refused") == 0 ? refused_call(arguments[2])
						      : failed_call(arguments[2]);
	printf("{\"result\": %d}\n", result);
	return 0;
}
