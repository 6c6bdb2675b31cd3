/*
 * Contexts of the simulated driver: the primary one of each device, others, green ones; the
 * thread's stack of current contexts; limits and what they cost.
 */
#include "drv.h"

/* Facts: a stack of 16384 B instead of 1024 cost 132 SMs x 2048 threads x the difference. */
#define STACK_DEFAULT 1024
static uint64_t stack_cost(int dev, size_t bytes)
{
	uint64_t sms = sim.dev[dev].total * 132 / (80ull << 30);

	return bytes > STACK_DEFAULT ? (sms ? sms : 1) * 2048 * (bytes - STACK_DEFAULT) : 0;
}

bool sim_ctx_alive(CUcontext ctx)
{
	return SIM_GET(SIM_CTX, ctx) && ctx->alive;
}

CUcontext sim_ctx_current(void)
{
	return sim_tls.depth ? sim_tls.stack[sim_tls.depth - 1] : NULL;
}

CUcontext sim_memory_ctx(CUcontext ctx)
{
	return ctx && ctx->green ? sim.dev[ctx->dev].primary : ctx;
}

static void ctx_revive(CUcontext ctx, uint64_t cost)
{
	static const size_t limits[] = {STACK_DEFAULT, 1048576, 8388608, 0, 2048, 64, 0};

	ctx->alive = true;
	ctx->id = ++sim.ids;
	ctx->cost = cost;
	sim.dev[ctx->dev].unattributed += sim.unattributed_bytes;
	ctx->peers = 0;
	memcpy(ctx->limits, limits, sizeof(limits));
}

CUresult sim_ctx_new(CUcontext *out, int dev, unsigned flags, bool primary, uint64_t cost)
{
	CUresult rc = sim_phys_take(dev, cost);
	CUcontext ctx;

	if (rc != CUDA_SUCCESS)
		return rc;
	ctx = sim_object_new(SIM_CTX, sizeof(*ctx), NULL);
	ctx->dev = dev;
	ctx->flags = flags;
	ctx->primary = primary;
	ctx->version = 3020;
	ctx_revive(ctx, cost);
	*out = ctx;
	return CUDA_SUCCESS;
}

/*
 * Takes down what the context owns. Handles stay known: a primary context may be revived, a
 * destroyed one can still be made current and then answers 709, as measured.
 */
void sim_ctx_kill(CUcontext ctx)
{
	struct sim_object *object;

	sim_ctx_drain(ctx);
	ctx->alive = false;
	while ((object = ctx->objects)) {
		/* a level goes with its array, a function with its module */
		while (object->type == SIM_FUNCTION ||
		       (object->type == SIM_ARRAY && ((CUarray)object)->mipmap))
			object = object->next;
		sim_object_release(object);
	}
	sim_mem_release_ctx(ctx);
	sim_phys_give(ctx->dev, ctx->cost);
	sim.dev[ctx->dev].unattributed -= sim.unattributed_bytes;
	ctx->cost = 0;
	ctx->local = 0;
	if (ctx->primary)
		sim.dev[ctx->dev].exec_needs = sim.dev[ctx->dev].exec_holds = 0;
	ctx->legacy = NULL;
	ctx->thread_streams = NULL;
}

CUresult sim_primary_retain(CUcontext *out, int dev)
{
	struct sim_device *device = &sim.dev[dev];
	CUresult rc;

	if (!device->primary) {
		rc = sim_ctx_new(&device->primary, dev, device->primary_flags, true,
				 sim.context_bytes);
		if (rc != CUDA_SUCCESS)
			return rc;
	} else if (!device->primary->alive) {
		rc = sim_phys_take(dev, sim.context_bytes);
		if (rc != CUDA_SUCCESS)
			return rc;
		ctx_revive(device->primary, sim.context_bytes);
	}
	device->primary_refs++;
	*out = device->primary;
	return CUDA_SUCCESS;
}

#define DEVICE(dev)                                                                                \
	do {                                                                                       \
		if ((dev) < 0 || (dev) >= sim.devices)                                             \
			return CUDA_ERROR_INVALID_DEVICE;                                          \
	} while (0)

