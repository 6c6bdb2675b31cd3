/*
 * Virtual memory management of the simulated driver: physical handles, reserved addresses,
 * mappings, and multicast objects. Memory is held while a handle or a mapping refers to it.
 */
#include <sys/mman.h>
#include <unistd.h>
#include "drv.h"

struct reservation {
	struct reservation *next;
	uint64_t addr, size;
};
static struct reservation *reservations;

/* What is bound to a multicast object; it goes with the object. */
struct sim_binding {
	struct sim_binding *next;
	int dev;
	uint64_t offset, size;
	struct sim_vmm *from;
};

static bool unbind(struct sim_vmm *vmm, int dev, uint64_t offset, uint64_t size)
{
	for (struct sim_binding **at = &vmm->bindings; *at; at = &(*at)->next) {
		struct sim_binding *b = *at;

		if (b->dev != dev || b->offset != offset || b->size != size)
			continue;
		*at = b->next;
		b->from->maps--;
		sim_vmm_put(b->from);
		free(b);
		return true;
	}
	return false;
}

static void bind(struct sim_vmm *vmm, uint64_t offset, uint64_t size, struct sim_vmm *from)
{
	struct sim_binding *b = malloc(sizeof(*b));

	*b = (struct sim_binding){vmm->bindings, from->dev, offset, size, from};
	vmm->bindings = b;
	from->maps++; /* bound memory outlives its handle until unbound */
}

void sim_vmm_put(struct sim_vmm *vmm)
{
	if (vmm->handles || vmm->maps)
		return;
	while (vmm->bindings)
		unbind(vmm, vmm->bindings->dev, vmm->bindings->offset, vmm->bindings->size);
	if (vmm->origin) {
		vmm->origin->maps--;
		sim_vmm_put(vmm->origin);
	} else if (vmm->dev >= 0 && !vmm->multicast && !vmm->imported) {
		sim_phys_give(vmm->dev, vmm->size);
	}
	sim_object_free(vmm);
}

struct sim_vmm *sim_vmm_get(CUmemGenericAllocationHandle handle)
{
	struct sim_vmm *vmm = sim_object((void *)(uintptr_t)handle, SIM_VMM);

	return vmm && vmm->handles ? vmm : NULL;
}

