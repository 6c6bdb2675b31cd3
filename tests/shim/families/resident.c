/*
 * Managed memory that a fill brought to the device: the driver's figure has it, a row of the ledger
 * too, and the rows add up.
 */
#include "family.h"
#include "gpumemtrace.h"

int main(void)
{
	void *managed, *plain;

	OK(cudaFree(0));
	OK(cudaMallocManaged(&managed, 64 * MIB, cudaMemAttachGlobal));
	OK(cudaMemset(managed, 0, 20 * MIB));
	OK(cudaMalloc(&plain, 30 * MIB));
	gpumemtrace_mark("filled"); /* the ledger is sampled at marks */
	expect("ledger.managed_memory_on_the_device.0", 20 * MIB);
	expect("ledger.allocations.0", 30 * MIB);
	expect("ledger.context.0", 512 * MIB);
	expect("ledger.unexplained.0", 0);
	return 0;
}
