/*
 * Compiled twice, against the simulator's own headers and against the real ones; the tables of
 * sizes and offsets must be equal. The test program only compares them.
 */
#include <stdio.h>
#include <string.h>
#include "sim_cudart.h"

struct layout {
	const char *what;
	size_t value;
};

#define SIZE(type)	{"sizeof " #type, sizeof(type)},
#define AT(type, field) {#type "." #field, offsetof(type, field)},
#ifdef SIM_REAL_HEADERS
#define TABLE layout_real
#else
#define TABLE layout_own
#endif

extern const struct layout TABLE[];
/* clang-format off */
const struct layout TABLE[] = {
	SIZE(CUmemLocation)
	SIZE(CUmemAccessDesc)
	SIZE(CUmemAllocationProp)
	AT(CUmemAllocationProp, location)
	AT(CUmemAllocationProp, allocFlags)
	SIZE(CUmemPoolProps)
	AT(CUmemPoolProps, maxSize)
	SIZE(CUmemPoolPtrExportData)
	SIZE(CUipcMemHandle)
	SIZE(CUmulticastObjectProp)
	SIZE(CUDA_EXTERNAL_MEMORY_HANDLE_DESC)
	AT(CUDA_EXTERNAL_MEMORY_HANDLE_DESC, size)
	SIZE(CUDA_EXTERNAL_MEMORY_BUFFER_DESC)
	SIZE(CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC)
	SIZE(CUDA_ARRAY_DESCRIPTOR)
	SIZE(CUDA_ARRAY3D_DESCRIPTOR)
	SIZE(CUDA_ARRAY_MEMORY_REQUIREMENTS)
	SIZE(CUDA_MEMCPY2D)
	AT(CUDA_MEMCPY2D, dstArray)
	SIZE(CUDA_MEMCPY3D)
	AT(CUDA_MEMCPY3D, dstPitch)
	SIZE(CUDA_MEMCPY3D_PEER)
	SIZE(CUlaunchConfig)
	AT(CUlaunchConfig, hStream)
	SIZE(CUgraphEdgeData)
	SIZE(CUDA_KERNEL_NODE_PARAMS_v1)
	SIZE(CUDA_KERNEL_NODE_PARAMS_v2)
	SIZE(CUDA_HOST_NODE_PARAMS)
	SIZE(CUDA_MEMSET_NODE_PARAMS)
	SIZE(CUDA_MEM_ALLOC_NODE_PARAMS)
	AT(CUDA_MEM_ALLOC_NODE_PARAMS, dptr)
	SIZE(CUgraphNodeParams)
	AT(CUgraphNodeParams, alloc)
	AT(CUgraphNodeParams, memcpy.copyParams)
	SIZE(CUgraphExecUpdateResultInfo)
	SIZE(CUDA_GRAPH_INSTANTIATE_PARAMS)
	SIZE(CUctxCreateParams)
	SIZE(CUexecAffinityParam)
	SIZE(CUarrayMapInfo)
	SIZE(struct cudaDeviceProp)
	AT(struct cudaDeviceProp, totalGlobalMem)
	AT(struct cudaDeviceProp, multiProcessorCount)
	AT(struct cudaDeviceProp, managedMemory)
	AT(struct cudaDeviceProp, hostNumaId)
	SIZE(struct cudaPointerAttributes)
	SIZE(struct cudaMemPoolProps)
	SIZE(struct cudaMemAllocNodeParams)
	AT(struct cudaMemAllocNodeParams, dptr)
	SIZE(struct cudaGraphNodeParams)
	SIZE(struct cudaMemcpy3DParms)
	AT(struct cudaMemcpy3DParms, kind)
	SIZE(struct cudaExternalMemoryHandleDesc)
	SIZE(struct cudaExternalMemoryBufferDesc)
	SIZE(struct cudaExternalMemoryMipmappedArrayDesc)
	SIZE(struct cudaFuncAttributes)
	SIZE(struct cudaHostNodeParams)
	SIZE(struct cudaKernelNodeParams)
	SIZE(struct cudaMemsetParams)
	SIZE(cudaLaunchConfig_t)
	SIZE(cudaGraphExecUpdateResultInfo)
	{NULL, 0},
};
/* clang-format on */

#ifdef SIM_REAL_HEADERS
extern const struct layout layout_own[];

int main(void)
{
	int failed = 0;

	for (const struct layout *own = layout_own, *real = layout_real; own->what; own++, real++) {
		if (own->value == real->value)
			continue;
		printf("%s: %zu here, %zu in CUDA\n", own->what, own->value, real->value);
		failed = 1;
	}
	return failed;
}
#endif
