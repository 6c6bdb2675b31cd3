/*
 * What the files of the simulated runtimes share: the driver's functions as found through
 * cuGetProcAddress, the thread's state, and the scope of every API function.
 */
#ifndef SIM_RT_H
#define SIM_RT_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "sim_cudart.h"

#define SIM_DEVICES_MAX 16

/* name, the version it is asked for at, parameters */
#define RT_DRIVER(X)                                                                               \
	X(cuInit, 2000, (unsigned))                                                                \
	X(cuDriverGetVersion, 2020, (int *))                                                       \
	X(cuDeviceGetCount, 2000, (int *))                                                         \
	X(cuDeviceGetName, 2000, (char *, int, CUdevice))                                          \
	X(cuDeviceTotalMem, 3020, (size_t *, CUdevice))                                            \
	X(cuDeviceGetAttribute, 2000, (int *, CUdevice_attribute, CUdevice))                       \
	X(cuDeviceGetUuid, 11040, (CUuuid *, CUdevice))                                            \
	X(cuDeviceGetPCIBusId, 4010, (char *, int, CUdevice))                                      \
	X(cuDeviceGetByPCIBusId, 4010, (CUdevice *, const char *))                                 \
	X(cuDeviceCanAccessPeer, 4000, (int *, CUdevice, CUdevice))                                \
	X(cuDeviceGetP2PAttribute, 8000, (int *, CUdevice_P2PAttribute, CUdevice, CUdevice))       \
	X(cuDevicePrimaryCtxRetain, 7000, (CUcontext *, CUdevice))                                 \
	X(cuDevicePrimaryCtxReset, 11000, (CUdevice))                                              \
	X(cuDevicePrimaryCtxSetFlags, 11000, (CUdevice, unsigned))                                 \
	X(cuDevicePrimaryCtxGetState, 7000, (CUdevice, unsigned *, int *))                         \
	X(cuCtxGetCurrent, 4000, (CUcontext *))                                                    \
	X(cuCtxSetCurrent, 4000, (CUcontext))                                                      \
	X(cuCtxGetDevice, 2000, (CUdevice *))                                                      \
	X(cuProfilerStart, 4000, (void))                                                           \
	X(cuProfilerStop, 4000, (void))                                                            \
	X(cuCtxSynchronize, 2000, (void))                                                          \
	X(cuCtxSetLimit, 3010, (CUlimit, size_t))                                                  \
	X(cuCtxGetLimit, 3010, (size_t *, CUlimit))                                                \
	X(cuCtxGetStreamPriorityRange, 5050, (int *, int *))                                       \
	X(cuCtxEnablePeerAccess, 4000, (CUcontext, unsigned))                                      \
	X(cuCtxDisablePeerAccess, 4000, (CUcontext))                                               \
	X(cuMemGetInfo, 3020, (size_t *, size_t *))                                                \
	X(cuMemAlloc, 3020, (CUdeviceptr *, size_t))                                               \
	X(cuMemAllocPitch, 3020, (CUdeviceptr *, size_t *, size_t, size_t, unsigned))              \
	X(cuMemAllocManaged, 6000, (CUdeviceptr *, size_t, unsigned))                              \
	X(cuMemAllocHost, 3020, (void **, size_t))                                                 \
	X(cuMemHostAlloc, 2020, (void **, size_t, unsigned))                                       \
	X(cuMemFree, 3020, (CUdeviceptr))                                                          \
	X(cuMemFreeHost, 2000, (void *))                                                           \
	X(cuMemHostRegister, 6050, (void *, size_t, unsigned))                                     \
	X(cuMemHostUnregister, 4000, (void *))                                                     \
	X(cuMemHostGetDevicePointer, 3020, (CUdeviceptr *, void *, unsigned))                      \
	X(cuMemHostGetFlags, 2030, (unsigned *, void *))                                           \
	X(cuPointerGetAttributes, 7000, (unsigned, CUpointer_attribute *, void **, CUdeviceptr))   \
	X(cuMemPrefetchAsync, 12020, (CUdeviceptr, size_t, CUmemLocation, unsigned, CUstream))     \
	X(cuMemAdvise, 12020, (CUdeviceptr, size_t, CUmem_advise, CUmemLocation))                  \
	X(cuMemRangeGetAttribute, 8000,                                                            \
	  (void *, size_t, CUmem_range_attribute, CUdeviceptr, size_t))                            \
	X(cuArrayCreate, 3020, (CUarray *, const CUDA_ARRAY_DESCRIPTOR *))                         \
	X(cuArray3DCreate, 3020, (CUarray *, const CUDA_ARRAY3D_DESCRIPTOR *))                     \
	X(cuArray3DGetDescriptor, 3020, (CUDA_ARRAY3D_DESCRIPTOR *, CUarray))                      \
	X(cuArrayDestroy, 2000, (CUarray))                                                         \
	X(cuArrayGetMemoryRequirements, 11060,                                                     \
	  (CUDA_ARRAY_MEMORY_REQUIREMENTS *, CUarray, CUdevice))                                   \
	X(cuMipmappedArrayCreate, 5000,                                                            \
	  (CUmipmappedArray *, const CUDA_ARRAY3D_DESCRIPTOR *, unsigned))                         \
	X(cuMipmappedArrayDestroy, 5000, (CUmipmappedArray))                                       \
	X(cuMipmappedArrayGetLevel, 5000, (CUarray *, CUmipmappedArray, unsigned))                 \
	X(cuMipmappedArrayGetMemoryRequirements, 11060,                                            \
	  (CUDA_ARRAY_MEMORY_REQUIREMENTS *, CUmipmappedArray, CUdevice))                          \
	X(cuMemAllocAsync, 11020, (CUdeviceptr *, size_t, CUstream))                               \
	X(cuMemAllocFromPoolAsync, 11020, (CUdeviceptr *, size_t, CUmemoryPool, CUstream))         \
	X(cuMemFreeAsync, 11020, (CUdeviceptr, CUstream))                                          \
	X(cuMemPoolCreate, 11020, (CUmemoryPool *, const CUmemPoolProps *))                        \
	X(cuMemPoolDestroy, 11020, (CUmemoryPool))                                                 \
	X(cuMemPoolTrimTo, 11020, (CUmemoryPool, size_t))                                          \
	X(cuMemPoolGetAttribute, 11020, (CUmemoryPool, CUmemPool_attribute, void *))               \
	X(cuMemPoolSetAttribute, 11020, (CUmemoryPool, CUmemPool_attribute, void *))               \
	X(cuMemPoolSetAccess, 11020, (CUmemoryPool, const CUmemAccessDesc *, size_t))              \
	X(cuMemPoolGetAccess, 11020, (CUmemAccess_flags *, CUmemoryPool, CUmemLocation *))         \
	X(cuMemPoolExportToShareableHandle, 11020,                                                 \
	  (void *, CUmemoryPool, CUmemAllocationHandleType, unsigned long long))                   \
	X(cuMemPoolImportFromShareableHandle, 11020,                                               \
	  (CUmemoryPool *, void *, CUmemAllocationHandleType, unsigned long long))                 \
	X(cuMemPoolExportPointer, 11020, (CUmemPoolPtrExportData *, CUdeviceptr))                  \
	X(cuMemPoolImportPointer, 11020, (CUdeviceptr *, CUmemoryPool, CUmemPoolPtrExportData *))  \
	X(cuDeviceGetDefaultMemPool, 11020, (CUmemoryPool *, CUdevice))                            \
	X(cuDeviceGetMemPool, 11020, (CUmemoryPool *, CUdevice))                                   \
	X(cuDeviceSetMemPool, 11020, (CUdevice, CUmemoryPool))                                     \
	X(cuMemGetDefaultMemPool, 13000, (CUmemoryPool *, CUmemLocation *, CUmemAllocationType))   \
	X(cuMemGetMemPool, 13000, (CUmemoryPool *, CUmemLocation *, CUmemAllocationType))          \
	X(cuMemSetMemPool, 13000, (CUmemLocation *, CUmemAllocationType, CUmemoryPool))            \
	X(cuStreamCreateWithPriority, 5050, (CUstream *, unsigned, int))                           \
	X(cuStreamCreate, 2000, (CUstream *, unsigned))                                            \
	X(cuStreamDestroy, 4000, (CUstream))                                                       \
	X(cuStreamSynchronize, 2000, (CUstream))                                                   \
	X(cuStreamQuery, 2000, (CUstream))                                                         \
	X(cuStreamWaitEvent, 3020, (CUstream, CUevent, unsigned))                                  \
	X(cuStreamGetFlags, 5050, (CUstream, unsigned *))                                          \
	X(cuStreamGetPriority, 5050, (CUstream, int *))                                            \
	X(cuStreamGetId, 12000, (CUstream, unsigned long long *))                                  \
	X(cuStreamGetDevice, 12080, (CUstream, CUdevice *))                                        \
	X(cuStreamAttachMemAsync, 6000, (CUstream, CUdeviceptr, size_t, unsigned))                 \
	X(cuStreamAddCallback, 5000, (CUstream, CUstreamCallback, void *, unsigned))               \
	X(cuLaunchHostFunc, 10000, (CUstream, CUhostFn, void *))                                   \
	X(cuStreamBeginCapture, 10010, (CUstream, CUstreamCaptureMode))                            \
	X(cuStreamBeginCaptureToGraph, 12030,                                                      \
	  (CUstream, CUgraph, const CUgraphNode *, const CUgraphEdgeData *, size_t,                \
	   CUstreamCaptureMode))                                                                   \
	X(cuStreamEndCapture, 10000, (CUstream, CUgraph *))                                        \
	X(cuStreamIsCapturing, 10000, (CUstream, CUstreamCaptureStatus *))                         \
	X(cuStreamGetCaptureInfo, 12030,                                                           \
	  (CUstream, CUstreamCaptureStatus *, cuuint64_t *, CUgraph *, const CUgraphNode **,       \
	   const CUgraphEdgeData **, size_t *))                                                    \
	X(cuStreamUpdateCaptureDependencies, 11030, (CUstream, CUgraphNode *, size_t, unsigned))   \
	X(cuThreadExchangeStreamCaptureMode, 10010, (CUstreamCaptureMode *))                       \
	X(cuEventCreate, 2000, (CUevent *, unsigned))                                              \
	X(cuEventDestroy, 4000, (CUevent))                                                         \
	X(cuEventRecord, 2000, (CUevent, CUstream))                                                \
	X(cuEventRecordWithFlags, 11010, (CUevent, CUstream, unsigned))                            \
	X(cuEventQuery, 2000, (CUevent))                                                           \
	X(cuEventSynchronize, 2000, (CUevent))                                                     \
	X(cuEventElapsedTime, 2000, (float *, CUevent, CUevent))                                   \
	X(cuMemcpy, 4000, (CUdeviceptr, CUdeviceptr, size_t))                                      \
	X(cuMemcpyAsync, 4000, (CUdeviceptr, CUdeviceptr, size_t, CUstream))                       \
	X(cuMemcpyHtoD, 3020, (CUdeviceptr, const void *, size_t))                                 \
	X(cuMemcpyDtoH, 3020, (void *, CUdeviceptr, size_t))                                       \
	X(cuMemcpyDtoD, 3020, (CUdeviceptr, CUdeviceptr, size_t))                                  \
	X(cuMemcpyHtoDAsync, 3020, (CUdeviceptr, const void *, size_t, CUstream))                  \
	X(cuMemcpyDtoHAsync, 3020, (void *, CUdeviceptr, size_t, CUstream))                        \
	X(cuMemcpyDtoDAsync, 3020, (CUdeviceptr, CUdeviceptr, size_t, CUstream))                   \
	X(cuMemcpy3D, 3020, (const CUDA_MEMCPY3D *))                                               \
	X(cuMemcpy3DAsync, 3020, (const CUDA_MEMCPY3D *, CUstream))                                \
	X(cuMemsetD8, 3020, (CUdeviceptr, unsigned char, size_t))                                  \
	X(cuMemsetD8Async, 3020, (CUdeviceptr, unsigned char, size_t, CUstream))                   \
	X(cuMemsetD2D8, 3020, (CUdeviceptr, size_t, unsigned char, size_t, size_t))                \
	X(cuMemsetD2D8Async, 3020, (CUdeviceptr, size_t, unsigned char, size_t, size_t, CUstream)) \
	X(cuIpcGetMemHandle, 4010, (CUipcMemHandle *, CUdeviceptr))                                \
	X(cuIpcOpenMemHandle, 11000, (CUdeviceptr *, CUipcMemHandle, unsigned))                    \
	X(cuIpcCloseMemHandle, 4010, (CUdeviceptr))                                                \
	X(cuImportExternalMemory, 10000,                                                           \
	  (CUexternalMemory *, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *))                          \
	X(cuDestroyExternalMemory, 10000, (CUexternalMemory))                                      \
	X(cuExternalMemoryGetMappedBuffer, 10000,                                                  \
	  (CUdeviceptr *, CUexternalMemory, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *))             \
	X(cuExternalMemoryGetMappedMipmappedArray, 10000,                                          \
	  (CUmipmappedArray *, CUexternalMemory,                                                   \
	   const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *))                                     \
	X(cuLibraryLoadData, 12000,                                                                \
	  (CUlibrary *, const void *, CUjit_option *, void **, unsigned, CUlibraryOption *,        \
	   void **, unsigned))                                                                     \
	X(cuLibraryLoadFromFile, 12000,                                                            \
	  (CUlibrary *, const char *, CUjit_option *, void **, unsigned, CUlibraryOption *,        \
	   void **, unsigned))                                                                     \
	X(cuLibraryUnload, 12000, (CUlibrary))                                                     \
	X(cuLibraryGetKernel, 12000, (CUkernel *, CUlibrary, const char *))                        \
	X(cuLibraryGetKernelCount, 12040, (unsigned *, CUlibrary))                                 \
	X(cuKernelGetFunction, 12000, (CUfunction *, CUkernel))                                    \
	X(cuKernelGetName, 12030, (const char **, CUkernel))                                       \
	X(cuFuncGetAttribute, 2020, (int *, CUfunction_attribute, CUfunction))                     \
	X(cuFuncSetAttribute, 9000, (CUfunction, CUfunction_attribute, int))                       \
	X(cuLaunchKernel, 4000,                                                                    \
	  (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,       \
	   CUstream, void **, void **))                                                            \
	RT_DRIVER_GRAPH(X)

