/*
 * Copies and fills of the simulated runtimes: what kind of copy decides which driver call it is.
 */
#include "rt.h"

#define D(ptr) ((CUdeviceptr)(uintptr_t)(ptr))

cudaError_t cudaMemcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
	ENTER();
	switch (kind) {
	case cudaMemcpyHostToHost:
	case cudaMemcpyDefault:
		return rt_last(CALL(cuMemcpy, D(dst), D(src), count));
	case cudaMemcpyHostToDevice:
		return rt_last(CALL(cuMemcpyHtoD, D(dst), src, count));
	case cudaMemcpyDeviceToHost:
		return rt_last(CALL(cuMemcpyDtoH, dst, D(src), count));
	case cudaMemcpyDeviceToDevice:
		return rt_last(CALL(cuMemcpyDtoD, D(dst), D(src), count));
	default:
		return rt_last(cudaErrorInvalidMemcpyDirection);
	}
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
			    cudaStream_t stream)
{
	ENTER();
	switch (kind) {
	case cudaMemcpyHostToHost:
	case cudaMemcpyDefault:
		return rt_last(CALL(cuMemcpyAsync, D(dst), D(src), count, stream));
	case cudaMemcpyHostToDevice:
		return rt_last(CALL(cuMemcpyHtoDAsync, D(dst), src, count, stream));
	case cudaMemcpyDeviceToHost:
		return rt_last(CALL(cuMemcpyDtoHAsync, dst, D(src), count, stream));
	case cudaMemcpyDeviceToDevice:
		return rt_last(CALL(cuMemcpyDtoDAsync, D(dst), D(src), count, stream));
	default:
		return rt_last(cudaErrorInvalidMemcpyDirection);
	}
}

PER_THREAD(cudaMemcpy, _ptds, (void *dst, const void *src, size_t count, enum cudaMemcpyKind kind),
	   (dst, src, count, kind))
PER_THREAD(cudaMemcpyAsync, _ptsz,
	   (void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
	    cudaStream_t stream),
	   (dst, src, count, kind, stream))

cudaError_t cudaMemcpyPeer(void *dst, int dst_device, const void *src, int src_device, size_t count)
{
	(void)dst_device, (void)src_device;
	return cudaMemcpy(dst, src, count, cudaMemcpyDeviceToDevice);
}

cudaError_t cudaMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device,
				size_t count, cudaStream_t stream)
{
	(void)dst_device, (void)src_device;
	return cudaMemcpyAsync(dst, src, count, cudaMemcpyDeviceToDevice, stream);
}

static CUmemorytype type_of(enum cudaMemcpyKind kind, bool dst)
{
	if (kind == cudaMemcpyDefault)
		return CU_MEMORYTYPE_UNIFIED;
	if (kind == cudaMemcpyDeviceToDevice)
		return CU_MEMORYTYPE_DEVICE;
	if (kind == cudaMemcpyHostToHost)
		return CU_MEMORYTYPE_HOST;
	return (kind == cudaMemcpyHostToDevice) == dst ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
}

static void set_dst(CUDA_MEMCPY3D *c, enum cudaMemcpyKind kind, const void *ptr, size_t pitch,
		    size_t rows)
{
	c->dstMemoryType = type_of(kind, true);
	c->dstHost = (void *)(uintptr_t)ptr;
	c->dstDevice = D(ptr);
	c->dstPitch = pitch;
	c->dstHeight = rows;
}

static void set_src(CUDA_MEMCPY3D *c, enum cudaMemcpyKind kind, const void *ptr, size_t pitch,
		    size_t rows)
{
	c->srcMemoryType = type_of(kind, false);
	c->srcHost = ptr;
	c->srcDevice = D(ptr);
	c->srcPitch = pitch;
	c->srcHeight = rows;
}

