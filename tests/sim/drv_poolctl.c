/*
 * Pool handles of the simulated driver: making and destroying explicit pools, their attributes,
 * which pool a device uses, trimming, and sharing them by file descriptor.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include "drv.h"

#define POOL(pool) SIM_VALUE(SIM_GET(SIM_POOL, pool))

CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props)
{
	SIM_API(SIM_INIT | SIM_UNSAFE);
	bool on_device;

	SIM_VALUE(out && props && props->allocType == CU_MEM_ALLOCATION_TYPE_PINNED);
	on_device = props->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
	if (on_device && (props->location.id < 0 || props->location.id >= sim.devices))
		return CUDA_ERROR_INVALID_DEVICE;
	SIM_VALUE(on_device || props->location.type == CU_MEM_LOCATION_TYPE_HOST ||
		  props->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA);
	if (props->handleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	*out = sim_pool_new(on_device ? props->location.id : -1, props, NULL);
	return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	SIM_API(SIM_INIT | SIM_UNSAFE);
	POOL(pool);
	SIM_VALUE(!pool->is_default);
	sim_pool_kill(pool);
	return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
	SIM_API(SIM_INIT | SIM_UNSAFE);
	POOL(pool);
	sim_pool_trim(pool, keep);
	return CUDA_SUCCESS;
}

static uint64_t *counter(CUmemoryPool pool, CUmemPool_attribute attribute)
{
	switch (attribute) {
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		return &pool->threshold;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		return &pool->reserved;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		return &pool->reserved_high;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		return &pool->used;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		return &pool->used_high;
	default:
		return NULL;
	}
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	SIM_API(SIM_INIT);
	POOL(pool);
	SIM_VALUE(value && attribute >= 1 && attribute <= CU_MEMPOOL_ATTR_USED_MEM_HIGH);
	if (attribute < CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
		*(int *)value = pool->reuse[attribute - 1];
	else
		*(cuuint64_t *)value = *counter(pool, attribute);
	return CUDA_SUCCESS;
}

/* High-water marks can only be set back, by 0. */
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	SIM_API(SIM_INIT);
	POOL(pool);
	SIM_VALUE(value && attribute >= 1 && attribute <= CU_MEMPOOL_ATTR_USED_MEM_HIGH);
	if (attribute < CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
		pool->reuse[attribute - 1] = *(int *)value != 0;
	} else if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
		pool->threshold = *(cuuint64_t *)value;
	} else {
		SIM_VALUE(*(cuuint64_t *)value == 0);
		if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)
			pool->reserved_high = pool->reserved;
		else if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH)
			pool->used_high = pool->used;
		else
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
	SIM_API(SIM_INIT);
	POOL(pool);
	SIM_VALUE(map || !count);
	for (size_t i = 0; i < count; i++) {
		if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || map[i].location.id < 0 ||
		    map[i].location.id >= sim.devices)
			return CUDA_ERROR_INVALID_DEVICE;
		SIM_VALUE(map[i].location.id != pool->dev || map[i].flags);
		pool->access[map[i].location.id] = map[i].flags;
	}
	return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *where)
{
	SIM_API(SIM_INIT);
	POOL(pool);
	SIM_VALUE(flags && where && where->type == CU_MEM_LOCATION_TYPE_DEVICE && where->id >= 0 &&
		  where->id < sim.devices);
	*flags = pool->access[where->id];
	return CUDA_SUCCESS;
}

#define DEVICE(dev)                                                                                \
	do {                                                                                       \
		if ((dev) < 0 || (dev) >= sim.devices)                                             \
			return CUDA_ERROR_INVALID_DEVICE;                                          \
	} while (0)

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice dev)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(pool);
	DEVICE(dev);
	*pool = sim.dev[dev].default_pool;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(pool);
	DEVICE(dev);
	*pool = sim.dev[dev].pool;
	return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
	SIM_API(SIM_INIT);
	DEVICE(dev);
	POOL(pool);
	SIM_VALUE(pool->dev == dev);
	sim.dev[dev].pool = pool;
	return CUDA_SUCCESS;
}

