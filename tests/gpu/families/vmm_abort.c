/*
 * Mapping fails at slot k of n; the clean-up unmaps what was never reserved, which fails, and the
 * program aborts (pytorch#188008). The file must be whole: k mapped, n-k created but unmapped.
 */
#include "family.h"

#define SLOTS 5
#define MAPPED 3

NAMED void clean_up(CUdeviceptr address)
{
	if (cuMemUnmap(address, 2 * MIB) == 0)
		exit(5);
	fflush(stdout);
	abort();
}

int main(void)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr range;
	int i;

	OK(cudaFree(0));
	OK(cuMemAddressReserve(&range, SLOTS * 2 * MIB, 0, 0, 0));
	for (i = 0; i < SLOTS; i++) {
		OK(cuMemCreate(&handle, 2 * MIB, &prop, 0));
		if (i < MAPPED)
			OK(cuMemMap(range + (size_t)i * 2 * MIB, 2 * MIB, 0, handle, 0));
	}
	FAILS(cuMemMap(range, 2 * MIB, 0, handle, 0), 1);
	expect("vmm.0.created_bytes", SLOTS * 2 * MIB);
	expect("vmm.0.mapped_bytes", MAPPED * 2 * MIB);
	expect("usage.vmm.0.current_count", SLOTS);
	expect("errors.unknown-pointer.count", 1);
	expect("error_stack.unknown-pointer.clean_up", 1);
	expect("file.complete", 1);
	expect("process.end.killed", 1);
	clean_up(range + 1024 * SLOTS * MIB);
	return 0;
}
