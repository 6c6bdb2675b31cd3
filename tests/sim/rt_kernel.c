/*
 * Kernels of the simulated runtimes: what nvcc's start-up code registers, libraries, and launches
 * that come to nothing but the driver's bookkeeping. Code is loaded on the first use of a kernel.
 */
#include <pthread.h>
#include "rt.h"

struct fat_binary {
	const void *image;
	CUlibrary library;
};

struct kernel {
	struct kernel *next;
	const void *host; /* the address of the host's stub */
	char *name;
	struct fat_binary *binary;
	CUkernel handle;
};

static struct kernel *kernels;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list and its handles */

void **__cudaRegisterFatBinary(void *image);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
			    int limit, void *tid, void *bid, dim3 *block, dim3 *grid, int *size);
char __cudaInitModule(void **handle);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
				     struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);

void **__cudaRegisterFatBinary(void *image)
{
	struct fat_binary *binary = calloc(1, sizeof(*binary));

	binary->image = image;
	return (void **)binary;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
	(void)handle;
}

void __cudaUnregisterFatBinary(void **handle)
{
	struct fat_binary *binary = (struct fat_binary *)handle;

	if (binary->library && !rt_all.over)
		rt_all.legacy.p_cuLibraryUnload(binary->library);
	binary->library = NULL; /* the record stays: kernels refer to it until the end */
}

char __cudaInitModule(void **handle)
{
	(void)handle;
	return 1;
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
			    int limit, void *tid, void *bid, dim3 *block, dim3 *grid, int *size)
{
	struct kernel *kernel = calloc(1, sizeof(*kernel));

	(void)device, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)size;
	kernel->host = host;
	kernel->name = strdup(name);
	kernel->binary = (struct fat_binary *)handle;
	pthread_mutex_lock(&lock);
	kernel->next = kernels;
	kernels = kernel;
	pthread_mutex_unlock(&lock);
}

static __thread struct {
	dim3 grid, block;
	size_t shared;
	cudaStream_t stream;
} pushed[8];
static __thread int pushed_count;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
				     struct CUstream_st *stream)
{
	if (pushed_count == 8)
		return 1;
	pushed[pushed_count].grid = grid;
	pushed[pushed_count].block = block;
	pushed[pushed_count].shared = shared;
	pushed[pushed_count++].stream = (cudaStream_t)stream;
	return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
	if (!pushed_count)
		return rt_last(cudaErrorInvalidValue);
	pushed_count--;
	*grid = pushed[pushed_count].grid;
	*block = pushed[pushed_count].block;
	*shared = pushed[pushed_count].shared;
	*(cudaStream_t *)stream = pushed[pushed_count].stream;
	return cudaSuccess;
}

static cudaError_t load(struct kernel *kernel)
{
	struct fat_binary *binary = kernel->binary;
	cudaError_t rc = cudaSuccess;

	if (!binary->library)
		rc = CALL(cuLibraryLoadData, &binary->library, binary->image, NULL, NULL, 0, NULL,
			  NULL, 0);
	if (rc == cudaSuccess && !kernel->handle)
		rc = CALL(cuLibraryGetKernel, &kernel->handle, binary->library, kernel->name);
	return rc;
}

/* A registered stub, or a handle that came from a library. */
static cudaError_t find(const void *func, CUkernel *handle)
{
	/* CUDA 13 takes an address that it does not know for a handle */
	const cudaError_t unknown =
		SIM_CUDART >= 13 ? cudaErrorInvalidResourceHandle : cudaErrorInvalidDeviceFunction;
	cudaError_t rc = unknown;
	const char *name;

	pthread_mutex_lock(&lock);
	for (struct kernel *kernel = kernels; kernel; kernel = kernel->next) {
		if (kernel->host != func)
			continue;
		rc = load(kernel);
		*handle = kernel->handle;
		break;
	}
	pthread_mutex_unlock(&lock);
	if (rc == unknown &&
	    CALL(cuKernelGetName, &name, (CUkernel)(uintptr_t)func) == cudaSuccess) {
		*handle = (CUkernel)(uintptr_t)func;
		rc = cudaSuccess;
	}
	return rc;
}

cudaError_t rt_kernel(const void *func, CUfunction *function)
{
	CUkernel handle = NULL;
	cudaError_t rc = find(func, &handle);

	return rc == cudaSuccess ? CALL(cuKernelGetFunction, function, handle) : rc;
}

cudaError_t cudaLaunchKernel(const void *func, dim3 grid, dim3 block, void **args, size_t shared,
			     cudaStream_t stream)
{
	CUfunction function;
	cudaError_t rc;

	ENTER();
	rc = rt_kernel(func, &function);
	if (rc == cudaSuccess)
		rc = CALL(cuLaunchKernel, function, grid.x, grid.y, grid.z, block.x, block.y,
			  block.z, (unsigned)shared, stream, args, NULL);
	return rt_last(rc);
}

