/*
 * A context on a device that holds almost none of the process's memory (pytorch/examples#969):
 * named with the call that made it.
 */
#include "family.h"

NAMED void makes_a_context(void)
{
	OK(cudaSetDevice(1));
	OK(cudaFree(0));
}

int main(void)
{
	void *p;
	int count;

	OK(cudaGetDeviceCount(&count));
	if (count < 2) {
		printf("skip one device only\n");
		return 0;
	}
	OK(cudaMalloc(&p, 300 * MIB));
	makes_a_context();
	OK(cudaSetDevice(0));
	OK(cudaMalloc(&p, 1 * MIB));
	expect("finding.context.stray", 1);
	expect("evidence.context.stray.makes_a_context", 1);
	expect("totals.1.current_bytes", 0);
	return 0;
}
