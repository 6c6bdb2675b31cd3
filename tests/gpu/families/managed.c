/*
 * Managed memory, never freed (cupy#4015): its own kind, in no physical figure.
 */
#include "family.h"

NAMED void *managed(size_t bytes)
{
	void *p = NULL;

	OK(cudaMallocManaged(&p, bytes, cudaMemAttachGlobal));
	return p;
}

int main(void)
{
	void *p;

	OK(cudaFree(0));
	managed(64 * MIB);
	p = managed(16 * MIB);
	OK(cudaFree(p));
	expect("usage.managed.0.current_bytes", 64 * MIB);
	expect("usage.managed.0.peak_bytes", 80 * MIB);
	expect("usage.device.0.allocations", 0);
	expect("totals.0.physical_bytes", 0);
	expect("site.managed.live_bytes", 64 * MIB);
	expect("leaks.exit_bytes", 64 * MIB);
	return 0;
}
