/*
 * Device properties, attributes and limits of the simulated runtimes, and the names of errors.
 */
#include "rt.h"

static cudaError_t ready(int device)
{
	cudaError_t rc = rt_load();

	if (rc != cudaSuccess)
		return rc;
	return device >= 0 && device < rt_all.devices ? cudaSuccess : cudaErrorInvalidDevice;
}

static int attribute(int device, int number)
{
	int value = 0;

	rt_all.legacy.p_cuDeviceGetAttribute(&value, (CUdevice_attribute)number, device);
	return value;
}

static cudaError_t properties(struct cudaDeviceProp *p, int device)
{
	cudaError_t rc = ready(device);

	NEED(p);
	if (rc != cudaSuccess)
		return rt_last(rc);
	memset(p, 0, sizeof(*p));
	rt_all.legacy.p_cuDeviceGetName(p->name, sizeof(p->name), device);
	rt_all.legacy.p_cuDeviceGetUuid((CUuuid *)&p->uuid, device);
	rt_all.legacy.p_cuDeviceTotalMem(&p->totalGlobalMem, device);
	p->sharedMemPerBlock = (size_t)attribute(device, 8);
	p->regsPerBlock = attribute(device, 12);
	p->warpSize = attribute(device, 10);
	p->memPitch = (size_t)attribute(device, 11);
	p->maxThreadsPerBlock = attribute(device, 1);
	for (int i = 0; i < 3; i++) {
		p->maxThreadsDim[i] = attribute(device, 2 + i);
		p->maxGridSize[i] = attribute(device, 5 + i);
	}
	p->totalConstMem = (size_t)attribute(device, 9);
	p->major = attribute(device, 75);
	p->minor = attribute(device, 76);
	p->textureAlignment = (size_t)attribute(device, 14);
	p->texturePitchAlignment = (size_t)attribute(device, 51);
	p->multiProcessorCount = attribute(device, 16);
	p->canMapHostMemory = attribute(device, 19);
	p->maxTexture1D = attribute(device, 21);
	p->maxTexture2D[0] = attribute(device, 22);
	p->maxTexture2D[1] = attribute(device, 23);
	for (int i = 0; i < 3; i++)
		p->maxTexture3D[i] = attribute(device, 24 + i);
	p->surfaceAlignment = (size_t)attribute(device, 30);
	p->concurrentKernels = attribute(device, 31);
	p->ECCEnabled = attribute(device, 32);
	p->pciBusID = attribute(device, 33);
	p->asyncEngineCount = attribute(device, 40);
	p->unifiedAddressing = attribute(device, 41);
	p->memoryBusWidth = attribute(device, 37);
	p->l2CacheSize = attribute(device, 38);
	p->maxThreadsPerMultiProcessor = attribute(device, 39);
	p->streamPrioritiesSupported = attribute(device, 78);
	p->sharedMemPerMultiprocessor = (size_t)attribute(device, 81);
	p->regsPerMultiprocessor = attribute(device, 82);
	p->managedMemory = attribute(device, 83);
	p->concurrentManagedAccess = attribute(device, 89);
	p->cooperativeLaunch = attribute(device, 95);
	p->sharedMemPerBlockOptin = (size_t)attribute(device, 97);
	p->maxBlocksPerMultiProcessor = attribute(device, 106);
	p->reservedSharedMemPerBlock = (size_t)attribute(device, 111);
#if SIM_CUDART >= 12
	p->hostRegisterSupported = attribute(device, 99);
	p->memoryPoolsSupported = attribute(device, 115);
	p->memoryPoolSupportedHandleTypes = (unsigned)attribute(device, 119);
	p->ipcEventSupported = attribute(device, 125);
	p->clusterLaunch = attribute(device, 120);
	p->unifiedFunctionPointers = attribute(device, 129);
#endif
#if SIM_CUDART < 13
	p->clockRate = attribute(device, 13);
	p->memoryClockRate = attribute(device, 36);
	p->deviceOverlap = 1;
#endif
	return cudaSuccess;
}

#if SIM_CUDART == 12
cudaError_t cudaGetDeviceProperties_v2(struct cudaDeviceProp *p, int device)
{
	return properties(p, device);
}

/* The name of CUDA 11 still means its shorter structure. */
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int device)
{
	struct cudaDeviceProp whole;
	cudaError_t rc = properties(&whole, device);

	if (rc == cudaSuccess)
		memcpy(out, &whole, offsetof(struct cudaDeviceProp, hostRegisterSupported));
	return rc;
}
#else
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device)
{
	return properties(p, device);
}
#endif

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device)
{
	cudaError_t rc = ready(device);

	NEED(value);
	if (rc == cudaSuccess)
		rc = (cudaError_t)rt_all.legacy.p_cuDeviceGetAttribute(
			value, (CUdevice_attribute)attr, device);
	return rt_last(rc);
}

cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attr, int from, int to)
{
	cudaError_t rc = ready(from);

	if (rc == cudaSuccess)
		rc = (cudaError_t)rt_all.legacy.p_cuDeviceGetP2PAttribute(
			value, (CUdevice_P2PAttribute)attr, from, to);
	return rt_last(rc);
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
	cudaError_t rc = ready(device);

	if (rc == cudaSuccess)
		rc = (cudaError_t)rt_all.legacy.p_cuDeviceCanAccessPeer(can, device, peer);
	return rt_last(rc);
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int length, int device)
{
	cudaError_t rc = ready(device);

	if (rc == cudaSuccess)
		rc = (cudaError_t)rt_all.legacy.p_cuDeviceGetPCIBusId(id, length, device);
	return rt_last(rc);
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id)
{
	cudaError_t rc = rt_load();

	if (rc == cudaSuccess)
		rc = (cudaError_t)rt_all.legacy.p_cuDeviceGetByPCIBusId(device, id);
	return rt_last(rc);
}

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
	FORWARD(cuCtxSetLimit, (CUlimit)limit, value);
}

cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit)
{
	FORWARD(cuCtxGetLimit, value, (CUlimit)limit);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	FORWARD(cuCtxGetStreamPriorityRange, least, greatest);
}

cudaError_t cudaProfilerStart(void)
{
	ENTER();
	return rt_last((cudaError_t)DRV(cuProfilerStart)());
}

cudaError_t cudaProfilerStop(void)
{
	ENTER();
	return rt_last((cudaError_t)DRV(cuProfilerStop)());
}

cudaError_t cudaDriverGetVersion(int *version)
{
	cudaError_t rc = rt_load();

	NEED(version);
	*version = 0; /* without a driver this is the answer, and no error */
	if (rc == cudaErrorInsufficientDriver)
		return cudaSuccess;
	if (rc == cudaSuccess)
		rc = (cudaError_t)rt_all.legacy.p_cuDriverGetVersion(version);
	return rt_last(rc);
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
	NEED(version);
	*version = SIM_CUDART == 11 ? 11080 : SIM_CUDART * 1000;
	return cudaSuccess;
}

static const struct {
	int code;
	const char *name, *text;
} errors[] = {
	{0, "cudaSuccess", "no error"},
	{1, "cudaErrorInvalidValue", "invalid argument"},
	{2, "cudaErrorMemoryAllocation", "out of memory"},
	{3, "cudaErrorInitializationError", "initialization error"},
	{4, "cudaErrorCudartUnloading", "driver shutting down"},
	{21, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
	{35, "cudaErrorInsufficientDriver",
	 "CUDA driver version is insufficient for CUDA runtime version"},
	{98, "cudaErrorInvalidDeviceFunction", "invalid device function"},
	{100, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
	{101, "cudaErrorInvalidDevice", "invalid device ordinal"},
	{201, "cudaErrorDeviceUninitialized", "invalid device context"},
	{215, "cudaErrorUnsupportedLimit", "limit is not supported on this architecture"},
	{217, "cudaErrorPeerAccessUnsupported",
	 "peer access is not supported between these two devices"},
	{301, "cudaErrorFileNotFound", "file not found"},
	{304, "cudaErrorOperatingSystem", "OS call failed or operation not supported on this OS"},
	{400, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
	{401, "cudaErrorIllegalState", "the operation cannot be performed in the present state"},
	{500, "cudaErrorSymbolNotFound", "named symbol not found"},
	{600, "cudaErrorNotReady", "device not ready"},
	{704, "cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled"},
	{705, "cudaErrorPeerAccessNotEnabled", "peer access has not been enabled"},
	{709, "cudaErrorContextIsDestroyed", "context is destroyed"},
	{712, "cudaErrorHostMemoryAlreadyRegistered",
	 "part or all of the requested memory range is already mapped"},
	{713, "cudaErrorHostMemoryNotRegistered",
	 "pointer does not correspond to a registered memory region"},
	{800, "cudaErrorNotPermitted", "operation not permitted"},
	{801, "cudaErrorNotSupported", "operation not supported"},
	{900, "cudaErrorStreamCaptureUnsupported",
	 "operation not permitted when stream is capturing"},
	{901, "cudaErrorStreamCaptureInvalidated",
	 "operation failed due to a previous error during capture"},
	{902, "cudaErrorStreamCaptureMerge",
	 "operation would result in a merge of separate capture sequences"},
	{903, "cudaErrorStreamCaptureUnmatched",
	 "capture was not ended in the same stream as it began"},
	{904, "cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"},
	{905, "cudaErrorStreamCaptureIsolation",
	 "dependency created on uncaptured work in another stream"},
	{906, "cudaErrorStreamCaptureImplicit",
	 "operation would make the legacy stream depend on a capturing blocking stream"},
	{907, "cudaErrorCapturedEvent",
	 "operation not permitted on an event last recorded in a capturing stream"},
	{908, "cudaErrorStreamCaptureWrongThread",
	 "attempt to terminate a thread-local capture sequence from another thread"},
	{910, "cudaErrorGraphExecUpdateFailure",
	 "the graph update was not performed because it included changes which violated "
	 "constraints specific to instantiated graph update"},
	{999, "cudaErrorUnknown", "unknown error"},
};

static const char *text(cudaError_t error, bool name)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].code == (int)error)
			return name ? errors[i].name : errors[i].text;
	return name ? "unrecognized error code" : "unrecognized error code";
}

const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorName(cudaError_t error)
{
	return text(error, true);
}

const char *cudaGetErrorString(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error)
{
	return text(error, false);
}
