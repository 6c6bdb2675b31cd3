/*
 * Plain memory calls of the simulated driver: device, pitched, managed, pinned and registered
 * host memory, cuMemGetInfo, prefetch and advice. Errors and out-pointers are as measured.
 */
#include <sys/mman.h>
#include "drv.h"

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	SIM_API(SIM_CURRENT);
	int dev = sim_ctx_current()->dev;

	SIM_VALUE(free_bytes || total);
	if (free_bytes)
		*free_bytes = sim_phys_free(dev);
	if (total)
		*total = sim.dev[dev].total;
	return CUDA_SUCCESS;
}

CUresult cuMemGetInfo(unsigned int *free_bytes, unsigned int *total)
{
	size_t f, t;
	CUresult rc = cuMemGetInfo_v2(&f, &t);

	if (rc == CUDA_SUCCESS) {
		*free_bytes = f > UINT32_MAX ? UINT32_MAX : (unsigned)f;
		*total = t > UINT32_MAX ? UINT32_MAX : (unsigned)t;
	}
	return rc;
}

/* Before an allocation fails the driver takes back what its pools hold idle, not what is pending.
 */
static struct sim_mem *alloc_or_empty(size_t size, bool low)
{
	struct sim_mem *mem = sim_device_alloc(sim_ctx_current(), size, SIM_MEM_DEVICE, low);

	if (!mem) {
		sim_pools_empty();
		mem = sim_device_alloc(sim_ctx_current(), size, SIM_MEM_DEVICE, low);
	}
	return mem;
}

/* As measured, every failing allocation nulls its out-pointer, even without a context. */
#define OUT(pointer, nothing)                                                                      \
	do {                                                                                       \
		if (pointer)                                                                       \
			*(pointer) = (nothing);                                                    \
	} while (0)

