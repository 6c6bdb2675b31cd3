/*
 * Streams, events, host functions and capture of the simulated runtimes, each with its variant for
 * per-thread default streams.
 */
#include "rt.h"

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
	FORWARD(cuStreamCreate, stream, 0);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
	FORWARD(cuStreamCreate, stream, flags);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority)
{
	FORWARD(cuStreamCreateWithPriority, stream, flags, priority);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	FORWARD(cuStreamDestroy, stream);
}

#define STREAM_CALL(name, driver, parameters, arguments)                                           \
	cudaError_t name parameters                                                                \
	{                                                                                          \
		ENTER();                                                                           \
		return rt_last(!DRV(driver) ? cudaErrorNotSupported                                \
					    : (cudaError_t)DRV(driver) arguments);                 \
	}                                                                                          \
	PER_THREAD(name, _ptsz, parameters, PASS_##name)

#define PASS_cudaStreamSynchronize (stream)
STREAM_CALL(cudaStreamSynchronize, cuStreamSynchronize, (cudaStream_t stream), (stream))
#define PASS_cudaStreamQuery (stream)
STREAM_CALL(cudaStreamQuery, cuStreamQuery, (cudaStream_t stream), (stream))
#define PASS_cudaStreamWaitEvent (stream, event, flags)
STREAM_CALL(cudaStreamWaitEvent, cuStreamWaitEvent,
	    (cudaStream_t stream, cudaEvent_t event, unsigned int flags), (stream, event, flags))
#define PASS_cudaStreamGetFlags (stream, flags)
STREAM_CALL(cudaStreamGetFlags, cuStreamGetFlags, (cudaStream_t stream, unsigned int *flags),
	    (stream, flags))
#define PASS_cudaStreamGetPriority (stream, priority)
STREAM_CALL(cudaStreamGetPriority, cuStreamGetPriority, (cudaStream_t stream, int *priority),
	    (stream, priority))
#define PASS_cudaLaunchHostFunc (stream, fn, data)
STREAM_CALL(cudaLaunchHostFunc, cuLaunchHostFunc,
	    (cudaStream_t stream, cudaHostFn_t fn, void *data), (stream, fn, data))
#define PASS_cudaStreamAttachMemAsync (stream, ptr, length, flags)
STREAM_CALL(cudaStreamAttachMemAsync, cuStreamAttachMemAsync,
	    (cudaStream_t stream, void *ptr, size_t length, unsigned int flags),
	    (stream, (CUdeviceptr)(uintptr_t)ptr, length, flags))
#define PASS_cudaStreamAddCallback (stream, callback, data, flags)
STREAM_CALL(cudaStreamAddCallback, cuStreamAddCallback,
	    (cudaStream_t stream, cudaStreamCallback_t callback, void *data, unsigned int flags),
	    (stream, (CUstreamCallback)(void *)callback, data, flags))
#define PASS_cudaStreamBeginCapture (stream, mode)
STREAM_CALL(cudaStreamBeginCapture, cuStreamBeginCapture,
	    (cudaStream_t stream, enum cudaStreamCaptureMode mode),
	    (stream, (CUstreamCaptureMode)mode))
#define PASS_cudaStreamEndCapture (stream, graph)
STREAM_CALL(cudaStreamEndCapture, cuStreamEndCapture, (cudaStream_t stream, cudaGraph_t *graph),
	    (stream, graph))
#define PASS_cudaStreamIsCapturing (stream, status)
STREAM_CALL(cudaStreamIsCapturing, cuStreamIsCapturing,
	    (cudaStream_t stream, enum cudaStreamCaptureStatus *status),
	    (stream, (CUstreamCaptureStatus *)status))
#define PASS_cudaEventRecord (event, stream)
STREAM_CALL(cudaEventRecord, cuEventRecord, (cudaEvent_t event, cudaStream_t stream),
	    (event, stream))
#define PASS_cudaEventRecordWithFlags (event, stream, flags)
STREAM_CALL(cudaEventRecordWithFlags, cuEventRecordWithFlags,
	    (cudaEvent_t event, cudaStream_t stream, unsigned int flags), (event, stream, flags))
#if SIM_CUDART >= 12
#define PASS_cudaStreamGetId (stream, id)
STREAM_CALL(cudaStreamGetId, cuStreamGetId, (cudaStream_t stream, unsigned long long *id),
	    (stream, id))
#define PASS_cudaStreamGetDevice (stream, device)
STREAM_CALL(cudaStreamGetDevice, cuStreamGetDevice, (cudaStream_t stream, int *device),
	    (stream, device))
#define PASS_cudaStreamBeginCaptureToGraph (stream, graph, deps, data, count, mode)
STREAM_CALL(cudaStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph,
	    (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *deps,
	     const cudaGraphEdgeData *data, size_t count, enum cudaStreamCaptureMode mode),
	    (stream, graph, deps, (const CUgraphEdgeData *)data, count, (CUstreamCaptureMode)mode))
#endif

static cudaError_t capture_info(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
				unsigned long long *id, cudaGraph_t *graph,
				const cudaGraphNode_t **deps, const cudaGraphEdgeData **edges,
				size_t *count)
{
	FORWARD(cuStreamGetCaptureInfo, stream, (CUstreamCaptureStatus *)status, (cuuint64_t *)id,
		graph, deps, (const CUgraphEdgeData **)edges, count);
}

/* The short form was the first; CUDA 13 gave its name to the long one. */
#if SIM_CUDART >= 13
#define INFO cudaStreamGetCaptureInfo
#else
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
				     unsigned long long *id)
{
	return capture_info(stream, status, id, NULL, NULL, NULL, NULL);
}

