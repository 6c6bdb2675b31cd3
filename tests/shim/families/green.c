/*
 * A green context shares the primary one's memory: its end frees nothing of what was allocated in
 * it.
 */
#include "family.h"

int main(void)
{
	struct {
		int type;
		unsigned char rest[140];
	} resource; /* CUdevResource */
	CUdevResourceDesc desc;
	CUcontext primary, inner;
	CUgreenCtx green;
	CUdeviceptr p;

	OK(cudaFree(0));
	OK(cuCtxGetCurrent(&primary));
	OK(cuDeviceGetDevResource(0, (void *)&resource, 1));
	OK(cuDevResourceGenerateDesc(&desc, (void *)&resource, 1));
	OK(cuGreenCtxCreate(&green, desc, 0, 1));
	OK(cuCtxFromGreenCtx(&inner, green));
	OK(cuCtxSetCurrent(inner));
	OK(cuMemAlloc_v2(&p, 32 * MIB));
	OK(cuCtxSetCurrent(primary));
	expect("usage.device.0.peak_bytes", 32 * MIB);
	OK(cudaDeviceReset());
	expect("implicit.device-reset.0.bytes", 32 * MIB);
	return 0;
}
