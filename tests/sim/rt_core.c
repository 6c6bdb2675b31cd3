/*
 * How a simulated runtime finds its driver and keeps its state: as NVIDIA's, by dlopen of
 * libcuda.so.1, one dlsym and cuGetProcAddress for the rest; errors per thread; the primary context
 * of the thread's device taken on first use; error 4 once the process is ending.
 */
#include <dlfcn.h>
#include <pthread.h>
#include "rt.h"

struct rt_state rt_all;
__thread struct rt_thread rt_tls;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t contexts = PTHREAD_MUTEX_INITIALIZER; /* guards rt_all.primary */

static void over(void)
{
	rt_all.over = true;
}

static void *get(const char *name, int version, int flags)
{
	void *found = NULL;

	if (rt_all.get_proc)
		rt_all.get_proc(name, &found, version, (cuuint64_t)flags, NULL);
	else
		rt_all.get_proc_v1(name, &found, version, (cuuint64_t)flags);
	return found;
}

/* cudart asks for cuGetProcAddress itself, twice, and goes on with what it is told. */
static cudaError_t find_get_proc(void *lib)
{
#if SIM_CUDART >= 12
	void *found = dlsym(lib, "cuGetProcAddress_v2");

	if (!found)
		return cudaErrorInsufficientDriver;
	rt_all.get_proc = (rt_get_proc)found;
	rt_all.get_proc_v1 = (rt_get_proc_v1)get("cuGetProcAddress", 11030, 0);
	found = get("cuGetProcAddress", 12000, 0);
	if (found)
		rt_all.get_proc = (rt_get_proc)found;
#else
	rt_all.get_proc_v1 = (rt_get_proc_v1)dlsym(lib, "cuGetProcAddress");
	if (!rt_all.get_proc_v1)
		return cudaErrorInsufficientDriver;
#endif
	return cudaSuccess;
}

static cudaError_t load(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	cudaError_t rc;
	int version = 0;

	if (!lib)
		return cudaErrorInsufficientDriver;
	rc = find_get_proc(lib);
	if (rc != cudaSuccess)
		return rc;
#define X(name, version_, parameters)                                                              \
	rt_all.legacy.p_##name = (__typeof__(rt_all.legacy.p_##name))get(                          \
		#name, version_, CU_GET_PROC_ADDRESS_LEGACY_STREAM);                               \
	rt_all.per_thread.p_##name = (__typeof__(rt_all.legacy.p_##name))get(                      \
		#name, version_, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
	RT_DRIVER(X)
#undef X
	rt_all.legacy.p_cuDriverGetVersion(&version);
	if (version < SIM_CUDART * 1000)
		return cudaErrorInsufficientDriver;
	rc = (cudaError_t)rt_all.legacy.p_cuInit(0);
	if (rc != cudaSuccess)
		return rc;
	rt_all.legacy.p_cuDeviceGetCount(&rt_all.devices);
	if (rt_all.devices > SIM_DEVICES_MAX)
		rt_all.devices = SIM_DEVICES_MAX;
	atexit(over);
	return cudaSuccess;
}

static void load_once(void)
{
	rt_all.loaded = load();
}

cudaError_t rt_load(void)
{
	if (rt_all.over)
		return cudaErrorCudartUnloading;
	pthread_once(&once, load_once);
	return rt_all.loaded;
}

static cudaError_t retain(int device, CUcontext *ctx)
{
	cudaError_t rc = cudaSuccess;

	pthread_mutex_lock(&contexts);
	if (!rt_all.primary[device])
		rc = (cudaError_t)rt_all.legacy.p_cuDevicePrimaryCtxRetain(&rt_all.primary[device],
									   device);
	*ctx = rt_all.primary[device];
	pthread_mutex_unlock(&contexts);
	return rc;
}

static cudaError_t bind(int device)
{
	CUcontext ctx;
	cudaError_t rc = retain(device, &ctx);

	if (rc != cudaSuccess)
		return rc;
	rc = (cudaError_t)rt_all.legacy.p_cuCtxSetCurrent(ctx);
	rt_tls.device = device;
	rt_tls.own = ctx;
	return rc;
}

