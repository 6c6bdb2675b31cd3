/*
 * Every family of CUDA's memory functions once, with leaks, failures and bad frees among them, so
 * that what two backends saw of it can be compared. Arguments name families; none: all but "time".
 */
#include "families.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 4
#define ROUNDS	100
#define STREAMS 4

#define RELEASE_THRESHOLD 4

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, unsigned int attribute, void *value);

static cudaStream_t streams[STREAMS];
static int streams_made;

void must(int error, const char *what)
{
	if (!error)
		return;
	fprintf(stderr, "%s: error %d\n", what, error);
	exit(2);
}

void must_fail(int error, const char *what)
{
	if (!error) {
		fprintf(stderr, "%s: succeeded\n", what);
		exit(3);
	}
	cudaGetLastError();
}

void *driver_function(const char *name)
{
	static void *library;
	void *found;

	if (!library)
		library = dlopen("libcuda.so.1", RTLD_NOW);
	found = library ? dlsym(library, name) : NULL;
	if (!found) {
		fprintf(stderr, "libcuda.so.1 has no %s\n", name);
		exit(4);
	}
	return found;
}

cudaStream_t new_stream(void)
{
	if (streams_made == STREAMS)
		exit(5);
	OK(cudaStreamCreate(&streams[streams_made]));
	return streams[streams_made++];
}

static void family_streams(void)
{
	while (streams_made)
		OK(cudaStreamDestroy(streams[--streams_made]));
}

__attribute__((noinline)) static void *take(size_t bytes)
{
	void *memory = NULL;

	OK(cudaMalloc(&memory, bytes));
	return memory;
}

__attribute__((noinline)) static void leak(size_t bytes)
{
	void *memory = NULL;

	OK(cudaMalloc(&memory, bytes));
}

static void family_device(void)
{
	void *blocks[16], *refused = (void *)1;
	int i;

	for (i = 0; i < 16; i++)
		blocks[i] = take((size_t)(i + 1) * 300 * KIB);
	for (i = 0; i < 16; i += 2)
		OK(cudaFree(blocks[i]));
	for (i = 1; i < 16; i += 2)
		OK(cudaFree(blocks[i]));
	for (i = 0; i < 3; i++)
		leak(1000 + (size_t)i);
	FAILS(cudaMalloc(&refused, 1ull << 50));
	OK(cudaMalloc(&refused, 0));
	OK(cudaFree(NULL));
}

static void family_pitched(void)
{
	struct cudaExtent extent = {1000, 100, 10};
	struct cudaPitchedPtr volume;
	size_t pitch;
	void *plane;

	OK(cudaMallocPitch(&plane, &pitch, 1000, 1000));
	OK(cudaMalloc3D(&volume, extent));
	OK(cudaFree(plane));
	OK(cudaFree(volume.ptr));
}

static void family_managed(void)
{
	void *kept, *freed;

	OK(cudaMallocManaged(&kept, 3 * MIB, 1));
	OK(cudaMallocManaged(&freed, 5 * MIB, 1));
	OK(cudaFree(freed));
}

static void family_host(void)
{
	void *pinned, *mapped, *kept, *own = aligned_alloc(4096, 64 * KIB);

	OK(cudaMallocHost(&pinned, 12345));
	OK(cudaHostAlloc(&mapped, 64 * KIB, 2));
	OK(cudaHostAlloc(&kept, 8192, 0));
	OK(cudaHostRegister(own, 64 * KIB, 0));
	FAILS(cudaHostRegister(own, 64 * KIB, 0));
	OK(cudaHostUnregister(own));
	OK(cudaFreeHost(mapped));
	OK(cudaFreeHost(pinned));
	free(own);
}

static void family_arrays(void)
{
	struct cudaChannelFormatDesc one = {32, 0, 0, 0, 2}, four = {32, 32, 32, 32, 2};
	struct cudaExtent cube = {64, 64, 64}, plane = {256, 256, 0};
	cudaMipmappedArray_t levels;
	cudaArray_t flat, volume, kept;

	OK(cudaMallocArray(&flat, &one, 512, 512, 0));
	OK(cudaMallocArray(&kept, &four, 100, 0, 0));
	OK(cudaMalloc3DArray(&volume, &four, cube, 0));
	OK(cudaMallocMipmappedArray(&levels, &four, plane, 4, 0));
	OK(cudaFreeArray(flat));
	OK(cudaFreeArray(volume));
	OK(cudaFreeMipmappedArray(levels));
}

