/*
 * Arrays and mipmapped arrays of the simulated runtimes.
 */
#include "rt.h"

/* A channel description says what the driver says by format and number of channels. */
static cudaError_t describe(CUDA_ARRAY3D_DESCRIPTOR *out, const struct cudaChannelFormatDesc *desc,
			    struct cudaExtent extent, unsigned flags)
{
	int channels = (desc->x > 0) + (desc->y > 0) + (desc->z > 0) + (desc->w > 0);

	memset(out, 0, sizeof(*out));
	out->Width = extent.width;
	out->Height = extent.height;
	out->Depth = extent.depth;
	out->NumChannels = (unsigned)channels;
	out->Flags = flags;
	if (desc->f == cudaChannelFormatKindFloat)
		out->Format = desc->x == 16 ? CU_AD_FORMAT_HALF : CU_AD_FORMAT_FLOAT;
	else if (desc->f == cudaChannelFormatKindSigned)
		out->Format = desc->x == 8    ? CU_AD_FORMAT_SIGNED_INT8
			      : desc->x == 16 ? CU_AD_FORMAT_SIGNED_INT16
					      : CU_AD_FORMAT_SIGNED_INT32;
	else if (desc->f == cudaChannelFormatKindUnsigned)
		out->Format = desc->x == 8    ? CU_AD_FORMAT_UNSIGNED_INT8
			      : desc->x == 16 ? CU_AD_FORMAT_UNSIGNED_INT16
					      : CU_AD_FORMAT_UNSIGNED_INT32;
	else
		return cudaErrorInvalidValue;
	return cudaSuccess;
}

cudaError_t cudaMalloc3DArray(cudaArray_t *out, const struct cudaChannelFormatDesc *desc,
			      struct cudaExtent extent, unsigned int flags)
{
	CUDA_ARRAY3D_DESCRIPTOR full;
	cudaError_t rc;

	NEED(out && desc);
	ENTER();
	rc = describe(&full, desc, extent, flags);
	if (rc == cudaSuccess)
		rc = CALL(cuArray3DCreate, (CUarray *)out, &full);
	return rt_last(rc);
}

cudaError_t cudaMallocArray(cudaArray_t *out, const struct cudaChannelFormatDesc *desc,
			    size_t width, size_t height, unsigned int flags)
{
	struct cudaExtent extent = {width, height, 0};
	CUDA_ARRAY3D_DESCRIPTOR full;
	CUDA_ARRAY_DESCRIPTOR flat;
	cudaError_t rc;

	if (flags != cudaArrayDefault)
		return cudaMalloc3DArray(out, desc, extent, flags);
	NEED(out && desc);
	ENTER();
	rc = describe(&full, desc, extent, flags);
	flat = (CUDA_ARRAY_DESCRIPTOR){width, height, full.Format, full.NumChannels};
	if (rc == cudaSuccess)
		rc = CALL(cuArrayCreate, (CUarray *)out, &flat);
	return rt_last(rc);
}

cudaError_t cudaFreeArray(cudaArray_t array)
{
	ENTER();
	return rt_last(array ? CALL(cuArrayDestroy, (CUarray)array) : cudaSuccess);
}

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *out,
				     const struct cudaChannelFormatDesc *desc,
				     struct cudaExtent extent, unsigned int levels,
				     unsigned int flags)
{
	CUDA_ARRAY3D_DESCRIPTOR full;
	cudaError_t rc;

	NEED(out && desc);
	ENTER();
	rc = describe(&full, desc, extent, flags);
	if (rc == cudaSuccess)
		rc = CALL(cuMipmappedArrayCreate, (CUmipmappedArray *)out, &full, levels);
	return rt_last(rc);
}

cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t mipmap)
{
	ENTER();
	return rt_last(mipmap ? CALL(cuMipmappedArrayDestroy, (CUmipmappedArray)mipmap)
			      : cudaSuccess);
}

cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t *out, cudaMipmappedArray_const_t mipmap,
				       unsigned int level)
{
	FORWARD(cuMipmappedArrayGetLevel, (CUarray *)out, (CUmipmappedArray)(uintptr_t)mipmap,
		level);
}

cudaError_t
cudaExternalMemoryGetMappedMipmappedArray(cudaMipmappedArray_t *out, cudaExternalMemory_t memory,
					  const struct cudaExternalMemoryMipmappedArrayDesc *desc)
{
	CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC full = {0};
	cudaError_t rc;

	NEED(out && desc);
	ENTER();
	full.offset = desc->offset;
	full.numLevels = desc->numLevels;
	rc = describe(&full.arrayDesc, &desc->formatDesc, desc->extent, desc->flags);
	if (rc == cudaSuccess)
		rc = CALL(cuExternalMemoryGetMappedMipmappedArray, (CUmipmappedArray *)out,
			  (CUexternalMemory)memory, &full);
	return rt_last(rc);
}

cudaError_t cudaArrayGetInfo(struct cudaChannelFormatDesc *desc, struct cudaExtent *extent,
			     unsigned int *flags, cudaArray_t array)
{
	CUDA_ARRAY3D_DESCRIPTOR full;
	int bits, n;
	cudaError_t rc;

	ENTER();
	rc = CALL(cuArray3DGetDescriptor, &full, (CUarray)array);
	if (rc != cudaSuccess)
		return rt_last(rc);
	if (extent)
		*extent = (struct cudaExtent){full.Width, full.Height, full.Depth};
	if (flags)
		*flags = full.Flags;
	if (!desc)
		return cudaSuccess;
	n = (int)full.NumChannels;
	bits = full.Format == CU_AD_FORMAT_HALF ? 16 : 8 << (((int)full.Format - 1) & 3);
	if (full.Format == CU_AD_FORMAT_FLOAT)
		bits = 32;
	*desc = (struct cudaChannelFormatDesc){bits, n > 1 ? bits : 0, n > 2 ? bits : 0,
					       n > 3 ? bits : 0, cudaChannelFormatKindUnsigned};
	if (full.Format == CU_AD_FORMAT_HALF || full.Format == CU_AD_FORMAT_FLOAT)
		desc->f = cudaChannelFormatKindFloat;
	else if (full.Format >= CU_AD_FORMAT_SIGNED_INT8)
		desc->f = cudaChannelFormatKindSigned, desc->x = bits = 8 << ((int)full.Format - 8);
	return cudaSuccess;
}

cudaError_t cudaArrayGetMemoryRequirements(struct cudaArrayMemoryRequirements *out,
					   cudaArray_t array, int device)
{
	FORWARD(cuArrayGetMemoryRequirements, (CUDA_ARRAY_MEMORY_REQUIREMENTS *)out, (CUarray)array,
		device);
}

cudaError_t cudaMipmappedArrayGetMemoryRequirements(struct cudaArrayMemoryRequirements *out,
						    cudaMipmappedArray_t mipmap, int device)
{
	FORWARD(cuMipmappedArrayGetMemoryRequirements, (CUDA_ARRAY_MEMORY_REQUIREMENTS *)out,
		(CUmipmappedArray)mipmap, device);
}

struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
						   enum cudaChannelFormatKind f);
struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
						   enum cudaChannelFormatKind f)
{
	return (struct cudaChannelFormatDesc){x, y, z, w, f};
}

cudaError_t cudaGetChannelDesc(struct cudaChannelFormatDesc *desc, cudaArray_const_t array)
{
	NEED(desc);
	return cudaArrayGetInfo(desc, NULL, NULL, (cudaArray_t)(uintptr_t)array);
}
