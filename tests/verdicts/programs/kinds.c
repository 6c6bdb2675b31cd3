/*
 * Each kind of memory, kept and not: kinds KIND-keep [END] is a loop that forgets one piece of that
 * kind in every step, kinds KIND-free one that gives it back. Nothing but the kind differs.
 */
#include "gpu.h"

#define STEPS 200

static bool keeping;

PLACE static void *take_managed(void)
{
	void *memory;

	MUST(cudaMallocManaged(&memory, MIB, 1));
	return memory;
}

PLACE static void *take_pinned(void)
{
	void *memory;

	MUST(cudaMallocHost(&memory, MIB));
	return memory;
}

PLACE static void *take_async(void)
{
	void *memory;

	MUST(cudaMallocAsync(&memory, MIB, NULL));
	return memory;
}

static void free_async(void *memory)
{
	MUST(cudaFreeAsync(memory, NULL));
}

PLACE static void *take_from_pool(void)
{
	static cudaMemPool_t pool;
	void *memory;

	if (!pool) {
		struct cudaMemPoolProps props = {.allocType = 1, .location = {1, 0}};

		MUST(cudaMemPoolCreate(&pool, &props));
	}
	MUST(cudaMallocFromPoolAsync(&memory, MIB, pool, NULL));
	return memory;
}

PLACE static void *take_pitched(void)
{
	void *memory;
	size_t pitch;

	MUST(cudaMallocPitch(&memory, &pitch, 4000, 256));
	return memory;
}

PLACE static void *take_array(void)
{
	struct cudaChannelFormatDesc format = {32, 0, 0, 0, 2};
	cudaArray_t array;

	MUST(cudaMallocArray(&array, &format, 512, 512, 0));
	return array;
}

static void free_array(void *array)
{
	MUST(cudaFreeArray((cudaArray_t)array));
}

PLACE static void *take_mipmaps(void)
{
	struct cudaChannelFormatDesc format = {32, 0, 0, 0, 2};
	struct cudaExtent extent = {512, 512, 0};
	cudaMipmappedArray_t array;

	MUST(cudaMallocMipmappedArray(&array, &format, extent, 4, 0));
	return array;
}

static void free_mipmaps(void *array)
{
	MUST(cudaFreeMipmappedArray((cudaMipmappedArray_t)array));
}

/* A page-aligned piece of a large host buffer is registered for each transfer. */
PLACE static void *take_registered(void)
{
	static char *host;

	if (!host)
		host = aligned_alloc(4096, STEPS * 64 * KIB);
	MUST(cudaHostRegister(host, 64 * KIB, 0));
	host += 64 * KIB;
	return host - 64 * KIB;
}

static void unregister(void *host)
{
	MUST(cudaHostUnregister(host));
}

struct mapping {
	CUdeviceptr address;
	CUmemGenericAllocationHandle handle;
};

PLACE static void *take_mapping(void)
{
	CUmemAllocationProp prop = {.type = 1, .location = {1, 0}};
	struct mapping *mapping = calloc(1, sizeof(*mapping));

	MUST(cuMemCreate(&mapping->handle, 2 * MIB, &prop, 0));
	MUST(cuMemAddressReserve(&mapping->address, 2 * MIB, 0, 0, 0));
	MUST(cuMemMap(mapping->address, 2 * MIB, 0, mapping->handle, 0));
	return mapping;
}

static void unmap(void *memory)
{
	struct mapping *mapping = memory;

	MUST(cuMemUnmap(mapping->address, 2 * MIB));
	MUST(cuMemAddressFree(mapping->address, 2 * MIB));
	MUST(cuMemRelease(mapping->handle));
	free(mapping);
}

/* The range is given back and the handle is forgotten, with the memory that it stands for. */
static void unmap_alone(void *memory)
{
	struct mapping *mapping = memory;

	MUST(cuMemUnmap(mapping->address, 2 * MIB));
	MUST(cuMemAddressFree(mapping->address, 2 * MIB));
}

/* A graph with an allocation and no free is captured, launched once and destroyed. */
PLACE static void *take_graph_memory(void)
{
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t executable;
	void *memory;

	MUST(cudaStreamCreate(&stream));
	MUST(cudaStreamBeginCapture(stream, 0));
	MUST(cudaMallocAsync(&memory, MIB, stream));
	MUST(cudaStreamEndCapture(stream, &graph));
	MUST(cudaGraphInstantiateWithFlags(&executable, graph, 0));
	MUST(cudaGraphLaunch(executable, stream));
	MUST(cudaStreamSynchronize(stream));
	MUST(cudaGraphExecDestroy(executable));
	MUST(cudaGraphDestroy(graph));
	MUST(cudaStreamDestroy(stream));
	return memory;
}

/* The program's own pool hands out parts of one arena and tells the tracer so. */
PLACE static void *take_of_arena(void)
{
	static char *arena;
	static size_t used;

	if (!arena)
		arena = device_memory(512 * MIB);
	used = keeping ? used + MIB : MIB;
	gpumemtrace_pool_alloc(arena + used, MIB, 0);
	return arena + used;
}

static void return_to_arena(void *memory)
{
	gpumemtrace_pool_free(memory);
}

/* Each request has a stream of its own, and its workspace is filed under the stream's number. */
PLACE static void *take_for_stream(void)
{
	cudaStream_t stream;
	void *memory;

	MUST(cudaStreamCreate(&stream));
	MUST(cudaMallocAsync(&memory, MIB, stream));
	MUST(cudaStreamSynchronize(stream));
	MUST(cudaStreamDestroy(stream));
	return memory;
}

static void free_device(void *memory)
{
	MUST(cudaFree(memory));
}

static void free_pinned(void *memory)
{
	MUST(cudaFreeHost(memory));
}

static const struct kind {
	const char *name;
	void *(*take)(void);
	void (*give_back)(void *);
	void (*forget)(void *);
} kinds[] = {
	{"managed", take_managed, free_device, NULL},
	{"pinned", take_pinned, free_pinned, NULL},
	{"async", take_async, free_async, NULL},
	{"pool", take_from_pool, free_async, NULL},
	{"pitched", take_pitched, free_device, NULL},
	{"array", take_array, free_array, NULL},
	{"mipmaps", take_mipmaps, free_mipmaps, NULL},
	{"registered", take_registered, unregister, NULL},
	{"mapping", take_mapping, unmap, NULL},
	{"handle", take_mapping, unmap, unmap_alone},
	{"graph", take_graph_memory, free_device, NULL},
	{"arena", take_of_arena, return_to_arena, NULL},
	{"stream", take_for_stream, free_device, NULL},
};

static void run(const struct kind *kind)
{
	work(1);
	for (volatile int i = 0; i < STEPS; i++) {
		void *memory = kind->take();

		clean_step(8 * MIB);
		if (!keeping)
			kind->give_back(memory);
		else if (kind->forget)
			kind->forget(memory);
	}
}

int main(int argc, char **argv)
{
	for (unsigned i = 0; argc > 1 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t length = strlen(kinds[i].name);

		if (strncmp(argv[1], kinds[i].name, length) || argv[1][length] != '-')
			continue;
		keeping = !strcmp(argv[1] + length, "-keep");
		if (argc > 2)
			end_name = argv[2];
		run(&kinds[i]);
		end_program();
		return 0;
	}
	return 98;
}
