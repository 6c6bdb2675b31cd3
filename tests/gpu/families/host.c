/*
 * Pinned and registered host memory. Memory of cuMemAllocHost that libc's free was given instead is
 * a pinned leak (gpu-burn#17); every read-back registers and never unregisters, and a range
 * registered twice counts once (iree#23779).
 */
#include "family.h"

#define READBACKS 20
#define RANGE (64 * KIB)

NAMED void read_back(char *range)
{
	OK(cudaHostRegister(range, RANGE, 0));
}

NAMED void *host_alloc(size_t bytes)
{
	void *p = NULL;

	OK(cuMemAllocHost_v2(&p, bytes));
	return p;
}

int main(void)
{
	char *memory = aligned_alloc(4096, (READBACKS + 1) * RANGE);
	void *p, *zero = (void *)1;
	int i;

	OK(cudaFree(0));
	for (i = 0; i < READBACKS; i++)
		read_back(memory + (size_t)i * RANGE);
	FAILS(cudaHostRegister(memory, RANGE, 0), 712);
	OK(cudaHostRegister(memory + READBACKS * RANGE, RANGE, 0));
	OK(cudaHostUnregister(memory + READBACKS * RANGE));
	FAILS(cudaHostUnregister(memory + READBACKS * RANGE), 713);
	host_alloc(3 * MIB);
	OK(cudaHostAlloc(&p, 2 * MIB, 0));
	FAILS(cudaFree(p), 1);
	OK(cudaFreeHost(p));
	FAILS(cudaFreeHost(p), 1);
	OK(cudaMallocHost(&zero, 0));
	if (zero)
		return 3;
	expect("usage.registered.host.current_bytes", READBACKS * RANGE);
	expect("usage.registered.host.allocations", READBACKS + 1);
	expect("usage.registered.host.failures", 1);
	expect("usage.pinned.host.current_bytes", 3 * MIB);
	expect("usage.pinned.host.current_count", 1);
	expect("usage.pinned.host.peak_bytes", 5 * MIB);
	expect("usage.device.0.allocations", 0);
	expect("site.read_back.live_bytes", READBACKS * RANGE);
	expect("site.host_alloc.live_bytes", 3 * MIB);
	expect("leaks.exit_bytes", 3 * MIB);
	expect("finding.leak.pinned", 2); /* pinned and registered */
	expect("errors.wrong-family.count", 1);
	expect("errors.wrong-family.bytes", 2 * MIB);
	expect("errors.double-free.count", 2);
	return 0;
}
