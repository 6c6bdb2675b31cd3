/*
 * Two devices: the current device is each thread's own, an allocation on a stream belongs to the
 * stream's device, each device has its context, pool and totals.
 */
#include "family.h"

#include <pthread.h>

NAMED void *on_second(void *unused)
{
	void *p = NULL;

	(void)unused;
	OK(cudaSetDevice(1));
	OK(cudaMalloc(&p, 9 * MIB));
	return NULL;
}

int main(void)
{
	cudaStream_t stream;
	pthread_t thread;
	void *p;
	int count;

	OK(cudaGetDeviceCount(&count));
	if (count < 2) {
		printf("skip one device only\n");
		return 0;
	}
	OK(cudaMalloc(&p, 4 * MIB));
	if (pthread_create(&thread, NULL, on_second, NULL) || pthread_join(thread, NULL))
		return 2;
	OK(cudaMalloc(&p, 1 * MIB)); /* this thread's device is still the first */
	OK(cudaSetDevice(1));
	OK(cudaStreamCreate(&stream));
	OK(cudaMallocManaged(&p, 2 * MIB, cudaMemAttachGlobal));
	OK(cudaSetDevice(0));
	OK(cudaMallocAsync(&p, 8 * MIB, stream));
	expect("usage.device.0.current_bytes", 5 * MIB);
	expect("usage.device.1.peak_bytes", 9 * MIB);
	expect("usage.managed.1.peak_bytes", 2 * MIB);
	expect("usage.async.1.current_bytes", 8 * MIB);
	expect("usage.async.0.current_bytes", 0);
	expect("pool.default.1.used_bytes", 8 * MIB);
	expect("site.on_second.peak_bytes", 9 * MIB);
	expect("finding.context.stray", 0); /* little, but of little */
	OK(cudaSetDevice(1));
	OK(cudaDeviceSynchronize());
	OK(cudaDeviceReset());
	expect("implicit.device-reset.1.bytes", (9 + 2) * MIB);
	OK(cudaSetDevice(0));
	expect("totals.0.current_bytes", 5 * MIB);
	expect("totals.0.peak_bytes", 5 * MIB);
	return 0;
}
