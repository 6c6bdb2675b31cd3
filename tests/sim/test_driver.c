/*
 * The facts about the driver API: allocation errors, virtual memory, contexts, modules, and that
 * cuGetProcAddress gives the pointers that dlsym gives. Runs on a real GPU too.
 */
#include <dlfcn.h>
#include <string.h>
#include "selftest.h"

static size_t free_bytes(void)
{
	size_t now = 0, total;

	cuMemGetInfo_v2(&now, &total);
	return now;
}

static void test_before(void)
{
	CUdeviceptr p = 77;
	int count;

	CHECK(cuDeviceGetCount(&count), 3);
	CHECK(cuMemAlloc_v2(&p, 100), 3);
	CHECK(cuInit(1), 1);
	CHECK(cuInit(0), 0);
	CHECK(cuMemAlloc_v2(&p, 100), 201);
}

static void test_alloc(void)
{
	CUdeviceptr p = 77;
	void *host = (void *)1;

	CHECK(cuMemAlloc_v2(&p, 0), 1);
	CHECK(cuMemFree_v2(0), 0);
	CHECK(cuMemAlloc_v2(&p, 1ull << 45), 2);
	CHECK(p, 0);
	CHECK(cuMemAllocHost_v2(&host, 0), 0);
	CHECK(host == NULL, 1);
	CHECK(cuMemAllocHost_v2(&host, 1000), 0);
	CHECK(cuMemFree_v2((CUdeviceptr)(uintptr_t)host), 1);
	CHECK(cuMemFreeHost(host), 0);
	CHECK(cuMemFreeHost(host), 1);
}

static void test_vmm(void)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
				  CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle, again;
	size_t granularity, before = free_bytes();
	CUdeviceptr p, start;
	size_t size;

	CHECK(cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
	      0);
	CHECK(granularity, 2 * MIB);
	CHECK(cuMemGetAllocationGranularity(&granularity, &prop,
					    CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
	      0);
	CHECK(granularity, 2 * MIB);
	CHECK(cuMemCreate(&handle, 1, &prop, 0), 1);
	CHECK(cuMemCreate(&handle, 4 * MIB, &prop, 0), 0);
	CHECK(before - free_bytes(), 4 * MIB);
	CHECK(cuMemAddressReserve(&p, 8 * MIB, 0, 0, 0), 0);
	CHECK(before - free_bytes(), 4 * MIB);
	CHECK(cuMemUnmap(p, 8 * MIB), 0); /* reserved but unmapped */
	CHECK(cuMemMap(p, 4 * MIB, 0, handle, 0), 0);
	CHECK(cuMemSetAccess(p, 4 * MIB, &access, 1), 0);
	CHECK(cuMemGetAddressRange_v2(&start, &size, p + 1), 0);
	CHECK(start == p && size == 4 * MIB, 1); /* the mapping */
	CHECK(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p + 1), 0);
	CHECK(size, 8 * MIB); /* what is reserved */
	CHECK(cuMemFree_v2(p), 1);
	CHECK(cuMemRelease(handle), 0);
	CHECK(before - free_bytes(), 4 * MIB);
	CHECK(cuMemRelease(handle), 1);
	CHECK(cuMemAddressFree(p, 8 * MIB), 1);
	CHECK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)p), 0);
	CHECK(cuMemUnmap(p, 4 * MIB), 0);
	CHECK(before - free_bytes(), 4 * MIB);
	CHECK(cuMemRelease(again), 0);
	CHECK(before - free_bytes(), 0);
	CHECK(cuMemAddressFree(p, 8 * MIB), 0);
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
	CHECK(cuMemCreate(&handle, 4 * MIB, &prop, 0), 800);
}

static void test_contexts(void)
{
	CUcontext first, second;
	CUdeviceptr p;
	size_t before;

	CHECK(cuCtxGetCurrent(&first), 0);
	before = free_bytes();
	CHECK(cuCtxCreate_v2(&second, 0, 0), 0);
	CHECK(before - free_bytes() > 300 * MIB, 1);
	CHECK(cuMemAlloc_v2(&p, 10 * MIB), 0);
	CHECK(cuCtxSetCurrent(first), 0);
	CHECK(cuCtxDestroy_v2(second), 0);
	CHECK(before - free_bytes(), 0);
	CHECK(cuMemFree_v2(p), 1);
	CHECK(cuCtxDestroy_v2(second), 709);
}

static void test_proc_address(void)
{
	static const struct {
		const char *name, *symbol;
		int version, flags;
	} cases[] = {
		{"cuMemAlloc", "cuMemAlloc_v2", 13000, 0},
		{"cuMemAlloc", "cuMemAlloc", 2000, 0},
		{"cuMemFree", "cuMemFree_v2", 13000, 0},
		{"cuMemAllocAsync", "cuMemAllocAsync", 13000, 1},
		{"cuMemAllocAsync", "cuMemAllocAsync_ptsz", 13000, 2},
		{"cuMemcpyHtoD", "cuMemcpyHtoD_v2_ptds", 13000, 2},
		{"cuMemCreate", "cuMemCreate", 13000, 0},
		{"cuCtxCreate", "cuCtxCreate_v4", 13000, 0},
		{"cuCtxCreate", "cuCtxCreate_v2", 11000, 0},
		{"cuGetProcAddress", "cuGetProcAddress", 11030, 0},
		{"cuGetProcAddress", "cuGetProcAddress_v2", 12000, 0},
		{"cuMemPrefetchAsync", "cuMemPrefetchAsync_v2_ptsz", 13000, 2},
		{"cuGraphInstantiate", "cuGraphInstantiate_v2", 13000, 0},
	};
	CUdriverProcAddressQueryResult status;
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *found;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		found = NULL;
		CHECK(cuGetProcAddress_v2(cases[i].name, &found, cases[i].version,
					  (cuuint64_t)cases[i].flags, &status),
		      0);
		CHECK(found == dlsym(driver, cases[i].symbol), 1);
	}
	CHECK(cuGetProcAddress_v2("cuNoSuch", &found, 13000, 0, &status), 0);
	CHECK(found == NULL, 1);
	CHECK(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	CHECK(cuGetProcAddress_v2("cuMemAllocAsync", &found, 11000, 0, &status), 0);
	CHECK(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
}

int main(void)
{
	CUcontext ctx;

	test_before();
	CHECK(cuDevicePrimaryCtxRetain(&ctx, 0), 0);
	CHECK(cuCtxSetCurrent(ctx), 0);
	test_alloc();
	test_vmm();
	test_contexts();
	test_proc_address();
	CHECK(cuDevicePrimaryCtxRelease_v2(0), 0);
	CHECK(cuDevicePrimaryCtxRelease_v2(0), 201);
	return done();
}
