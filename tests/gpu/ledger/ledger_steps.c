/*
 * What calls take of a device's memory that no allocation names, at the scale of large programs.
 * Each suite runs in a process of its own, on a real GPU, under the shim or without it. A line a
 * step:
 *
 *   step  TAG  NVML  FREE  SECONDS  TEXT
 *
 * TAG names the row of the ledger that the step's bytes belong to; NVML is the rise of NVML's
 * figure for this process, FREE the fall of the driver's free bytes, both after a synchronisation,
 * `-` where that cannot be asked. The last line is `end NVML`, the process's figure after the last
 * step.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define OK(call) must((int)(call), #call, __LINE__)
#define MIB	 (1024 * 1024ull)
#define GIB	 (1024 * MIB)
#define MOST	 100000u

static void must(int error, const char *call, int line)
{
	if (!error)
		return;
	printf("line %d: %s gave %d\n", line, call, error);
	fflush(stdout);
	_exit(2);
}

/* ---- what the driver and NVML say ---- */

struct nvml_process {
	unsigned pid;
	unsigned long long used;
	unsigned instance, compute;
};

static struct {
	void *device;
	int (*processes)(void *, unsigned *, struct nvml_process *);
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
	if (!init || !by_index || init() || by_index(0, &nvml.device))
		nvml.device = NULL;
}

/* -1: NVML does not know this process. */
static long long own_bytes(void)
{
	struct nvml_process list[128];
	unsigned count = 128, i;

	if (!nvml.device || !nvml.processes || nvml.processes(nvml.device, &count, list))
		return -1;
	for (i = 0; i < count; i++)
		if (list[i].pid == (unsigned)getpid())
			return (long long)list[i].used;
	return -1;
}

static long long free_bytes(void)
{
	size_t free, total;

	return cuMemGetInfo(&free, &total) ? -1 : (long long)free;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static struct {
	long long own, free;
	double began;
} last;

static void begin(void)
{
	cuCtxSynchronize();
	last.own = own_bytes();
	last.free = free_bytes();
	last.began = now();
}

static void print_change(long long from, long long to)
{
	if (from < 0 || to < 0)
		printf("\t-");
	else
		printf("\t%lld", to - from);
}

/* The step that began with the last call of this or of begin() is over. */
static void step(const char *tag, const char *text, unsigned long long number)
{
	double took = now() - last.began;
	long long own, free;

	cuCtxSynchronize();
	own = own_bytes();
	free = free_bytes();
	printf("step\t%s", tag);
	print_change(last.own, own);
	print_change(free, last.free);
	printf("\t%.6f\t", took);
	printf(text, number);
	printf("\n");
	fflush(stdout);
	begin();
}

/* ---- the device and its code ---- */

static const char ptx[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
			  ".visible .entry k(.param .u64 p)\n{\n ret;\n}\n";
static CUcontext context;
static CUmodule module;
static CUfunction kernel;
static CUstream stream;

static void open_device(void)
{
	CUdevice device;

	OK(cuInit(0));
	open_nvml();
	OK(cuDeviceGet(&device, 0));
	OK(cuDevicePrimaryCtxRetain(&context, device));
	OK(cuCtxSetCurrent(context));
	begin();
}

static void open_kernel(void)
{
	open_device();
	OK(cuModuleLoadData(&module, ptx));
	OK(cuModuleGetFunction(&kernel, module, "k"));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	begin();
}

static void launch(CUfunction function, CUstream on)
{
	CUdeviceptr none = 0;
	void *arguments[] = {&none};

	OK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, on, arguments, NULL));
}

static void launch_first(void)
{
	open_kernel();
	launch(kernel, stream);
	step("launches", "first launch of a kernel", 0);
}

/* ---- graphs ---- */

static CUdeviceptr buffer;

