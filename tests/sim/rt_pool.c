/*
 * Stream-ordered memory of the simulated runtimes: allocating, freeing, pools and their attributes,
 * graphs' memory.
 */
#include "rt.h"

/* A failed allocation leaves a NULL, whatever the error. */
static cudaError_t hand_out(cudaError_t rc, void **out, const CUdeviceptr *ptr)
{
	*out = rc == cudaSuccess ? (void *)(uintptr_t)*ptr : NULL;
	return rt_last(rc);
}

cudaError_t cudaMallocAsync(void **out, size_t size, cudaStream_t stream)
{
	CUdeviceptr ptr = 0;

	NEED(out);
	ENTER();
	return hand_out(size ? CALL(cuMemAllocAsync, &ptr, size, stream) : cudaSuccess, out, &ptr);
}

cudaError_t cudaMallocFromPoolAsync(void **out, size_t size, cudaMemPool_t pool,
				    cudaStream_t stream)
{
	CUdeviceptr ptr = 0;

	NEED(out);
	ENTER();
	return hand_out(size ? CALL(cuMemAllocFromPoolAsync, &ptr, size, pool, stream)
			     : cudaSuccess,
			out, &ptr);
}

cudaError_t cudaFreeAsync(void *ptr, cudaStream_t stream)
{
	FORWARD(cuMemFreeAsync, (CUdeviceptr)(uintptr_t)ptr, stream);
}

PER_THREAD(cudaMallocAsync, _ptsz, (void **out, size_t size, cudaStream_t stream),
	   (out, size, stream))
PER_THREAD(cudaMallocFromPoolAsync, _ptsz,
	   (void **out, size_t size, cudaMemPool_t pool, cudaStream_t stream),
	   (out, size, pool, stream))
PER_THREAD(cudaFreeAsync, _ptsz, (void *ptr, cudaStream_t stream), (ptr, stream))

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *props)
{
	FORWARD(cuMemPoolCreate, pool, (const CUmemPoolProps *)props);
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
	FORWARD(cuMemPoolDestroy, pool);
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep)
{
	FORWARD(cuMemPoolTrimTo, pool, keep);
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
	FORWARD(cuMemPoolGetAttribute, pool, (CUmemPool_attribute)attribute, value);
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
	FORWARD(cuMemPoolSetAttribute, pool, (CUmemPool_attribute)attribute, value);
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *list,
				 size_t count)
{
	FORWARD(cuMemPoolSetAccess, pool, (const CUmemAccessDesc *)list, count);
}

cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t pool,
				 struct cudaMemLocation *where)
{
	FORWARD(cuMemPoolGetAccess, (CUmemAccess_flags *)flags, pool, (CUmemLocation *)where);
}

cudaError_t cudaMemPoolExportToShareableHandle(void *out, cudaMemPool_t pool,
					       enum cudaMemAllocationHandleType type,
					       unsigned int flags)
{
	FORWARD(cuMemPoolExportToShareableHandle, out, pool, (CUmemAllocationHandleType)type,
		flags);
}

cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t *pool, void *handle,
						 enum cudaMemAllocationHandleType type,
						 unsigned int flags)
{
	FORWARD(cuMemPoolImportFromShareableHandle, pool, handle, (CUmemAllocationHandleType)type,
		flags);
}

cudaError_t cudaMemPoolExportPointer(struct cudaMemPoolPtrExportData *data, void *ptr)
{
	FORWARD(cuMemPoolExportPointer, (CUmemPoolPtrExportData *)data,
		(CUdeviceptr)(uintptr_t)ptr);
}

cudaError_t cudaMemPoolImportPointer(void **out, cudaMemPool_t pool,
				     struct cudaMemPoolPtrExportData *data)
{
	CUdeviceptr ptr = 0;
	cudaError_t rc;

	NEED(out);
	ENTER();
	rc = CALL(cuMemPoolImportPointer, &ptr, pool, (CUmemPoolPtrExportData *)data);
	if (rc == cudaSuccess)
		*out = (void *)(uintptr_t)ptr;
	return rt_last(rc);
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
	FORWARD(cuDeviceGetDefaultMemPool, pool, device);
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
	FORWARD(cuDeviceGetMemPool, pool, device);
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool)
{
	FORWARD(cuDeviceSetMemPool, device, pool);
}

#if SIM_CUDART >= 13
cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t *pool, struct cudaMemLocation *where,
				     enum cudaMemAllocationType type)
{
	FORWARD(cuMemGetDefaultMemPool, pool, (CUmemLocation *)where, (CUmemAllocationType)type);
}

cudaError_t cudaMemGetMemPool(cudaMemPool_t *pool, struct cudaMemLocation *where,
			      enum cudaMemAllocationType type)
{
	FORWARD(cuMemGetMemPool, pool, (CUmemLocation *)where, (CUmemAllocationType)type);
}

cudaError_t cudaMemSetMemPool(struct cudaMemLocation *where, enum cudaMemAllocationType type,
			      cudaMemPool_t pool)
{
	FORWARD(cuMemSetMemPool, (CUmemLocation *)where, (CUmemAllocationType)type, pool);
}
#endif

cudaError_t cudaDeviceGraphMemTrim(int device)
{
	FORWARD(cuDeviceGraphMemTrim, device);
}

cudaError_t cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attribute,
					   void *value)
{
	FORWARD(cuDeviceGetGraphMemAttribute, device, (CUgraphMem_attribute)attribute, value);
}

cudaError_t cudaDeviceSetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attribute,
					   void *value)
{
	FORWARD(cuDeviceSetGraphMemAttribute, device, (CUgraphMem_attribute)attribute, value);
}