#define RT_DRIVER_GRAPH(X)                                                                         \
	X(cuGraphCreate, 10000, (CUgraph *, unsigned))                                             \
	X(cuGraphDestroy, 10000, (CUgraph))                                                        \
	X(cuGraphClone, 10000, (CUgraph *, CUgraph))                                               \
	X(cuGraphNodeFindInClone, 10000, (CUgraphNode *, CUgraphNode, CUgraph))                    \
	X(cuGraphDestroyNode, 10000, (CUgraphNode))                                                \
	X(cuGraphInstantiateWithFlags, 11040, (CUgraphExec *, CUgraph, unsigned long long))        \
	X(cuGraphExecDestroy, 10000, (CUgraphExec))                                                \
	X(cuGraphExecGetFlags, 12000, (CUgraphExec, cuuint64_t *))                                 \
	X(cuGraphExecUpdate, 12000, (CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo *))         \
	X(cuGraphLaunch, 10000, (CUgraphExec, CUstream))                                           \
	X(cuGraphUpload, 11010, (CUgraphExec, CUstream))                                           \
	X(cuGraphAddMemAllocNode, 11040,                                                           \
	  (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUDA_MEM_ALLOC_NODE_PARAMS *))     \
	X(cuGraphAddMemFreeNode, 11040,                                                            \
	  (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUdeviceptr))                      \
	X(cuGraphMemAllocNodeGetParams, 11040, (CUgraphNode, CUDA_MEM_ALLOC_NODE_PARAMS *))        \
	X(cuGraphMemFreeNodeGetParams, 11040, (CUgraphNode, CUdeviceptr *))                        \
	X(cuGraphAddEmptyNode, 10000, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t))       \
	X(cuGraphAddHostNode, 10000,                                                               \
	  (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUDA_HOST_NODE_PARAMS *))    \
	X(cuGraphAddMemsetNode, 10000,                                                             \
	  (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUDA_MEMSET_NODE_PARAMS *,   \
	   CUcontext))                                                                             \
	X(cuGraphAddChildGraphNode, 10000,                                                         \
	  (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUgraph))                          \
	X(cuGraphAddNode, 12020,                                                                   \
	  (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUgraphNodeParams *))              \
	X(cuGraphNodeGetType, 10000, (CUgraphNode, CUgraphNodeType *))                             \
	X(cuGraphGetNodes, 10000, (CUgraph, CUgraphNode *, size_t *))                              \
	X(cuGraphGetRootNodes, 10000, (CUgraph, CUgraphNode *, size_t *))                          \
	X(cuGraphGetEdges, 10000, (CUgraph, CUgraphNode *, CUgraphNode *, size_t *))               \
	X(cuGraphAddDependencies, 10000,                                                           \
	  (CUgraph, const CUgraphNode *, const CUgraphNode *, size_t))                             \
	X(cuDeviceGraphMemTrim, 11040, (CUdevice))                                                 \
	X(cuDeviceGetGraphMemAttribute, 11040, (CUdevice, CUgraphMem_attribute, void *))           \
	X(cuDeviceSetGraphMemAttribute, 11040, (CUdevice, CUgraphMem_attribute, void *))           \
	X(cuUserObjectCreate, 11030, (void *, void *, CUhostFn, unsigned, unsigned))               \
	X(cuUserObjectRetain, 11030, (void *, unsigned))                                           \
	X(cuUserObjectRelease, 11030, (void *, unsigned))                                          \
	X(cuGraphRetainUserObject, 11030, (CUgraph, void *, unsigned, unsigned))                   \
	X(cuGraphReleaseUserObject, 11030, (CUgraph, void *, unsigned))

