/*
 * Arrays and mipmapped arrays of the simulated driver. Sizes are those measured: rows are padded to
 * 512 B where they are small, a whole array takes 2 MiB pages, all levels of a chain together.
 */
#include "drv.h"

unsigned sim_format_bytes(CUarray_format format)
{
	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
		return 1;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
		return 2;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT:
		return 4;
	default:
		return 0;
	}
}

static CUresult check(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	SIM_VALUE(desc->Width && sim_format_bytes(desc->Format));
	SIM_VALUE(desc->NumChannels == 1 || desc->NumChannels == 2 || desc->NumChannels == 4);
	SIM_VALUE(desc->Depth == 0 || desc->Height || desc->Flags & CUDA_ARRAY3D_LAYERED);
	SIM_VALUE(desc->Width <= 131072 && desc->Height <= 65536 && desc->Depth <= 16384);
	return CUDA_SUCCESS;
}

/* Tiles of 64 B by 8 rows: an array of 100^3 floats took 6 MiB, the other measured ones fit too. */
static uint64_t raw_bytes(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	uint64_t element = sim_format_bytes(desc->Format) * desc->NumChannels;
	uint64_t rows = desc->Height > 1 ? sim_round(desc->Height, 8) : 1;

	return sim_round(desc->Width * element, 64) * rows * (desc->Depth ? desc->Depth : 1);
}

static bool deferred(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	return desc->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING);
}

/* Memory as of any allocation: small ones share a slab. */
static CUresult take(struct sim_mem **mem, uint64_t bytes)
{
	CUcontext ctx = sim_ctx_current();

	*mem = NULL;
	if (!bytes)
		return CUDA_SUCCESS;
	*mem = sim_device_alloc(ctx, bytes, SIM_MEM_ARRAY, false);
	if (!*mem) {
		sim_pools_empty();
		*mem = sim_device_alloc(ctx, bytes, SIM_MEM_ARRAY, false);
	}
	return *mem ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult create(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	CUcontext ctx = sim_ctx_current();
	struct sim_mem *mem;
	CUresult rc = check(desc);

	if (rc == CUDA_SUCCESS)
		rc = take(&mem, deferred(desc) ? 0 : raw_bytes(desc));
	if (rc != CUDA_SUCCESS)
		return rc;
	*out = sim_object_new(SIM_ARRAY, sizeof(**out), ctx);
	(*out)->desc = *desc;
	(*out)->mem = mem;
	(*out)->dev = ctx->dev;
	return CUDA_SUCCESS;
}

CUresult cuArrayCreate_v2(CUarray *out, const CUDA_ARRAY_DESCRIPTOR *desc)
{
	SIM_API(SIM_CURRENT | SIM_UNSAFE);
	CUDA_ARRAY3D_DESCRIPTOR full = {0};

	SIM_VALUE(out && desc);
	full.Width = desc->Width;
	full.Height = desc->Height;
	full.Format = desc->Format;
	full.NumChannels = desc->NumChannels;
	return create(out, &full);
}

CUresult cuArray3DCreate_v2(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	SIM_API(SIM_CURRENT | SIM_UNSAFE);
	SIM_VALUE(out && desc);
	return create(out, desc);
}

/* The first version's descriptors have 32-bit sizes. */
CUresult cuArrayCreate(CUarray *out, const CUDA_ARRAY_DESCRIPTOR_v1 *desc)
{
	SIM_API(SIM_CURRENT | SIM_UNSAFE);
	CUDA_ARRAY3D_DESCRIPTOR full = {0};

	SIM_VALUE(out && desc);
	full.Width = desc->Width;
	full.Height = desc->Height;
	full.Format = desc->Format;
	full.NumChannels = desc->NumChannels;
	return create(out, &full);
}

CUresult cuArray3DCreate(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR_v1 *desc)
{
	SIM_API(SIM_CURRENT | SIM_UNSAFE);
	CUDA_ARRAY3D_DESCRIPTOR full = {0};

	SIM_VALUE(out && desc);
	full.Width = desc->Width;
	full.Height = desc->Height;
	full.Depth = desc->Depth;
	full.Format = desc->Format;
	full.NumChannels = desc->NumChannels;
	full.Flags = desc->Flags;
	return create(out, &full);
}

void sim_array_release(void *handle)
{
	struct sim_object *object = handle;
	struct sim_mem *mem = ((CUarray)handle)->mem;
	CUmipmappedArray mipmap = handle;

	sim_tiles_release(object->type == SIM_MIPMAP ? &mipmap->tiles : &((CUarray)handle)->tiles);
	if (object->type == SIM_MIPMAP) {
		mem = mipmap->mem;
		for (unsigned i = 0; i < mipmap->levels; i++)
			sim_object_free(mipmap->level[i]);
	}
	if (mem)
		sim_mem_release(mem);
	sim_object_free(handle);
}

CUresult cuArrayDestroy(CUarray array)
{
	SIM_API(SIM_INIT | SIM_UNSAFE);
	if (!SIM_GET(SIM_ARRAY, array))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!array->mipmap) /* destroying a level succeeds and frees nothing */
		sim_array_release(array);
	return CUDA_SUCCESS;
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *desc, CUarray array)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(desc);
	if (!SIM_GET(SIM_ARRAY, array))
		return CUDA_ERROR_INVALID_HANDLE;
	*desc = array->desc;
	return CUDA_SUCCESS;
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *desc, CUarray array)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(desc);
	if (!SIM_GET(SIM_ARRAY, array))
		return CUDA_ERROR_INVALID_HANDLE;
	desc->Width = array->desc.Width;
	desc->Height = array->desc.Height;
	desc->Format = array->desc.Format;
	desc->NumChannels = array->desc.NumChannels;
	return CUDA_SUCCESS;
}