CUresult cuMemAlloc_v2(CUdeviceptr *ptr, size_t size)
{
	OUT(ptr, 0);
	SIM_API(SIM_CURRENT | SIM_UNSAFE);
	struct sim_mem *mem;

	SIM_VALUE(ptr && size); /* 0 bytes: an error, no want of memory */
	mem = alloc_or_empty(size, false);
	*ptr = mem ? mem->addr : 0;
	return mem ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The first version's addresses have 32 bits, so they come from an arena of their own. */
CUresult cuMemAlloc(CUdeviceptr_v1 *ptr, unsigned int size)
{
	OUT(ptr, 0);
	SIM_API(SIM_CURRENT | SIM_UNSAFE);
	struct sim_mem *mem;

	SIM_VALUE(ptr && size);
	mem = alloc_or_empty(size, true);
	*ptr = mem ? (CUdeviceptr_v1)mem->addr : 0;
	return mem ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult alloc_pitch(CUdeviceptr *ptr, size_t *pitch, size_t width, size_t height,
			    unsigned element, bool low)
{
	struct sim_mem *mem;

	SIM_VALUE(ptr && pitch && width && height &&
		  (element == 4 || element == 8 || element == 16));
	*pitch = sim_round(width, 512);
	if (height > SIZE_MAX / *pitch)
		mem = NULL;
	else
		mem = alloc_or_empty(*pitch * height, low);
	*ptr = mem ? mem->addr : 0;
	return mem ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *ptr, size_t *pitch, size_t width, size_t height,
			    unsigned int element)
{
	OUT(ptr, 0);
	OUT(pitch, 0);
	SIM_API(SIM_CURRENT | SIM_UNSAFE);
	return alloc_pitch(ptr, pitch, width, height, element, false);
}

CUresult cuMemAllocPitch(CUdeviceptr_v1 *ptr, unsigned int *pitch, unsigned int width,
			 unsigned int height, unsigned int element)
{
	SIM_API(SIM_CURRENT | SIM_UNSAFE);
	CUdeviceptr wide = 0;
	size_t wide_pitch = 0;
	CUresult rc;

	SIM_VALUE(ptr && pitch);
	rc = alloc_pitch(&wide, &wide_pitch, width, height, element, true);
	if (rc == CUDA_SUCCESS || rc == CUDA_ERROR_OUT_OF_MEMORY) {
		*ptr = (CUdeviceptr_v1)wide;
		*pitch = (unsigned)wide_pitch;
	}
	return rc;
}

/* Legal for whatever was allocated for a device, pool and graph addresses included. */
CUresult cuMemFree_v2(CUdeviceptr ptr)
{
	SIM_API(SIM_CURRENT | SIM_UNSAFE);
	struct sim_mem *mem = sim_mem_find(ptr);

	if (!ptr)
		return CUDA_SUCCESS;
	SIM_VALUE(mem && mem->addr == ptr);
	switch (mem->kind) {
	case SIM_MEM_DEVICE:
	case SIM_MEM_MANAGED:
	case SIM_MEM_EXTERNAL:
		sim_mem_release(mem);
		return CUDA_SUCCESS;
	case SIM_MEM_POOL:
	case SIM_MEM_POOL_IMPORT:
		sim_pool_free(mem, NULL);
		return CUDA_SUCCESS;
	case SIM_MEM_GRAPH:
		SIM_VALUE(mem->graph->live);
		sim_graph_mem_retire(mem->graph);
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuMemFree(CUdeviceptr_v1 ptr)
{
	return cuMemFree_v2(ptr);
}

/* Managed memory is real host memory: programs touch it. A device holds pages once they move there.
 */
CUresult cuMemAllocManaged(CUdeviceptr *ptr, size_t size, unsigned int flags)
{
	OUT(ptr, 0);
	SIM_API(SIM_CURRENT | SIM_UNSAFE);
	size_t pages = sim_round(size, SIM_PAGE);
	struct sim_mem *mem;
	void *base;

	SIM_VALUE(ptr && size && (flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST));
	base = mmap(NULL, pages, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED || pages < size)
		return CUDA_ERROR_OUT_OF_MEMORY;
	mem = sim_mem_add((uint64_t)(uintptr_t)base, size, SIM_MEM_MANAGED, sim_ctx_current());
	mem->flags = flags;
	mem->resident = malloc(pages / SIM_PAGE);
	memset(mem->resident, -1, pages / SIM_PAGE);
	*ptr = mem->addr;
	return CUDA_SUCCESS;
}

static CUresult host_alloc(void **out, size_t size, unsigned flags)
{
	size_t pages = sim_round(size, 4096);
	struct sim_mem *mem;
	void *base;

	SIM_VALUE(out && flags < 8);
	if (!size)
		return CUDA_SUCCESS;
	base = pages < size || size > sim.pinned_limit - sim.pinned
		       ? MAP_FAILED
		       : mmap(NULL, pages, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	sim.pinned += pages;
	mem = sim_mem_add((uint64_t)(uintptr_t)base, size, SIM_MEM_HOST, sim_ctx_current());
	mem->flags = flags;
	mem->pages = pages;
	*out = base;
	return CUDA_SUCCESS;
}

CUresult cuMemAllocHost_v2(void **ptr, size_t size)
{
	OUT(ptr, NULL);
	SIM_API(SIM_CURRENT | SIM_UNSAFE);
	return host_alloc(ptr, size, 0);
}

CUresult cuMemAllocHost(void **ptr, unsigned int size)
{
	return cuMemAllocHost_v2(ptr, size);
}

CUresult cuMemHostAlloc(void **ptr, size_t size, unsigned int flags)
{
	OUT(ptr, NULL);
	SIM_API(SIM_CURRENT | SIM_UNSAFE);
	return host_alloc(ptr, size, flags);
}

CUresult cuMemFreeHost(void *ptr)
{
	SIM_API(SIM_CURRENT | SIM_UNSAFE);
	struct sim_mem *mem = sim_mem_find((uint64_t)(uintptr_t)ptr);

	if (!ptr)
		return CUDA_SUCCESS;
	SIM_VALUE(mem && mem->kind == SIM_MEM_HOST && mem->addr == (uint64_t)(uintptr_t)ptr);
	sim_mem_release(mem);
	return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void *ptr, size_t size, unsigned int flags)
{
	SIM_API(SIM_CURRENT | SIM_UNSAFE);
	struct sim_mem *mem;

	SIM_VALUE(ptr && size && flags < 16);
	mem = sim_mem_overlap((uint64_t)(uintptr_t)ptr, size);
	if (mem)
		return mem->kind == SIM_MEM_REGISTERED ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
						       : CUDA_ERROR_INVALID_VALUE;
	mem = sim_mem_add((uint64_t)(uintptr_t)ptr, size, SIM_MEM_REGISTERED, sim_ctx_current());
	mem->flags = flags;
	return CUDA_SUCCESS;
}

CUresult cuMemHostRegister(void *ptr, size_t size, unsigned int flags)
{
	return cuMemHostRegister_v2(ptr, size, flags);
}

CUresult cuMemHostUnregister(void *ptr)
{
	SIM_API(SIM_CURRENT | SIM_UNSAFE);
	struct sim_mem *mem = sim_mem_find((uint64_t)(uintptr_t)ptr);

	SIM_VALUE(ptr);
	if (!mem)
		return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	SIM_VALUE(mem->kind == SIM_MEM_REGISTERED && mem->addr == (uint64_t)(uintptr_t)ptr);
	sim_mem_release(mem);
	return CUDA_SUCCESS;
}

static struct sim_mem *host_mem(void *ptr)
{
	struct sim_mem *mem = sim_mem_find((uint64_t)(uintptr_t)ptr);

	return mem && (mem->kind == SIM_MEM_HOST || mem->kind == SIM_MEM_REGISTERED) ? mem : NULL;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *ptr, unsigned int flags)
{
	SIM_API(SIM_CURRENT);
	SIM_VALUE(out && ptr && flags == 0 && host_mem(ptr));
	*out = (CUdeviceptr)(uintptr_t)ptr;
	return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned int *flags, void *ptr)
{
	SIM_API(SIM_CURRENT);
	struct sim_mem *mem = host_mem(ptr);

	SIM_VALUE(flags && mem && mem->kind == SIM_MEM_HOST);
	*flags = mem->flags | CU_MEMHOSTALLOC_DEVICEMAP;
	return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr ptr)
{
	SIM_API(SIM_CURRENT);
	struct sim_mem *mem = sim_mem_find(ptr);

	if (!mem || mem->kind == SIM_MEM_REGISTERED || mem->kind == SIM_MEM_ARRAY)
		return CUDA_ERROR_NOT_FOUND;
	if (mem->kind == SIM_MEM_MAPPED && !mem->accessed)
		return CUDA_ERROR_NOT_FOUND;
	if (base)
		*base = mem->addr;
	if (size)
		*size = mem->size;
	return CUDA_SUCCESS;
}

static struct sim_mem *managed_range(CUdeviceptr ptr, size_t size)
{
	struct sim_mem *mem = sim_mem_find(ptr);

	if (!mem || mem->kind != SIM_MEM_MANAGED || !size || ptr + size > mem->addr + mem->size)
		return NULL;
	return mem;
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr ptr, size_t size, CUmemLocation to, unsigned int flags,
			       CUstream handle)
{
	SIM_API(SIM_CURRENT);
	struct sim_mem *mem = managed_range(ptr, size);
	CUstream stream = sim_stream(handle);
	CUresult rc;
	int dev;

	SIM_VALUE(mem && flags == 0);
	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	rc = sim_capture_check(stream);
	if (rc != CUDA_SUCCESS)
		return rc;
	dev = to.type == CU_MEM_LOCATION_TYPE_DEVICE ? to.id : -1;
	if (to.type == CU_MEM_LOCATION_TYPE_DEVICE && (dev < 0 || dev >= sim.devices))
		return CUDA_ERROR_INVALID_DEVICE;
	SIM_VALUE(to.type != CU_MEM_LOCATION_TYPE_INVALID);
	if (dev >=
	    0) /* back to the host the device's pages stay taken until the free, as measured */
		sim_managed_touch(mem, ptr, size, dev);
	mem->last_prefetch = dev;
	return CUDA_SUCCESS;
}

CUresult cuMemPrefetchAsync(CUdeviceptr ptr, size_t size, CUdevice dev, CUstream stream)
{
	CUmemLocation to = {CU_MEM_LOCATION_TYPE_DEVICE, dev};

	if (dev == CU_DEVICE_CPU)
		to.type = CU_MEM_LOCATION_TYPE_HOST;
	return cuMemPrefetchAsync_v2(ptr, size, to, 0, stream);
}

CUresult cuMemAdvise_v2(CUdeviceptr ptr, size_t size, CUmem_advise advice, CUmemLocation where)
{
	SIM_API(SIM_CURRENT);
	struct sim_mem *mem = managed_range(ptr, size);

	SIM_VALUE(mem && advice >= CU_MEM_ADVISE_SET_READ_MOSTLY &&
		  advice <= CU_MEM_ADVISE_UNSET_ACCESSED_BY);
	if (where.type == CU_MEM_LOCATION_TYPE_DEVICE &&
	    advice >= CU_MEM_ADVISE_SET_PREFERRED_LOCATION &&
	    (where.id < 0 || where.id >= sim.devices))
		return CUDA_ERROR_INVALID_DEVICE;
	if (advice == CU_MEM_ADVISE_SET_READ_MOSTLY || advice == CU_MEM_ADVISE_UNSET_READ_MOSTLY)
		mem->read_mostly = advice == CU_MEM_ADVISE_SET_READ_MOSTLY;
	else if (advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION)
		mem->preferred =
			where.type == CU_MEM_LOCATION_TYPE_DEVICE ? where.id : CU_DEVICE_CPU;
	else if (advice == CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION)
		mem->preferred = CU_DEVICE_INVALID;
	return CUDA_SUCCESS;
}

CUresult cuMemAdvise(CUdeviceptr ptr, size_t size, CUmem_advise advice, CUdevice dev)
{
	CUmemLocation where = {CU_MEM_LOCATION_TYPE_DEVICE, dev};

	if (dev == CU_DEVICE_CPU)
		where.type = CU_MEM_LOCATION_TYPE_HOST;
	return cuMemAdvise_v2(ptr, size, advice, where);
}

CUresult cuMemRangeGetAttribute(void *data, size_t data_size, CUmem_range_attribute attribute,
				CUdeviceptr ptr, size_t size)
{
	SIM_API(SIM_CURRENT);
	struct sim_mem *mem = managed_range(ptr, size);

	SIM_VALUE(mem && data && data_size == sizeof(int));
	if (attribute == CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY)
		*(int *)data = mem->read_mostly;
	else if (attribute == CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION)
		*(int *)data = mem->preferred;
	else if (attribute == CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION)
		*(int *)data = mem->last_prefetch;
	else
		return CUDA_ERROR_NOT_SUPPORTED;
	return CUDA_SUCCESS;
}
