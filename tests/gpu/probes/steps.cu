/*
 * What device memory is taken by calls that do not say so: the context, first launches, local
 * memory, streams, captures and graphs. Runs on a real GPU, under the shim or without it. A line a
 * step:
 *
 *   step  FREE  SYNC  NVML  TEXT
 *
 * FREE: by how much the driver's free bytes fell in the step, SYNC: with a synchronisation behind
 * it, NVML: by how much NVML's figure for this process rose. `-` where that cannot be asked.
 */
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define OK(call) must((int)(call), #call, __LINE__)
#define MIB (1024 * 1024ull)

static void must(int error, const char *call, int line)
{
	if (!error)
		return;
	printf("line %d: %s gave %d\n", line, call, error);
	fflush(stdout);
	_exit(2);
}

struct nvml_process {
	unsigned pid;
	unsigned long long used;
	unsigned instance, compute;
};

struct nvml_memory {
	unsigned long long total, free, used;
};

static struct {
	void *device;
	int (*processes)(void *, unsigned *, struct nvml_process *);
	int (*memory)(void *, struct nvml_memory *);
} nvml;

static void open_nvml(void)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	int (*init)(void), (*by_index)(unsigned, void **);

	if (!library)
		return;
	init = (int (*)(void))dlsym(library, "nvmlInit_v2");
	by_index = (int (*)(unsigned, void **))dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
	nvml.processes = (int (*)(void *, unsigned *, struct nvml_process *))dlsym(
		library, "nvmlDeviceGetComputeRunningProcesses_v3");
	nvml.memory =
		(int (*)(void *, struct nvml_memory *))dlsym(library, "nvmlDeviceGetMemoryInfo");
	if (init() || by_index(0, &nvml.device))
		nvml.device = NULL;
}

/* -1: NVML does not know this process. */
static long long own_bytes(void)
{
	struct nvml_process list[128];
	unsigned count = 128, i;

	if (!nvml.device || nvml.processes(nvml.device, &count, list))
		return -1;
	for (i = 0; i < count; i++)
		if (list[i].pid == (unsigned)getpid())
			return (long long)list[i].used;
	return -1;
}

static long long device_bytes(void)
{
	struct nvml_memory memory;

	return nvml.device && !nvml.memory(nvml.device, &memory) ? (long long)memory.used : -1;
}

static long long free_bytes(void)
{
	size_t free_now, total;

	OK(cudaMemGetInfo(&free_now, &total));
	return (long long)free_now;
}

static long long last_free, last_own;

/* What happened since the last step. In a capture (`capturing`) CUDA is asked nothing. */
static void step_of(const char *text, bool capturing)
{
	long long now = 0, synchronised = 0, own;

	if (!capturing) {
		now = free_bytes();
		OK(cudaDeviceSynchronize());
		synchronised = free_bytes();
	}
	own = own_bytes();
	if (capturing)
		printf("step %12s %12s %12lld  %s\n", "-", "-", own - last_own, text);
	else
		printf("step %12lld %12lld %12lld  %s\n", last_free - now, last_free - synchronised,
		       own - last_own, text);
	if (!capturing)
		last_free = synchronised;
	last_own = own;
	fflush(stdout);
}

static void step(const char *text)
{
	step_of(text, false);
}

__global__ void plain(int *out)
{
	if (out)
		*out = 1;
}

__global__ void other(int *out)
{
	if (out)
		*out = 2;
}

__global__ void captured_first(int *out)
{
	if (out)
		*out = 3;
}

/* Local memory: an array that is indexed by what only the launch knows. */
template <int BYTES> __global__ void local(int *out, int at)
{
	volatile char array[BYTES];

	for (int i = 0; i < BYTES; i += 64)
		array[(i + at) % BYTES] = (char)at;
	if (out)
		*out = array[at % BYTES];
}

__global__ void prints(int at)
{
	if (at == 12345)
		printf("never\n");
}

__global__ void allocates(int at)
{
	void *p = malloc(64);

	if (p && at == 12345)
		printf("never\n");
	free(p);
}

