/*
 * A program that leaks one family of memory: leaking FAMILY [clean]. Every fourth block of 40 is
 * forgotten; with `clean` none is. Prints, as JSON, what it forgot.
 */
extern "C" {
#include "family.h"
}

#include <vector>

#define STEPS 40

static bool clean;

static bool forgotten(int step)
{
	return !clean && step % 4 == 3;
}

static size_t bytes_of(int step)
{
	return (size_t)(step % 3 + 1) * MIB;
}

NAMED size_t leak_device(int step)
{
	void *memory;

	OK(cudaMalloc(&memory, bytes_of(step)));
	if (forgotten(step))
		return bytes_of(step);
	OK(cudaFree(memory));
	return 0;
}

NAMED size_t leak_async(int step)
{
	void *memory;

	OK(cudaMallocAsync(&memory, bytes_of(step), NULL));
	if (forgotten(step))
		return bytes_of(step);
	OK(cudaFreeAsync(memory, NULL));
	return 0;
}

static cudaMemPool_t explicit_pool()
{
	static cudaMemPool_t pool;
	cudaMemPoolProps props = {};

	if (pool)
		return pool;
	props.allocType = cudaMemAllocationTypePinned;
	props.location.type = cudaMemLocationTypeDevice;
	OK(cudaMemPoolCreate(&pool, &props));
	return pool;
}

NAMED size_t leak_pool(int step)
{
	void *memory;

	OK(cudaMallocFromPoolAsync(&memory, bytes_of(step), explicit_pool(), NULL));
	if (forgotten(step))
		return bytes_of(step);
	OK(cudaFreeAsync(memory, NULL));
	return 0;
}

NAMED size_t leak_managed(int step)
{
	void *memory;

	OK(cudaMallocManaged(&memory, bytes_of(step), cudaMemAttachGlobal));
	if (forgotten(step))
		return bytes_of(step);
	OK(cudaFree(memory));
	return 0;
}

NAMED size_t leak_pinned(int step)
{
	void *memory;

	OK(cudaMallocHost(&memory, bytes_of(step)));
	if (forgotten(step))
		return bytes_of(step);
	OK(cudaFreeHost(memory));
	return 0;
}

NAMED size_t leak_array(int step)
{
	cudaChannelFormatDesc format = {32, 0, 0, 0, cudaChannelFormatKindFloat};
	size_t side = 256u * (unsigned)(step % 3 + 1);
	cudaArray_t array;

	OK(cudaMallocArray(&array, &format, side, side, 0));
	if (forgotten(step))
		return side * side * 4;
	OK(cudaFreeArray(array));
	return 0;
}

NAMED size_t leak_vmm(int step)
{
	CUmemAllocationProp props = {};
	CUmemGenericAllocationHandle handle;
	size_t bytes = bytes_of(step) * 2;

	props.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	OK(cuMemCreate(&handle, bytes, &props, 0));
	if (forgotten(step))
		return bytes;
	OK(cuMemRelease(handle));
	return 0;
}

/* Memory that a graph allocates and nobody frees; clean, the address is freed after the launch. */
NAMED size_t leak_graph(int step)
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaStream_t stream;
	void *memory;

	if (step % 4 != 3)
		return 0;
	OK(cudaStreamCreate(&stream));
	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	OK(cudaMallocAsync(&memory, bytes_of(step), stream));
	OK(cudaStreamEndCapture(stream, &graph));
	OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cudaGraphLaunch(exec, stream));
	OK(cudaStreamSynchronize(stream));
	if (clean)
		OK(cudaFree(memory));
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(graph));
	OK(cudaStreamDestroy(stream));
	return clean ? 0 : bytes_of(step);
}

static const struct family {
	const char *name, *kind, *function;
	size_t (*leak)(int step);
} families[] = {
	{"device", "device", "leak_device", leak_device},
	{"async", "async", "leak_async", leak_async},
	{"pool", "async", "leak_pool", leak_pool},
	{"managed", "managed", "leak_managed", leak_managed},
	{"pinned", "pinned", "leak_pinned", leak_pinned},
	{"array", "array", "leak_array", leak_array},
	{"vmm", "vmm", "leak_vmm", leak_vmm},
	{"graph", "graph", "leak_graph", leak_graph},
};

int main(int argc, char **argv)
{
	clean = argc > 2 && strcmp(argv[2], "clean") == 0;
	for (const family &family : families) {
		std::vector<size_t> lost;
		size_t bytes = 0;

		if (argc < 2 || strcmp(argv[1], family.name) != 0)
			continue;
		OK(cudaFree(NULL));
		for (int step = 0; step < STEPS; step++) {
			size_t forgot = family.leak(step);

			if (forgot)
				lost.push_back(forgot);
			bytes += forgot;
		}
		OK(cudaDeviceSynchronize());
		printf("{\"kind\": \"%s\", \"function\": \"%s\", \"bytes\": %zu, \"count\": %zu}\n",
		       family.kind, family.function, bytes, lost.size());
		return 0;
	}
	fprintf(stderr,
		"usage: leaking device|async|pool|managed|pinned|array|vmm|graph [clean]\n");
	return 2;
}
