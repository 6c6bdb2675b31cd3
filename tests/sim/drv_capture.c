/*
 * Stream capture of the simulated driver: which streams capture into which graph, what calls a
 * capture forbids (900) and what invalidates it (901 at its end).
 */
#include "drv.h"

struct sim_capture *sim_capturing(CUstream stream)
{
	return stream->capture;
}

/* The mode in which this thread's calls are judged, against the captures under way. */
CUresult sim_capture_unsafe(void)
{
	bool forbidden = false;

	if (sim_tls.mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_SUCCESS;
	for (struct sim_capture *c = sim.captures; c; c = c->next) {
		bool own = c->thread == sim_thread_id();

		if (c->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
			continue;
		if (!own && (c->mode != CU_STREAM_CAPTURE_MODE_GLOBAL ||
			     sim_tls.mode != CU_STREAM_CAPTURE_MODE_GLOBAL))
			continue;
		c->invalid = true;
		forbidden = true;
	}
	return forbidden ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

/* Work on the legacy stream would wait for a blocking stream that captures. */
static CUresult check_implicit(CUstream stream)
{
	CUresult rc = CUDA_SUCCESS;

	if (!stream->legacy)
		return rc;
	for (struct sim_object *o = stream->head.ctx->objects; o; o = o->next) {
		CUstream other = (CUstream)o;

		if (o->type != SIM_STREAM || other->flags & CU_STREAM_NON_BLOCKING ||
		    !other->capture)
			continue;
		other->capture->invalid = true;
		rc = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	}
	return rc;
}

CUresult sim_capture_check(CUstream stream)
{
	if (!sim.captures)
		return CUDA_SUCCESS;
	if (stream->capture)
		return stream->capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
						: CUDA_SUCCESS;
	return check_implicit(stream);
}

CUresult sim_capture_sync(CUstream stream)
{
	CUresult rc;

	if (!sim.captures)
		return CUDA_SUCCESS;
	if (stream->capture) {
		stream->capture->invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	rc = check_implicit(stream);
	return rc != CUDA_SUCCESS ? rc : sim_capture_unsafe();
}

static void set_deps(CUstream stream, const CUgraphNode *deps, size_t count)
{
	CUgraphNode *copy = malloc((count + 1) * sizeof(*copy));

	if (count)
		memcpy(copy, deps, count * sizeof(*copy));
	free(stream->deps);
	stream->deps = copy;
	stream->deps_count = count;
}

CUresult sim_capture_node(CUstream stream, CUgraphNode *out, CUgraphNodeType type,
			  const void *params, size_t size)
{
	CUgraphNode node;
	CUresult rc = sim_capture_check(stream);

	if (rc == CUDA_SUCCESS)
		rc = sim_graph_add(stream->capture->graph, &node, stream->deps, stream->deps_count,
				   type);
	if (rc != CUDA_SUCCESS)
		return rc;
	if (size)
		memcpy(&node->params.reserved1, params, size);
	set_deps(stream, &node, 1);
	if (out)
		*out = node;
	return CUDA_SUCCESS;
}

static struct sim_capture *capture_by_id(uint64_t id)
{
	struct sim_capture *c = sim.captures;

	while (c && c->id != id)
		c = c->next;
	return c;
}

struct sim_capture *sim_capture_of(CUevent event)
{
	return capture_by_id(event->capture_id);
}

CUresult sim_capture_isolation(CUstream stream)
{
	stream->capture->invalid = true;
	return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
}

CUresult sim_capture_join(CUstream stream, CUevent event)
{
	struct sim_capture *capture = capture_by_id(event->capture_id);
	size_t count = stream->deps_count;
	CUgraphNode *all;

	if (!capture || capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (stream->legacy)
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	if (stream->capture && stream->capture != capture) {
		stream->capture->invalid = capture->invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_MERGE;
	}
	if (!stream->capture) {
		stream->capture = capture;
		capture->streams++;
		count = 0;
	}
	all = malloc((count + event->deps_count + 1) * sizeof(*all));
	if (count)
		memcpy(all, stream->deps, count * sizeof(*all));
	for (size_t i = 0; i < event->deps_count; i++) {
		size_t j = 0;

		while (j < count && all[j] != event->deps[i])
			j++;
		if (j == count)
			all[count++] = event->deps[i];
	}
	set_deps(stream, all, count);
	free(all);
	return CUDA_SUCCESS;
}

static CUresult begin(CUstream handle, CUgraph graph, const CUgraphNode *deps, size_t count,
		      CUstreamCaptureMode mode)
{
	CUstream stream = sim_stream(handle);
	struct sim_capture *capture;
	CUresult rc;

	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	SIM_VALUE((unsigned)mode <= CU_STREAM_CAPTURE_MODE_RELAXED);
	if (stream->legacy)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (stream->capture)
		return CUDA_ERROR_ILLEGAL_STATE;
	capture = calloc(1, sizeof(*capture));
	capture->foreign_graph = graph != NULL;
	if (!graph) {
		rc = sim_graph_new(&graph);
		if (rc != CUDA_SUCCESS)
			return rc;
	}
	capture->graph = graph;
	capture->origin = stream;
	capture->mode = mode;
	capture->thread = sim_thread_id();
	capture->id = ++sim.ids;
	capture->streams = 1;
	capture->next = sim.captures;
	sim.captures = capture;
	stream->capture = capture;
	set_deps(stream, deps, count);
	return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode)
{
	SIM_API(SIM_CURRENT);
	return begin(handle, NULL, NULL, 0, mode);
}

CUresult cuStreamBeginCapture(CUstream handle)
{
	return cuStreamBeginCapture_v2(handle, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph, const CUgraphNode *deps,
				     const CUgraphEdgeData *data, size_t count,
				     CUstreamCaptureMode mode)
{
	SIM_API(SIM_CURRENT);
	(void)data;
	SIM_VALUE(SIM_GET(SIM_GRAPH, graph) && (!count || deps));
	return begin(handle, graph, deps, count, mode);
}

static bool depended_on(CUgraph graph, CUgraphNode node)
{
	for (CUgraphNode n = graph->first; n; n = n->next)
		for (size_t i = 0; i < n->deps_count; i++)
			if (n->deps[i] == node)
				return true;
	return false;
}

static bool unjoined(struct sim_capture *capture, CUstream stream)
{
	CUstream origin = capture->origin;

	for (size_t i = 0; i < stream->deps_count; i++) {
		size_t j = 0;

		while (j < origin->deps_count && origin->deps[j] != stream->deps[i])
			j++;
		if (j == origin->deps_count && !depended_on(capture->graph, stream->deps[i]))
			return true;
	}
	return false;
}

/* Takes the capture off its streams; true if some of them had work that was never joined. */
static bool detach(struct sim_capture *capture)
{
	bool loose = false;

	for (struct sim_object *ctx = sim.loose; ctx; ctx = ctx->next) {
		if (ctx->type != SIM_CTX)
			continue;
		for (struct sim_object *o = ((CUcontext)ctx)->objects; o; o = o->next) {
			CUstream stream = (CUstream)o;

			if (o->type != SIM_STREAM || stream->capture != capture)
				continue;
			loose |= unjoined(capture, stream);
			stream->capture = NULL;
		}
	}
	for (struct sim_capture **at = &sim.captures; *at; at = &(*at)->next) {
		if (*at == capture) {
			*at = capture->next;
			break;
		}
	}
	return loose;
}

void sim_capture_abandon(CUstream stream)
{
	struct sim_capture *capture = stream->capture;

	if (!capture)
		return;
	if (capture->origin != stream) {
		capture->invalid = true;
		stream->capture = NULL;
		return;
	}
	detach(capture);
	if (!capture->foreign_graph)
		sim_graph_kill(capture->graph);
	free(capture);
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *graph)
{
	SIM_API(SIM_CURRENT);
	CUstream stream = sim_stream(handle);
	struct sim_capture *capture;
	CUresult rc = CUDA_SUCCESS;
	bool loose;

	SIM_VALUE(graph);
	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	capture = stream->capture;
	if (!capture)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (capture->origin != stream)
		return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	if (capture->thread != sim_thread_id() && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	loose = detach(capture);
	if (capture->invalid)
		rc = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	else if (loose)
		rc = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
	*graph = rc == CUDA_SUCCESS ? capture->graph : NULL;
	if (rc != CUDA_SUCCESS && !capture->foreign_graph)
		sim_graph_kill(capture->graph);
	free(capture);
	return rc;
}

static CUstreamCaptureStatus status(CUstream stream)
{
	if (!stream->capture)
		return CU_STREAM_CAPTURE_STATUS_NONE;
	return stream->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
					: CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *out)
{
	SIM_API(SIM_CURRENT);
	CUstream stream = sim_stream(handle);
	CUresult rc;

	SIM_VALUE(out);
	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	rc = stream->legacy ? check_implicit(stream) : CUDA_SUCCESS;
	*out = rc == CUDA_SUCCESS ? status(stream) : CU_STREAM_CAPTURE_STATUS_NONE;
	return rc;
}

static CUresult info(CUstream handle, CUstreamCaptureStatus *out, cuuint64_t *id, CUgraph *graph,
		     const CUgraphNode **deps, const CUgraphEdgeData **edges, size_t *count)
{
	CUstream stream = sim_stream(handle);

	SIM_VALUE(out);
	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	*out = status(stream);
	if (*out != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		return CUDA_SUCCESS;
	if (id)
		*id = stream->capture->id;
	if (graph)
		*graph = stream->capture->graph;
	if (deps)
		*deps = stream->deps;
	if (edges)
		*edges = NULL;
	if (count)
		*count = stream->deps_count;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus *out, cuuint64_t *id)
{
	SIM_API(SIM_CURRENT);
	return info(handle, out, id, NULL, NULL, NULL, NULL);
}

CUresult cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus *out, cuuint64_t *id,
				   CUgraph *graph, const CUgraphNode **deps, size_t *count)
{
	SIM_API(SIM_CURRENT);
	return info(handle, out, id, graph, deps, NULL, count);
}

CUresult cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus *out, cuuint64_t *id,
				   CUgraph *graph, const CUgraphNode **deps,
				   const CUgraphEdgeData **edges, size_t *count)
{
	SIM_API(SIM_CURRENT);
	return info(handle, out, id, graph, deps, edges, count);
}

/* flags 0 adds to the stream's dependencies, 1 replaces them */
CUresult cuStreamUpdateCaptureDependencies(CUstream handle, CUgraphNode *deps, size_t count,
					   unsigned int flags)
{
	SIM_API(SIM_CURRENT);
	CUstream stream = sim_stream(handle);
	CUgraphNode *all;
	size_t keep;

	SIM_VALUE(flags <= 1 && (!count || deps));
	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!stream->capture)
		return CUDA_ERROR_ILLEGAL_STATE;
	keep = flags == 1 ? 0 : stream->deps_count;
	all = malloc((keep + count + 1) * sizeof(*all));
	if (keep)
		memcpy(all, stream->deps, keep * sizeof(*all));
	if (count)
		memcpy(all + keep, deps, count * sizeof(*all));
	set_deps(stream, all, keep + count);
	free(all);
	return CUDA_SUCCESS;
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream handle, CUgraphNode *deps,
					      const CUgraphEdgeData *edges, size_t count,
					      unsigned int flags)
{
	(void)edges;
	return cuStreamUpdateCaptureDependencies(handle, deps, count, flags);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	SIM_API(SIM_INIT);
	CUstreamCaptureMode old = sim_tls.mode;

	SIM_VALUE(mode && (unsigned)*mode <= CU_STREAM_CAPTURE_MODE_RELAXED);
	sim_tls.mode = *mode;
	*mode = old;
	return CUDA_SUCCESS;
}
