/*
 * Memory of another API, by descriptor: imported, its views have no bytes of their own.
 */
#include "family.h"

#include <sys/mman.h>
#include <unistd.h>

int main(void)
{
	CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc;
	CUDA_EXTERNAL_MEMORY_BUFFER_DESC view;
	CUexternalMemory memory, other;
	CUdeviceptr p;

	OK(cudaFree(0));
	memset(&desc, 0, sizeof(desc));
	memset(&view, 0, sizeof(view));
	desc.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
	desc.size = 12 * MIB;
	desc.handle.fd = memfd_create("external", 0);
	if (desc.handle.fd < 0 || ftruncate(desc.handle.fd, 12 * MIB))
		return 2;
	OK(cuImportExternalMemory(&memory, &desc));
	view.size = 4 * MIB;
	OK(cuExternalMemoryGetMappedBuffer(&p, memory, &view));
	desc.handle.fd = memfd_create("external", 0);
	OK(cuImportExternalMemory(&other, &desc));
	OK(cuDestroyExternalMemory(other));
	expect("usage.imported.0.current_bytes", 12 * MIB);
	expect("usage.imported.0.allocations", 3);
	expect("usage.imported.0.frees", 1);
	expect("totals.0.current_bytes", 0);
	expect("leaks.exit_bytes", 0);
	expect("errors", 0);
	return 0;
}