/* `width` chains side by side; `what`: kernels, memsets or copies. */
static CUgraph make_graph(unsigned long nodes, unsigned width, const char *what)
{
	static CUdeviceptr none;
	static void *arguments[] = {&none};
	CUDA_KERNEL_NODE_PARAMS run = {.func = kernel, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
				       .blockDimX = 32, .blockDimY = 1, .blockDimZ = 1,
				       .kernelParams = arguments};
	CUDA_MEMSET_NODE_PARAMS set = {.dst = buffer, .elementSize = 4, .width = 1024, .height = 1};
	CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = buffer,
			      .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = buffer + MIB,
			      .WidthInBytes = 4096, .Height = 1, .Depth = 1};
	CUgraphNode *tails = calloc(width, sizeof(*tails)), node;
	unsigned long i;
	CUgraph graph;

	OK(cuGraphCreate(&graph, 0));
	for (i = 0; i < nodes; i++) {
		CUgraphNode *tail = &tails[i % width];
		size_t after = *tail ? 1 : 0;

		if (strcmp(what, "memsets") == 0)
			OK(cuGraphAddMemsetNode(&node, graph, tail, after, &set, context));
		else if (strcmp(what, "copies") == 0)
			OK(cuGraphAddMemcpyNode(&node, graph, tail, after, &copy, context));
		else
			OK(cuGraphAddKernelNode(&node, graph, tail, after, &run));
		*tail = node;
	}
	free(tails);
	return graph;
}

static void update_nodes(CUgraphExec exec, CUgraph graph, unsigned long nodes)
{
	static CUdeviceptr other = 8;
	static void *arguments[] = {&other};
	CUDA_KERNEL_NODE_PARAMS run = {.func = kernel, .gridDimX = 2, .gridDimY = 1, .gridDimZ = 1,
				       .blockDimX = 64, .blockDimY = 1, .blockDimZ = 1,
				       .kernelParams = arguments};
	CUgraphNode *list = malloc(nodes * sizeof(*list));
	size_t count = nodes;

	OK(cuGraphGetNodes(graph, list, &count));
	for (size_t i = 0; i < count; i++)
		OK(cuGraphExecKernelNodeSetParams(exec, list[i], &run));
	free(list);
}

/* One graph from its making to its end, and a second one of the same size. */
static void graph_life(unsigned long nodes, unsigned width, const char *what)
{
	CUgraphExecUpdateResultInfo info;
	CUgraphExec exec, again;
	CUgraph graph, twin;

	launch_first();
	OK(cuMemAlloc(&buffer, 2 * MIB));
	step("allocations", "a buffer of 2 MiB", 0);
	graph = make_graph(nodes, width, what);
	step("graphs", "a graph of %llu nodes made", nodes);
	OK(cuGraphInstantiate(&exec, graph, 0));
	step("graphs", "instantiated", 0);
	OK(cuGraphUpload(exec, stream));
	step("graphs", "uploaded", 0);
	OK(cuGraphLaunch(exec, stream));
	step("graphs", "launched", 0);
	OK(cuGraphLaunch(exec, stream));
	step("graphs", "launched again", 0);
	if (strcmp(what, "kernels") == 0 && nodes <= 100000) {
		update_nodes(exec, graph, nodes);
		step("graphs", "the parameters of each node set", 0);
		OK(cuGraphLaunch(exec, stream));
		step("graphs", "launched", 0);
	}
	if (nodes <= 300000) {
		OK(cuGraphClone(&twin, graph));
		step("graphs", "cloned", 0);
		OK(cuGraphExecUpdate(exec, twin, &info));
		step("graphs", "updated from the clone", 0);
		OK(cuGraphLaunch(exec, stream));
		step("graphs", "launched", 0);
		OK(cuGraphDestroy(twin));
		step("graphs", "the clone destroyed", 0);
		OK(cuGraphInstantiate(&again, graph, 0));
		step("graphs", "instantiated a second time", 0);
		OK(cuGraphLaunch(again, stream));
		step("graphs", "the second launched", 0);
		OK(cuGraphExecDestroy(again));
		step("graphs", "the second destroyed", 0);
	}
	OK(cuGraphExecDestroy(exec));
	step("graphs", "the executable destroyed", 0);
	OK(cuGraphInstantiate(&exec, graph, 0));
	step("graphs", "instantiated after that", 0);
	OK(cuGraphLaunch(exec, stream));
	step("graphs", "launched", 0);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	step("graphs", "executable and graph destroyed", 0);
	OK(cuDeviceGraphMemTrim(0));
	step("graphs", "trimmed", 0);
}

