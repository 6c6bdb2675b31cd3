// An nvcc program with the static cudart (nvcc's default): leaks, frees, a kernel, and its own
// books.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

static void check(cudaError_t error, const char *what)
{
	if (error != cudaSuccess) {
		fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
		exit(2);
	}
}

__global__ void fill(float *data, size_t count)
{
	size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

	if (i < count)
		data[i] = 1;
}

__attribute__((noinline)) static void leak_here(size_t bytes)
{
	void *memory;

	check(cudaMalloc(&memory, bytes), "cudaMalloc");
}

int main()
{
	size_t free_before, free_after, total, live = 0, peak = 0;
	float *blocks[8];
	void *async, *pinned, *managed;

	check(cudaFree(0), "cudaFree");
	fill<<<1, 32>>>(nullptr, 0);
	check(cudaDeviceSynchronize(), "kernel");
	check(cudaMemGetInfo(&free_before, &total), "cudaMemGetInfo");
	for (int i = 0; i < 5; i++) {
		leak_here((size_t)(i + 1) * 3000000);
		live += (size_t)(i + 1) * 3000000;
	}
	for (int i = 0; i < 8; i++) {
		size_t bytes = (size_t)(i + 1) << 24;

		check(cudaMalloc((void **)&blocks[i], bytes), "cudaMalloc");
		fill<<<(unsigned)(bytes / 4 / 256), 256>>>(blocks[i], bytes / 4);
		live += bytes;
	}
	peak = live;
	check(cudaDeviceSynchronize(), "kernel");
	for (int i = 0; i < 8; i++) {
		check(cudaFree(blocks[i]), "cudaFree");
		live -= (size_t)(i + 1) << 24;
	}
	check(cudaMallocAsync(&async, 1 << 20, 0), "cudaMallocAsync");
	check(cudaFreeAsync(async, 0), "cudaFreeAsync");
	check(cudaMallocHost(&pinned, 4096), "cudaMallocHost");
	check(cudaMallocManaged(&managed, 1 << 20), "cudaMallocManaged");
	check(cudaFree(managed), "cudaFree");
	void *refused = (void *)1;
	if (cudaMalloc(&refused, (size_t)1 << 50) != cudaErrorMemoryAllocation || refused)
		return 3;
	check(cudaMemGetInfo(&free_after, &total), "cudaMemGetInfo");
	printf("{\"live\": %zu, \"peak\": %zu, \"pinned\": 4096, \"leaks\": 5, \"driver_delta\": "
	       "%zu}\n",
	       live, peak, free_before - free_after);
	return 0;
}
