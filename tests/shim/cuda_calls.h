/*
 * For test programs: CUDA's types and the prototypes of every function in the table, plus the few
 * others that programs need, so that they build without a toolkit.
 */
#ifndef TESTS_SHIM_CUDA_CALLS_H
#define TESTS_SHIM_CUDA_CALLS_H

#include "api/cuda_abi.h"
#include "api/params.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GM_RUNTIME(name, params, ...)	      cudaError_t name(GM_PARAMS(params));
#define GM_RUNTIME_UNTIL12(name, params, ...)
#define GM_RUNTIME_FROM13(name, params, ...)  cudaError_t name(GM_PARAMS(params));
#define GM_DRIVER(name, params, ...)	      CUresult name(GM_PARAMS(params));
#define GM_ROUTE(layer, name, params)	      GM_PROTO_##layer(name, params)
#define GM_PROTO_RUNTIME(name, params)	      cudaError_t name(GM_PARAMS(params));
#define GM_PROTO_DRIVER(name, params)	      CUresult name(GM_PARAMS(params));
#include "api/cuda_api.def"

CUresult cuInit(unsigned int flags);
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuCtxSetCurrent(CUcontext ctx);
CUresult cuCtxGetCurrent(CUcontext *ctx);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
cudaError_t cudaRuntimeGetVersion(int *version);

#ifdef __cplusplus
}
#endif
#endif