/* Batch sizes of a server: 70 graphs of different lengths, all kept; then all destroyed. */
static void captures(unsigned long nodes, unsigned with_memory, const char *what)
{
	static CUgraphExec execs[70];
	static CUgraph graphs[70];

	(void)what;
	launch_first();
	for (unsigned i = 0; i < 70; i++) {
		OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
		for (unsigned long k = 0; k < nodes + 10 * i; k++) {
			CUdeviceptr block;

			if (with_memory && k % 100 == 0) {
				OK(cuMemAllocAsync(&block, (1 + i) * MIB, stream));
				launch(kernel, stream);
				OK(cuMemFreeAsync(block, stream));
			}
			launch(kernel, stream);
		}
		OK(cuStreamEndCapture(stream, &graphs[i]));
		step("graphs", "capture %llu ended", i);
		OK(cuGraphInstantiate(&execs[i], graphs[i], 0));
		step("graphs", "instantiated", 0);
		OK(cuGraphLaunch(execs[i], stream));
		step(with_memory ? "pools" : "graphs", "launched", 0);
	}
	for (unsigned i = 0; i < 70; i++)
		OK(cuGraphLaunch(execs[i], stream));
	step(with_memory ? "pools" : "graphs", "all launched again", 0);
	for (unsigned i = 0; i < 70; i++)
		OK(cuGraphExecDestroy(execs[i]));
	step("graphs", "all executables destroyed", 0);
	for (unsigned i = 0; i < 70; i++)
		OK(cuGraphDestroy(graphs[i]));
	step("graphs", "all graphs destroyed", 0);
	OK(cuDeviceGraphMemTrim(0));
	step("pools", "trimmed", 0);
}

static void graph_attributes(const char *when)
{
	static const char *const names[] = {"used", "used high", "reserved", "reserved high"};
	cuuint64_t bytes;

	for (int i = 0; i < 4; i++) {
		OK(cuDeviceGetGraphMemAttribute(0, (CUgraphMem_attribute)i, &bytes));
		printf("attribute\t%s\t%s\t%llu\n", when, names[i], (unsigned long long)bytes);
	}
}

/* Blocks allocated and freed inside one graph, one after the other and side by side. */
static void graph_memory(unsigned long blocks, unsigned width, const char *what)
{
	CUgraphExec exec;
	CUgraphNode *tails = calloc(width, sizeof(*tails)), node;
	CUgraph graph;

	(void)what;
	launch_first();
	graph_attributes("before");
	OK(cuGraphCreate(&graph, 0));
	for (unsigned long i = 0; i < blocks; i++) {
		CUDA_MEM_ALLOC_NODE_PARAMS take = {
			.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
			.bytesize = 256 * MIB};
		CUgraphNode *tail = &tails[i % width];

		OK(cuGraphAddMemAllocNode(&node, graph, tail, *tail ? 1 : 0, &take));
		*tail = node;
		OK(cuGraphAddMemFreeNode(&node, graph, tail, 1, take.dptr));
		*tail = node;
	}
	OK(cuGraphInstantiate(&exec, graph, 0));
	step("graphs", "%llu blocks of 256 MiB, each freed in the graph, instantiated", blocks);
	graph_attributes("instantiated");
	OK(cuGraphUpload(exec, stream));
	step("pools", "uploaded", 0);
	graph_attributes("uploaded");
	OK(cuGraphLaunch(exec, stream));
	step("pools", "launched", 0);
	graph_attributes("launched");
	OK(cuGraphLaunch(exec, stream));
	step("pools", "launched again", 0);
	graph_attributes("launched again");
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	step("pools", "destroyed", 0);
	graph_attributes("destroyed");
	OK(cuDeviceGraphMemTrim(0));
	step("pools", "trimmed", 0);
	graph_attributes("trimmed");
	free(tails);
}

