/*
 * Arrays of all shapes. Their bytes are the descriptor's; what the driver holds for them is
 * compared with its free memory.
 */
#include "family.h"

static const struct cudaChannelFormatDesc one = {32, 0, 0, 0, cudaChannelFormatKindFloat};
static const struct cudaChannelFormatDesc four = {32, 32, 32, 32, cudaChannelFormatKindFloat};

NAMED cudaArray_t plane(size_t width, size_t height)
{
	cudaArray_t array = NULL;

	OK(cudaMallocArray(&array, &one, width, height, 0));
	return array;
}

NAMED cudaArray_t cube(const struct cudaChannelFormatDesc *desc, size_t side)
{
	cudaArray_t array = NULL;

	OK(cudaMalloc3DArray(&array, desc, (struct cudaExtent){side, side, side}, 0));
	return array;
}

NAMED cudaMipmappedArray_t mipmap(unsigned levels)
{
	cudaMipmappedArray_t array = NULL;

	OK(cudaMallocMipmappedArray(&array, &four, (struct cudaExtent){1024, 1024, 0}, levels, 0));
	return array;
}

static unsigned long long mipmap_bytes(unsigned levels)
{
	unsigned long long sum = 0, side = 1024;

	for (; levels; levels--, side /= 2)
		sum += side * side * 16;
	return sum;
}

int main(void)
{
	unsigned long long before, live = 0;
	cudaMipmappedArray_t gone;
	cudaArray_t array;

	OK(cudaFree(0));
	before = free_bytes();
	plane(1024, 1024);
	plane(100, 0); /* one-dimensional */
	plane(1001, 777);
	cube(&four, 64);
	cube(&one, 100);
	mipmap(5);
	live = 1024 * 1024 * 4 + 100 * 4 + 1001 * 777 * 4 + 64 * 64 * 64 * 16 +
	       100 * 100 * 100 * 4 + mipmap_bytes(5);
	expect_physical(before, 6);
	array = plane(64, 64);
	OK(cudaFreeArray(array));
	gone = mipmap(3);
	OK(cudaFreeMipmappedArray(gone));
	expect("usage.array.0.current_bytes", live);
	expect("usage.array.0.current_count", 6);
	expect("usage.array.0.allocations", 8);
	expect("usage.array.0.frees", 2);
	expect("site.mipmap.live_bytes", mipmap_bytes(5));
	expect("leaks.exit_bytes", live);
	expect("errors", 0);
	return 0;
}
