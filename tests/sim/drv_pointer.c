/*
 * cuPointerGetAttribute: what the simulated driver knows of an address.
 */
#include "drv.h"

static bool on_host(const struct sim_mem *mem)
{
	return mem->kind == SIM_MEM_HOST || mem->kind == SIM_MEM_REGISTERED;
}

/* A graph's address is nothing before its launch and after its free. */
static bool known(const struct sim_mem *mem)
{
	return mem && mem->kind != SIM_MEM_ARRAY &&
	       (mem->kind != SIM_MEM_GRAPH || mem->graph->live);
}

static CUresult boolean(void *data, bool value)
{
	*(int *)data = value; /* the attribute is documented as boolean, drivers write an int */
	return CUDA_SUCCESS;
}

static CUresult attribute_of(struct sim_mem *mem, CUpointer_attribute attribute, void *data,
			     CUdeviceptr ptr)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)data = mem->ctx;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned *)data = on_host(mem) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(CUdeviceptr *)data = ptr;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (!on_host(mem) && mem->kind != SIM_MEM_MANAGED)
			return CUDA_ERROR_INVALID_VALUE;
		*(void **)data = (void *)(uintptr_t)ptr;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		*(unsigned long long *)data = mem->id;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		return boolean(data, false);
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		return boolean(data, mem->kind == SIM_MEM_MANAGED);
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = mem->dev;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		return boolean(data, mem->kind == SIM_MEM_DEVICE);
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		sim_range(mem, (uint64_t *)data, NULL);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		sim_range(mem, NULL, (uint64_t *)data);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		return boolean(data, true);
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		*(unsigned long long *)data =
			mem->vmm    ? (unsigned)mem->vmm->prop.requestedHandleTypes
			: mem->pool ? (unsigned)mem->pool->props.handleTypes
				    : 0;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		return boolean(data, false);
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		*(unsigned *)data = mem->kind == SIM_MEM_MAPPED && mem->dev >= 0
					    ? mem->access[mem->dev]
					    : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(CUmemoryPool *)data = mem->pool;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		*(size_t *)data = mem->pages ? mem->pages : mem->size;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		*(CUdeviceptr *)data = mem->addr;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		*(unsigned long long *)data = mem->id;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	SIM_API(SIM_INIT);
	struct sim_mem *mem = sim_mem_find(ptr);

	SIM_VALUE(data && known(mem));
	return attribute_of(mem, attribute, data, ptr);
}

/* An address that is not the driver's is no error here: its attributes are zeros. */
CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes, void **data,
				CUdeviceptr ptr)
{
	SIM_API(SIM_INIT);
	struct sim_mem *mem = sim_mem_find(ptr);

	SIM_VALUE(count && attributes && data);
	for (unsigned i = 0; i < count; i++) {
		bool wide = attributes[i] != CU_POINTER_ATTRIBUTE_MEMORY_TYPE &&
			    attributes[i] != CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL &&
			    attributes[i] != CU_POINTER_ATTRIBUTE_IS_MANAGED &&
			    attributes[i] != CU_POINTER_ATTRIBUTE_MAPPED &&
			    attributes[i] != CU_POINTER_ATTRIBUTE_ACCESS_FLAGS &&
			    attributes[i] != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS;

		SIM_VALUE(data[i]);
		memset(data[i], 0, wide ? 8 : 4);
		if (!known(mem) && attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
			*(int *)data[i] = CU_DEVICE_INVALID;
		if (known(mem))
			attribute_of(mem, attributes[i], data[i], ptr);
	}
	return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	SIM_API(SIM_INIT);
	struct sim_mem *mem = sim_mem_find(ptr);

	SIM_VALUE(value && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS && mem && !on_host(mem));
	return CUDA_SUCCESS;
}
