/*
 * Streams of the simulated driver. The device is infinitely fast: an operation on an idle stream is
 * done at once. A host function keeps its stream busy until it returns, and what is put on the
 * stream meanwhile queues up behind it; a stream with a queue has a thread. So tests make "frees
 * not yet reached" with a host function that blocks, and never with time.
 */
#include <signal.h>
#include "drv.h"

struct sim_thread_stream {
	struct sim_thread_stream *next;
	uint64_t thread;
	CUstream stream;
};

static CUstream stream_new(CUcontext ctx, unsigned flags, int priority)
{
	CUstream stream = sim_object_new(SIM_STREAM, sizeof(*stream), ctx);

	stream->flags = flags;
	stream->priority = priority;
	stream->id = ++sim.ids;
	stream->last = &stream->first;
	return stream;
}

static CUstream legacy_stream(CUcontext ctx)
{
	if (!ctx->legacy) {
		ctx->legacy = stream_new(ctx, 0, 0);
		ctx->legacy->legacy = true;
	}
	return ctx->legacy;
}

static CUstream thread_stream(CUcontext ctx)
{
	struct sim_thread_stream *own;

	for (own = ctx->thread_streams; own; own = own->next)
		if (own->thread == sim_thread_id())
			return own->stream;
	own = calloc(1, sizeof(*own));
	own->thread = sim_thread_id();
	own->stream = stream_new(ctx, 0, 0);
	own->stream->per_thread = true;
	own->next = ctx->thread_streams;
	ctx->thread_streams = own;
	return own->stream;
}

CUstream sim_stream(CUstream handle)
{
	CUcontext ctx = sim_ctx_current();

	if (handle == CU_STREAM_LEGACY || (!handle && !sim_tls.ptsz))
		return ctx ? legacy_stream(ctx) : NULL;
	if (handle == CU_STREAM_PER_THREAD || !handle)
		return ctx ? thread_stream(ctx) : NULL;
	return SIM_GET(SIM_STREAM, handle);
}

bool sim_stream_busy(CUstream stream)
{
	return stream->done < stream->issued;
}

/* Streams outlive their handles while an event, a wait or their own thread refers to them. */
void sim_stream_put(CUstream stream)
{
	if (--stream->refs == 0 && stream->dying)
		free(stream);
}

static void *work(void *arg)
{
	CUstream stream = arg;
	struct sim_op *op;

	pthread_mutex_lock(&sim.lock);
	while ((op = stream->first)) {
		while (op->wait_stream && op->wait_stream->done < op->wait_seq)
			pthread_cond_wait(&sim.moved, &sim.lock);
		if (op->wait_stream)
			sim_stream_put(op->wait_stream);
		if (op->effect)
			op->effect(op->arg);
		if (op->fn || op->callback) {
			pthread_mutex_unlock(&sim.lock);
			sim_tls.in_host = 1;
			if (op->fn)
				op->fn(op->arg);
			else
				op->callback(stream->legacy ? NULL : stream, CUDA_SUCCESS, op->arg);
			sim_tls.in_host = 0;
			pthread_mutex_lock(&sim.lock);
		}
		stream->first = op->next;
		if (!stream->first)
			stream->last = &stream->first;
		free(op);
		stream->done++;
		pthread_cond_broadcast(&sim.moved);
	}
	stream->worker = false;
	sim_stream_put(stream);
	pthread_mutex_unlock(&sim.lock);
	return NULL;
}

static void ensure_worker(CUstream stream)
{
	sigset_t all, old;
	pthread_attr_t attr;
	pthread_t thread;

	if (stream->worker)
		return;
	stream->worker = true;
	stream->refs++;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); /* the program's signals are not ours */
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attr, work, stream) != 0)
		abort();
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static uint64_t queue(CUstream stream, struct sim_op model)
{
	struct sim_op *op;

	if (!sim_stream_busy(stream) && !model.fn && !model.callback && !model.wait_stream) {
		stream->issued++;
		stream->done++;
		if (model.effect)
			model.effect(model.arg);
		return stream->issued;
	}
	op = malloc(sizeof(*op));
	*op = model;
	*stream->last = op;
	stream->last = &op->next;
	stream->issued++;
	ensure_worker(stream);
	return stream->issued;
}

