/*
 * Virtual memory: handles, reservations and mappings as three figures; memory is held until
 * references and mappings are both gone. Mapping fails at slot k of n (pytorch#188008).
 */
#include "family.h"

#define SLOTS 6
#define MAPPED 4

static CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				   .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

NAMED CUmemGenericAllocationHandle create(size_t bytes)
{
	CUmemGenericAllocationHandle handle = 0;

	OK(cuMemCreate(&handle, bytes, &prop, 0));
	return handle;
}

static CUdeviceptr slots(CUmemGenericAllocationHandle *handles)
{
	CUdeviceptr range;
	int i;

	OK(cuMemAddressReserve(&range, SLOTS * 20 * MIB, 0, 0, 0));
	for (i = 0; i < SLOTS; i++)
		handles[i] = create(20 * MIB);
	for (i = 0; i < MAPPED; i++)
		OK(cuMemMap(range + (size_t)i * 20 * MIB, 20 * MIB, 0, handles[i], 0));
	FAILS(cuMemMap(range + (MAPPED - 1) * 20 * MIB, 20 * MIB, 0, handles[MAPPED], 0), 1);
	return range;
}

static void references(void)
{
	CUmemGenericAllocationHandle handle = create(2 * MIB), again;
	CUdeviceptr range;

	OK(cuMemAddressReserve(&range, 2 * MIB, 0, 0, 0));
	OK(cuMemMap(range, 2 * MIB, 0, handle, 0));
	OK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)range));
	OK(cuMemRelease(handle));
	OK(cuMemRelease(again));
	FAILS(cuMemRelease(handle), 1); /* released twice, though memory is still held */
	FAILS(cuMemAddressFree(range, 2 * MIB), 1);
	OK(cuMemUnmap(range, 2 * MIB)); /* now it is gone */
	OK(cuMemUnmap(range, 2 * MIB)); /* nothing is mapped: success */
	OK(cuMemAddressFree(range, 2 * MIB));
}

int main(void)
{
	CUmemGenericAllocationHandle handles[SLOTS], handle;
	unsigned long long before;
	int i;

	OK(cudaFree(0));
	before = free_bytes();
	FAILS(cuMemCreate(&handle, 1, &prop, 0), 1);
	slots(handles);
	for (i = 0; i < MAPPED; i++)
		OK(cuMemRelease(handles[i])); /* the mappings hold the memory now */
	references();
	expect("usage.vmm.0.current_bytes", SLOTS * 20 * MIB);
	expect("usage.vmm.0.current_count", SLOTS);
	expect("usage.vmm.0.failures", 1);
	expect("usage.vmm.0.frees", 1);
	expect("vmm.0.created_bytes", SLOTS * 20 * MIB);
	expect("vmm.0.mapped_bytes", MAPPED * 20 * MIB);
	expect("vmm.0.reserved_va_bytes", SLOTS * 20 * MIB);
	expect("vmm.0.handles", SLOTS);
	expect("site.create.live_bytes", SLOTS * 20 * MIB);
	expect("errors.released-twice.count", 1);
	expect("errors.freed-while-mapped.count", 1);
	expect("errors", 2);
	expect("leaks.exit_bytes", SLOTS * 20 * MIB);
	expect_physical(before, SLOTS);
	return 0;
}
