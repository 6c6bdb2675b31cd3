/*
 * The same of the driver API: linked against libcuda, or (-DBY_GETPROCADDRESS) asking
 * cuGetProcAddress_v2 for every function itself, as frameworks do.
 */
#include "cuda_calls.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define MIB (1ull << 20)

#ifdef BY_GETPROCADDRESS
static void *ask(const char *name, int version)
{
	static CUresult (*get)(const char *, void **, int, cuuint64_t,
			       CUdriverProcAddressQueryResult *);
	void *found = NULL;

	if (!get) {
		void *library = dlopen("libcuda.so.1", RTLD_NOW);

		if (!library)
			exit(4);
		get = (__typeof__(get))dlsym(library, "cuGetProcAddress_v2");
	}
	if (!get || get(name, &found, version, 0, NULL) || !found)
		exit(5);
	return found;
}
#define DRIVER(name, version) ((__typeof__(&name))ask(#name, version))
#define cuInit(...)		    DRIVER(cuInit, 12000)(__VA_ARGS__)
#define cuDevicePrimaryCtxRetain(...) DRIVER(cuDevicePrimaryCtxRetain, 12000)(__VA_ARGS__)
#define cuCtxSetCurrent(...)	    DRIVER(cuCtxSetCurrent, 12000)(__VA_ARGS__)
#define cuMemAlloc_v2(...) ((__typeof__(&cuMemAlloc_v2))ask("cuMemAlloc", 12000))(__VA_ARGS__)
#define cuMemFree_v2(...)  ((__typeof__(&cuMemFree_v2))ask("cuMemFree", 12000))(__VA_ARGS__)
#define cuMemHostAlloc(...)	    DRIVER(cuMemHostAlloc, 12000)(__VA_ARGS__)
#define cuMemCreate(...)	    DRIVER(cuMemCreate, 12000)(__VA_ARGS__)
#define cuMemAddressReserve(...)    DRIVER(cuMemAddressReserve, 12000)(__VA_ARGS__)
#define cuMemMap(...)		    DRIVER(cuMemMap, 12000)(__VA_ARGS__)
#define cuMemUnmap(...)		    DRIVER(cuMemUnmap, 12000)(__VA_ARGS__)
#define cuMemRelease(...)	    DRIVER(cuMemRelease, 12000)(__VA_ARGS__)
#define cuMemAddressFree(...)	    DRIVER(cuMemAddressFree, 12000)(__VA_ARGS__)
#endif

static void check(CUresult error, const char *what)
{
	if (error) {
		fprintf(stderr, "%s: error %d\n", what, error);
		exit(2);
	}
}

__attribute__((noinline)) static void leak_here(size_t bytes)
{
	CUdeviceptr memory;

	check(cuMemAlloc_v2(&memory, bytes), "cuMemAlloc");
}

int main(int argc, char **argv)
{
	int unmapped = argc > 1 && argv[1][0] == 'u';
	CUmemAllocationProp prop = {.type = 1, .location = {.type = 1, .id = 0}};
	CUmemGenericAllocationHandle handle, kept;
	CUdeviceptr block, range, refused;
	CUcontext context;
	void *pinned;
	int i;

	check(cuInit(0), "cuInit");
	check(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
	check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	for (i = 0; i < 3; i++)
		leak_here(1000 + (size_t)i);
	check(cuMemAlloc_v2(&block, 5 * MIB), "cuMemAlloc");
	check(cuMemFree_v2(block), "cuMemFree");
	check(cuMemHostAlloc(&pinned, 4096, 0), "cuMemHostAlloc");
	check(cuMemCreate(&handle, 4 * MIB, &prop, 0), "cuMemCreate");
	check(cuMemCreate(&kept, 2 * MIB, &prop, 0), "cuMemCreate");
	check(cuMemAddressReserve(&range, 8 * MIB, 0, 0, 0), "cuMemAddressReserve");
	check(cuMemMap(range, 4 * MIB, 0, handle, 0), "cuMemMap");
	check(cuMemRelease(handle), "cuMemRelease"); /* memory held by the mapping */
	if (cuMemAlloc_v2(&refused, 0) != 1)
		return 3;
	if (cuMemAlloc_v2(&refused, 1ull << 50) != 2)
		return 3;
	if (unmapped) {
		check(cuMemUnmap(range, 4 * MIB), "cuMemUnmap");
		check(cuMemAddressFree(range, 8 * MIB), "cuMemAddressFree");
	}
	/* live: 3003 B of cuMemAlloc, 2 MiB kept, and 4 MiB while still mapped */
	printf("{\"live\": %llu, \"live_count\": %d, \"peak\": %llu, \"allocations\": 6, "
	       "\"failures\": 2, \"pinned\": 4096, \"leak\": 3003, \"leak_count\": 3, "
	       "\"created\": %llu, \"mapped\": %llu, \"reserved\": %llu}\n",
	       3003 + 2 * MIB + (unmapped ? 0 : 4 * MIB), unmapped ? 4 : 5, 3003 + 6 * MIB,
	       2 * MIB + (unmapped ? 0 : 4 * MIB), unmapped ? 0 : 4 * MIB,
	       unmapped ? 0 : 8 * MIB);
	return 0;
}
