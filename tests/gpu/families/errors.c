/*
 * Bad frees, each by its name, with both stacks where two calls are involved (cuda-samples#52: a
 * double free; and one with the address reissued in between, which destroys somebody else's block).
 */
#include "family.h"

NAMED void first_free(void *p)
{
	OK(cudaFree(p));
}

NAMED void second_free(void *p)
{
	FAILS(cudaFree(p), 1);
}

NAMED void wrong_free(void *p)
{
	OK(cudaFree(p)); /* frees whoever lives there now */
}

NAMED void *victim(size_t bytes)
{
	void *p = NULL;

	OK(cudaMalloc(&p, bytes));
	return p;
}

NAMED void owner_free(void *p)
{
	FAILS(cudaFree(p), 1);
}

/* The driver gives the address again when the size is the same and nothing else is free there. */
static int reissued(void)
{
	void *p, *q;

	OK(cudaMalloc(&p, 6 * MIB));
	OK(cudaFree(p));
	q = victim(6 * MIB);
	if (p != q) {
		OK(cudaFree(q));
		return 0;
	}
	wrong_free(p);
	owner_free(q);
	return 1;
}

int main(void)
{
	static const struct cudaChannelFormatDesc desc = {32, 0, 0, 0, cudaChannelFormatKindFloat};
	void *p, *block, *pinned, *exported;
	cudaIpcMemHandle_t handle;
	cudaArray_t array;
	int local, again;

	OK(cudaFree(0));
	OK(cudaMalloc(&block, 4 * MIB));
	OK(cudaMalloc(&p, 3 * MIB));
	first_free(p);
	second_free(p);
	FAILS(cudaFree((char *)block + 512), 1);
	FAILS(cudaFree(&local), 1);
	OK(cudaMallocHost(&pinned, 8192));
	FAILS(cudaFree(pinned), 1);
	FAILS(cudaFreeHost(block), 1);
	OK(cudaMallocArray(&array, &desc, 64, 64, 0));
	FAILS(cudaFree(array), 1);
	OK(cudaMalloc(&exported, 2 * MIB));
	OK(cudaIpcGetMemHandle(&handle, exported));
	OK(cudaFree(exported));
	cudaGetLastError();
	again = reissued();
	printf("fact a freed address was %sreissued\n", again ? "" : "not ");
	expect("errors.double-free.count", 1 + again);
	expect("error_stack.double-free.second_free", 1);
	expect("error_first.double-free.first_free", 1);
	if (again) {
		expect("error_stack.double-free.owner_free", 1);
		expect("error_first.double-free.wrong_free", 1);
		expect("victim.error.double-free.victim", 1);
	}
	expect("errors.interior-pointer.count", 1);
	expect("errors.interior-pointer.bytes", 4 * MIB);
	expect("errors.unknown-pointer.count", 1);
	expect("errors.wrong-family.count", 3);
	expect("errors.freed-while-exported.count", 1);
	expect("usage.device.0.current_bytes", 4 * MIB);
	expect("usage.pinned.host.current_bytes", 8192);
	expect("usage.array.0.current_count", 1);
	return 0;
}
