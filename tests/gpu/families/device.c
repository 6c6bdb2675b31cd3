/*
 * Device memory of all sizes: slabs and pages, pitched forms, nothing asked for, nothing to free,
 * calls that fail. Zero-byte allocations and frees of NULL are never anything (cumo, GOMC).
 */
#include "family.h"

#define SMALL 5000

NAMED void *small(void)
{
	void *p = NULL;

	OK(cudaMalloc(&p, 256));
	return p;
}

NAMED void *large(size_t bytes)
{
	void *p = NULL;

	OK(cudaMalloc(&p, bytes));
	return p;
}

static unsigned long long live, count, frees, failures;

static void nothing(void)
{
	void *p = (void *)1, *q = (void *)1;

	OK(cudaMalloc(&p, 0));
	OK(cudaMalloc(&q, 0));
	OK(cudaFree(p));
	OK(cudaFree(q));
	OK(cudaFree(NULL));
	OK(cudaFreeHost(NULL));
	OK(cudaFreeArray(NULL));
	OK(cudaFreeAsync(NULL, 0));
	OK(cuMemFree_v2(0));
	if (p || q)
		exit(3);
}

static void failing(void)
{
	CUdeviceptr d = 77;
	void *p;

	FAILS(cudaMalloc(NULL, 64), 1);
	FAILS(cudaMalloc(&p, 1ull << 50), 2);
	FAILS(cuMemAlloc_v2(&d, 0), 1);
	printf("fact cuMemAlloc of 0 bytes %s its pointer\n", d == 77 ? "leaves alone" : "clears");
	failures = 3;
	cudaGetLastError();
}

int main(void)
{
	static void *blocks[SMALL];
	struct cudaPitchedPtr cube;
	unsigned long long before;
	size_t pitch;
	void *p;
	int i;

	OK(cudaFree(0));
	before = free_bytes();
	nothing();
	failing();
	for (i = 0; i < SMALL; i++)
		blocks[i] = small();
	for (i = 0; i < SMALL; i += 2)
		OK(cudaFree(blocks[i]));
	live = SMALL / 2 * 256;
	count = SMALL;
	frees = SMALL / 2;
	large(5 * MIB + 1);
	live += 5 * MIB + 1;
	OK(cudaFree(large(100 * MIB)));
	OK(cudaMallocPitch(&p, &pitch, 1000, 1000));
	live += pitch * 1000;
	OK(cudaMalloc3D(&cube, (struct cudaExtent){1000, 100, 10}));
	live += cube.pitch * 100 * 10;
	count += 4;
	frees += 1;
	expect("usage.device.0.current_bytes", live);
	expect("usage.device.0.current_count", count - frees);
	expect("usage.device.0.allocations", count);
	expect("usage.device.0.frees", frees);
	expect("usage.device.0.failures", failures);
	expect("site.small.live_count", SMALL / 2);
	expect("site.large.live_bytes", 5 * MIB + 1);
	expect("leaks.exit_bytes", live);
	expect("leaks.exit_count", count - frees);
	expect("errors", 0);
	/* small blocks share slabs: counted as one allocation for the margin */
	expect_physical(before, 4);
	return 0;
}