/* ---- streams, events, modules, contexts, local memory ---- */

static void streams(unsigned long most, unsigned unused, const char *what)
{
	CUstream *made = calloc(most, sizeof(*made));
	unsigned long count = 0, next = 1;
	int least, greatest;

	(void)unused, (void)what;
	launch_first();
	OK(cuCtxGetStreamPriorityRange(&least, &greatest));
	for (; next <= most; next = next < 128 ? next * 2 : next * 8) {
		for (; count < next; count++)
			OK(cuStreamCreateWithPriority(&made[count], CU_STREAM_NON_BLOCKING,
						      count % 2 ? greatest : least));
		step("streams", "%llu streams in all", count);
	}
	for (unsigned long i = 0; i < count; i++)
		launch(kernel, made[i]);
	step("streams", "a launch on each", 0);
	for (unsigned long i = 0; i < count; i++)
		OK(cuStreamDestroy(made[i]));
	step("streams", "all destroyed", 0);
	for (unsigned long i = 0; i < most; i++) {
		OK(cuStreamCreate(&made[0], 0));
		OK(cuStreamDestroy(made[0]));
	}
	step("streams", "%llu more, each destroyed at once", most);
}

static void events(unsigned long most, unsigned unused, const char *what)
{
	CUevent *made = calloc(most, sizeof(*made));

	(void)unused, (void)what;
	launch_first();
	for (unsigned long i = 0; i < most; i++)
		OK(cuEventCreate(&made[i], i % 2 ? CU_EVENT_DISABLE_TIMING : CU_EVENT_DEFAULT));
	step("nothing", "%llu events", most);
	for (unsigned long i = 0; i < most; i++)
		OK(cuEventRecord(made[i], stream));
	step("nothing", "each recorded", 0);
	for (unsigned long i = 0; i < most; i++)
		OK(cuEventDestroy(made[i]));
	step("nothing", "all destroyed", 0);
}

static void modules(unsigned long most, unsigned unused, const char *what)
{
	CUmodule *made = calloc(most, sizeof(*made));
	CUlibrary *libraries = calloc(most, sizeof(*libraries));
	CUfunction function;
	CUkernel one;
	char text[256];

	(void)unused, (void)what;
	launch_first();
	for (unsigned long i = 0; i < most; i++) {
		snprintf(text, sizeof(text),
			 ".version 7.0\n.target sm_80\n.address_size 64\n"
			 ".visible .entry k%lu(.param .u64 p)\n{\n ret;\n}\n", i);
		OK(cuModuleLoadData(&made[i], text));
	}
	step("modules", "%llu modules loaded", most);
	for (unsigned long i = 0; i < most; i++) {
		snprintf(text, sizeof(text), "k%lu", i);
		OK(cuModuleGetFunction(&function, made[i], text));
	}
	step("modules", "a function of each", 0);
	for (unsigned long i = 0; i < most; i++) {
		snprintf(text, sizeof(text), "k%lu", i);
		OK(cuModuleGetFunction(&function, made[i], text));
		launch(function, stream);
	}
	step("launches", "each launched", 0);
	for (unsigned long i = 0; i < most; i++)
		OK(cuModuleUnload(made[i]));
	step("modules", "all unloaded", 0);
	for (unsigned long i = 0; i < most; i++) {
		snprintf(text, sizeof(text),
			 ".version 7.0\n.target sm_80\n.address_size 64\n.global .b8 g[1048576];\n"
			 ".visible .entry l%lu(.param .u64 p)\n{\n ret;\n}\n", i);
		OK(cuLibraryLoadData(&libraries[i], text, NULL, NULL, 0, NULL, NULL, 0));
	}
	step("modules", "%llu libraries with a variable of 1 MiB", most);
	for (unsigned long i = 0; i < most; i++) {
		snprintf(text, sizeof(text), "l%lu", i);
		OK(cuLibraryGetKernel(&one, libraries[i], text));
		launch((CUfunction)one, stream);
	}
	step("launches", "each launched", 0);
	for (unsigned long i = 0; i < most; i++)
		OK(cuLibraryUnload(libraries[i]));
	step("modules", "all unloaded", 0);
}

