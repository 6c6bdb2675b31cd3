/*
 * cudaDeviceReset while members of an object still hold memory (alien#101): what it frees is no
 * leak, the frees that follow are free-after-reset, and allocating works again. What pools hold
 * stays.
 */
#include "family.h"

NAMED void destructor(void *device, void *pinned)
{
	FAILS(cudaFree(device), 1);
	printf("fact cudaFreeHost after a reset gives %d\n", (int)cudaFreeHost(pinned));
	cudaGetLastError();
}

int main(void)
{
	static const struct cudaChannelFormatDesc desc = {32, 0, 0, 0, cudaChannelFormatKindFloat};
	void *device, *small, *async, *pinned, *after;
	unsigned long long before, held;
	cudaArray_t array;

	OK(cudaFree(0));
	before = free_bytes();
	OK(cudaMalloc(&device, 20 * MIB));
	OK(cudaMalloc(&small, 300));
	OK(cudaMallocAsync(&async, 40 * MIB, 0));
	OK(cudaMallocHost(&pinned, MIB));
	OK(cudaMallocArray(&array, &desc, 1024, 1024, 0));
	OK(cudaDeviceSynchronize());
	OK(cudaDeviceReset());
	destructor(device, pinned);
	held = free_bytes();
	printf("fact after a reset %lld MiB of %u MiB are still taken\n",
	       ((long long)before - (long long)held) / (long long)MIB, 20 + 2 + 64 + 4);
	OK(cudaFreeAsync(async, 0)); /* a pool's memory outlives the context */
	OK(cudaDeviceSynchronize());
	OK(cudaMalloc(&after, 5000));
	OK(cudaFree(after));
	expect("implicit.device-reset.0.bytes", 20 * MIB + 300 + 4 * MIB);
	expect("implicit.device-reset.0.count", 3);
	expect("implicit.device-reset.host.bytes", MIB);
	expect("error_stack.free-after-reset.destructor", 2);
	expect("usage.device.0.current_bytes", 0);
	expect("usage.async.0.current_bytes", 0);
	expect("usage.async.0.frees", 1);
	expect("usage.pinned.host.current_bytes", 0);
	expect("leaks.exit_bytes", 0);
	return 0;
}