struct rt_driver {
#define X(name, version, parameters) CUresult(*p_##name) parameters;
	RT_DRIVER(X)
#undef X
};

typedef CUresult (*rt_get_proc)(const char *, void **, int, cuuint64_t,
				CUdriverProcAddressQueryResult *);
typedef CUresult (*rt_get_proc_v1)(const char *, void **, int, cuuint64_t);

struct rt_state {
	struct rt_driver legacy, per_thread; /* two variants of every function with a stream */
	rt_get_proc get_proc;
	rt_get_proc_v1 get_proc_v1;
	cudaError_t loaded; /* how finding the driver went */
	int devices;
	CUcontext primary[SIM_DEVICES_MAX];
	bool over; /* the process is ending */
};

struct rt_thread {
	cudaError_t last;
	int device;
	CUcontext own; /* the primary context that the runtime made current here */
	int pt;	       /* inside a _ptsz or _ptds variant */
};

extern struct rt_state rt_all __attribute__((visibility("hidden")));
extern __thread struct rt_thread rt_tls __attribute__((visibility("hidden")));

#pragma GCC visibility push(hidden)
cudaError_t rt_load(void);		/* finds the driver; 35 when there is none, 4 at the end */
cudaError_t rt_enter(void);		/* and has a context current */
cudaError_t rt_last(cudaError_t error); /* notes and returns it */
cudaError_t rt_kernel(const void *func, CUfunction *function);
#pragma GCC visibility pop

