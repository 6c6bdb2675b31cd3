/*
 * Families of the driver API alone (families.h): virtual memory, direct calls, contexts.
 */
#include "families.h"

void family_virtual(void)
{
	CUmemAllocationProp prop = {.type = 1, .location = {.type = 1, .id = 0}};
	CUmemGenericAllocationHandle handle, kept, again;
	CUdeviceptr range;

	OK(DRIVER(cuMemCreate)(&handle, 4 * MIB, &prop, 0));
	OK(DRIVER(cuMemCreate)(&kept, 2 * MIB, &prop, 0));
	FAILS(DRIVER(cuMemCreate)(&again, 1, &prop, 0));
	OK(DRIVER(cuMemAddressReserve)(&range, 16 * MIB, 0, 0, 0));
	OK(DRIVER(cuMemMap)(range, 4 * MIB, 0, handle, 0));
	OK(DRIVER(cuMemMap)(range + 4 * MIB, 2 * MIB, 0, kept, 0));
	OK(DRIVER(cuMemRelease)(handle)); /* held by its mapping */
	OK(DRIVER(cuMemRetainAllocationHandle)(&again, (void *)(uintptr_t)range));
	OK(DRIVER(cuMemRelease)(again));
	OK(DRIVER(cuMemUnmap)(range, 4 * MIB));
	OK(DRIVER(cuMemUnmap)(range + 4 * MIB, 2 * MIB));
	OK(DRIVER(cuMemAddressFree)(range, 16 * MIB));
}

void family_direct(void)
{
	CUDA_ARRAY3D_DESCRIPTOR volume = {
		.Width = 32, .Height = 32, .Depth = 8, .Format = 0x20, .NumChannels = 4};
	CUDA_ARRAY_DESCRIPTOR plane = {
		.Width = 128, .Height = 64, .Format = 0x10, .NumChannels = 2};
	CUdeviceptr block, pitched, managed, refused;
	CUarray array, flat;
	size_t pitch;
	void *pinned;

	OK(DRIVER(cuMemAlloc_v2)(&block, 7 * MIB));
	OK(DRIVER(cuMemAllocPitch_v2)(&pitched, &pitch, 500, 20, 4));
	OK(DRIVER(cuMemAllocManaged)(&managed, MIB, 1));
	OK(DRIVER(cuMemHostAlloc)(&pinned, 4096, 0));
	OK(DRIVER(cuArray3DCreate_v2)(&array, &volume));
	OK(DRIVER(cuArrayCreate_v2)(&flat, &plane));
	FAILS(DRIVER(cuMemAlloc_v2)(&refused, 0));
	FAILS(DRIVER(cuMemAlloc_v2)(&refused, 1ull << 50));
	OK(DRIVER(cuArrayDestroy)(array));
	OK(DRIVER(cuMemFreeHost)(pinned));
	OK(DRIVER(cuMemFree_v2)(pitched));
	OK(DRIVER(cuMemFree_v2)(managed));
	OK(DRIVER(cuMemFree_v2)(block));
	FAILS(DRIVER(cuMemFree_v2)(block));
	OK(DRIVER(cuMemAlloc_v2)(&block, 9 * MIB));
}

/* A context of the program's own takes what is allocated in it along when it ends. */
void family_contexts(void)
{
	CUcontext own, before;
	CUdeviceptr memory;

	OK(DRIVER(cuCtxGetCurrent)(&before));
	OK(DRIVER(cuCtxCreate_v2)(&own, 0, 0));
	OK(DRIVER(cuMemAlloc_v2)(&memory, 5 * MIB));
	OK(DRIVER(cuMemAlloc_v2)(&memory, 300));
	OK(DRIVER(cuCtxDestroy_v2)(own));
	OK(DRIVER(cuCtxSetCurrent)(before));
	OK(DRIVER(cuMemAlloc_v2)(&memory, 11 * MIB));
}
