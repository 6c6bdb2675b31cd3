/*
 * A pool shared by descriptor and a pointer of it: what is imported is a figure of its own, opened
 * twice and closed once it is still there.
 */
#include "family.h"

int main(void)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
				.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemPoolPtrExportData shared;
	CUmemoryPool pool, imported;
	CUdeviceptr own, view, gone;
	int fd;

	OK(cudaFree(0));
	OK(cuMemPoolCreate(&pool, &props));
	OK(cuMemAllocFromPoolAsync(&own, 40 * MIB, pool, 0));
	OK(cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
					    0));
	OK(cuMemPoolImportFromShareableHandle(&imported, (void *)(uintptr_t)fd,
					      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	OK(cuMemPoolExportPointer(&shared, own));
	OK(cuMemPoolImportPointer(&view, imported, &shared));
	OK(cuMemPoolImportPointer(&gone, imported, &shared));
	OK(cuMemFreeAsync(gone, 0));
	expect("usage.imported.0.current_bytes", 40 * MIB);
	expect("usage.imported.0.allocations", 2);
	expect("usage.imported.0.frees", 1);
	expect("usage.async.0.current_bytes", 40 * MIB);
	expect("pool.explicit.0.used_bytes", 40 * MIB);
	expect("totals.0.current_bytes", 40 * MIB);
	expect("leaks.exit_bytes", 40 * MIB);
	expect("errors", 0);
	return 0;
}