CUresult cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice dev)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(ctx);
	DEVICE(dev);
	return sim_primary_retain(ctx, dev);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	SIM_API(SIM_INIT);
	DEVICE(dev);
	if (!sim.dev[dev].primary || !sim.dev[dev].primary->alive || !sim.dev[dev].primary_refs)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (--sim.dev[dev].primary_refs == 0)
		sim_ctx_kill(sim.dev[dev].primary);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	SIM_API(SIM_INIT);
	DEVICE(dev);
	if (sim.dev[dev].primary && sim.dev[dev].primary->alive)
		sim_ctx_kill(sim.dev[dev].primary);
	sim.dev[dev].primary_refs = 0;
	sim.dev[dev].primary_flags = 0;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	SIM_API(SIM_INIT);
	DEVICE(dev);
	SIM_VALUE((flags & CU_CTX_SCHED_MASK) != 3 && flags < 0x100);
	sim.dev[dev].primary_flags = flags;
	if (sim.dev[dev].primary)
		sim.dev[dev].primary->flags = flags;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
	return cuDevicePrimaryCtxRelease_v2(dev);
}

CUresult cuDevicePrimaryCtxReset(CUdevice dev)
{
	return cuDevicePrimaryCtxReset_v2(dev);
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
	return cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(flags && active);
	DEVICE(dev);
	*flags = sim.dev[dev].primary_flags;
	*active = sim.dev[dev].primary && sim.dev[dev].primary->alive;
	return CUDA_SUCCESS;
}

static CUresult push(CUcontext ctx)
{
	if (sim_tls.depth == (int)(sizeof(sim_tls.stack) / sizeof(sim_tls.stack[0])))
		return CUDA_ERROR_OUT_OF_MEMORY;
	sim_tls.stack[sim_tls.depth++] = ctx;
	return CUDA_SUCCESS;
}

static CUresult create(CUcontext *out, unsigned flags, CUdevice dev, unsigned version)
{
	CUcontext ctx;
	CUresult rc;

	SIM_VALUE(out);
	DEVICE(dev);
	SIM_VALUE((flags & CU_CTX_SCHED_MASK) != 3 && flags < 0x100);
	rc = sim_ctx_new(&ctx, dev, flags, false, sim.context_bytes);
	if (rc != CUDA_SUCCESS)
		return rc;
	ctx->version = version;
	*out = ctx;
	return push(ctx);
}

CUresult cuCtxCreate_v2(CUcontext *ctx, unsigned int flags, CUdevice dev)
{
	SIM_API(SIM_INIT);
	return create(ctx, flags, dev, 3020);
}

CUresult cuCtxCreate(CUcontext *ctx, unsigned int flags, CUdevice dev)
{
	SIM_API(SIM_INIT);
	return create(ctx, flags, dev, 3010);
}

CUresult cuCtxCreate_v3(CUcontext *ctx, CUexecAffinityParam *params, int count, unsigned int flags,
			CUdevice dev)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(count == 0 || params);
	return create(ctx, flags, dev, 3020);
}

CUresult cuCtxCreate_v4(CUcontext *ctx, CUctxCreateParams *params, unsigned int flags, CUdevice dev)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(!params || !params->numExecAffinityParams || params->execAffinityParams);
	return create(ctx, flags, dev, 3020);
}

CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	SIM_API(SIM_INIT | SIM_UNSAFE);
	SIM_VALUE(ctx);
	if (!sim_ctx_alive(ctx))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (ctx->primary || ctx->green)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (sim_ctx_current() == ctx)
		sim_tls.depth--;
	sim_ctx_kill(ctx);
	return CUDA_SUCCESS;
}

CUresult cuCtxDestroy(CUcontext ctx)
{
	return cuCtxDestroy_v2(ctx);
}

CUresult cuCtxAttach(CUcontext *ctx, unsigned int flags)
{
	SIM_API(SIM_CURRENT);
	SIM_VALUE(ctx && flags == 0);
	*ctx = sim_ctx_current();
	(*ctx)->attached++;
	return CUDA_SUCCESS;
}

