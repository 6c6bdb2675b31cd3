/*
 * Memory of other processes and APIs in the simulated driver: IPC handles and external memory.
 * Devices are not shared between processes, so what is opened costs this process no memory.
 */
#include <sys/stat.h>
#include <unistd.h>
#include "drv.h"

struct ipc_handle {
	uint64_t magic, addr, size;
	int pid, dev;
	uint64_t id;
};
#define IPC_MAGIC 0x21637069756d6973ull

struct CUextMemory_st {
	struct sim_object head;
	uint64_t size;
	int fd;
};

CUresult cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr ptr)
{
	SIM_API(SIM_CURRENT);
	struct sim_mem *mem = sim_mem_find(ptr);
	struct ipc_handle handle;

	SIM_VALUE(out && mem && mem->kind == SIM_MEM_DEVICE);
	handle = (struct ipc_handle){IPC_MAGIC, mem->addr, mem->size, getpid(), mem->dev, mem->id};
	memset(out, 0, sizeof(*out));
	memcpy(out, &handle, sizeof(handle));
	return CUDA_SUCCESS;
}

static struct sim_mem *opened(uint64_t id)
{
	for (struct sim_object *o = sim.loose; o; o = o->next)
		if (o->type == SIM_IPC && ((struct sim_ipc *)o)->id == id)
			return ((struct sim_ipc *)o)->mem;
	return NULL;
}

/* Facts: a handle opened in the process that made it is refused with 201. */
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *ptr, CUipcMemHandle data, unsigned int flags)
{
	SIM_API(SIM_CURRENT);
	struct ipc_handle handle;
	struct sim_mem *mem;
	struct sim_ipc *ipc;
	uint64_t addr;

	memcpy(&handle, &data, sizeof(handle));
	SIM_VALUE(ptr && flags == 1 && handle.magic == IPC_MAGIC);
	if (handle.pid == getpid())
		return CUDA_ERROR_INVALID_CONTEXT;
	SIM_VALUE(handle.dev < sim.devices);
	handle.id ^= (uint64_t)handle.pid << 32;
	mem = opened(handle.id);
	if (mem) {
		mem->refs++;
		*ptr = mem->addr;
		return CUDA_SUCCESS;
	}
	addr = sim_arena_take(&sim.arena, sim_round(handle.size, SIM_PAGE), SIM_PAGE, 0);
	if (!addr)
		return CUDA_ERROR_OUT_OF_MEMORY;
	mem = sim_mem_add(addr, handle.size, SIM_MEM_IPC, sim_ctx_current());
	ipc = sim_object_new(SIM_IPC, sizeof(*ipc), NULL);
	ipc->id = handle.id;
	ipc->mem = mem;
	mem->owner = ipc;
	*ptr = addr;
	return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *ptr, CUipcMemHandle data, unsigned int flags)
{
	return cuIpcOpenMemHandle_v2(ptr, data, flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr ptr)
{
	SIM_API(SIM_CURRENT);
	struct sim_mem *mem = sim_mem_find(ptr);

	SIM_VALUE(mem && mem->kind == SIM_MEM_IPC && mem->addr == ptr);
	if (--mem->refs == 0)
		sim_mem_release(mem);
	return CUDA_SUCCESS;
}

/* --- external memory: a descriptor of another API; the file's size bounds it --- */

CUresult cuImportExternalMemory(CUexternalMemory *out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc)
{
	SIM_API(SIM_CURRENT);
	struct stat st;

	SIM_VALUE(out && desc && desc->size);
	if (desc->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD &&
	    desc->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (fstat(desc->handle.fd, &st) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	*out = sim_object_new(SIM_EXTMEM, sizeof(**out), NULL);
	(*out)->size = desc->size;
	(*out)->fd = desc->handle.fd; /* owned by the driver from here on */
	return CUDA_SUCCESS;
}

CUresult cuDestroyExternalMemory(CUexternalMemory memory)
{
	SIM_API(SIM_INIT);
	if (!SIM_GET(SIM_EXTMEM, memory))
		return CUDA_ERROR_INVALID_HANDLE;
	close(memory->fd);
	sim_object_free(memory);
	return CUDA_SUCCESS;
}

/* To be freed by cuMemFree. */
CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *ptr, CUexternalMemory memory,
					 const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc)
{
	SIM_API(SIM_CURRENT);
	uint64_t addr;

	SIM_VALUE(ptr && desc && !desc->flags && desc->size);
	if (!SIM_GET(SIM_EXTMEM, memory))
		return CUDA_ERROR_INVALID_HANDLE;
	SIM_VALUE(desc->offset + desc->size <= memory->size);
	addr = sim_arena_take(&sim.arena, sim_round(desc->size, SIM_PAGE), SIM_PAGE, 0);
	if (!addr)
		return CUDA_ERROR_OUT_OF_MEMORY;
	sim_mem_add(addr, desc->size, SIM_MEM_EXTERNAL, sim_ctx_current());
	*ptr = addr;
	return CUDA_SUCCESS;
}

CUresult
cuExternalMemoryGetMappedMipmappedArray(CUmipmappedArray *out, CUexternalMemory memory,
					const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *desc)
{
	SIM_API(SIM_CURRENT);
	SIM_VALUE(out && desc);
	if (!SIM_GET(SIM_EXTMEM, memory))
		return CUDA_ERROR_INVALID_HANDLE;
	return sim_mipmap_new(out, &desc->arrayDesc, desc->numLevels, false);
}