/* Only arrays whose mapping was deferred can be asked. */
CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUarray array,
				      CUdevice dev)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(out && SIM_GET(SIM_ARRAY, array) && deferred(&array->desc));
	if (dev < 0 || dev >= sim.devices)
		return CUDA_ERROR_INVALID_DEVICE;
	memset(out, 0, sizeof(*out));
	out->size = sim_round(raw_bytes(&array->desc), 65536);
	out->alignment = 65536;
	return CUDA_SUCCESS;
}

/* --- mipmapped --- */

static size_t halved(size_t n, unsigned level)
{
	return !n ? 0 : n >> level ? n >> level : 1;
}

static CUDA_ARRAY3D_DESCRIPTOR level_desc(const CUDA_ARRAY3D_DESCRIPTOR *top, unsigned level)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = *top;

	desc.Width = halved(top->Width, level);
	desc.Height = halved(top->Height, level);
	if (!(top->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)))
		desc.Depth = halved(top->Depth, level);
	return desc;
}

static unsigned levels_max(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	size_t longest = desc->Width > desc->Height ? desc->Width : desc->Height;
	unsigned levels = 1;

	if (!(desc->Flags & CUDA_ARRAY3D_LAYERED) && desc->Depth > longest)
		longest = desc->Depth;
	while (longest >>= 1)
		levels++;
	return levels;
}

CUresult sim_mipmap_new(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels,
			bool owned)
{
	CUcontext ctx = sim_ctx_current();
	CUmipmappedArray mipmap;
	struct sim_mem *mem;
	uint64_t bytes = 0;
	CUresult rc = check(desc);

	if (rc != CUDA_SUCCESS)
		return rc;
	SIM_VALUE(levels);
	if (levels > levels_max(desc))
		levels = levels_max(desc);
	for (unsigned i = 0; i < levels && owned && !deferred(desc); i++) {
		CUDA_ARRAY3D_DESCRIPTOR level = level_desc(desc, i);

		bytes += raw_bytes(&level);
	}
	rc = take(&mem, bytes);
	if (rc != CUDA_SUCCESS)
		return rc;
	mipmap = sim_object_new(SIM_MIPMAP, sizeof(*mipmap), ctx);
	mipmap->desc = *desc;
	mipmap->mem = mem;
	mipmap->dev = ctx->dev;
	mipmap->levels = levels;
	for (unsigned i = 0; i < levels; i++) {
		mipmap->level[i] = sim_object_new(SIM_ARRAY, sizeof(struct CUarray_st), ctx);
		mipmap->level[i]->desc = level_desc(desc, i);
		mipmap->level[i]->dev = ctx->dev;
		mipmap->level[i]->mipmap = mipmap;
	}
	*out = mipmap;
	return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *desc,
				unsigned int levels)
{
	SIM_API(SIM_CURRENT | SIM_UNSAFE);
	SIM_VALUE(out && desc);
	return sim_mipmap_new(out, desc, levels, true);
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray mipmap)
{
	SIM_API(SIM_INIT | SIM_UNSAFE);
	if (!SIM_GET(SIM_MIPMAP, mipmap))
		return CUDA_ERROR_INVALID_HANDLE;
	sim_array_release(mipmap);
	return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayGetLevel(CUarray *out, CUmipmappedArray mipmap, unsigned int level)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(out);
	if (!SIM_GET(SIM_MIPMAP, mipmap))
		return CUDA_ERROR_INVALID_HANDLE;
	SIM_VALUE(level < mipmap->levels);
	*out = mipmap->level[level];
	return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out,
					       CUmipmappedArray mipmap, CUdevice dev)
{
	SIM_API(SIM_INIT);
	uint64_t bytes = 0;

	SIM_VALUE(out && SIM_GET(SIM_MIPMAP, mipmap) && deferred(&mipmap->desc));
	if (dev < 0 || dev >= sim.devices)
		return CUDA_ERROR_INVALID_DEVICE;
	for (unsigned i = 0; i < mipmap->levels; i++)
		bytes += raw_bytes(&mipmap->level[i]->desc);
	memset(out, 0, sizeof(*out));
	out->size = sim_round(bytes, 65536);
	out->alignment = 65536;
	return CUDA_SUCCESS;
}
