/*
 * Handles of virtual memory shared by descriptor and imported again: the import is no memory of its
 * own, and its size is told by what is mapped of it.
 */
#include "family.h"

int main(void)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				    .requestedHandleTypes =
					    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
				    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemGenericAllocationHandle handle, import;
	unsigned long long before;
	CUdeviceptr range;
	int fd;

	OK(cudaFree(0));
	before = free_bytes();
	OK(cuMemCreate(&handle, 8 * MIB, &prop, 0));
	OK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	OK(cuMemImportFromShareableHandle(&import, (void *)(uintptr_t)fd,
					  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	printf("fact an import in the exporting process gives %s handle\n",
	       import == handle ? "the same" : "another");
	OK(cuMemAddressReserve(&range, 8 * MIB, 0, 0, 0));
	OK(cuMemMap(range, 8 * MIB, 0, import, 0));
	expect("usage.vmm.0.current_bytes", 8 * MIB);
	if (import != handle) {
		expect("usage.imported.0.current_bytes", 8 * MIB);
		expect("usage.imported.0.current_count", 1);
	}
	expect("totals.0.current_bytes", 8 * MIB);
	expect("leaks.exit_bytes", 8 * MIB);
	expect("errors", 0);
	expect_physical(before, 1);
	return 0;
}
