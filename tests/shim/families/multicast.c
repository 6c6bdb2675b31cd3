/*
 * Multicast objects have no memory of their own; a binding holds what it binds until it is unbound.
 */
#include "family.h"

int main(void)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmulticastObjectProp object = {.numDevices = 2, .size = 4 * MIB};
	CUmemGenericAllocationHandle multicast, bound, freed;

	OK(cudaFree(0));
	OK(cuMulticastCreate(&multicast, &object));
	OK(cuMulticastAddDevice(multicast, 0));
	OK(cuMulticastAddDevice(multicast, 1));
	OK(cuMemCreate(&bound, 2 * MIB, &prop, 0));
	OK(cuMemCreate(&freed, 2 * MIB, &prop, 0));
	OK(cuMulticastBindMem(multicast, 0, bound, 0, 2 * MIB, 0));
	OK(cuMulticastBindMem(multicast, 2 * MIB, freed, 0, 2 * MIB, 0));
	OK(cuMemRelease(bound)); /* still held by its binding */
	OK(cuMemRelease(freed));
	OK(cuMulticastUnbind(multicast, 0, 2 * MIB, 2 * MIB));
	expect("usage.vmm.0.current_bytes", 2 * MIB);
	expect("usage.vmm.0.frees", 1);
	expect("totals.0.current_bytes", 2 * MIB);
	expect("leaks.exit_bytes", 2 * MIB);
	expect("errors", 0);
	return 0;
}