static void contexts(unsigned long most, unsigned unused, const char *what)
{
	CUcontext *made = calloc(most, sizeof(*made));
	CUdeviceptr block;

	(void)unused, (void)what;
	launch_first();
	for (unsigned long i = 0; i < most; i++) {
		OK(cuCtxCreate(&made[i], NULL, 0, 0));
		OK(cuMemAlloc(&block, 8 * MIB));
		OK(cuCtxSetCurrent(context));
		step("contexts", "context %llu and 8 MiB in it", i + 2);
	}
	for (unsigned long i = 0; i < most; i++) {
		OK(cuCtxDestroy(made[i]));
		step("contexts", "context %llu destroyed", i + 2);
	}
	OK(cuCtxSetCurrent(context));
}

/* Kernels that need `bytes` of local memory a thread. */
static CUfunction local_kernel(unsigned long bytes)
{
	static const char form[] =
		".version 7.0\n.target sm_80\n.address_size 64\n"
		".visible .entry k(.param .u64 p)\n{\n .local .align 8 .b8 d[%lu];\n"
		" .reg .pred %%q<2>;\n .reg .b64 %%r<6>;\n"
		" ld.param.u64 %%r1, [p];\n mov.u64 %%r2, d;\n add.u64 %%r3, %%r2, %%r1;\n"
		" st.local.u64 [%%r3], %%r1;\n ld.local.u64 %%r4, [%%r2+8];\n"
		" setp.eq.u64 %%q1, %%r4, 77;\n @%%q1 st.global.u64 [%%r1], %%r4;\n ret;\n}\n";
	CUfunction function;
	CUmodule code;
	char text[1024];

	snprintf(text, sizeof(text), form, bytes);
	OK(cuModuleLoadData(&code, text));
	OK(cuModuleGetFunction(&function, code, "k"));
	return function;
}

static void local_memory(unsigned long unused, unsigned none, const char *what)
{
	static const unsigned long sizes[] = {1024, 4096, 16384};

	(void)unused, (void)none, (void)what;
	launch_first();
	for (unsigned i = 0; i < 3; i++) {
		CUfunction function = local_kernel(sizes[i]);

		step("modules", "a kernel of %llu bytes a thread loaded", sizes[i]);
		launch(function, stream);
		step("launches", "launched", 0);
	}
	OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 8192));
	step("limits", "stack limit 8 KiB", 0);
	OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024));
	step("limits", "stack limit 1 KiB", 0);
	OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 512 * MIB));
	step("limits", "malloc heap 512 MiB", 0);
	OK(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 256 * MIB));
	step("limits", "printf buffer 256 MiB", 0);
	launch(kernel, stream);
	step("launches", "the first kernel launched", 0);
}

/* ---- host memory, address space, pools, copies ---- */

static void registered(unsigned long most, unsigned gibibytes, const char *what)
{
	size_t whole = gibibytes * GIB, part = whole / most;
	char *host = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *pinned;

	(void)what;
	if (host == MAP_FAILED)
		_exit(3);
	launch_first();
	for (unsigned long i = 0; i < most; i++)
		OK(cuMemHostRegister(host + i * part, part, CU_MEMHOSTREGISTER_DEVICEMAP));
	step("nothing", "%llu ranges registered", most);
	for (unsigned long i = 0; i < most; i++)
		OK(cuMemHostUnregister(host + i * part));
	step("nothing", "all unregistered", 0);
	OK(cuMemHostRegister(host, whole, CU_MEMHOSTREGISTER_DEVICEMAP));
	step("nothing", "one range of all that", 0);
	OK(cuMemHostUnregister(host));
	munmap(host, whole);
	OK(cuMemHostAlloc(&pinned, whole, CU_MEMHOSTALLOC_DEVICEMAP));
	step("nothing", "%llu bytes of pinned memory", whole);
	OK(cuMemFreeHost(pinned));
	step("nothing", "freed", 0);
}

