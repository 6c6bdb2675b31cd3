/*
 * Questions to a real GPU whose answers the tracker relies on and facts.md does not have yet.
 * Prints facts, expects nothing. Not for the simulated GPU.
 */
#include "family.h"

static long long taken(unsigned long long before)
{
	return ((long long)before - (long long)free_bytes()) / (long long)KIB;
}

static void small_arrays(void)
{
	static const struct cudaChannelFormatDesc desc = {32, 0, 0, 0, cudaChannelFormatKindFloat};
	unsigned long long before = free_bytes();
	cudaArray_t arrays[64];
	void *p;
	int i;

	OK(cudaMallocArray(&arrays[0], &desc, 64, 64, 0));
	printf("fact one array of 64x64 floats takes %lld KiB\n", taken(before));
	for (i = 1; i < 64; i++)
		OK(cudaMallocArray(&arrays[i], &desc, 64, 64, 0));
	printf("fact 64 of them take %lld KiB\n", taken(before));
	OK(cudaMalloc(&p, 256));
	printf("fact and one cudaMalloc of 256 bytes beside them: %lld KiB\n", taken(before));
	for (i = 0; i < 64; i++)
		OK(cudaFreeArray(arrays[i]));
	OK(cudaFree(p));
	printf("fact after freeing all of it: %lld KiB\n", taken(before));
}

static void second_context(void)
{
	unsigned long long before = free_bytes();
	CUcontext primary, second;
	CUdeviceptr p;

	OK(cuCtxGetCurrent(&primary));
	OK(cuCtxCreate_v4(&second, NULL, 0, 0));
	OK(cuMemAllocAsync(&p, 64 * MIB, 0));
	OK(cuCtxSynchronize());
	OK(cuCtxDestroy(second));
	OK(cuCtxSetCurrent(primary));
	printf("fact a destroyed context with 64 MiB of the default pool leaves %lld KiB taken\n",
	       taken(before));
	printf("fact freeing it from another context gives %d", (int)cuMemFreeAsync(p, 0));
	OK(cuCtxSynchronize());
	printf(", then %lld KiB are taken\n", taken(before));
}

static void green_context(void)
{
	unsigned long long before = free_bytes();
	CUdevResource resource;
	CUdevResourceDesc desc;
	CUcontext primary, inner;
	CUgreenCtx green;
	CUdeviceptr p;

	OK(cuCtxGetCurrent(&primary));
	OK(cuDeviceGetDevResource(0, &resource, CU_DEV_RESOURCE_TYPE_SM));
	OK(cuDevResourceGenerateDesc(&desc, &resource, 1));
	OK(cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
	printf("fact a green context takes %lld KiB\n", taken(before));
	OK(cuCtxFromGreenCtx(&inner, green));
	OK(cuCtxSetCurrent(inner));
	OK(cuMemAlloc(&p, 32 * MIB));
	OK(cuCtxSetCurrent(primary));
	OK(cuGreenCtxDestroy(green));
	printf("fact destroyed, with 32 MiB allocated in it: %lld KiB\n", taken(before));
	printf("fact freeing that gives %d\n", (int)cuMemFree(p));
}

/* One graph of one allocation, launched once. */
static void graph_block(size_t bytes)
{
	cudaStream_t stream;
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	void *p;

	OK(cudaStreamCreate(&stream));
	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	OK(cudaMallocAsync(&p, bytes, stream));
	OK(cudaStreamEndCapture(stream, &graph));
	OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cudaGraphLaunch(exec, stream));
	OK(cudaStreamSynchronize(stream));
}

static void after_reset(const char *what, void (*hold)(void))
{
	unsigned long long before;

	OK(cudaFree(0));
	before = free_bytes();
	hold();
	printf("fact %s: %lld KiB taken, ", what, taken(before));
	OK(cudaDeviceReset());
	OK(cudaFree(0));
	printf("%lld KiB after a reset\n", taken(before));
}

static void hold_graph(void)
{
	graph_block(64 * MIB);
}

static void hold_handle(void)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemGenericAllocationHandle handle;

	OK(cuMemCreate(&handle, 64 * MIB, &prop, 0));
}

static void hold_mapping(void)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr range;

	OK(cuMemCreate(&handle, 64 * MIB, &prop, 0));
	OK(cuMemAddressReserve(&range, 64 * MIB, 0, 0, 0));
	OK(cuMemMap(range, 64 * MIB, 0, handle, 0));
	OK(cuMemRelease(handle)); /* the mapping alone holds it */
}

static void hold_explicit_pool(void)
{
	struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
					 .location = {cudaMemLocationTypeDevice, 0}};
	cudaMemPool_t pool;
	void *p;

	OK(cudaMemPoolCreate(&pool, &props));
	OK(cudaMallocFromPoolAsync(&p, 64 * MIB, pool, 0));
	OK(cudaDeviceSynchronize());
}

static void hold_default_pool(void)
{
	void *p;

	OK(cudaMallocAsync(&p, 64 * MIB, 0));
	OK(cudaDeviceSynchronize());
}

int main(void)
{
	OK(cudaFree(0));
	small_arrays();
	second_context();
	green_context();
	after_reset("a graph's block of 64 MiB", hold_graph);
	after_reset("a handle of 64 MiB", hold_handle);
	after_reset("a mapping of 64 MiB without its handle", hold_mapping);
	after_reset("64 MiB of an explicit pool", hold_explicit_pool);
	after_reset("64 MiB of the default pool", hold_default_pool);
	return 0;
}
