/*
 * Memory of sparse arrays in the simulated driver: handles mapped to tiles of an array. A mapped
 * handle's memory is held until the tile is unmapped or the array destroyed.
 */
#include "drv.h"

struct sim_tile {
	struct sim_tile *next;
	CUarrayMapInfo where;
	struct sim_vmm *vmm;
};

/* By member: the mip tail is the smaller member of its union, and has padding. */
static bool same_tile(const CUarrayMapInfo *a, const CUarrayMapInfo *b)
{
	if (a->subresourceType != b->subresourceType)
		return false;
	if (a->subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL)
		return a->subresource.miptail.layer == b->subresource.miptail.layer &&
		       a->subresource.miptail.offset == b->subresource.miptail.offset &&
		       a->subresource.miptail.size == b->subresource.miptail.size;
	return memcmp(&a->subresource.sparseLevel, &b->subresource.sparseLevel,
		      sizeof(a->subresource.sparseLevel)) == 0;
}

static void drop(struct sim_tile **at)
{
	struct sim_tile *tile = *at;

	*at = tile->next;
	tile->vmm->maps--;
	sim_vmm_put(tile->vmm);
	free(tile);
}

void sim_tiles_release(struct sim_tile **tiles)
{
	while (*tiles)
		drop(tiles);
}

static struct sim_tile **tiles_of(const CUarrayMapInfo *info)
{
	if (info->resourceType == CU_RESOURCE_TYPE_ARRAY) {
		CUarray array = SIM_GET(SIM_ARRAY, info->resource.array);

		return array && array->desc.Flags & CUDA_ARRAY3D_SPARSE ? &array->tiles : NULL;
	} else {
		CUmipmappedArray mipmap = SIM_GET(SIM_MIPMAP, info->resource.mipmap);

		return mipmap && mipmap->desc.Flags & CUDA_ARRAY3D_SPARSE ? &mipmap->tiles : NULL;
	}
}

static CUresult apply(const CUarrayMapInfo *info)
{
	struct sim_tile **tiles = tiles_of(info), *tile;
	struct sim_vmm *vmm;

	SIM_VALUE(tiles && !info->flags);
	for (struct sim_tile **at = tiles; *at; at = &(*at)->next) {
		if (same_tile(&(*at)->where, info)) {
			drop(at);
			break;
		}
	}
	if (info->memOperationType == CU_MEM_OPERATION_TYPE_UNMAP)
		return CUDA_SUCCESS;
	vmm = sim_vmm_get(info->memHandle.memHandle);
	SIM_VALUE(info->memOperationType == CU_MEM_OPERATION_TYPE_MAP && vmm &&
		  info->offset < vmm->size);
	tile = malloc(sizeof(*tile));
	*tile = (struct sim_tile){*tiles, *info, vmm};
	*tiles = tile;
	vmm->maps++;
	return CUDA_SUCCESS;
}

CUresult cuMemMapArrayAsync(CUarrayMapInfo *list, unsigned int count, CUstream handle)
{
	SIM_API(SIM_CURRENT);
	CUstream stream = sim_stream(handle);
	CUresult rc = CUDA_SUCCESS;

	SIM_VALUE(list && count);
	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	for (unsigned i = 0; i < count && rc == CUDA_SUCCESS; i++)
		rc = apply(&list[i]);
	return rc;
}
