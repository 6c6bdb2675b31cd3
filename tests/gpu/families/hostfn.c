/*
 * cudaFreeHost in a stream's host function is refused (800) and nobody looks (cumo#176): the memory
 * stays, and the free that failed has its stack.
 */
#include "family.h"

static int result = -1;

NAMED void callback(void *memory)
{
	result = (int)cudaFreeHost(memory);
}

int main(void)
{
	void *memory;

	OK(cudaMallocHost(&memory, 7 * MIB));
	OK(cudaLaunchHostFunc(0, callback, memory));
	OK(cudaDeviceSynchronize());
	if (result != 800)
		return 3;
	expect("errors.free-failed.count", 1);
	expect("errors.free-failed.bytes", 7 * MIB);
	expect("error_stack.free-failed.callback", 1);
	expect("usage.pinned.host.current_bytes", 7 * MIB);
	expect("leaks.exit_bytes", 7 * MIB);
	return 0;
}