static CUresult located(const CUmemLocation *where, CUmemAllocationType type)
{
	SIM_VALUE(where);
	if (type != CU_MEM_ALLOCATION_TYPE_PINNED || where->type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	DEVICE(where->id);
	return CUDA_SUCCESS;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *where, CUmemAllocationType type)
{
	CUresult rc = located(where, type);

	return rc == CUDA_SUCCESS ? cuDeviceGetDefaultMemPool(pool, where->id) : rc;
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *where, CUmemAllocationType type)
{
	CUresult rc = located(where, type);

	return rc == CUDA_SUCCESS ? cuDeviceGetMemPool(pool, where->id) : rc;
}

CUresult cuMemSetMemPool(CUmemLocation *where, CUmemAllocationType type, CUmemoryPool pool)
{
	CUresult rc = located(where, type);

	return rc == CUDA_SUCCESS ? cuDeviceSetMemPool(where->id, pool) : rc;
}

/* What a shared descriptor holds: enough for the same process to find the pool again. */
struct shared {
	char magic[16];
	int pid;
	CUmemoryPool pool;
	CUmemPoolProps props;
	int dev;
};
static const char magic[16] = "gpusim pool";

CUresult cuMemPoolExportToShareableHandle(void *out, CUmemoryPool pool,
					  CUmemAllocationHandleType type, unsigned long long flags)
{
	SIM_API(SIM_INIT);
	struct shared shared = {.pid = getpid(), .pool = pool};
	int fd;

	SIM_VALUE(out && flags == 0);
	POOL(pool);
	SIM_VALUE(type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR &&
		  pool->props.handleTypes & type);
	memcpy(shared.magic, magic, sizeof(magic));
	shared.props = pool->props;
	shared.dev = pool->dev;
	fd = memfd_create("gpusim-pool", MFD_CLOEXEC);
	if (fd < 0 || pwrite(fd, &shared, sizeof(shared), 0) != (ssize_t)sizeof(shared))
		return CUDA_ERROR_OPERATING_SYSTEM;
	*(int *)out = fd;
	return CUDA_SUCCESS;
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *out, void *handle,
					    CUmemAllocationHandleType type,
					    unsigned long long flags)
{
	SIM_API(SIM_INIT);
	struct shared shared;

	SIM_VALUE(out && flags == 0 && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	SIM_VALUE(pread((int)(intptr_t)handle, &shared, sizeof(shared), 0) ==
		  (ssize_t)sizeof(shared));
	SIM_VALUE(memcmp(shared.magic, magic, sizeof(magic)) == 0 && shared.dev < sim.devices);
	*out = sim_pool_new(shared.dev, &shared.props, NULL);
	(*out)->imported = true;
	(*out)->origin = shared.pid == getpid() ? shared.pool : NULL;
	return CUDA_SUCCESS;
}

struct shared_pointer {
	uint64_t magic, addr, size;
	int dev;
};
#define POINTER_MAGIC 0x706d697375706721ull

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *out, CUdeviceptr ptr)
{
	SIM_API(SIM_INIT);
	struct sim_mem *mem = sim_mem_find(ptr);
	struct shared_pointer shared;

	SIM_VALUE(out && mem && mem->kind == SIM_MEM_POOL && mem->addr == ptr &&
		  mem->pool->props.handleTypes);
	memset(&shared, 0, sizeof(shared)); /* its padding is copied, too */
	shared.magic = POINTER_MAGIC;
	shared.addr = mem->addr;
	shared.size = mem->size;
	shared.dev = mem->dev;
	memset(out, 0, sizeof(*out));
	memcpy(out, &shared, sizeof(shared));
	return CUDA_SUCCESS;
}

/* A second address for memory of another pool: nothing of the device is taken. */
CUresult cuMemPoolImportPointer(CUdeviceptr *out, CUmemoryPool pool, CUmemPoolPtrExportData *data)
{
	SIM_API(SIM_CURRENT);
	struct shared_pointer shared;
	struct sim_mem *mem;
	uint64_t addr;

	SIM_VALUE(out && data);
	POOL(pool);
	memcpy(&shared, data, sizeof(shared));
	SIM_VALUE(pool->imported && shared.magic == POINTER_MAGIC && shared.dev == pool->dev);
	addr = sim_arena_take(&sim.arena, sim_round(shared.size, SIM_PAGE), SIM_PAGE, 0);
	if (!addr)
		return CUDA_ERROR_OUT_OF_MEMORY;
	mem = sim_mem_add(addr, shared.size, SIM_MEM_POOL_IMPORT, sim_ctx_current());
	mem->dev = pool->dev;
	mem->pool = pool;
	*out = addr;
	return CUDA_SUCCESS;
}
