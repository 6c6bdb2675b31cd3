/*
 * A library that maps memory of its own as NCCL does, when it is loaded: MAPPED_MIB of physical
 * memory under reserved addresses, which it keeps. None of it is PyTorch's.
 */
#include "cuda_calls.h"

#include <stdlib.h>

#define MIB (1ull << 20)

static __attribute__((constructor)) void map(void)
{
	const char *mib = getenv("MAPPED_MIB");
	CUmemAllocationProp prop = {.type = 1, .location = {.type = 1, .id = 0}};
	size_t bytes = mib ? strtoull(mib, NULL, 10) * MIB : 0;
	CUmemGenericAllocationHandle handle;
	CUdeviceptr address;
	CUcontext context;

	if (!bytes)
		return;
	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
	    cuMemAddressReserve(&address, bytes, 0, 0, 0) ||
	    cuMemCreate(&handle, bytes, &prop, 0) || cuMemMap(address, bytes, 0, handle, 0))
		abort();
}