static void family_async(void)
{
	cudaStream_t stream = new_stream();
	void *a, *b, *kept;

	OK(cudaMallocAsync(&a, 3 * MIB, stream));
	OK(cudaMallocAsync(&b, 700, NULL));
	OK(cudaMallocAsync(&kept, 40 * MIB, stream));
	OK(cudaFreeAsync(a, stream));
	OK(cudaStreamSynchronize(stream));
	OK(cudaFree(b)); /* legal of a stream's memory */
	OK(cudaDeviceSynchronize());
}

static void family_pools(void)
{
	unsigned long long all = MIB << 20, some = 4 * MIB;
	struct cudaMemPoolProps props;
	cudaMemPool_t pool, kept_pool;
	void *a, *kept;

	memset(&props, 0, sizeof(props));
	props.allocType = 1;
	props.location.type = 1;
	OK(cudaMemPoolCreate(&pool, &props));
	OK(cudaMemPoolCreate(&kept_pool, &props));
	OK(cudaMemPoolSetAttribute(pool, RELEASE_THRESHOLD, &all));
	OK(cudaMemPoolSetAttribute(kept_pool, RELEASE_THRESHOLD, &some));
	OK(cudaMallocFromPoolAsync(&a, 20 * MIB, pool, NULL));
	OK(cudaMallocFromPoolAsync(&kept, 6 * MIB, kept_pool, NULL));
	OK(cudaFreeAsync(a, NULL));
	OK(cudaDeviceSynchronize());
	OK(cudaMemPoolTrimTo(pool, 0));
	OK(cudaMemPoolDestroy(pool));
}

static void family_ipc(void)
{
	cudaIpcMemHandle_t handle;
	void *memory = take(2 * MIB);

	OK(cudaIpcGetMemHandle(&handle, memory));
	FAILS(cudaIpcOpenMemHandle(&memory, handle, 1)); /* in the process that made it */
}

static void family_errors(void)
{
	char *memory = take(4 * MIB);

	FAILS(cudaFree(memory + 4096));
	OK(cudaFree(memory));
	FAILS(cudaFree(memory));
	FAILS(cudaFree((void *)0x1234000));
	FAILS(cudaFreeHost(&memory));
}

static void family_limits(void)
{
	OK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 16 * MIB));
	OK(cudaDeviceSetLimit(cudaLimitStackSize, 2048));
}

static void *at_work(void *number)
{
	size_t bytes = (size_t)(uintptr_t)number * 64 * KIB;
	void *memory[4];
	int i, k;

	for (i = 0; i < ROUNDS; i++) {
		for (k = 0; k < 4; k++)
			OK(cudaMalloc(&memory[k], bytes + (size_t)k * 512));
		for (k = 0; k < 4; k++)
			OK(cudaFree(memory[k]));
	}
	OK(cudaMalloc(&memory[0], bytes));
	return NULL;
}

static void family_threads(void)
{
	pthread_t threads[THREADS];
	uintptr_t i;

	for (i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, at_work, (void *)(i + 1));
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void family_reset(void)
{
	take(3 * MIB);
	OK(cudaDeviceReset());
	take(MIB);
}

static const struct family {
	const char *name;
	void (*run)(void);
} families[] = {
	{"device", family_device},   {"pitched", family_pitched},   {"managed", family_managed},
	{"host", family_host},	     {"arrays", family_arrays},	    {"async", family_async},
	{"pools", family_pools},     {"ipc", family_ipc},	    {"errors", family_errors},
	{"threads", family_threads}, {"virtual", family_virtual},   {"direct", family_direct},
	{"graphs", family_graphs},   {"contexts", family_contexts}, {"streams", family_streams},
	{"limits", family_limits},   {"reset", family_reset},	    {"time", time_pairs},
};

int main(int argc, char **argv)
{
	size_t i;
	int k;

	OK(cudaFree(NULL)); /* makes the context */
	for (i = 0; argc == 1 && i + 1 < sizeof(families) / sizeof(*families); i++)
		families[i].run();
	for (k = 1; k < argc; k++)
		for (i = 0; i < sizeof(families) / sizeof(*families); i++)
			if (!strcmp(argv[k], families[i].name))
				families[i].run();
	return 0;
}
