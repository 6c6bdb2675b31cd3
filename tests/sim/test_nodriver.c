/*
 * Without a libcuda.so.1 to be found the runtime answers 35. The static runtime is linked, and the
 * build runs this with no library path. Skipped where the machine has a driver of its own.
 */
#include <dlfcn.h>
#include "selftest.h"

int main(void)
{
	int count = 7;
	void *p;

	if (dlopen("libcuda.so.1", RTLD_NOW))
		return 77;
	CHECK(cudaGetDeviceCount(&count), 35);
	CHECK(count, 0);
	CHECK(cudaMalloc(&p, 100), 35);
	CHECK(cudaFree(NULL), 35);
	CHECK(cudaGetLastError(), 35);
	return done();
}