CUresult cuCtxDetach(CUcontext ctx)
{
	{
		SIM_API(SIM_CURRENT);
		SIM_VALUE(ctx);
		if (ctx != sim_ctx_current())
			return CUDA_ERROR_INVALID_CONTEXT;
		if (ctx->attached) {
			ctx->attached--;
			return CUDA_SUCCESS;
		}
	}
	return cuCtxDestroy_v2(ctx);
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(ctx);
	if (!SIM_GET(SIM_CTX, ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	return push(ctx);
}

CUresult cuCtxPopCurrent_v2(CUcontext *ctx)
{
	SIM_API(SIM_INIT);
	if (!sim_tls.depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	sim_tls.depth--;
	if (ctx)
		*ctx = sim_tls.stack[sim_tls.depth];
	return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext ctx)
{
	return cuCtxPushCurrent_v2(ctx);
}

CUresult cuCtxPopCurrent(CUcontext *ctx)
{
	return cuCtxPopCurrent_v2(ctx);
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
	SIM_API(SIM_INIT);
	if (ctx && !SIM_GET(SIM_CTX, ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!ctx) {
		sim_tls.depth -= sim_tls.depth > 0;
		return CUDA_SUCCESS;
	}
	if (!sim_tls.depth)
		return push(ctx);
	sim_tls.stack[sim_tls.depth - 1] = ctx;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *ctx)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(ctx);
	*ctx = sim_ctx_current();
	return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *dev)
{
	SIM_API(SIM_CURRENT);
	SIM_VALUE(dev);
	*dev = sim_ctx_current()->dev;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice_v2(CUdevice *dev, CUcontext ctx)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(dev);
	if (!ctx)
		ctx = sim_ctx_current();
	if (!sim_ctx_alive(ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	*dev = ctx->dev;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
	SIM_API(SIM_CURRENT);
	SIM_VALUE(flags);
	*flags = sim_ctx_current()->flags;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned int flags)
{
	SIM_API(SIM_CURRENT);
	SIM_VALUE(flags < 0x100);
	sim_ctx_current()->flags = flags;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long *id)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(id);
	if (!ctx)
		ctx = sim_ctx_current();
	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!sim_ctx_alive(ctx))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	*id = ctx->id;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(version);
	if (!ctx)
		ctx = sim_ctx_current();
	if (!sim_ctx_alive(ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	*version = ctx->version;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	SIM_API(SIM_CURRENT);
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
	SIM_API(SIM_CURRENT);
	SIM_VALUE(value);
	if ((unsigned)limit > CU_LIMIT_PERSISTING_L2_CACHE_SIZE)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	*value = sim_ctx_current()->limits[limit];
	return CUDA_SUCCESS;
}

/* The stack's cost is taken and given back at once; the malloc heap costs nothing until used.
 * Any new stack limit gives local memory back. */
CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	SIM_API(SIM_CURRENT | SIM_UNSAFE);
	CUcontext ctx = sim_ctx_current();
	uint64_t before, after;
	CUresult rc;

	if ((unsigned)limit > CU_LIMIT_PERSISTING_L2_CACHE_SIZE)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	if (limit == CU_LIMIT_STACK_SIZE) {
		value = sim_round(value, 16);
		before = stack_cost(ctx->dev, ctx->limits[limit]);
		after = stack_cost(ctx->dev, value);
		if (after > before) {
			rc = sim_phys_take(ctx->dev, after - before);
			if (rc != CUDA_SUCCESS)
				return rc;
		} else {
			sim_phys_give(ctx->dev, before - after);
		}
		sim_phys_give(ctx->dev, ctx->local);
		ctx->cost += after - before - ctx->local;
		ctx->local = 0;
	}
	ctx->limits[limit] = value;
	return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
	SIM_API(SIM_CURRENT | SIM_UNSAFE);
	sim_ctx_drain(sim_ctx_current());
	sim_pools_settle(NULL);
	return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize_v2(CUcontext ctx)
{
	SIM_API(SIM_INIT | SIM_UNSAFE);
	if (!ctx)
		ctx = sim_ctx_current();
	if (!sim_ctx_alive(ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	sim_ctx_drain(ctx);
	sim_pools_settle(NULL);
	return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
	SIM_API(SIM_CURRENT);
	CUcontext ctx = sim_ctx_current();

	SIM_VALUE(flags == 0);
	if (!sim_ctx_alive(peer) || peer == ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (peer->dev == ctx->dev)
		return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	if (ctx->peers >> peer->dev & 1)
		return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
	ctx->peers |= 1u << peer->dev;
	return CUDA_SUCCESS;
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
	SIM_API(SIM_CURRENT);
	CUcontext ctx = sim_ctx_current();

	if (!sim_ctx_alive(peer))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!(ctx->peers >> peer->dev & 1))
		return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	ctx->peers &= ~(1u << peer->dev);
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *config)
{
	SIM_API(SIM_CURRENT);
	SIM_VALUE(config);
	*config = CU_FUNC_CACHE_PREFER_NONE;
	return CUDA_SUCCESS;
}

/* A preference without effect on memory, on real devices of this kind as well. */
CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
	SIM_API(SIM_CURRENT);
	(void)config;
	return CUDA_SUCCESS;
}

CUresult cuCtxResetPersistingL2Cache(void)
{
	SIM_API(SIM_CURRENT);
	return CUDA_SUCCESS;
}

/* There is no profiler to start: as on a machine where none is attached. */
CUresult cuProfilerStart(void)
{
	SIM_API(SIM_CURRENT);
	return CUDA_SUCCESS;
}

CUresult cuProfilerStop(void)
{
	SIM_API(SIM_CURRENT);
	return CUDA_SUCCESS;
}
