/*
 * A sparse array has no memory of its own; a handle mapped to a tile of it is held by the tile.
 */
#include "family.h"

static CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				   .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

/* Padding is filled with whatever, as a program's stack would. */
static void tile(CUarray array, unsigned offset, CUmemGenericAllocationHandle handle, int litter)
{
	CUarrayMapInfo info;

	memset(&info, litter, sizeof(info));
	info.resourceType = CU_RESOURCE_TYPE_ARRAY;
	info.resource.array = array;
	info.subresourceType = 0; /* a level */
	memset(&info.subresource.sparseLevel, 0, sizeof(info.subresource.sparseLevel));
	info.subresource.sparseLevel.offsetX = offset;
	info.subresource.sparseLevel.extentWidth = 256;
	info.subresource.sparseLevel.extentHeight = 256;
	info.subresource.sparseLevel.extentDepth = 1;
	info.memOperationType = handle ? CU_MEM_OPERATION_TYPE_MAP : CU_MEM_OPERATION_TYPE_UNMAP;
	info.memHandleType = 0; /* generic */
	info.memHandle.memHandle = handle;
	info.offset = 0;
	info.deviceBitMask = 1;
	info.flags = 0;
	memset(info.reserved, 0, sizeof(info.reserved));
	OK(cuMemMapArrayAsync(&info, 1, 0));
}

int main(void)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = 4096, .Height = 4096, .Format = CU_AD_FORMAT_FLOAT,
					.NumChannels = 1, .Flags = CUDA_ARRAY3D_SPARSE};
	CUmemGenericAllocationHandle kept, gone;
	CUarray array, other;

	OK(cudaFree(0));
	OK(cuArray3DCreate_v2(&array, &desc));
	OK(cuMemCreate(&kept, 2 * MIB, &prop, 0));
	OK(cuMemCreate(&gone, 4 * MIB, &prop, 0));
	tile(array, 0, kept, 0x55);
	tile(array, 256, gone, 0x55);
	OK(cuMemRelease(kept));
	OK(cuMemRelease(gone));
	tile(array, 256, 0, 0xaa);
	OK(cuArray3DCreate_v2(&other, &desc));
	OK(cuMemCreate(&gone, 6 * MIB, &prop, 0));
	tile(other, 0, gone, 0);
	OK(cuMemRelease(gone));
	OK(cuArrayDestroy(other)); /* and with it what its tile held */
	expect("usage.array.0.current_bytes", 0);
	expect("usage.array.0.current_count", 1);
	expect("usage.vmm.0.current_bytes", 2 * MIB);
	expect("usage.vmm.0.frees", 2);
	expect("leaks.exit_bytes", 2 * MIB);
	expect("errors", 0);
	return 0;
}