uint64_t sim_stream_after(CUstream stream, CUstream other, uint64_t seq)
{
	if (stream == other || other->done >= seq)
		return stream->issued;
	other->refs++;
	return queue(stream, (struct sim_op){.wait_stream = other, .wait_seq = seq});
}

/* The legacy stream and the blocking ones wait for each other. */
static void implicit_order(CUstream stream)
{
	CUcontext ctx = stream->head.ctx;

	if (stream->flags & CU_STREAM_NON_BLOCKING)
		return;
	if (!stream->legacy) {
		if (ctx->legacy)
			sim_stream_after(stream, ctx->legacy, ctx->legacy->issued);
		return;
	}
	for (struct sim_object *object = ctx->objects; object; object = object->next) {
		CUstream other = (CUstream)object;

		if (object->type == SIM_STREAM && !(other->flags & CU_STREAM_NON_BLOCKING))
			sim_stream_after(stream, other, other->issued);
	}
}

uint64_t sim_stream_effect(CUstream stream, void (*effect)(void *), void *arg)
{
	implicit_order(stream);
	return queue(stream, (struct sim_op){.effect = effect, .arg = arg});
}

uint64_t sim_stream_host(CUstream stream, CUhostFn fn, CUstreamCallback callback, void *arg)
{
	implicit_order(stream);
	return queue(stream, (struct sim_op){.fn = fn, .callback = callback, .arg = arg});
}

void sim_stream_wait(CUstream stream, uint64_t seq)
{
	stream->refs++; /* it may be destroyed meanwhile */
	while (stream->done < seq)
		pthread_cond_wait(&sim.moved, &sim.lock);
	sim_stream_put(stream);
}

void sim_stream_drain(CUstream stream)
{
	sim_stream_wait(stream, stream->issued);
}

void sim_ctx_drain(CUcontext ctx)
{
	bool again = true;

	while (again) {
		again = false;
		for (struct sim_object *object = ctx->objects; object; object = object->next) {
			if (object->type == SIM_STREAM && sim_stream_busy((CUstream)object)) {
				sim_stream_drain((CUstream)object);
				again = true; /* the list may have changed meanwhile */
				break;
			}
		}
	}
}

static CUresult create(CUstream *out, unsigned flags, int priority)
{
	SIM_VALUE(out && flags <= CU_STREAM_NON_BLOCKING);
	*out = stream_new(sim_ctx_current(), flags,
			  priority < -5	 ? -5
			  : priority > 0 ? 0
					 : priority);
	if ((*out)->head.ctx->idle_streams)
		(*out)->head.ctx->idle_streams--;
	else
		sim_hidden_growth((*out)->head.ctx, sim.stream_bytes);
	return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *out, unsigned int flags)
{
	SIM_API(SIM_CURRENT);
	return create(out, flags, 0);
}

CUresult cuStreamCreateWithPriority(CUstream *out, unsigned int flags, int priority)
{
	SIM_API(SIM_CURRENT);
	return create(out, flags, priority);
}

CUresult cuGreenCtxStreamCreate(CUstream *out, CUgreenCtx green, unsigned int flags, int priority)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(out && SIM_GET(SIM_GREEN, green) && flags == CU_STREAM_NON_BLOCKING);
	*out = stream_new(green->ctx, flags, priority);
	(*out)->green = green;
	sim_hidden_growth(green->ctx, sim.stream_bytes);
	return CUDA_SUCCESS;
}

/* Takes the handle away at once; what is queued is still done. */
void sim_stream_release(CUstream stream)
{
	CUcontext ctx = stream->head.ctx;

	sim_pools_settle(stream);
	for (struct sim_thread_stream **at = &ctx->thread_streams; *at; at = &(*at)->next) {
		struct sim_thread_stream *own = *at;

		if (own->stream == stream) {
			*at = own->next;
			free(own);
			break;
		}
	}
	if (ctx->legacy == stream)
		ctx->legacy = NULL;
	sim_capture_abandon(stream);
	free(stream->deps);
	stream->deps = NULL;
	sim_object_forget(stream);
	stream->dying = true;
	stream->refs++;
	sim_stream_put(stream);
}

