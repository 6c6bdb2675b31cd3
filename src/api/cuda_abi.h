/*
 * The CUDA types that the table's rows need, so that the shim builds without a toolkit. Names are
 * CUDA's own, layouts those of CUDA 11.2 to 13; abi_layout.def states the sizes and offsets relied
 * on and is compiled against this file and, where there is a toolkit, against the real headers.
 */
#ifndef GM_API_CUDA_ABI_H
#define GM_API_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int cudaError_t;

#define GM_CUDA_SUCCESS		 0
#define GM_CUDA_OUT_OF_MEMORY	 2  /* cudaErrorMemoryAllocation and CUDA_ERROR_OUT_OF_MEMORY */
#define GM_CUDART_NOT_INITIALIZED 3 /* cudaErrorInitializationError; the driver's NOT_INITIALIZED */
#define GM_CUDART_INSUFFICIENT_DRIVER 35

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef unsigned int CUdeviceptr_v1;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef uint64_t cuuint64_t;

typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUlib_st *CUlibrary;
typedef struct CUfunc_st *CUfunction;
typedef struct CUkern_st *CUkernel;
typedef struct CUarray_st *CUarray;
typedef struct CUmipmappedArray_st *CUmipmappedArray;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUextMemory_st *CUexternalMemory;
typedef struct CUgreenCtx_st *CUgreenCtx;
typedef struct CUdevResourceDesc_st *CUdevResourceDesc;
typedef struct CUuuid_st CUuuid;

typedef CUstream cudaStream_t;
typedef CUmemoryPool cudaMemPool_t;
typedef CUgraph cudaGraph_t;
typedef CUgraphNode cudaGraphNode_t;
typedef CUgraphExec cudaGraphExec_t;
typedef CUexternalMemory cudaExternalMemory_t;
typedef struct cudaArray *cudaArray_t;
typedef struct cudaMipmappedArray *cudaMipmappedArray_t;

/* Enumerations are unsigned int in CUDA's ABI. */
typedef unsigned int CUlimit;
typedef unsigned int CUmemAllocationHandleType;
typedef unsigned int CUmemAllocationType;
typedef unsigned int CUarray_format;
typedef unsigned int CUdriverProcAddressQueryResult;
typedef unsigned int CUjit_option;
typedef unsigned int CUlibraryOption;
typedef unsigned int CUstreamCaptureStatus;
typedef unsigned int CUstreamCaptureMode;
enum cudaLimit { cudaLimitStackSize = 0, cudaLimitMallocHeapSize = 2 };
enum cudaMemAllocationHandleType { cudaMemHandleTypeNone = 0 };
enum cudaMemAllocationType { cudaMemAllocationTypePinned = 1 };
enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess = 0 };

#define GM_ARRAY_HOLDS_NOTHING	  0xc0u /* CUDA_ARRAY3D_SPARSE, _DEFERRED_MAPPING: mapped later */
#define GM_MEM_OPERATION_MAP	  1u
#define GM_SUBRESOURCE_MIPTAIL	  1u
#define GM_RESOURCE_MIPMAP	  1u
#define GM_GRAPH_AUTO_FREE	  1u	/* ..._AUTO_FREE_ON_LAUNCH */
#define GM_LIMIT_STACK_SIZE	  0u
#define GM_LIMIT_MALLOC_HEAP_SIZE 2u
#define GM_MEM_LOCATION_DEVICE	  1u

struct cudaExtent {
	size_t width, height, depth;
};

struct cudaPitchedPtr {
	void *ptr;
	size_t pitch, xsize, ysize;
};

struct cudaChannelFormatDesc {
	int x, y, z, w; /* bits */
	unsigned int f;
};

typedef struct {
	char reserved[64];
} CUipcMemHandle;

typedef CUipcMemHandle cudaIpcMemHandle_t;

/* CUmemAllocationHandleType of a handle of 64 bytes; others are file descriptors. */
#define GM_MEM_HANDLE_TYPE_FABRIC 8

typedef struct CUmemLocation_st {
	unsigned int type;
	int id;
} CUmemLocation;

struct cudaMemLocation {
	unsigned int type;
	int id;
};

typedef struct CUmemAllocationProp_st {
	unsigned int type, requestedHandleTypes;
	CUmemLocation location;
	void *win32HandleMetaData;
	unsigned char allocFlags[8];
} CUmemAllocationProp;

typedef struct CUmemPoolProps_st {
	unsigned int allocType, handleTypes;
	CUmemLocation location;
	void *win32SecurityAttributes;
	size_t maxSize;
	unsigned char reserved[56];
} CUmemPoolProps;

struct cudaMemPoolProps {
	unsigned int allocType, handleTypes;
	struct cudaMemLocation location;
	void *win32SecurityAttributes;
	size_t maxSize;
	unsigned char reserved[56];
};

typedef struct CUmemPoolPtrExportData_st CUmemPoolPtrExportData;
struct cudaMemPoolPtrExportData;

typedef struct CUDA_ARRAY_DESCRIPTOR_st {
	size_t Width, Height;
	CUarray_format Format;
	unsigned int NumChannels;
} CUDA_ARRAY_DESCRIPTOR;

