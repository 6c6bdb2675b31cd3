/*
 * Memory calls of the simulated runtimes: device, pitched, managed, pinned and registered memory,
 * pointer attributes, prefetch and advice, IPC and external memory.
 */
#include "rt.h"

/* A failed allocation leaves a NULL, whatever the error. */
static cudaError_t hand_out(cudaError_t rc, void **out, const CUdeviceptr *ptr)
{
	*out = rc == cudaSuccess ? (void *)(uintptr_t)*ptr : NULL;
	return rt_last(rc);
}

cudaError_t cudaMalloc(void **out, size_t size)
{
	CUdeviceptr ptr = 0;

	NEED(out);
	ENTER();
	return hand_out(size ? CALL(cuMemAlloc, &ptr, size) : cudaSuccess, out, &ptr);
}

cudaError_t cudaMallocManaged(void **out, size_t size, unsigned int flags)
{
	CUdeviceptr ptr = 0;

	NEED(out);
	ENTER();
	return hand_out(size ? CALL(cuMemAllocManaged, &ptr, size, flags) : cudaSuccess, out, &ptr);
}

cudaError_t cudaMallocPitch(void **out, size_t *pitch, size_t width, size_t height)
{
	CUdeviceptr ptr = 0;

	NEED(out && pitch);
	ENTER();
	if (!width || !height) {
		*pitch = 0;
		return hand_out(cudaSuccess, out, &ptr);
	}
	return hand_out(CALL(cuMemAllocPitch, &ptr, pitch, width, height, 4), out, &ptr);
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *out, struct cudaExtent extent)
{
	CUdeviceptr ptr = 0;
	size_t pitch = 0;
	cudaError_t rc = cudaSuccess;

	NEED(out);
	ENTER();
	if (extent.width && extent.height && extent.depth)
		rc = CALL(cuMemAllocPitch, &ptr, &pitch, extent.width, extent.height * extent.depth,
			  4);
	out->ptr = (void *)(uintptr_t)ptr;
	out->pitch = pitch;
	if (rc == cudaSuccess) {
		out->xsize = extent.width;
		out->ysize = extent.height;
	}
	return rt_last(rc);
}

cudaError_t cudaFree(void *ptr)
{
	FORWARD(cuMemFree, (CUdeviceptr)(uintptr_t)ptr);
}

cudaError_t cudaMallocHost(void **out, size_t size)
{
	cudaError_t rc = cudaSuccess;
	CUdeviceptr address;
	void *ptr = NULL;

	NEED(out);
	ENTER();
	if (size)
		rc = CALL(cuMemAllocHost, &ptr, size);
	address = (CUdeviceptr)(uintptr_t)ptr;
	return hand_out(rc, out, &address);
}

cudaError_t cudaHostAlloc(void **out, size_t size, unsigned int flags)
{
	cudaError_t rc = cudaSuccess;
	CUdeviceptr address;
	void *ptr = NULL;

	NEED(out && flags < 8);
	ENTER();
	if (size)
		rc = CALL(cuMemHostAlloc, &ptr, size, flags);
	address = (CUdeviceptr)(uintptr_t)ptr;
	return hand_out(rc, out, &address);
}

cudaError_t cudaFreeHost(void *ptr)
{
	FORWARD(cuMemFreeHost, ptr);
}

cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned int flags)
{
	FORWARD(cuMemHostRegister, ptr, size, flags);
}

cudaError_t cudaHostUnregister(void *ptr)
{
	FORWARD(cuMemHostUnregister, ptr);
}

cudaError_t cudaHostGetDevicePointer(void **out, void *ptr, unsigned int flags)
{
	CUdeviceptr device = 0;
	cudaError_t rc;

	NEED(out);
	ENTER();
	rc = CALL(cuMemHostGetDevicePointer, &device, ptr, flags);
	if (rc == cudaSuccess)
		*out = (void *)(uintptr_t)device;
	return rt_last(rc);
}

cudaError_t cudaHostGetFlags(unsigned int *flags, void *ptr)
{
	FORWARD(cuMemHostGetFlags, flags, ptr);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
	FORWARD(cuMemGetInfo, free_bytes, total);
}

/* An address that CUDA does not know is "unregistered", no error. */
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *out, const void *ptr)
{
	CUpointer_attribute names[] = {
		CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
		CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_DEVICE_POINTER};
	unsigned type = 0, managed = 0;
	CUdeviceptr device = 0;
	int ordinal = -2;
	void *values[] = {&type, &ordinal, &managed, &device};
	cudaError_t rc;

	NEED(out);
	ENTER();
	rc = CALL(cuPointerGetAttributes, 4, names, values, (CUdeviceptr)(uintptr_t)ptr);
	if (rc != cudaSuccess)
		return rt_last(rc);
	memset(out, 0, sizeof(*out));
	out->device = ordinal;
	out->type = managed ? cudaMemoryTypeManaged : (enum cudaMemoryType)type;
	out->devicePointer = (void *)(uintptr_t)device;
	if (type != CU_MEMORYTYPE_DEVICE || managed)
		out->hostPointer = (void *)(uintptr_t)ptr;
	return cudaSuccess;
}

/* --- managed memory: location structures came with CUDA 13 --- */