static CUresult location(const CUmemAllocationProp *prop, int *dev)
{
	SIM_VALUE(prop && prop->type == CU_MEM_ALLOCATION_TYPE_PINNED);
	*dev = -1;
	if (prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
		if (prop->location.id < 0 || prop->location.id >= sim.devices)
			return CUDA_ERROR_INVALID_DEVICE;
		*dev = prop->location.id;
		return CUDA_SUCCESS;
	}
	SIM_VALUE(prop->location.type >= CU_MEM_LOCATION_TYPE_HOST &&
		  prop->location.type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT);
	return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
				       CUmemAllocationGranularity_flags option)
{
	SIM_API(SIM_INIT);
	int dev;
	CUresult rc = location(prop, &dev);

	SIM_VALUE(granularity && (unsigned)option <= CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
	if (rc == CUDA_SUCCESS)
		*granularity = SIM_PAGE;
	return rc;
}

/* Facts: a fabric handle is refused with 800 where there is no fabric; that is no want of memory.
 */
CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
		     const CUmemAllocationProp *prop, unsigned long long flags)
{
	SIM_API(SIM_INIT);
	struct sim_vmm *vmm;
	CUresult rc;
	int dev;

	SIM_VALUE(handle && size && size % SIM_PAGE == 0 && flags == 0);
	rc = location(prop, &dev);
	if (rc != CUDA_SUCCESS)
		return rc;
	if (prop->requestedHandleTypes & CU_MEM_HANDLE_TYPE_FABRIC)
		return CUDA_ERROR_NOT_PERMITTED;
	if (dev >= 0) {
		rc = sim_phys_take(dev, size);
		if (rc != CUDA_SUCCESS) {
			sim_pools_empty();
			rc = sim_phys_take(dev, size);
		}
		if (rc != CUDA_SUCCESS)
			return rc;
	}
	vmm = sim_object_new(SIM_VMM, sizeof(*vmm), NULL);
	vmm->size = size;
	vmm->dev = dev;
	vmm->prop = *prop;
	vmm->handles = 1;
	*handle = (CUmemGenericAllocationHandle)(uintptr_t)vmm;
	return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	SIM_API(SIM_INIT);
	struct sim_vmm *vmm = sim_vmm_get(handle);

	SIM_VALUE(vmm);
	vmm->handles--;
	sim_vmm_put(vmm);
	return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
			     unsigned long long flags)
{
	SIM_API(SIM_INIT);
	struct reservation *r;
	uint64_t base = 0;

	SIM_VALUE(ptr && size && size % SIM_PAGE == 0 && flags <= 1);
	SIM_VALUE((alignment & (alignment - 1)) == 0);
	if (alignment < SIM_PAGE)
		alignment = SIM_PAGE;
	if (addr && addr % alignment == 0)
		base = sim_arena_take(&sim.arena, size, alignment, addr);
	if (!base)
		base = sim_arena_take(&sim.arena, size, alignment, 0);
	if (!base)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = malloc(sizeof(*r));
	*r = (struct reservation){reservations, base, size};
	reservations = r;
	*ptr = base;
	return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	SIM_API(SIM_INIT);

	for (struct reservation **at = &reservations; *at; at = &(*at)->next) {
		struct reservation *r = *at;

		if (r->addr != ptr || r->size != size)
			continue;
		SIM_VALUE(!sim_mem_overlap(ptr, size)); /* something is still mapped */
		*at = r->next;
		sim_arena_give(&sim.arena, r->addr, r->size);
		free(r);
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

static bool reserved(uint64_t addr, uint64_t size)
{
	for (struct reservation *r = reservations; r; r = r->next)
		if (addr >= r->addr && addr + size <= r->addr + r->size)
			return true;
	return false;
}

/*
 * Documentation: of virtual memory a pointer's range is the reserved one, and its mapping is what
 * cuMemGetAddressRange returns.
 */
void sim_range(const struct sim_mem *mem, uint64_t *start, uint64_t *size)
{
	const struct reservation *r = reservations;

	while (mem->kind == SIM_MEM_MAPPED && r &&
	       (mem->addr < r->addr || mem->addr - r->addr >= r->size))
		r = r->next;
	if (start)
		*start = mem->kind == SIM_MEM_MAPPED && r ? r->addr : mem->addr;
	if (size)
		*size = mem->kind == SIM_MEM_MAPPED && r ? r->size : mem->size;
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
		  unsigned long long flags)
{
	SIM_API(SIM_INIT);
	struct sim_vmm *vmm = sim_vmm_get(handle);
	struct sim_mem *mem;

	SIM_VALUE(vmm && flags == 0);
	if (offset || size != vmm->size) /* as measured: a handle is mapped whole or not at all */
		return CUDA_ERROR_NOT_SUPPORTED;
	SIM_VALUE(ptr % SIM_PAGE == 0 && reserved(ptr, size) && !sim_mem_overlap(ptr, size));
	mem = sim_mem_add(ptr, size, SIM_MEM_MAPPED, NULL);
	mem->dev = vmm->dev;
	mem->vmm = vmm;
	vmm->maps++;
	return CUDA_SUCCESS;
}

/* Whole mappings only; a range with nothing mapped in it is fine. */
CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	SIM_API(SIM_INIT);
	struct sim_mem *mem;

	SIM_VALUE(size && ptr % SIM_PAGE == 0 && size % SIM_PAGE == 0 && reserved(ptr, 1));
	for (uint64_t at = ptr; at < ptr + size; at += SIM_PAGE) {
		mem = sim_mem_find(at);
		SIM_VALUE(!mem || (mem->addr >= ptr && mem->addr + mem->size <= ptr + size));
		if (mem)
			at = mem->addr + mem->size - SIM_PAGE;
	}
	while ((mem = sim_mem_overlap(ptr, size))) {
		struct sim_vmm *vmm = mem->vmm;

		sim_mem_drop(mem);
		vmm->maps--;
		sim_vmm_put(vmm);
	}
	return CUDA_SUCCESS;
}

static bool mapped(uint64_t addr, uint64_t size)
{
	for (uint64_t at = addr; at < addr + size;) {
		struct sim_mem *mem = sim_mem_find(at);

		if (!mem || mem->kind != SIM_MEM_MAPPED)
			return false;
		at = mem->addr + mem->size;
	}
	return true;
}

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	SIM_API(SIM_INIT);

	SIM_VALUE(desc && count && size && size % SIM_PAGE == 0 && mapped(ptr, size));
	for (size_t i = 0; i < count; i++) {
		int dev = desc[i].location.id;

		if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
			continue;
		if (dev < 0 || dev >= sim.devices)
			return CUDA_ERROR_INVALID_DEVICE;
		for (uint64_t at = ptr; at < ptr + size;) {
			struct sim_mem *mem = sim_mem_find(at);

			mem->access[dev] = desc[i].flags;
			mem->accessed = true;
			at = mem->addr + mem->size;
		}
	}
	return CUDA_SUCCESS;
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *where, CUdeviceptr ptr)
{
	SIM_API(SIM_INIT);
	struct sim_mem *mem = sim_mem_find(ptr);

	SIM_VALUE(flags && where && mem && mem->kind == SIM_MEM_MAPPED &&
		  where->type == CU_MEM_LOCATION_TYPE_DEVICE && where->id >= 0 &&
		  where->id < sim.devices);
	*flags = mem->access[where->id];
	return CUDA_SUCCESS;
}

