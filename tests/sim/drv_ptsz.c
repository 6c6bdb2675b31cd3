/*
 * The per-thread-default-stream variants of the driver's functions: the same call, with stream 0
 * meaning the calling thread's own stream. One line each: name, suffix, parameters, arguments.
 */
#include "drv.h"

#define PER_THREAD(name, suffix, parameters, arguments)                                            \
	CUresult name parameters;                                                                  \
	CUresult name##suffix parameters;                                                          \
	CUresult name##suffix parameters                                                           \
	{                                                                                          \
		CUresult rc;                                                                       \
                                                                                                   \
		sim_tls.ptsz++;                                                                    \
		rc = name arguments;                                                               \
		sim_tls.ptsz--;                                                                    \
		return rc;                                                                         \
	}

/* clang-format off */
PER_THREAD(cuEventRecord, _ptsz, (CUevent event, CUstream handle), (event, handle))
PER_THREAD(cuEventRecordWithFlags, _ptsz, (CUevent event, CUstream handle, unsigned int flags),
	   (event, handle, flags))
PER_THREAD(cuGraphInstantiateWithParams, _ptsz, (CUgraphExec *exec, CUgraph graph,
	   CUDA_GRAPH_INSTANTIATE_PARAMS *params), (exec, graph, params))
PER_THREAD(cuGraphLaunch, _ptsz, (CUgraphExec exec, CUstream handle), (exec, handle))
PER_THREAD(cuGraphUpload, _ptsz, (CUgraphExec exec, CUstream handle), (exec, handle))
PER_THREAD(cuLaunchCooperativeKernel, _ptsz, (CUfunction function, unsigned int gx, unsigned int
	   gy, unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz, unsigned int
	   shared, CUstream stream, void **params), (function, gx, gy, gz, bx, by, bz, shared,
	   stream, params))
PER_THREAD(cuLaunchHostFunc, _ptsz, (CUstream handle, CUhostFn fn, void *arg), (handle, fn, arg))
PER_THREAD(cuLaunchKernel, _ptsz, (CUfunction function, unsigned int gx, unsigned int gy, unsigned
	   int gz, unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared, CUstream
	   stream, void **params, void **extra), (function, gx, gy, gz, bx, by, bz, shared, stream,
	   params, extra))
PER_THREAD(cuLaunchKernelEx, _ptsz, (const CUlaunchConfig *config, CUfunction function, void
	   **params, void **extra), (config, function, params, extra))
PER_THREAD(cuMemAllocAsync, _ptsz, (CUdeviceptr *ptr, size_t size, CUstream stream), (ptr, size,
	   stream))
PER_THREAD(cuMemAllocFromPoolAsync, _ptsz, (CUdeviceptr *ptr, size_t size, CUmemoryPool pool,
	   CUstream stream), (ptr, size, pool, stream))
PER_THREAD(cuMemFreeAsync, _ptsz, (CUdeviceptr ptr, CUstream handle), (ptr, handle))
PER_THREAD(cuMemPrefetchAsync, _ptsz, (CUdeviceptr ptr, size_t size, CUdevice dev, CUstream
	   stream), (ptr, size, dev, stream))
PER_THREAD(cuMemPrefetchAsync_v2, _ptsz, (CUdeviceptr ptr, size_t size, CUmemLocation to, unsigned
	   int flags, CUstream handle), (ptr, size, to, flags, handle))
PER_THREAD(cuMemcpy, _ptds, (CUdeviceptr dst, CUdeviceptr src, size_t size), (dst, src, size))
PER_THREAD(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D *c, CUstream stream), (c, stream))
PER_THREAD(cuMemcpy2DUnaligned_v2, _ptds, (const CUDA_MEMCPY2D *c), (c))
PER_THREAD(cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D *c), (c))
PER_THREAD(cuMemcpy3DAsync_v2, _ptsz, (const CUDA_MEMCPY3D *c, CUstream stream), (c, stream))
PER_THREAD(cuMemcpy3D_v2, _ptds, (const CUDA_MEMCPY3D *c), (c))
PER_THREAD(cuMemcpyAsync, _ptsz, (CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream),
	   (dst, src, size, stream))
PER_THREAD(cuMemcpyDtoDAsync_v2, _ptsz, (CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream
	   stream), (dst, src, size, stream))
PER_THREAD(cuMemcpyDtoD_v2, _ptds, (CUdeviceptr dst, CUdeviceptr src, size_t size), (dst, src,
	   size))
PER_THREAD(cuMemcpyDtoHAsync_v2, _ptsz, (void *dst, CUdeviceptr src, size_t size, CUstream
	   stream), (dst, src, size, stream))
PER_THREAD(cuMemcpyDtoH_v2, _ptds, (void *dst, CUdeviceptr src, size_t size), (dst, src, size))
PER_THREAD(cuMemcpyHtoDAsync_v2, _ptsz, (CUdeviceptr dst, const void *src, size_t size, CUstream
	   stream), (dst, src, size, stream))
PER_THREAD(cuMemcpyHtoD_v2, _ptds, (CUdeviceptr dst, const void *src, size_t size), (dst, src,
	   size))
PER_THREAD(cuMemcpyPeer, _ptds, (CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext
	   src_ctx, size_t size), (dst, dst_ctx, src, src_ctx, size))
PER_THREAD(cuMemcpyPeerAsync, _ptsz, (CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src,
	   CUcontext src_ctx, size_t size, CUstream stream), (dst, dst_ctx, src, src_ctx, size,
	   stream))
PER_THREAD(cuMemsetD16Async, _ptsz, (CUdeviceptr dst, unsigned short value, size_t count, CUstream
	   stream), (dst, value, count, stream))