static void address_space(unsigned long most, unsigned unused, const char *what)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
				  .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr *ranges = calloc(most, sizeof(*ranges)), small;

	(void)unused, (void)what;
	launch_first();
	for (unsigned long i = 0; i < most; i++)
		OK(cuMemAddressReserve(&ranges[i], 64 * GIB, 0, 0, 0));
	step("nothing", "%llu reservations of 64 GiB", most);
	OK(cuMemCreate(&handle, 2 * MIB, &prop, 0));
	step("allocations", "a handle of 2 MiB", 0);
	for (unsigned long i = 0; i < most; i++) {
		OK(cuMemMap(ranges[i], 2 * MIB, 0, handle, 0));
		OK(cuMemSetAccess(ranges[i], 2 * MIB, &access, 1));
	}
	step("nothing", "mapped at the start of each", 0);
	for (unsigned long i = 0; i < most; i++) {
		OK(cuMemUnmap(ranges[i], 2 * MIB));
		OK(cuMemAddressFree(ranges[i], 64 * GIB));
	}
	OK(cuMemRelease(handle));
	step("allocations", "all given back", 0);
	OK(cuMemAddressReserve(&ranges[0], most * 2 * MIB, 0, 0, 0));
	for (unsigned long i = 0; i < most; i++) {
		OK(cuMemCreate(&handle, 2 * MIB, &prop, 0));
		OK(cuMemMap(ranges[0] + i * 2 * MIB, 2 * MIB, 0, handle, 0));
		OK(cuMemRelease(handle));
	}
	OK(cuMemSetAccess(ranges[0], most * 2 * MIB, &access, 1));
	step("allocations", "%llu handles of 2 MiB mapped side by side", most);
	OK(cuMemUnmap(ranges[0], most * 2 * MIB));
	OK(cuMemAddressFree(ranges[0], most * 2 * MIB));
	step("allocations", "all given back", 0);
	for (unsigned long i = 0; i < 100 * most; i++)
		OK(cuMemAlloc(&small, 256));
	step("allocations", "%llu blocks of 256 B", 100 * most);
}

static void pools(unsigned long most, unsigned unused, const char *what)
{
	CUmemPoolProps prop = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			       .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemoryPool *made = calloc(most, sizeof(*made));
	CUdeviceptr block;

	(void)unused, (void)what;
	launch_first();
	for (unsigned long i = 0; i < most; i++)
		OK(cuMemPoolCreate(&made[i], &prop));
	step("nothing", "%llu pools", most);
	for (unsigned long i = 0; i < most; i++)
		OK(cuMemAllocFromPoolAsync(&block, MIB, made[i], stream));
	step("allocations", "1 MiB from each", 0);
	for (unsigned long i = 0; i < most; i++)
		OK(cuMemPoolDestroy(made[i]));
	step("nothing", "destroyed, the blocks live on", 0);
}

static void *copy_pageable(void *argument)
{
	char *host = malloc(64 * MIB);
	CUdeviceptr device;
	CUstream own;

	(void)argument;
	memset(host, 1, 64 * MIB);
	OK(cuCtxSetCurrent(context));
	OK(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc(&device, 64 * MIB));
	for (int i = 0; i < 8; i++) {
		OK(cuMemcpyHtoDAsync(device, host, 64 * MIB, own));
		OK(cuMemcpyDtoHAsync(host, device, 64 * MIB, own));
	}
	OK(cuStreamSynchronize(own));
	OK(cuMemFree(device));
	free(host);
	return NULL;
}