static double milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static void questions(void)
{
	double started = milliseconds();
	int i;

	for (i = 0; i < 100; i++)
		own_bytes();
	printf("cost NVML's list of processes %.1f us\n", (milliseconds() - started) * 10);
	started = milliseconds();
	for (i = 0; i < 1000; i++)
		free_bytes();
	printf("cost cudaMemGetInfo %.2f us\n", milliseconds() - started);
}

static void launches(void)
{
	plain<<<1, 1>>>(NULL);
	step("first launch of the process");
	plain<<<1, 1>>>(NULL);
	step("the same kernel again");
	other<<<1, 1>>>(NULL);
	step("another kernel of the same file");
	plain<<<4096, 1024>>>(NULL);
	step("a large grid");
	local<1024><<<1, 32>>>(NULL, 1);
	step("first kernel with 1 KiB of local memory a thread");
	local<4096><<<1, 32>>>(NULL, 1);
	step("4 KiB");
	local<16384><<<1, 32>>>(NULL, 1);
	step("16 KiB");
	local<65536><<<1, 32>>>(NULL, 1);
	step("64 KiB");
	local<1024><<<1, 32>>>(NULL, 1);
	step("1 KiB again: is it given back?");
	local<65536><<<1, 32>>>(NULL, 2);
	step("64 KiB again");
	prints<<<1, 1>>>(0);
	step("a kernel with printf");
	allocates<<<1, 1>>>(0);
	step("a kernel with malloc");
}

static void streams(void)
{
	cudaStream_t some[64];
	cudaEvent_t event;
	int i;

	OK(cudaStreamCreate(&some[0]));
	step("a stream");
	for (i = 1; i < 32; i++)
		OK(cudaStreamCreateWithFlags(&some[i], cudaStreamNonBlocking));
	step("31 more");
	for (i = 0; i < 32; i++)
		plain<<<1, 1, 0, some[i]>>>(NULL);
	step("a launch on each");
	for (i = 0; i < 32; i++)
		local<65536><<<1, 32, 0, some[i]>>>(NULL, 3);
	step("a launch with local memory on each");
	for (i = 32; i < 64; i++)
		OK(cudaStreamCreateWithPriority(&some[i], cudaStreamNonBlocking, -1));
	for (i = 32; i < 64; i++)
		plain<<<1, 1, 0, some[i]>>>(NULL);
	step("32 of high priority, a launch on each");
	for (i = 0; i < 1000; i++)
		OK(cudaEventCreate(&event));
	step("1000 events");
	for (i = 0; i < 64; i++)
		OK(cudaStreamDestroy(some[i]));
	step("the streams destroyed");
}