PER_THREAD(cuMemsetD16_v2, _ptds, (CUdeviceptr dst, unsigned short value, size_t count), (dst,
	   value, count))
PER_THREAD(cuMemsetD2D16Async, _ptsz, (CUdeviceptr dst, size_t pitch, unsigned short value, size_t
	   width, size_t height, CUstream stream), (dst, pitch, value, width, height, stream))
PER_THREAD(cuMemsetD2D16_v2, _ptds, (CUdeviceptr dst, size_t pitch, unsigned short value, size_t
	   width, size_t height), (dst, pitch, value, width, height))
PER_THREAD(cuMemsetD2D32Async, _ptsz, (CUdeviceptr dst, size_t pitch, unsigned int value, size_t
	   width, size_t height, CUstream stream), (dst, pitch, value, width, height, stream))
PER_THREAD(cuMemsetD2D32_v2, _ptds, (CUdeviceptr dst, size_t pitch, unsigned int value, size_t
	   width, size_t height), (dst, pitch, value, width, height))
PER_THREAD(cuMemsetD2D8Async, _ptsz, (CUdeviceptr dst, size_t pitch, unsigned char value, size_t
	   width, size_t height, CUstream stream), (dst, pitch, value, width, height, stream))
PER_THREAD(cuMemsetD2D8_v2, _ptds, (CUdeviceptr dst, size_t pitch, unsigned char value, size_t
	   width, size_t height), (dst, pitch, value, width, height))
PER_THREAD(cuMemsetD32Async, _ptsz, (CUdeviceptr dst, unsigned int value, size_t count, CUstream
	   stream), (dst, value, count, stream))
PER_THREAD(cuMemsetD32_v2, _ptds, (CUdeviceptr dst, unsigned int value, size_t count), (dst,
	   value, count))
PER_THREAD(cuMemsetD8Async, _ptsz, (CUdeviceptr dst, unsigned char value, size_t count, CUstream
	   stream), (dst, value, count, stream))
PER_THREAD(cuMemsetD8_v2, _ptds, (CUdeviceptr dst, unsigned char value, size_t count), (dst,
	   value, count))
PER_THREAD(cuStreamAddCallback, _ptsz, (CUstream handle, CUstreamCallback callback, void *arg,
	   unsigned int flags), (handle, callback, arg, flags))
PER_THREAD(cuStreamAttachMemAsync, _ptsz, (CUstream handle, CUdeviceptr ptr, size_t length,
	   unsigned int flags), (handle, ptr, length, flags))
PER_THREAD(cuStreamBeginCapture, _ptsz, (CUstream handle), (handle))
PER_THREAD(cuStreamBeginCaptureToGraph, _ptsz, (CUstream handle, CUgraph graph, const
	   CUgraphNode *deps, const CUgraphEdgeData *data, size_t count, CUstreamCaptureMode
	   mode), (handle, graph, deps, data, count, mode))
PER_THREAD(cuStreamBeginCapture_v2, _ptsz, (CUstream handle, CUstreamCaptureMode mode), (handle,
	   mode))
PER_THREAD(cuStreamEndCapture, _ptsz, (CUstream handle, CUgraph *graph), (handle, graph))
PER_THREAD(cuStreamGetCaptureInfo, _ptsz, (CUstream handle, CUstreamCaptureStatus *out, cuuint64_t
	   *id), (handle, out, id))
PER_THREAD(cuStreamGetCaptureInfo_v2, _ptsz, (CUstream handle, CUstreamCaptureStatus *out,
	   cuuint64_t *id, CUgraph *graph, const CUgraphNode **deps, size_t *count), (handle,
	   out, id, graph, deps, count))
PER_THREAD(cuStreamGetCaptureInfo_v3, _ptsz, (CUstream handle, CUstreamCaptureStatus *out,
	   cuuint64_t *id, CUgraph *graph, const CUgraphNode **deps, const CUgraphEdgeData **edges,
	   size_t *count), (handle, out, id, graph, deps, edges, count))
PER_THREAD(cuStreamGetCtx, _ptsz, (CUstream handle, CUcontext *ctx), (handle, ctx))
PER_THREAD(cuStreamGetDevice, _ptsz, (CUstream handle, CUdevice *dev), (handle, dev))
PER_THREAD(cuStreamGetFlags, _ptsz, (CUstream handle, unsigned int *flags), (handle, flags))
PER_THREAD(cuStreamGetId, _ptsz, (CUstream handle, unsigned long long *id), (handle, id))
PER_THREAD(cuStreamGetPriority, _ptsz, (CUstream handle, int *priority), (handle, priority))
PER_THREAD(cuStreamIsCapturing, _ptsz, (CUstream handle, CUstreamCaptureStatus *out), (handle,
	   out))
PER_THREAD(cuStreamQuery, _ptsz, (CUstream handle), (handle))
PER_THREAD(cuStreamSynchronize, _ptsz, (CUstream handle), (handle))
PER_THREAD(cuStreamUpdateCaptureDependencies, _ptsz, (CUstream handle, CUgraphNode *deps, size_t
	   count, unsigned int flags), (handle, deps, count, flags))
PER_THREAD(cuStreamUpdateCaptureDependencies_v2, _ptsz, (CUstream handle, CUgraphNode *deps, const
	   CUgraphEdgeData *edges, size_t count, unsigned int flags), (handle, deps, edges, count,
	   flags))
PER_THREAD(cuStreamWaitEvent, _ptsz, (CUstream handle, CUevent event, unsigned int flags),
	   (handle, event, flags))
PER_THREAD(cuMemMapArrayAsync, _ptsz, (CUarrayMapInfo *list, unsigned int count, CUstream handle),
	   (list, count, handle))
