/*
 * CUDA's error codes (cuda.h, driver_types.h of CUDA 13.0), those that an allocation call can
 * answer.
 */
#include "report/doc/cuda_errors.h"
#include <stddef.h>
#include <string.h>

#define STICKY                                                                                     \
	"an earlier kernel failed and the context is lost: every call answers this until the "    \
	"process ends; look for that kernel (compute-sanitizer, CUDA_LAUNCH_BLOCKING=1)"
#define CAPTURE                                                                                    \
	"allocate before the capture, or warm the library up outside of it once (handles and "    \
	"workspaces are made at the first call); stream-ordered allocations of the captured "     \
	"stream become nodes of the graph"

static const struct {
	int error;
	const char *driver, *runtime, *why;
} errors[] = {
	{1, "CUDA_ERROR_INVALID_VALUE", "cudaErrorInvalidValue",
	 "an argument was refused: a size of 0 or a wrong flag, location or handle"},
	{2, "CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation", "there was no memory for it"},
	{3, "CUDA_ERROR_NOT_INITIALIZED", "cudaErrorInitializationError",
	 "CUDA does not work in this process: a child of fork cannot use its parent's CUDA; start "
	 "it with spawn or forkserver, or call no CUDA before the fork"},
	{4, "CUDA_ERROR_DEINITIALIZED", "cudaErrorCudartUnloading",
	 "the process was ending and CUDA had been shut down"},
	{35, "CUDA_ERROR_STUB_LIBRARY", "cudaErrorInsufficientDriver",
	 "the driver is older than the runtime needs, or there is none"},
	{46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "cudaErrorDevicesUnavailable",
	 "the device is busy or in an exclusive mode: another process holds it"},
	{100, "CUDA_ERROR_NO_DEVICE", "cudaErrorNoDevice",
	 "no device is visible: look at CUDA_VISIBLE_DEVICES"},
	{101, "CUDA_ERROR_INVALID_DEVICE", "cudaErrorInvalidDevice",
	 "there is no device of that number"},
	{201, "CUDA_ERROR_INVALID_CONTEXT", "cudaErrorDeviceUninitialized",
	 "no context was current on the thread: make one current first (cuCtxSetCurrent)"},
	{400, "CUDA_ERROR_INVALID_HANDLE", "cudaErrorInvalidResourceHandle",
	 "the stream, pool or handle is not a live one of this context"},
	{700, "CUDA_ERROR_ILLEGAL_ADDRESS", "cudaErrorIllegalAddress", STICKY},
	{702, "CUDA_ERROR_LAUNCH_TIMEOUT", "cudaErrorLaunchTimeout", STICKY},
	{709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "cudaErrorContextIsDestroyed",
	 "the thread's context had been destroyed"},
	{710, "CUDA_ERROR_ASSERT", "cudaErrorAssert", STICKY},
	{712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "cudaErrorHostMemoryAlreadyRegistered",
	 "the range, or a part of it, was registered before"},
	{714, "CUDA_ERROR_HARDWARE_STACK_ERROR", "cudaErrorHardwareStackError", STICKY},
	{715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "cudaErrorIllegalInstruction", STICKY},
	{716, "CUDA_ERROR_MISALIGNED_ADDRESS", "cudaErrorMisalignedAddress", STICKY},
	{717, "CUDA_ERROR_INVALID_ADDRESS_SPACE", "cudaErrorInvalidAddressSpace", STICKY},
	{718, "CUDA_ERROR_INVALID_PC", "cudaErrorInvalidPc", STICKY},
	{719, "CUDA_ERROR_LAUNCH_FAILED", "cudaErrorLaunchFailure", STICKY},
	{800, "CUDA_ERROR_NOT_PERMITTED", "cudaErrorNotPermitted",
	 "it is not allowed here: inside a host function of a stream no call of CUDA is, and "
	 "handles for a fabric need the rights for it"},
	{801, "CUDA_ERROR_NOT_SUPPORTED", "cudaErrorNotSupported",
	 "this device, driver or sort of memory does not support the call"},
	{900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "cudaErrorStreamCaptureUnsupported",
	 "a stream was being captured into a graph, and the call is not allowed then; the capture "
	 "is lost. " CAPTURE},
	{901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "cudaErrorStreamCaptureInvalidated",
	 "an earlier call had made the capture of the stream invalid. " CAPTURE},
	{906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "cudaErrorStreamCaptureImplicit",
	 "the call would have waited for the legacy stream during a capture. " CAPTURE},
	{999, "CUDA_ERROR_UNKNOWN", "cudaErrorUnknown", "the driver does not say why"},
};

static size_t find(int error)
{
	size_t i = 0;

	while (i < sizeof(errors) / sizeof(errors[0]) && errors[i].error != error)
		i++;
	return i;
}

const char *gm_cuda_error_name(int error, const char *api)
{
	size_t i = find(error);

	if (i == sizeof(errors) / sizeof(errors[0]))
		return NULL;
	return api && strncmp(api, "cuda", 4) == 0 ? errors[i].runtime : errors[i].driver;
}

const char *gm_cuda_error_why(int error)
{
	size_t i = find(error);

	return i == sizeof(errors) / sizeof(errors[0])
		       ? "look the code up among CUDA's error codes"
		       : errors[i].why;
}