/* A driver function in the variant that the caller's default stream asks for. */
#define DRV(name) ((rt_tls.pt ? &rt_all.per_thread : &rt_all.legacy)->p_##name)

#define CALL(name, ...) (DRV(name) ? (cudaError_t)DRV(name)(__VA_ARGS__) : cudaErrorNotSupported)

/* The body of a function that is one driver call in the current context. */
#define FORWARD(name, ...)                                                                         \
	do {                                                                                       \
		cudaError_t error_ = rt_enter();                                                   \
		return rt_last(error_ == cudaSuccess ? CALL(name, __VA_ARGS__) : error_);          \
	} while (0)

#define NEED(condition)                                                                            \
	do {                                                                                       \
		if (!(condition))                                                                  \
			return rt_last(cudaErrorInvalidValue);                                     \
	} while (0)

#define ENTER()                                                                                    \
	do {                                                                                       \
		cudaError_t enter_ = rt_enter();                                                   \
		if (enter_ != cudaSuccess)                                                         \
			return rt_last(enter_);                                                    \
	} while (0)

/* The _ptsz or _ptds variant of a function. */
#define PER_THREAD(name, suffix, parameters, arguments)                                            \
	cudaError_t name##suffix parameters;                                                       \
	cudaError_t name##suffix parameters                                                        \
	{                                                                                          \
		cudaError_t rc;                                                                    \
                                                                                                   \
		rt_tls.pt++;                                                                       \
		rc = name arguments;                                                               \
		rt_tls.pt--;                                                                       \
		return rc;                                                                         \
	}

#endif