static cudaError_t prefetch(const void *ptr, size_t count, CUmemLocation to, unsigned flags,
			    cudaStream_t stream)
{
	FORWARD(cuMemPrefetchAsync, (CUdeviceptr)(uintptr_t)ptr, count, to, flags, stream);
}

static cudaError_t advise(const void *ptr, size_t count, int advice, CUmemLocation where)
{
	FORWARD(cuMemAdvise, (CUdeviceptr)(uintptr_t)ptr, count, (CUmem_advise)advice, where);
}

#define LOCATION(where) ((CUmemLocation){(CUmemLocationType)(where).type, (where).id})

#if SIM_CUDART >= 13
cudaError_t cudaMemPrefetchAsync(const void *ptr, size_t count, struct cudaMemLocation to,
				 unsigned int flags, cudaStream_t stream)
{
	return prefetch(ptr, count, LOCATION(to), flags, stream);
}

PER_THREAD(cudaMemPrefetchAsync, _ptsz,
	   (const void *ptr, size_t count, struct cudaMemLocation to, unsigned int flags,
	    cudaStream_t stream),
	   (ptr, count, to, flags, stream))

cudaError_t cudaMemAdvise(const void *ptr, size_t count, enum cudaMemoryAdvise advice,
			  struct cudaMemLocation where)
{
	return advise(ptr, count, (int)advice, LOCATION(where));
}
#else
static CUmemLocation at_device(int device)
{
	CUmemLocation where = {CU_MEM_LOCATION_TYPE_DEVICE, device};

	if (device == -1)
		where = (CUmemLocation){CU_MEM_LOCATION_TYPE_HOST, 0};
	return where;
}

cudaError_t cudaMemPrefetchAsync(const void *ptr, size_t count, int device, cudaStream_t stream)
{
	return prefetch(ptr, count, at_device(device), 0, stream);
}

PER_THREAD(cudaMemPrefetchAsync, _ptsz,
	   (const void *ptr, size_t count, int device, cudaStream_t stream),
	   (ptr, count, device, stream))

cudaError_t cudaMemAdvise(const void *ptr, size_t count, enum cudaMemoryAdvise advice, int device)
{
	return advise(ptr, count, (int)advice, at_device(device));
}

#if SIM_CUDART == 12
cudaError_t cudaMemPrefetchAsync_v2(const void *ptr, size_t count, struct cudaMemLocation to,
				    unsigned int flags, cudaStream_t stream)
{
	return prefetch(ptr, count, LOCATION(to), flags, stream);
}

PER_THREAD(cudaMemPrefetchAsync_v2, _ptsz,
	   (const void *ptr, size_t count, struct cudaMemLocation to, unsigned int flags,
	    cudaStream_t stream),
	   (ptr, count, to, flags, stream))

cudaError_t cudaMemAdvise_v2(const void *ptr, size_t count, enum cudaMemoryAdvise advice,
			     struct cudaMemLocation where)
{
	return advise(ptr, count, (int)advice, LOCATION(where));
}
#endif
#endif

cudaError_t cudaMemRangeGetAttribute(void *data, size_t size, enum cudaMemRangeAttribute attribute,
				     const void *ptr, size_t count)
{
	FORWARD(cuMemRangeGetAttribute, data, size, (CUmem_range_attribute)attribute,
		(CUdeviceptr)(uintptr_t)ptr, count);
}

/* --- other processes and other APIs --- */

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *ptr)
{
	FORWARD(cuIpcGetMemHandle, (CUipcMemHandle *)handle, (CUdeviceptr)(uintptr_t)ptr);
}

cudaError_t cudaIpcOpenMemHandle(void **out, cudaIpcMemHandle_t handle, unsigned int flags)
{
	CUipcMemHandle data;
	CUdeviceptr ptr = 0;
	cudaError_t rc;

	NEED(out);
	ENTER();
	memcpy(&data, &handle, sizeof(data));
	rc = CALL(cuIpcOpenMemHandle, &ptr, data, flags);
	if (rc == cudaSuccess)
		*out = (void *)(uintptr_t)ptr;
	return rt_last(rc);
}

cudaError_t cudaIpcCloseMemHandle(void *ptr)
{
	FORWARD(cuIpcCloseMemHandle, (CUdeviceptr)(uintptr_t)ptr);
}

cudaError_t cudaImportExternalMemory(cudaExternalMemory_t *out,
				     const struct cudaExternalMemoryHandleDesc *desc)
{
	FORWARD(cuImportExternalMemory, (CUexternalMemory *)out,
		(const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *)desc);
}

cudaError_t cudaExternalMemoryGetMappedBuffer(void **out, cudaExternalMemory_t memory,
					      const struct cudaExternalMemoryBufferDesc *desc)
{
	CUdeviceptr ptr = 0;
	cudaError_t rc;

	NEED(out);
	ENTER();
	rc = CALL(cuExternalMemoryGetMappedBuffer, &ptr, (CUexternalMemory)memory,
		  (const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *)desc);
	if (rc == cudaSuccess)
		*out = (void *)(uintptr_t)ptr;
	return rt_last(rc);
}

cudaError_t cudaDestroyExternalMemory(cudaExternalMemory_t memory)
{
	FORWARD(cuDestroyExternalMemory, (CUexternalMemory)memory);
}