PER_THREAD(cudaStreamGetCaptureInfo, _ptsz,
	   (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id),
	   (stream, status, id))

cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
					unsigned long long *id, cudaGraph_t *graph,
					const cudaGraphNode_t **deps, size_t *count)
{
	return capture_info(stream, status, id, graph, deps, NULL, count);
}

PER_THREAD(cudaStreamGetCaptureInfo_v2, _ptsz,
	   (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
	    cudaGraph_t *graph, const cudaGraphNode_t **deps, size_t *count),
	   (stream, status, id, graph, deps, count))
#define INFO cudaStreamGetCaptureInfo_v3
#endif

#if SIM_CUDART >= 12
cudaError_t INFO(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
		 cudaGraph_t *graph, const cudaGraphNode_t **deps, const cudaGraphEdgeData **edges,
		 size_t *count)
{
	return capture_info(stream, status, id, graph, deps, edges, count);
}

#define INFO_PER_THREAD(name)                                                                      \
	PER_THREAD(name, _ptsz,                                                                    \
		   (cudaStream_t stream, enum cudaStreamCaptureStatus * status,                    \
		    unsigned long long *id, cudaGraph_t *graph, const cudaGraphNode_t **deps,      \
		    const cudaGraphEdgeData **edges, size_t *count),                               \
		   (stream, status, id, graph, deps, edges, count))
INFO_PER_THREAD(INFO)
#endif

static cudaError_t update_dependencies(cudaStream_t stream, cudaGraphNode_t *deps, size_t count,
				       unsigned flags)
{
	FORWARD(cuStreamUpdateCaptureDependencies, stream, deps, count, flags);
}

#if SIM_CUDART >= 13
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *deps,
						const cudaGraphEdgeData *edges, size_t count,
						unsigned int flags)
{
	(void)edges;
	return update_dependencies(stream, deps, count, flags);
}
#else
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *deps,
						size_t count, unsigned int flags)
{
	return update_dependencies(stream, deps, count, flags);
}
#endif

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
	FORWARD(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode *)mode);
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
	FORWARD(cuEventCreate, event, 0);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
	FORWARD(cuEventCreate, event, flags);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	FORWARD(cuEventDestroy, event);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
	FORWARD(cuEventQuery, event);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	FORWARD(cuEventSynchronize, event);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	FORWARD(cuEventElapsedTime, ms, start, end);
}