/* One more reference, to be released. */
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
	SIM_API(SIM_INIT);
	struct sim_mem *mem = sim_mem_find((uint64_t)(uintptr_t)addr);

	SIM_VALUE(handle && mem && mem->kind == SIM_MEM_MAPPED);
	mem->vmm->handles++;
	*handle = (CUmemGenericAllocationHandle)(uintptr_t)mem->vmm;
	return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
						CUmemGenericAllocationHandle handle)
{
	SIM_API(SIM_INIT);
	struct sim_vmm *vmm = sim_vmm_get(handle);

	SIM_VALUE(prop && vmm);
	*prop = vmm->prop;
	return CUDA_SUCCESS;
}

/* --- sharing --- */

struct shared {
	char magic[16];
	int pid;
	struct sim_vmm *vmm;
	CUmemAllocationProp prop;
	uint64_t size;
};
static const char magic[16] = "gpusim memory";

CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
				      CUmemAllocationHandleType type, unsigned long long flags)
{
	SIM_API(SIM_INIT);
	struct sim_vmm *vmm = sim_vmm_get(handle);
	struct shared shared = {.pid = getpid(), .vmm = vmm};
	int fd;

	SIM_VALUE(out && vmm && flags == 0);
	SIM_VALUE(type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR &&
		  vmm->prop.requestedHandleTypes & type);
	memcpy(shared.magic, magic, sizeof(magic));
	shared.prop = vmm->prop;
	shared.size = vmm->size;
	fd = memfd_create("gpusim-memory", MFD_CLOEXEC);
	if (fd < 0 || pwrite(fd, &shared, sizeof(shared), 0) != (ssize_t)sizeof(shared))
		return CUDA_ERROR_OPERATING_SYSTEM;
	*(int *)out = fd;
	return CUDA_SUCCESS;
}

