/*
 * Green contexts of the simulated driver: a context of the device's primary memory with a share of
 * its processors. Resources are described, not enforced: only memory is simulated.
 */
#include "drv.h"

#ifndef SIM_REAL_HEADERS
typedef struct CUdevResource_st {
	int type;
	unsigned char padding[92];
	union {
		struct {
			unsigned int smCount, minSmPartitionSize, smCoscheduledAlignment;
		} sm;
		unsigned char oversize[48];
	};
} CUdevResource;
typedef int CUdevResourceType;
#endif
#define RESOURCE_SM 1

struct CUdevResourceDesc_st {
	struct sim_object head;
	unsigned sms;
};

static unsigned sm_count(int dev)
{
	uint64_t sms = sim.dev[dev].total * 132 / (80ull << 30);

	return sms ? (unsigned)sms : 1;
}

CUresult cuDeviceGetDevResource(CUdevice dev, CUdevResource *resource, CUdevResourceType type)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(resource && (int)type == RESOURCE_SM);
	if (dev < 0 || dev >= sim.devices)
		return CUDA_ERROR_INVALID_DEVICE;
	memset(resource, 0, sizeof(*resource));
	resource->type = type;
	resource->sm.smCount = sm_count(dev);
	return CUDA_SUCCESS;
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *desc, CUdevResource *resources,
				   unsigned int count)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(desc && resources && count == 1 && (int)resources->type == RESOURCE_SM);
	*desc = sim_object_new(SIM_RESDESC, sizeof(**desc), NULL);
	(*desc)->sms = resources->sm.smCount;
	return CUDA_SUCCESS;
}

CUresult cuGreenCtxCreate(CUgreenCtx *out, CUdevResourceDesc desc, CUdevice dev, unsigned int flags)
{
	SIM_API(SIM_INIT);
	CUcontext primary;
	CUresult rc;

	SIM_VALUE(out && sim_object(desc, SIM_RESDESC) && flags == 1);
	if (dev < 0 || dev >= sim.devices)
		return CUDA_ERROR_INVALID_DEVICE;
	*out = sim_object_new(SIM_GREEN, sizeof(**out), NULL);
	/* The primary context comes with the first green one, if the program has made none. */
	rc = sim.dev[dev].primary && sim.dev[dev].primary->alive
		     ? CUDA_SUCCESS : sim_primary_retain(&primary, dev);
	if (rc == CUDA_SUCCESS)
		rc = sim_ctx_new(&(*out)->ctx, dev, 0, false, sim.green_bytes);
	if (rc != CUDA_SUCCESS) {
		sim_object_free(*out);
		return rc;
	}
	(*out)->ctx->green = *out;
	(*out)->id = ++sim.ids;
	return CUDA_SUCCESS;
}

CUresult cuGreenCtxDestroy(CUgreenCtx green)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(sim_object(green, SIM_GREEN));
	if (sim_ctx_current() == green->ctx)
		sim_tls.depth--;
	/* What it took stays with the process. */
	sim_memory_ctx(green->ctx)->cost += green->ctx->cost;
	green->ctx->cost = 0;
	sim_ctx_kill(green->ctx);
	sim_object_free(green);
	return CUDA_SUCCESS;
}

CUresult cuCtxFromGreenCtx(CUcontext *ctx, CUgreenCtx green)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(ctx && sim_object(green, SIM_GREEN));
	*ctx = green->ctx;
	return CUDA_SUCCESS;
}

CUresult cuGreenCtxGetId(CUgreenCtx green, unsigned long long *id)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(id && sim_object(green, SIM_GREEN));
	*id = green->id;
	return CUDA_SUCCESS;
}