CUresult cuStreamDestroy_v2(CUstream handle)
{
	SIM_API(SIM_INIT);
	if (!SIM_GET(SIM_STREAM, handle))
		return CUDA_ERROR_INVALID_HANDLE;
	handle->head.ctx->idle_streams++;
	sim_stream_release(handle);
	return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream handle)
{
	return cuStreamDestroy_v2(handle);
}

#define STREAM(handle)                                                                             \
	CUstream stream = sim_stream(handle);                                                      \
	if (!stream)                                                                               \
	return CUDA_ERROR_INVALID_HANDLE

CUresult cuStreamSynchronize(CUstream handle)
{
	SIM_API(SIM_CURRENT);
	STREAM(handle);
	CUresult rc = sim_capture_sync(stream);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (stream->legacy)
		sim_ctx_drain(stream->head.ctx);
	else
		sim_stream_drain(stream);
	if (stream->legacy)
		sim_settle_legacy(stream->head.ctx);
	else
		sim_pools_settle(stream);
	return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream handle)
{
	SIM_API(SIM_CURRENT);
	STREAM(handle);
	CUresult rc = sim_capture_sync(stream);

	if (rc != CUDA_SUCCESS)
		return rc;
	return sim_stream_busy(stream) ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

static CUresult host_function(CUstream handle, CUhostFn fn, CUstreamCallback callback, void *arg)
{
	STREAM(handle);
	CUDA_HOST_NODE_PARAMS params = {.fn = fn, .userData = arg};
	CUresult rc = sim_capture_check(stream);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (sim_capturing(stream) && callback)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (sim_capturing(stream))
		return sim_capture_node(stream, NULL, CU_GRAPH_NODE_TYPE_HOST, &params,
					sizeof(params));
	sim_stream_host(stream, fn, callback, arg);
	return CUDA_SUCCESS;
}

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn fn, void *arg)
{
	SIM_API(SIM_CURRENT);
	SIM_VALUE(fn);
	return host_function(handle, fn, NULL, arg);
}

CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void *arg,
			     unsigned int flags)
{
	SIM_API(SIM_CURRENT);
	SIM_VALUE(callback && flags == 0);
	return host_function(handle, NULL, callback, arg);
}

CUresult cuStreamAttachMemAsync(CUstream handle, CUdeviceptr ptr, size_t length, unsigned int flags)
{
	SIM_API(SIM_CURRENT);
	STREAM(handle);
	struct sim_mem *mem = sim_mem_find(ptr);

	SIM_VALUE(mem && mem->kind == SIM_MEM_MANAGED && (!length || length == mem->size));
	mem->flags = flags;
	return sim_capture_check(stream);
}

CUresult cuStreamGetFlags(CUstream handle, unsigned int *flags)
{
	SIM_API(SIM_CURRENT);
	STREAM(handle);
	SIM_VALUE(flags);
	*flags = stream->flags;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetPriority(CUstream handle, int *priority)
{
	SIM_API(SIM_CURRENT);
	STREAM(handle);
	SIM_VALUE(priority);
	*priority = stream->priority;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream handle, unsigned long long *id)
{
	SIM_API(SIM_CURRENT);
	STREAM(handle);
	SIM_VALUE(id);
	*id = stream->id;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *ctx)
{
	SIM_API(SIM_CURRENT);
	STREAM(handle);
	SIM_VALUE(ctx);
	*ctx = stream->head.ctx;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetDevice(CUstream handle, CUdevice *dev)
{
	SIM_API(SIM_CURRENT);
	STREAM(handle);
	SIM_VALUE(dev);
	*dev = stream->head.ctx->dev;
	return CUDA_SUCCESS;
}
