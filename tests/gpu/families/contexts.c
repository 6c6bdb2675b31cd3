/*
 * Contexts beside the primary one: destroying one frees what was allocated in it, a free afterwards
 * is refused and named so; the primary one's last release does the same.
 */
#include "family.h"

NAMED CUdeviceptr in_second(size_t bytes)
{
	CUdeviceptr p = 0;

	OK(cuMemAlloc_v2(&p, bytes));
	return p;
}

NAMED CUcontext second_context(void)
{
	CUcontext context = NULL;

	OK(cuCtxCreate_v4(&context, NULL, 0, 0));
	return context;
}

int main(void)
{
	CUcontext primary, second;
	CUdeviceptr own, other;
	void *pinned;
	int refused;

	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&primary, 0));
	OK(cuCtxSetCurrent(primary));
	OK(cuMemAlloc_v2(&own, 10 * MIB));
	second = second_context();
	other = in_second(30 * MIB);
	in_second(1000);
	OK(cuMemAllocHost_v2(&pinned, 4096));
	OK(cuCtxDestroy_v2(second));
	OK(cuCtxSetCurrent(primary));
	FAILS(cuMemFree_v2(other), 1);
	expect("implicit.context-destroy.0.bytes", 30 * MIB + 1000 + 10 * MIB);
	expect("implicit.context-destroy.0.count", 3);
	expect("implicit.context-destroy.host.bytes", 4096);
	OK(cuDevicePrimaryCtxRelease_v2(0));
	refused = (int)cuMemFree_v2(own);
	printf("fact cuMemFree after the last release of the primary context gives %d\n", refused);
	if (!refused)
		return 3;
	expect("errors.free-after-reset.count", 2);
	expect("usage.device.0.current_bytes", 0);
	expect("leaks.exit_bytes", 0);
	return 0;
}