cudaError_t cudaLaunchCooperativeKernel(const void *func, dim3 grid, dim3 block, void **args,
					size_t shared, cudaStream_t stream)
{
	return cudaLaunchKernel(func, grid, block, args, shared, stream);
}

PER_THREAD(cudaLaunchKernel, _ptsz,
	   (const void *func, dim3 grid, dim3 block, void **args, size_t shared,
	    cudaStream_t stream),
	   (func, grid, block, args, shared, stream))
PER_THREAD(cudaLaunchCooperativeKernel, _ptsz,
	   (const void *func, dim3 grid, dim3 block, void **args, size_t shared,
	    cudaStream_t stream),
	   (func, grid, block, args, shared, stream))

#if SIM_CUDART >= 12
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
			       size_t shared, cudaStream_t stream);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
			       size_t shared, cudaStream_t stream)
{
	return cudaLaunchKernel((const void *)kernel, grid, block, args, shared, stream);
}

PER_THREAD(__cudaLaunchKernel, _ptsz,
	   (cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared,
	    cudaStream_t stream),
	   (kernel, grid, block, args, shared, stream))

cudaError_t cudaGetKernel(cudaKernel_t *out, const void *func)
{
	ENTER();
	NEED(out);
	return rt_last(find(func, (CUkernel *)out));
}

cudaError_t __cudaGetKernel(cudaKernel_t *out, const void *func);
cudaError_t __cudaGetKernel(cudaKernel_t *out, const void *func)
{
	return cudaGetKernel(out, func);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func, void **args)
{
	NEED(config);
	return cudaLaunchKernel(func, config->gridDim, config->blockDim, args,
				config->dynamicSmemBytes, config->stream);
}

PER_THREAD(cudaLaunchKernelExC, _ptsz,
	   (const cudaLaunchConfig_t *config, const void *func, void **args), (config, func, args))

cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code, enum cudaJitOption *jit,
				void **jit_values, unsigned int jit_count,
				enum cudaLibraryOption *options, void **values, unsigned int count)
{
	FORWARD(cuLibraryLoadData, (CUlibrary *)library, code, (CUjit_option *)jit, jit_values,
		jit_count, (CUlibraryOption *)options, values, count);
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t *library, const char *path,
				    enum cudaJitOption *jit, void **jit_values,
				    unsigned int jit_count, enum cudaLibraryOption *options,
				    void **values, unsigned int count)
{
	FORWARD(cuLibraryLoadFromFile, (CUlibrary *)library, path, (CUjit_option *)jit, jit_values,
		jit_count, (CUlibraryOption *)options, values, count);
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library)
{
	FORWARD(cuLibraryUnload, (CUlibrary)library);
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name)
{
	FORWARD(cuLibraryGetKernel, (CUkernel *)kernel, (CUlibrary)library, name);
}

cudaError_t cudaLibraryGetKernelCount(unsigned int *count, cudaLibrary_t library)
{
	FORWARD(cuLibraryGetKernelCount, count, (CUlibrary)library);
}
#endif

cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *symbol)
{
	NEED(function);
	ENTER();
	return rt_last(rt_kernel(symbol, (CUfunction *)function));
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *out, const void *func)
{
	CUfunction function;
	cudaError_t rc;

	NEED(out);
	ENTER();
	rc = rt_kernel(func, &function);
	if (rc != cudaSuccess)
		return rt_last(rc);
	memset(out, 0, sizeof(*out));
	DRV(cuFuncGetAttribute)
	(&out->maxThreadsPerBlock, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function);
	DRV(cuFuncGetAttribute)(&out->numRegs, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
	DRV(cuFuncGetAttribute)(&out->ptxVersion, CU_FUNC_ATTRIBUTE_PTX_VERSION, function);
	DRV(cuFuncGetAttribute)(&out->binaryVersion, CU_FUNC_ATTRIBUTE_BINARY_VERSION, function);
	DRV(cuFuncGetAttribute)
	(&out->maxDynamicSharedSizeBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
	 function);
	return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute attribute, int value)
{
	CUfunction function;
	cudaError_t rc;

	ENTER();
	rc = rt_kernel(func, &function);
	if (rc == cudaSuccess)
		rc = CALL(cuFuncSetAttribute, function, (CUfunction_attribute)attribute, value);
	return rt_last(rc);
}

/* A preference that changes nothing about memory; the kernel must exist. */
cudaError_t cudaFuncSetCacheConfig(const void *func, enum cudaFuncCache config)
{
	CUfunction function;

	(void)config;
	ENTER();
	return rt_last(rt_kernel(func, &function));
}