/* Kernels of one stream, or of `width` streams side by side, captured `length` deep. */
static void graph(const char *name, int width, int length, bool first_kernel, bool with_memory)
{
	cudaStream_t main_stream, side[32];
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	cudaEvent_t fork, join;
	void *p = NULL;
	int i, j;

	printf("graph %s\n", name);
	OK(cudaStreamCreateWithFlags(&main_stream, cudaStreamNonBlocking));
	for (i = 0; i < width - 1; i++)
		OK(cudaStreamCreateWithFlags(&side[i], cudaStreamNonBlocking));
	OK(cudaEventCreate(&fork));
	OK(cudaEventCreate(&join));
	step("streams and events");
	OK(cudaStreamBeginCapture(main_stream, cudaStreamCaptureModeThreadLocal));
	step_of("begin of the capture", true);
	OK(cudaEventRecord(fork, main_stream));
	if (with_memory)
		OK(cudaMallocAsync(&p, 64 * MIB, main_stream));
	for (i = 0; i < width - 1; i++) {
		OK(cudaStreamWaitEvent(side[i], fork));
		for (j = 0; j < length; j++)
			plain<<<1, 1, 0, side[i]>>>(NULL);
	}
	for (j = 0; j < length; j++)
		plain<<<1, 1, 0, main_stream>>>((int *)p);
	if (first_kernel)
		captured_first<<<1, 1, 0, main_stream>>>((int *)p);
	for (i = 0; i < width - 1; i++) {
		OK(cudaEventRecord(join, side[i]));
		OK(cudaStreamWaitEvent(main_stream, join));
	}
	if (with_memory)
		OK(cudaFreeAsync(p, main_stream));
	step_of("what is captured", true);
	OK(cudaStreamEndCapture(main_stream, &graph));
	step("end of the capture");
	OK(cudaGraphInstantiateWithFlags(&exec, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
	step("instantiation");
	OK(cudaGraphUpload(exec, main_stream));
	step("upload");
	OK(cudaGraphLaunch(exec, main_stream));
	step("first launch");
	OK(cudaGraphLaunch(exec, main_stream));
	step("second launch");
	OK(cudaGraphExecDestroy(exec));
	step("executable destroyed");
	OK(cudaGraphDestroy(graph));
	for (i = 0; i < width - 1; i++)
		OK(cudaStreamDestroy(side[i]));
	OK(cudaStreamDestroy(main_stream));
	step("graph and streams destroyed");
	OK(cudaDeviceGraphMemTrim(0));
	step("graph memory trimmed");
}

static const char big_module[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
				 ".visible .global .align 4 .b8 big[67108864];\n"
				 ".visible .entry k()\n{\n\tret;\n}\n";

static void modules(void)
{
	CUmodule module;
	CUfunction function;

	OK(cuModuleLoadData(&module, big_module));
	step("a module with 64 MiB of variables loaded");
	OK(cuModuleGetFunction(&function, module, "k"));
	step("its function asked for");
	OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	step("its function launched");
	OK(cuModuleUnload(module));
	step("unloaded");
}

static void copies(void)
{
	static char host[4096];
	void *p, *pinned;

	OK(cudaMalloc(&p, 4 * MIB));
	step("cudaMalloc of 4 MiB");
	OK(cudaMemset(p, 0, 4 * MIB));
	step("a memset");
	OK(cudaMemcpy(p, host, sizeof(host), cudaMemcpyHostToDevice));
	OK(cudaMemcpy(host, p, sizeof(host), cudaMemcpyDeviceToHost));
	step("copies of pageable memory");
	OK(cudaMemcpy(p, (char *)p + 2 * MIB, MIB, cudaMemcpyDeviceToDevice));
	step("a copy on the device");
	OK(cudaHostAlloc(&pinned, 64 * MIB, cudaHostAllocDefault));
	step("64 MiB of pinned memory");
	OK(cudaFreeHost(pinned));
	OK(cudaFree(p));
	step("both freed");
	OK(cudaMallocAsync(&p, 4 * MIB, 0));
	step("first cudaMallocAsync, 4 MiB");
	OK(cudaFreeAsync(p, 0));
	step("freed");
	OK(cudaDeviceSetLimit(cudaLimitStackSize, 16384));
	step("stack limit 16 KiB");
	OK(cudaDeviceSetLimit(cudaLimitStackSize, 1024));
	step("stack limit 1 KiB");
}

int main(void)
{
	long long device_before, device_after;
	CUcontext second;
	size_t limit;

	open_nvml();
	device_before = device_bytes();
	printf("context NVML before: device %lld, process %lld\n", device_before, own_bytes());
	OK(cuInit(0));
	printf("context after cuInit: device %+lld, process %lld\n", device_bytes() - device_before,
	       own_bytes());
	OK(cudaFree(0));
	device_after = device_bytes();
	printf("context the first: device %+lld, process %lld; the driver says %lld free\n",
	       device_after - device_before, own_bytes(), free_bytes());
	last_free = free_bytes();
	last_own = own_bytes();
	step("nothing");
	OK(cudaDeviceGetLimit(&limit, cudaLimitStackSize));
	printf("limit stack %zu\n", limit);
	questions();
	launches();
	copies();
	streams();
	modules();
	graph("of one stream, 3 kernels", 1, 3, false, false);
	graph("the same again", 1, 3, false, false);
	graph("with a kernel that never ran", 1, 3, true, false);
	graph("of 200 kernels", 1, 200, false, false);
	graph("of 8 streams side by side", 8, 4, false, false);
	graph("of 32 streams side by side", 32, 4, false, false);
	graph("with 64 MiB of its own", 1, 3, false, true);
	device_before = device_bytes();
	OK(cuCtxCreate(&second, NULL, 0, 0));
	printf("context a second one: device %+lld\n", device_bytes() - device_before);
	return 0;
}
