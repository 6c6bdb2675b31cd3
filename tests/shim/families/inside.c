/*
 * Frees of an address in the middle of what they would free, in the spaces that cudaFree is not
 * about: a registered range, a mapping, a reservation. What error a real driver gives is not
 * measured, so this stays with the simulated one.
 */
#include "family.h"

#include <stdlib.h>

int main(void)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr range;
	char *host = aligned_alloc(4096, 4 * MIB);

	OK(cudaFree(0));
	OK(cudaHostRegister(host, 4 * MIB, 0));
	OK(cuMemAddressReserve(&range, 8 * MIB, 0, 0, 0));
	OK(cuMemCreate(&handle, 2 * MIB, &prop, 0));
	OK(cuMemMap(range, 2 * MIB, 0, handle, 0));
	if (!cudaHostUnregister(host + 4096) || !cuMemUnmap(range + 1, 2 * MIB) ||
	    !cuMemAddressFree(range + 4 * MIB, 4 * MIB) || !cudaHostUnregister(host - 4096))
		return 2;
	expect("errors.interior-pointer.count", 3);
	expect("errors.interior-pointer.bytes", (4 + 2 + 8) * MIB);
	expect("errors.unknown-pointer.count", 1);
	expect("usage.registered.host.current_bytes", 4 * MIB);
	expect("vmm.0.mapped_bytes", 2 * MIB);
	return 0;
}