static cudaError_t copy_box(const CUDA_MEMCPY3D *c, bool async, cudaStream_t stream)
{
	ENTER();
	return rt_last(async ? CALL(cuMemcpy3DAsync, c, stream) : CALL(cuMemcpy3D, c));
}

static cudaError_t copy_2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
			   size_t height, enum cudaMemcpyKind kind, bool async, cudaStream_t stream)
{
	CUDA_MEMCPY3D c = {.WidthInBytes = width, .Height = height, .Depth = 1};

	if ((unsigned)kind > cudaMemcpyDefault)
		return rt_last(cudaErrorInvalidMemcpyDirection);
	NEED(width <= dpitch && width <= spitch);
	set_dst(&c, kind, dst, dpitch, 0);
	set_src(&c, kind, src, spitch, 0);
	return copy_box(&c, async, stream);
}

cudaError_t cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
			 size_t height, enum cudaMemcpyKind kind)
{
	return copy_2d(dst, dpitch, src, spitch, width, height, kind, false, NULL);
}

cudaError_t cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch,
			      size_t width, size_t height, enum cudaMemcpyKind kind,
			      cudaStream_t stream)
{
	return copy_2d(dst, dpitch, src, spitch, width, height, kind, true, stream);
}

cudaError_t cudaMemcpy2DToArray(cudaArray_t dst, size_t x, size_t y, const void *src, size_t spitch,
				size_t width, size_t height, enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY3D c = {.WidthInBytes = width, .Height = height, .Depth = 1};

	c.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	c.dstArray = (CUarray)dst;
	c.dstXInBytes = x;
	c.dstY = y;
	set_src(&c, kind, src, spitch, 0);
	return copy_box(&c, false, NULL);
}

cudaError_t cudaMemcpy2DFromArray(void *dst, size_t dpitch, cudaArray_const_t src, size_t x,
				  size_t y, size_t width, size_t height, enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY3D c = {.WidthInBytes = width, .Height = height, .Depth = 1};

	c.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	c.srcArray = (CUarray)(uintptr_t)src;
	c.srcXInBytes = x;
	c.srcY = y;
	set_dst(&c, kind, dst, dpitch, 0);
	return copy_box(&c, false, NULL);
}

static cudaError_t copy_3d(const struct cudaMemcpy3DParms *p, bool async, cudaStream_t stream)
{
	CUDA_MEMCPY3D c = {0};
	CUDA_ARRAY3D_DESCRIPTOR desc;
	size_t element = 1;

	NEED(p);
	ENTER();
	set_dst(&c, p->kind, p->dstPtr.ptr, p->dstPtr.pitch, p->dstPtr.ysize);
	set_src(&c, p->kind, p->srcPtr.ptr, p->srcPtr.pitch, p->srcPtr.ysize);
	if (p->dstArray || p->srcArray) { /* extents count elements when an array takes part */
		CUarray array = (CUarray)(p->dstArray ? p->dstArray : p->srcArray);

		if (CALL(cuArray3DGetDescriptor, &desc, array) != cudaSuccess)
			return rt_last(cudaErrorInvalidValue);
		element = desc.NumChannels * (desc.Format & 0x20 ? 4
					      : desc.Format == 0x10
						      ? 2
						      : 1u << ((desc.Format - 1) & 3) % 3);
	}
	if (p->dstArray)
		c.dstMemoryType = CU_MEMORYTYPE_ARRAY, c.dstArray = (CUarray)p->dstArray;
	if (p->srcArray)
		c.srcMemoryType = CU_MEMORYTYPE_ARRAY, c.srcArray = (CUarray)p->srcArray;
	c.dstXInBytes = p->dstPos.x * (p->dstArray ? element : 1);
	c.srcXInBytes = p->srcPos.x * (p->srcArray ? element : 1);
	c.dstY = p->dstPos.y, c.dstZ = p->dstPos.z;
	c.srcY = p->srcPos.y, c.srcZ = p->srcPos.z;
	c.WidthInBytes = p->extent.width * element;
	c.Height = p->extent.height;
	c.Depth = p->extent.depth;
	return copy_box(&c, async, stream);
}

cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *p)
{
	return copy_3d(p, false, NULL);
}

cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t stream)
{
	return copy_3d(p, true, stream);
}

PER_THREAD(cudaMemcpy2D, _ptds,
	   (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
	    enum cudaMemcpyKind kind),
	   (dst, dpitch, src, spitch, width, height, kind))
PER_THREAD(cudaMemcpy2DAsync, _ptsz,
	   (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
	    enum cudaMemcpyKind kind, cudaStream_t stream),
	   (dst, dpitch, src, spitch, width, height, kind, stream))
PER_THREAD(cudaMemcpy2DToArray, _ptds,
	   (cudaArray_t dst, size_t x, size_t y, const void *src, size_t spitch, size_t width,
	    size_t height, enum cudaMemcpyKind kind),
	   (dst, x, y, src, spitch, width, height, kind))
PER_THREAD(cudaMemcpy2DFromArray, _ptds,
	   (void *dst, size_t dpitch, cudaArray_const_t src, size_t x, size_t y, size_t width,
	    size_t height, enum cudaMemcpyKind kind),
	   (dst, dpitch, src, x, y, width, height, kind))
PER_THREAD(cudaMemcpy3D, _ptds, (const struct cudaMemcpy3DParms *p), (p))
PER_THREAD(cudaMemcpy3DAsync, _ptsz, (const struct cudaMemcpy3DParms *p, cudaStream_t stream),
	   (p, stream))

cudaError_t cudaMemset(void *ptr, int value, size_t count)
{
	FORWARD(cuMemsetD8, D(ptr), (unsigned char)value, count);
}

cudaError_t cudaMemsetAsync(void *ptr, int value, size_t count, cudaStream_t stream)
{
	FORWARD(cuMemsetD8Async, D(ptr), (unsigned char)value, count, stream);
}

cudaError_t cudaMemset2D(void *ptr, size_t pitch, int value, size_t width, size_t height)
{
	FORWARD(cuMemsetD2D8, D(ptr), pitch, (unsigned char)value, width, height);
}

cudaError_t cudaMemset2DAsync(void *ptr, size_t pitch, int value, size_t width, size_t height,
			      cudaStream_t stream)
{
	FORWARD(cuMemsetD2D8Async, D(ptr), pitch, (unsigned char)value, width, height, stream);
}

cudaError_t cudaMemset3D(struct cudaPitchedPtr p, int value, struct cudaExtent extent)
{
	return cudaMemset2D(p.ptr, p.pitch, value, extent.width, p.ysize * extent.depth);
}

cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr p, int value, struct cudaExtent extent,
			      cudaStream_t stream)
{
	return cudaMemset2DAsync(p.ptr, p.pitch, value, extent.width, p.ysize * extent.depth,
				 stream);
}

PER_THREAD(cudaMemset, _ptds, (void *ptr, int value, size_t count), (ptr, value, count))
PER_THREAD(cudaMemsetAsync, _ptsz, (void *ptr, int value, size_t count, cudaStream_t stream),
	   (ptr, value, count, stream))
PER_THREAD(cudaMemset2D, _ptds, (void *ptr, size_t pitch, int value, size_t width, size_t height),
	   (ptr, pitch, value, width, height))
PER_THREAD(cudaMemset2DAsync, _ptsz,
	   (void *ptr, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream),
	   (ptr, pitch, value, width, height, stream))
PER_THREAD(cudaMemset3D, _ptds, (struct cudaPitchedPtr p, int value, struct cudaExtent extent),
	   (p, value, extent))
PER_THREAD(cudaMemset3DAsync, _ptsz,
	   (struct cudaPitchedPtr p, int value, struct cudaExtent extent, cudaStream_t stream),
	   (p, value, extent, stream))