static void copies(unsigned long threads, unsigned unused, const char *what)
{
	pthread_t *running = calloc(threads, sizeof(*running));
	CUtexObject *textures = calloc(MOST, sizeof(*textures));
	CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_LINEAR};
	CUDA_TEXTURE_DESC texture = {.addressMode = {CU_TR_ADDRESS_MODE_CLAMP}};

	(void)unused, (void)what;
	launch_first();
	OK(cuMemAlloc(&buffer, 2 * MIB));
	OK(cuMemsetD8(buffer, 1, 2 * MIB));
	step("allocations", "a buffer and a memset", 0);
	for (unsigned long i = 0; i < threads; i++)
		pthread_create(&running[i], NULL, copy_pageable, NULL);
	for (unsigned long i = 0; i < threads; i++)
		pthread_join(running[i], NULL);
	step("streams", "pageable copies of 64 MiB on %llu streams of as many threads", threads);
	resource.res.linear.devPtr = buffer;
	resource.res.linear.format = CU_AD_FORMAT_FLOAT;
	resource.res.linear.numChannels = 1;
	resource.res.linear.sizeInBytes = MIB;
	for (unsigned i = 0; i < MOST; i++)
		OK(cuTexObjectCreate(&textures[i], &resource, &texture, NULL));
	step("nothing", "%llu texture objects", MOST);
}

/* ---- green contexts ---- */

#if CUDA_VERSION >= 12040
static void told(const char *what, int error)
{
	printf("answer\t%s\t%d\n", what, error);
}

static void green(unsigned long most, unsigned before_primary, const char *what)
{
	CUgreenCtx made[16];
	CUcontext inside[16], current;
	CUdevResource all, parts[16], rest;
	CUdevResourceDesc describe;
	unsigned groups = most < 16 ? (unsigned)most : 16;
	CUdeviceptr block, pooled;
	CUdevice device = 0;
	CUstream on;

	(void)what;
	OK(cuInit(0));
	open_nvml();
	OK(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM));
	OK(cuDevSmResourceSplitByCount(parts, &groups, &all, &rest, 0, 8));
	printf("answer\tgroups\t%u\n", groups);
	if (before_primary) {
		OK(cuDevResourceGenerateDesc(&describe, &parts[0], 1));
		told("green context without a primary one",
		     cuGreenCtxCreate(&made[0], describe, device, CU_GREEN_CTX_DEFAULT_STREAM));
		told("current context then", cuCtxGetCurrent(&current) || !current);
		begin();
		step("contexts", "after that", 0);
		return;
	}
	launch_first();
	for (unsigned i = 0; i < groups; i++) {
		OK(cuDevResourceGenerateDesc(&describe, &parts[i], 1));
		OK(cuGreenCtxCreate(&made[i], describe, device, CU_GREEN_CTX_DEFAULT_STREAM));
		step("contexts", "green context %llu", i + 1);
		OK(cuCtxFromGreenCtx(&inside[i], made[i]));
		step("contexts", "its CUcontext", 0);
		OK(cuGreenCtxStreamCreate(&on, made[i], CU_STREAM_NON_BLOCKING, 0));
		step("streams", "a stream in it", 0);
		launch(kernel, on);
		step("launches", "a launch there", 0);
		OK(cuCtxSetCurrent(inside[i]));
		OK(cuMemAlloc(&block, 8 * MIB));
		step("allocations", "8 MiB allocated in it", 0);
		OK(cuMemAllocAsync(&pooled, 8 * MIB, on));
		step("pools", "8 MiB of the default pool", 0);
		OK(cuCtxGetCurrent(&current));
		told("the current context is the green one", current == inside[i]);
		OK(cuCtxSetCurrent(context));
	}
	for (unsigned i = 0; i < groups; i++) {
		OK(cuGreenCtxDestroy(made[i]));
		step("contexts", "green context %llu destroyed", i + 1);
	}
	told("free of memory of a green context that is gone", cuMemFree(block));
	step("allocations", "freed", 0);
	cuCtxSetCurrent(context);
}
#endif

/* ---- the cost of recording ---- */

/* Launches of a small graph, a stream-ordered block beside each: microseconds a round. */
static double time_rounds(CUgraphExec exec, unsigned long rounds)
{
	double began = now();
	CUdeviceptr block;

	for (unsigned long i = 0; i < rounds; i++) {
		OK(cuMemAllocAsync(&block, MIB, stream));
		OK(cuGraphLaunch(exec, stream));
		OK(cuMemFreeAsync(block, stream));
		if (i % 16 == 15)
			OK(cuStreamSynchronize(stream));
	}
	OK(cuStreamSynchronize(stream));
	return (now() - began) / (double)rounds * 1e6;
}

