/*
 * Events of the simulated driver: a point in a stream's work, or, while the stream captures, a set
 * of graph nodes by which another stream joins the capture.
 */
#include "drv.h"

static void clear(CUevent event)
{
	if (event->stream)
		sim_stream_put(event->stream);
	event->stream = NULL;
	free(event->deps);
	event->deps = NULL;
	event->deps_count = 0;
	event->capture_id = 0;
}

void sim_event_release(CUevent event)
{
	clear(event);
	sim_object_free(event);
}

#define EVENT(event)                                                                               \
	do {                                                                                       \
		if (!SIM_GET(SIM_EVENT, event))                                                    \
			return CUDA_ERROR_INVALID_HANDLE;                                          \
	} while (0)

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
	SIM_API(SIM_CURRENT);
	SIM_VALUE(event && flags < 8);
	*event = sim_object_new(SIM_EVENT, sizeof(**event), sim_ctx_current());
	(*event)->flags = flags;
	return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event)
{
	SIM_API(SIM_INIT);
	EVENT(event);
	sim_event_release(event);
	return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent event)
{
	return cuEventDestroy_v2(event);
}

static CUresult record(CUevent event, CUstream handle)
{
	CUstream stream = sim_stream(handle);
	CUresult rc;

	EVENT(event);
	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	if (stream->head.ctx != event->head.ctx)
		return CUDA_ERROR_INVALID_HANDLE;
	rc = sim_capture_check(stream);
	if (rc != CUDA_SUCCESS)
		return rc;
	clear(event);
	if (stream->capture) {
		event->capture_id = stream->capture->id;
		event->deps_count = stream->deps_count;
		event->deps = malloc((stream->deps_count + 1) * sizeof(*event->deps));
		memcpy(event->deps, stream->deps, stream->deps_count * sizeof(*event->deps));
		return CUDA_SUCCESS;
	}
	event->stream = stream;
	stream->refs++;
	event->seq = sim_stream_effect(stream, NULL, NULL);
	event->time_ns = sim_now_ns();
	return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream handle)
{
	SIM_API(SIM_CURRENT);
	return record(event, handle);
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream handle, unsigned int flags)
{
	SIM_API(SIM_CURRENT);
	SIM_VALUE(flags <= 1);
	return record(event, handle);
}

/* An event of a capture cannot be waited for: 907 and the capture is void, 1 when it is over. */
static CUresult waitable(CUevent event)
{
	EVENT(event);
	if (!event->capture_id)
		return sim_capture_unsafe();
	if (!sim_capture_of(event))
		return CUDA_ERROR_INVALID_VALUE;
	sim_capture_of(event)->invalid = true;
	return CUDA_ERROR_CAPTURED_EVENT;
}

CUresult cuEventQuery(CUevent event)
{
	SIM_API(SIM_INIT);
	CUresult rc = waitable(event);

	if (rc != CUDA_SUCCESS)
		return rc;
	return event->stream && event->stream->done < event->seq ? CUDA_ERROR_NOT_READY
								 : CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent event)
{
	SIM_API(SIM_INIT);
	CUresult rc = waitable(event);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (event->stream) {
		sim_stream_wait(event->stream, event->seq);
		sim_pools_settle(event->stream);
	}
	return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
	SIM_API(SIM_INIT);
	EVENT(start);
	EVENT(end);
	SIM_VALUE(ms);
	if (!start->stream || !end->stream || (start->flags | end->flags) & CU_EVENT_DISABLE_TIMING)
		return CUDA_ERROR_INVALID_HANDLE;
	if (start->stream->done < start->seq || end->stream->done < end->seq)
		return CUDA_ERROR_NOT_READY;
	*ms = (float)((double)(int64_t)(end->time_ns - start->time_ns) / 1e6);
	return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
	return cuEventElapsedTime(ms, start, end);
}

/* Joins the capture that the event belongs to, or makes the stream wait for the event's point. */
CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned int flags)
{
	SIM_API(SIM_CURRENT);
	CUstream stream = sim_stream(handle);

	EVENT(event);
	SIM_VALUE(flags <= 1);
	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	if (event->capture_id)
		return sim_capture_join(stream, event);
	if (stream->capture)
		return sim_capture_isolation(stream);
	if (event->stream)
		sim_stream_after(stream, event->stream, event->seq);
	return CUDA_SUCCESS;
}