/* Whether the context that this runtime holds for the device still stands. */
static bool standing(int device, CUcontext ctx)
{
	unsigned flags;
	int active = 0;

	if (ctx != rt_all.primary[device])
		return false;
	rt_all.legacy.p_cuDevicePrimaryCtxGetState(device, &flags, &active);
	if (!active) {
		pthread_mutex_lock(&contexts);
		rt_all.primary[device] = NULL;
		pthread_mutex_unlock(&contexts);
	}
	return active;
}

/* A context that the program made current itself is used as it is; a dead one is error 201. */
cudaError_t rt_enter(void)
{
	CUcontext ctx = NULL;
	CUdevice device;
	cudaError_t rc = rt_load();

	if (rc != cudaSuccess)
		return rc;
	rc = (cudaError_t)rt_all.legacy.p_cuCtxGetCurrent(&ctx);
	if (rc != cudaSuccess)
		return rc; /* 800 inside a host function */
	if (!ctx)
		return bind(rt_tls.device);
	if (ctx == rt_tls.own) /* what bind() made current, possibly reset since */
		return standing(rt_tls.device, ctx) ? cudaSuccess : bind(rt_tls.device);
	return rt_all.legacy.p_cuCtxGetDevice(&device) == CUDA_SUCCESS ? cudaSuccess
								       : (cudaError_t)201;
}

cudaError_t rt_last(cudaError_t error)
{
	if (error != cudaSuccess)
		rt_tls.last = error;
	return error;
}

cudaError_t cudaGetLastError(void)
{
	cudaError_t error = rt_tls.last;

	rt_tls.last = cudaSuccess;
	return error;
}

cudaError_t cudaPeekAtLastError(void)
{
	return rt_tls.last;
}

cudaError_t cudaGetDeviceCount(int *count)
{
	cudaError_t rc;

	NEED(count);
	rc = rt_load();
	*count = rc == cudaSuccess ? rt_all.devices : 0;
	return rt_last(rc);
}

static cudaError_t check_device(int device)
{
	cudaError_t rc = rt_load();

	if (rc != cudaSuccess)
		return rc;
	return device >= 0 && device < rt_all.devices ? cudaSuccess : cudaErrorInvalidDevice;
}

/* From CUDA 12 on this makes the device's context; before, only the choice is noted. */
cudaError_t cudaSetDevice(int device)
{
	cudaError_t rc = check_device(device);

	if (rc != cudaSuccess)
		return rt_last(rc);
	if (SIM_CUDART >= 12)
		return rt_last(bind(device));
	rt_tls.device = device;
	rc = (cudaError_t)rt_all.legacy.p_cuCtxSetCurrent(NULL);
	return rt_last(rc);
}

cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags)
{
	cudaError_t rc = check_device(device);
	CUcontext ctx;

	(void)flags;
	if (rc == cudaSuccess && flags & 1)
		rc = (cudaError_t)rt_all.legacy.p_cuDevicePrimaryCtxSetFlags(device, device_flags);
	if (rc == cudaSuccess)
		rc = retain(device, &ctx);
	return rt_last(rc);
}

cudaError_t cudaGetDevice(int *device)
{
	cudaError_t rc = rt_load();
	CUcontext ctx = NULL;

	NEED(device);
	if (rc != cudaSuccess)
		return rt_last(rc);
	*device = rt_tls.device;
	rc = (cudaError_t)rt_all.legacy.p_cuCtxGetCurrent(&ctx);
	if (rc == cudaSuccess && ctx)
		rt_all.legacy.p_cuCtxGetDevice(device);
	return rt_last(rc);
}

cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
	cudaError_t rc = rt_load();

	if (rc != cudaSuccess)
		return rt_last(rc);
	return rt_last((cudaError_t)rt_all.legacy.p_cuDevicePrimaryCtxSetFlags(
		rt_tls.device, flags & ~(unsigned)cudaDeviceMapHost));
}