/*
 * In the process that exported, the import keeps the memory alive; from another process it is
 * somebody else's memory and costs this one nothing.
 */
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *os_handle,
					CUmemAllocationHandleType type)
{
	SIM_API(SIM_INIT);
	struct shared shared;
	struct sim_vmm *vmm;

	SIM_VALUE(handle && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	SIM_VALUE(pread((int)(intptr_t)os_handle, &shared, sizeof(shared), 0) ==
		  (ssize_t)sizeof(shared));
	SIM_VALUE(memcmp(shared.magic, magic, sizeof(magic)) == 0);
	vmm = sim_object_new(SIM_VMM, sizeof(*vmm), NULL);
	vmm->size = shared.size;
	vmm->prop = shared.prop;
	vmm->dev = shared.prop.location.type == CU_MEM_LOCATION_TYPE_DEVICE
			   ? shared.prop.location.id
			   : -1;
	vmm->imported = true;
	vmm->handles = 1;
	if (shared.pid == getpid() && sim_object(shared.vmm, SIM_VMM)) {
		vmm->origin = shared.vmm;
		vmm->origin->maps++;
	}
	*handle = (CUmemGenericAllocationHandle)(uintptr_t)vmm;
	return CUDA_SUCCESS;
}

/* --- multicast: bookkeeping only, the memory is that of the handles bound --- */

CUresult cuMulticastGetGranularity(size_t *granularity, const CUmulticastObjectProp *prop,
				   CUmulticastGranularity_flags option)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(granularity && prop && (unsigned)option <= CU_MULTICAST_GRANULARITY_RECOMMENDED);
	*granularity = option == CU_MULTICAST_GRANULARITY_MINIMUM ? SIM_PAGE : 512 * SIM_MIB;
	return CUDA_SUCCESS;
}

CUresult cuMulticastCreate(CUmemGenericAllocationHandle *handle, const CUmulticastObjectProp *prop)
{
	SIM_API(SIM_INIT);
	struct sim_vmm *vmm;

	SIM_VALUE(handle && prop && prop->size && prop->size % SIM_PAGE == 0 && !prop->flags);
	SIM_VALUE(prop->numDevices >= 2 && (int)prop->numDevices <= sim.devices);
	vmm = sim_object_new(SIM_VMM, sizeof(*vmm), NULL);
	vmm->size = prop->size;
	vmm->dev = -1;
	vmm->multicast = true;
	vmm->handles = 1;
	vmm->prop.requestedHandleTypes = (CUmemAllocationHandleType)prop->handleTypes;
	*handle = (CUmemGenericAllocationHandle)(uintptr_t)vmm;
	return CUDA_SUCCESS;
}

CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice dev)
{
	SIM_API(SIM_INIT);
	struct sim_vmm *vmm = sim_vmm_get(handle);

	SIM_VALUE(vmm && vmm->multicast);
	if (dev < 0 || dev >= sim.devices)
		return CUDA_ERROR_INVALID_DEVICE;
	vmm->team |= 1ull << dev;
	return CUDA_SUCCESS;
}

CUresult cuMulticastBindMem(CUmemGenericAllocationHandle handle, size_t offset,
			    CUmemGenericAllocationHandle memory, size_t memory_offset, size_t size,
			    unsigned long long flags)
{
	SIM_API(SIM_INIT);
	struct sim_vmm *vmm = sim_vmm_get(handle), *from = sim_vmm_get(memory);

	SIM_VALUE(vmm && vmm->multicast && from && !from->multicast && size && flags == 0);
	SIM_VALUE(offset + size <= vmm->size && memory_offset + size <= from->size);
	SIM_VALUE(from->dev >= 0 && vmm->team >> from->dev & 1);
	bind(vmm, offset, size, from);
	return CUDA_SUCCESS;
}

CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle handle, size_t offset, CUdeviceptr ptr,
			     size_t size, unsigned long long flags)
{
	SIM_API(SIM_INIT);
	struct sim_vmm *vmm = sim_vmm_get(handle);
	struct sim_mem *mem = sim_mem_find(ptr);

	SIM_VALUE(vmm && vmm->multicast && mem && mem->kind == SIM_MEM_MAPPED && size && !flags);
	SIM_VALUE(offset + size <= vmm->size && ptr + size <= mem->addr + mem->size);
	SIM_VALUE(mem->dev >= 0 && vmm->team >> mem->dev & 1);
	bind(vmm, offset, size, mem->vmm);
	return CUDA_SUCCESS;
}

CUresult cuMulticastUnbind(CUmemGenericAllocationHandle handle, CUdevice dev, size_t offset,
			   size_t size)
{
	SIM_API(SIM_INIT);
	struct sim_vmm *vmm = sim_vmm_get(handle);

	SIM_VALUE(vmm && vmm->multicast && unbind(vmm, dev, offset, size));
	return CUDA_SUCCESS;
}