typedef struct CUDA_ARRAY3D_DESCRIPTOR_st {
	size_t Width, Height, Depth;
	CUarray_format Format;
	unsigned int NumChannels, Flags;
} CUDA_ARRAY3D_DESCRIPTOR;

typedef struct CUDA_ARRAY_DESCRIPTOR_v1_st {
	unsigned int Width, Height;
	CUarray_format Format;
	unsigned int NumChannels;
} CUDA_ARRAY_DESCRIPTOR_v1;

typedef struct CUDA_ARRAY3D_DESCRIPTOR_v1_st {
	unsigned int Width, Height, Depth;
	CUarray_format Format;
	unsigned int NumChannels, Flags;
} CUDA_ARRAY3D_DESCRIPTOR_v1;

typedef struct CUDA_MEM_ALLOC_NODE_PARAMS_v1_st {
	CUmemPoolProps poolProps;
	const void *accessDescs;
	size_t accessDescCount;
	size_t bytesize;
	CUdeviceptr dptr;
} CUDA_MEM_ALLOC_NODE_PARAMS;

struct cudaMemAllocNodeParams {
	struct cudaMemPoolProps poolProps;
	const void *accessDescs;
	size_t accessDescCount;
	size_t bytesize;
	void *dptr;
};

#define GM_GRAPH_NODE_GRAPH	4u
#define GM_GRAPH_NODE_MEM_ALLOC 10u
#define GM_GRAPH_NODE_MEM_FREE	11u

typedef struct CUgraphNodeParams_st {
	unsigned int type;
	int reserved0[3];
	union {
		long long reserved1[29];
		CUDA_MEM_ALLOC_NODE_PARAMS alloc;
		struct {
			CUdeviceptr dptr;
		} free;
	};
	long long reserved2;
} CUgraphNodeParams;

struct cudaGraphNodeParams {
	unsigned int type;
	int reserved0[3];
	union {
		long long reserved1[29];
		struct cudaMemAllocNodeParams alloc;
		struct {
			void *dptr;
		} free;
	};
	long long reserved2;
};

typedef struct CUgraphEdgeData_st CUgraphEdgeData;
typedef struct cudaGraphEdgeData_st cudaGraphEdgeData;
typedef struct CUDA_GRAPH_INSTANTIATE_PARAMS_st CUDA_GRAPH_INSTANTIATE_PARAMS;
typedef struct cudaGraphInstantiateParams_st cudaGraphInstantiateParams;

typedef struct CUDA_EXTERNAL_MEMORY_HANDLE_DESC_st {
	unsigned int type;
	union {
		int fd;
		struct {
			void *handle;
			const void *name;
		} win32;
		const void *nvSciBufObject;
	} handle;
	unsigned long long size;
	unsigned int flags, reserved[16];
} CUDA_EXTERNAL_MEMORY_HANDLE_DESC;

/* The runtime's has no reserved words in CUDA 11 and 12; size stands at the same place. */
struct cudaExternalMemoryHandleDesc {
	unsigned int type;
	union {
		int fd;
		struct {
			void *handle;
			const void *name;
		} win32;
		const void *nvSciBufObject;
	} handle;
	unsigned long long size;
	unsigned int flags;
};

typedef struct CUDA_EXTERNAL_MEMORY_BUFFER_DESC_st {
	unsigned long long offset, size;
	unsigned int flags, reserved[16];
} CUDA_EXTERNAL_MEMORY_BUFFER_DESC;

struct cudaExternalMemoryBufferDesc {
	unsigned long long offset, size;
	unsigned int flags;
};

typedef struct CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC_st {
	unsigned long long offset;
	CUDA_ARRAY3D_DESCRIPTOR arrayDesc;
	unsigned int numLevels, reserved[16];
} CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC;

struct cudaExternalMemoryMipmappedArrayDesc {
	unsigned long long offset;
	struct cudaChannelFormatDesc formatDesc;
	struct cudaExtent extent;
	unsigned int flags, numLevels;
};

typedef struct CUlaunchConfig_st {
	unsigned int gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
	CUstream hStream;
	void *attrs;
	unsigned int numAttrs;
} CUlaunchConfig;

typedef struct CUmulticastObjectProp_st {
	unsigned int numDevices;
	size_t size;
	unsigned long long handleTypes, flags;
} CUmulticastObjectProp;

/* A tile, a mip tail or a whole level of a sparse array, to be mapped or unmapped. */
typedef struct CUarrayMapInfo_st {
	unsigned int resourceType;
	union {
		void *mipmap, *array;
	} resource;
	unsigned int subresourceType;
	union {
		struct {
			unsigned int level, layer, offsetX, offsetY, offsetZ;
			unsigned int extentWidth, extentHeight, extentDepth;
		} sparseLevel;
		struct {
			unsigned int layer;
			unsigned long long offset, size;
		} miptail;
	} subresource;
	unsigned int memOperationType; /* 1 map, 2 unmap */
	unsigned int memHandleType;
	union {
		CUmemGenericAllocationHandle memHandle;
	} memHandle;
	unsigned long long offset;
	unsigned int deviceBitMask, flags, reserved[2];
} CUarrayMapInfo;
typedef struct CUexecAffinityParam_st CUexecAffinityParam;
typedef struct CUctxCreateParams_st CUctxCreateParams;

#endif
