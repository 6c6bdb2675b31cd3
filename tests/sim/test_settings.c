/*
 * The simulator's own settings: what the environment of this test (see meson.build) makes of
 * devices, memory, other processes, failing calls and hidden growth; and NVML's view of it.
 */
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>
#include "selftest.h"

struct process {
	unsigned pid;
	unsigned long long used;
	unsigned gpu_instance, compute_instance;
};

static void test_nvml(unsigned long long own)
{
	void *lib = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	int (*init)(void), (*by_index)(unsigned, void **);
	int (*processes)(void *, unsigned *, struct process *);
	struct process list[8];
	unsigned count = 8;
	void *device;

	if (!lib) {
		CHECK(0, 1);
		return;
	}
	init = (int (*)(void))dlsym(lib, "nvmlInit_v2");
	by_index = (int (*)(unsigned, void **))dlsym(lib, "nvmlDeviceGetHandleByIndex_v2");
	processes = (int (*)(void *, unsigned *, struct process *))dlsym(
		lib, "nvmlDeviceGetComputeRunningProcesses_v3");
	CHECK(init(), 0);
	CHECK(by_index(0, &device), 0);
	CHECK(by_index(2, &device), 2);
	CHECK(by_index(0, &device), 0);
	CHECK(processes(device, &count, list), 0);
	CHECK(count, 2);
	CHECK(list[0].pid, getpid());
	CHECK(list[0].used, own);
	CHECK(list[1].pid, 4711);
	CHECK(list[1].used, 1024 * MIB);
}

int main(void)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemGenericAllocationHandle handle;
	CUfunction function;
	CUmodule module;
	size_t now, total;
	CUcontext ctx;
	CUdeviceptr p;
	int count = 0;

	CHECK(cuInit(0), 0);
	CHECK(cuDeviceGetCount(&count), 0);
	CHECK(count, 2);
	CHECK(cuDevicePrimaryCtxRetain(&ctx, 0), 0);
	CHECK(cuCtxSetCurrent(ctx), 0);
	CHECK(cuMemGetInfo_v2(&now, &total), 0);
	CHECK(total, 4096 * MIB);
	CHECK(total - now, (1024 + 256) * MIB); /* others and the context */
	CHECK(cuMemCreate(&handle, 2 * MIB, &prop, 0), 0);
	CHECK(cuMemAddressReserve(&p, 8 * MIB, 0, 0, 0), 0);
	CHECK(cuMemMap(p, 2 * MIB, 0, handle, 0), 0);
	CHECK(cuMemMap(p + 2 * MIB, 2 * MIB, 0, handle, 0), 2); /* the second, by GPUSIM_FAIL */
	CHECK(cuMemMap(p + 2 * MIB, 2 * MIB, 0, handle, 0), 0);
	CHECK(cuModuleLoadData(&module, ".version 9.0"), 0);
	CHECK(cuModuleGetFunction(&function, module, "kernel"), 0);
	for (int i = 0; i < 3; i++)
		CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), 0);
	CHECK(cuMemGetInfo_v2(&now, &total), 0);
	CHECK(total - now, (1024 + 256 + 2 + 2 + 3 * 6) * MIB);
	test_nvml((256 + 2 + 2 + 3 * 6) * MIB);
	CHECK(cuModuleUnload(module), 0);
	CHECK(cuMemGetInfo_v2(&now, &total), 0);
	CHECK(total - now, (1024 + 256 + 2 + 3 * 6) * MIB); /* hidden growth stays */
	return done();
}