cudaError_t cudaGetDeviceFlags(unsigned int *flags)
{
	cudaError_t rc = rt_load();
	int active;

	NEED(flags);
	if (rc != cudaSuccess)
		return rt_last(rc);
	rc = (cudaError_t)rt_all.legacy.p_cuDevicePrimaryCtxGetState(rt_tls.device, flags, &active);
	*flags |= cudaDeviceMapHost;
	return rt_last(rc);
}

/* Takes down everything of the device in this process; the next call begins anew. */
cudaError_t cudaDeviceReset(void)
{
	cudaError_t rc = rt_load();
	int device;

	if (rc == cudaSuccess)
		rc = cudaGetDevice(&device);
	if (rc != cudaSuccess)
		return rt_last(rc);
	pthread_mutex_lock(&contexts);
	rc = (cudaError_t)rt_all.legacy.p_cuDevicePrimaryCtxReset(device);
	rt_all.primary[device] = NULL;
	pthread_mutex_unlock(&contexts);
	return rt_last(rc);
}

cudaError_t cudaDeviceSynchronize(void)
{
	ENTER();
	return rt_last((cudaError_t)DRV(cuCtxSynchronize)());
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
	CUcontext ctx;
	cudaError_t rc = check_device(peer);

	if (rc == cudaSuccess)
		rc = rt_enter();
	if (rc == cudaSuccess)
		rc = retain(peer, &ctx);
	return rt_last(rc == cudaSuccess ? CALL(cuCtxEnablePeerAccess, ctx, flags) : rc);
}

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
	CUcontext ctx;
	cudaError_t rc = check_device(peer);

	if (rc == cudaSuccess)
		rc = rt_enter();
	if (rc == cudaSuccess)
		rc = retain(peer, &ctx);
	return rt_last(rc == cudaSuccess ? CALL(cuCtxDisablePeerAccess, ctx) : rc);
}

/* --- the way to driver functions for programs --- */

static cudaError_t entry_point(const char *name, void **out, unsigned version,
			       unsigned long long flags, int *status)
{
	CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
	cudaError_t rc = rt_load();

	NEED(name && out && flags <= 3);
	if (rc != cudaSuccess)
		return rt_last(rc);
	if (flags == cudaEnableDefault && rt_tls.pt)
		flags = cudaEnablePerThreadDefaultStream;
	if (rt_all.get_proc)
		rt_all.get_proc(name, out, (int)version, flags, &found);
	else
		rt_all.get_proc_v1(name, out, (int)version, flags);
	if (status)
		*status = (int)found;
	if (!*out && !status)
		return rt_last(cudaErrorSymbolNotFound);
	return cudaSuccess;
}

#if SIM_CUDART >= 12
cudaError_t cudaGetDriverEntryPoint(const char *name, void **out, unsigned long long flags,
				    enum cudaDriverEntryPointQueryResult *status)
{
	return entry_point(name, out, SIM_CUDART * 1000, flags, (int *)status);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **out, unsigned int version,
					     unsigned long long flags,
					     enum cudaDriverEntryPointQueryResult *status)
{
	return entry_point(name, out, version, flags, (int *)status);
}

PER_THREAD(cudaGetDriverEntryPoint, _ptsz,
	   (const char *name, void **out, unsigned long long flags,
	    enum cudaDriverEntryPointQueryResult *status),
	   (name, out, flags, status))
PER_THREAD(cudaGetDriverEntryPointByVersion, _ptsz,
	   (const char *name, void **out, unsigned int version, unsigned long long flags,
	    enum cudaDriverEntryPointQueryResult *status),
	   (name, out, version, flags, status))
#else
cudaError_t cudaGetDriverEntryPoint(const char *name, void **out, unsigned long long flags)
{
	return entry_point(name, out, 11080, flags, NULL);
}

PER_THREAD(cudaGetDriverEntryPoint, _ptsz, (const char *name, void **out, unsigned long long flags),
	   (name, out, flags))
#endif