static void graph_loop(unsigned long first, unsigned unused, const char *what)
{
	CUgraphExec exec;
	unsigned long rounds;

	(void)unused, (void)what;
	launch_first();
	OK(cuGraphInstantiate(&exec, make_graph(100, 1, "kernels"), 0));
	time_rounds(exec, first);
	printf("ready\n");
	fflush(stdout);
	while (scanf(" loop %lu", &rounds) == 1) {
		printf("%.3f\n", time_rounds(exec, rounds));
		fflush(stdout);
	}
}

/* An hour's events of a server: requests, now and then a new stream, module or graph, to the last.
 */
static void server(unsigned long requests, unsigned unused, const char *what)
{
	CUdeviceptr block;
	CUgraphExec exec;
	CUmodule code;
	CUstream made;

	(void)unused, (void)what;
	launch_first();
	for (unsigned long i = 0; i < requests; i++) {
		OK(cuMemAlloc(&block, 64 * 1024));
		launch(kernel, stream);
		OK(cuMemFree(block));
		if (i % (requests / 50) == 0)
			OK(cuStreamCreate(&made, CU_STREAM_NON_BLOCKING));
		if (i % (requests / 25) == 0)
			OK(cuModuleLoadData(&code, ptx));
		if (i % (requests / 10) == 0)
			OK(cuGraphInstantiate(&exec, make_graph(2000, 1, "kernels"), 0));
	}
	step("mixed", "%llu requests", requests);
	OK(cuGraphInstantiate(&exec, make_graph(100000, 1, "kernels"), 0));
	OK(cuGraphLaunch(exec, stream));
	step("graphs", "a last graph of 100,000 nodes", 0);
}

struct suite {
	const char *name;
	void (*run)(unsigned long, unsigned, const char *);
	unsigned long number;
	unsigned other;
	const char *what;
};

static const struct suite suites[] = {
	{"graph-1e3", graph_life, 1000, 1, "kernels"},
	{"graph-1e4", graph_life, 10000, 1, "kernels"},
	{"graph-1e5", graph_life, 100000, 1, "kernels"},
	{"graph-3e5", graph_life, 300000, 1, "kernels"},
	{"graph-1e6", graph_life, 1000000, 1, "kernels"},
	{"graph-wide", graph_life, 100000, 64, "kernels"},
	{"graph-memsets", graph_life, 100000, 1, "memsets"},
	{"graph-copies", graph_life, 100000, 1, "copies"},
	{"captures", captures, 300, 0, ""},
	{"captures-memory", captures, 300, 1, ""},
	{"graph-memory-chain", graph_memory, 3, 1, ""},
	{"graph-memory-wide", graph_memory, 3, 3, ""},
	{"streams", streams, 8192, 0, ""},
	{"events", events, 1000000, 0, ""},
	{"modules", modules, 200, 0, ""},
	{"contexts", contexts, 3, 0, ""},
	{"local", local_memory, 0, 0, ""},
	{"registered", registered, 1024, 4, ""},
	{"space", address_space, 1000, 0, ""},
	{"pools", pools, 200, 0, ""},
	{"copies", copies, 32, 0, ""},
#if CUDA_VERSION >= 12040
	{"green", green, 4, 0, ""},
	{"green-first", green, 4, 1, ""},
#endif
	{"graph-loop", graph_loop, 100, 0, ""},
	{"server", server, 50000, 0, ""},
};

int main(int count, char **arguments)
{
	for (size_t i = 0; count > 1 && i < sizeof(suites) / sizeof(suites[0]); i++) {
		if (strcmp(suites[i].name, arguments[1]) != 0)
			continue;
		suites[i].run(count > 2 ? strtoul(arguments[2], NULL, 10) : suites[i].number,
			      suites[i].other, suites[i].what);
		printf("end\t%lld\n", own_bytes());
		fflush(stdout);
		return 0;
	}
	for (size_t i = 0; i < sizeof(suites) / sizeof(suites[0]); i++)
		printf("%s\n", suites[i].name);
	return count > 1;
}
