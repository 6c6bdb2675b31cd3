/*
 * Modules, libraries, kernels and functions of the simulated driver. A loaded module holds
 * GPUSIM_MODULE bytes of device memory (2 MiB) until unloaded; a library takes them in a context
 * when one of its kernels is first needed there, since code is loaded lazily. Whatever looks like
 * code is accepted and any name is found in it; a name with "missing" in it is not.
 */
#include <stdio.h>
#include <unistd.h>
#include "drv.h"

struct CUmod_st {
	struct sim_object head;
	int dev;
	uint64_t bytes;
	CUfunction functions;
	CUlibrary library;
};

struct CUfunc_st {
	struct sim_object head;
	CUfunction next;
	CUmodule module;
	char *name;
	int attributes[CU_FUNC_ATTRIBUTE_MAX];
};

struct CUkern_st {
	struct sim_object head;
	CUkernel next;
	CUlibrary library;
	char *name;
};

struct CUlib_st {
	struct sim_object head;
	CUkernel kernels;
};

/* ELF, a fat binary or its wrapper, or PTX's text. */
static bool is_code(const void *image)
{
	const unsigned char *bytes = image;
	uint32_t word;

	if (*bytes == '.' || *bytes == '/' || *bytes == '\n' || *bytes == ' ')
		return true;
	if (!*bytes)
		return false;
	memcpy(&word, image, sizeof(word));
	return word == 0x464c457f || word == 0xba55ed50 || word == 0x466243b1;
}

static bool found(const char *name)
{
	return *name && !strstr(name, "missing");
}

static CUresult load(CUmodule *out, CUlibrary library)
{
	CUcontext ctx = sim_ctx_current();
	uint64_t bytes = sim_round(sim.module_bytes, SIM_PAGE);
	CUresult rc = sim_phys_take(ctx->dev, bytes);

	if (rc != CUDA_SUCCESS)
		return rc;
	sim_hidden_growth(ctx, sim.module_growth);
	*out = sim_object_new(SIM_MODULE, sizeof(**out), ctx);
	(*out)->dev = ctx->dev;
	(*out)->bytes = bytes;
	(*out)->library = library;
	return CUDA_SUCCESS;
}

void sim_module_release(void *handle)
{
	CUmodule module = handle;
	CUfunction function, next;

	for (function = module->functions; function; function = next) {
		next = function->next;
		free(function->name);
		sim_object_free(function);
	}
	sim_phys_give(module->dev, module->bytes);
	sim_object_free(module);
}

/* Memory that no allocation call explains and that stays with the context. */
void sim_hidden_growth(CUcontext ctx, uint64_t bytes)
{
	if (!bytes || sim_phys_take(ctx->dev, bytes) != CUDA_SUCCESS)
		return;
	sim.dev[ctx->dev].hidden += bytes;
	ctx->cost += bytes;
}

/* A driver's own caches grow; local memory is one for all streams, held until a stack limit is set.
 */
void sim_launch_grows(CUcontext ctx)
{
	sim_hidden_growth(ctx, sim.launch_growth);
	if (!ctx->local && sim_phys_take(ctx->dev, sim.local_bytes) == CUDA_SUCCESS) {
		ctx->local = sim.local_bytes;
		ctx->cost += ctx->local;
	}
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	SIM_API(SIM_CURRENT);
	SIM_VALUE(module && image);
	return is_code(image) ? load(module, NULL) : CUDA_ERROR_INVALID_IMAGE;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count,
			    CUjit_option *options, void **values)
{
	SIM_API(SIM_CURRENT);
	SIM_VALUE(module && image && (!count || (options && values)));
	return is_code(image) ? load(module, NULL) : CUDA_ERROR_INVALID_IMAGE;
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
	SIM_API(SIM_CURRENT);
	SIM_VALUE(module && image);
	return is_code(image) ? load(module, NULL) : CUDA_ERROR_INVALID_IMAGE;
}

CUresult cuModuleLoad(CUmodule *module, const char *path)
{
	SIM_API(SIM_CURRENT);
	SIM_VALUE(module && path);
	if (access(path, R_OK) != 0)
		return CUDA_ERROR_FILE_NOT_FOUND;
	return load(module, NULL);
}

CUresult cuModuleUnload(CUmodule module)
{
	SIM_API(SIM_INIT);
	if (!SIM_GET(SIM_MODULE, module))
		return CUDA_ERROR_INVALID_HANDLE;
	sim_module_release(module);
	return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(mode);
	*mode = CU_MODULE_LAZY_LOADING;
	return CUDA_SUCCESS;
}

static CUfunction function_of(CUmodule module, const char *name)
{
	static const int attributes[CU_FUNC_ATTRIBUTE_MAX] = {
		[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 1024,
		[CU_FUNC_ATTRIBUTE_NUM_REGS] = 32,
		[CU_FUNC_ATTRIBUTE_PTX_VERSION] = 90,
		[CU_FUNC_ATTRIBUTE_BINARY_VERSION] = 90,
		[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = 49152,
		[CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] = -1,
	};
	CUfunction function = module->functions;

	while (function && strcmp(function->name, name) != 0)
		function = function->next;
	if (function)
		return function;
	function = sim_object_new(SIM_FUNCTION, sizeof(*function), module->head.ctx);
	function->module = module;
	function->name = strdup(name);
	memcpy(function->attributes, attributes, sizeof(attributes));
	function->next = module->functions;
	module->functions = function;
	return function;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
	SIM_API(SIM_CURRENT);
	SIM_VALUE(function && name);
	if (!SIM_GET(SIM_MODULE, module))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!found(name))
		return CUDA_ERROR_NOT_FOUND;
	*function = function_of(module, name);
	return CUDA_SUCCESS;
}

/* --- libraries: independent of contexts until their code is needed in one --- */

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jit,
			   void **jit_values, unsigned int jit_count, CUlibraryOption *options,
			   void **values, unsigned int count)
{
	SIM_API(SIM_INIT);
	(void)jit, (void)jit_values, (void)jit_count, (void)options, (void)values, (void)count;
	SIM_VALUE(library && code);
	*library = sim_object_new(SIM_LIBRARY, sizeof(**library), NULL);
	return CUDA_SUCCESS;
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *jit,
			       void **jit_values, unsigned int jit_count, CUlibraryOption *options,
			       void **values, unsigned int count)
{
	if (path && access(path, R_OK) != 0)
		return CUDA_ERROR_FILE_NOT_FOUND;
	return cuLibraryLoadData(library, path, jit, jit_values, jit_count, options, values, count);
}

static CUmodule loaded(CUlibrary library, CUcontext ctx)
{
	for (struct sim_object *o = ctx->objects; o; o = o->next)
		if (o->type == SIM_MODULE && ((CUmodule)o)->library == library)
			return (CUmodule)o;
	return NULL;
}

static CUresult library_module(CUmodule *module, CUlibrary library)
{
	*module = loaded(library, sim_ctx_current());
	return *module ? CUDA_SUCCESS : load(module, library);
}

CUresult cuLibraryUnload(CUlibrary library)
{
	SIM_API(SIM_INIT);
	CUkernel kernel, next;
	CUmodule module;

	if (!SIM_GET(SIM_LIBRARY, library))
		return CUDA_ERROR_INVALID_HANDLE;
	for (kernel = library->kernels; kernel; kernel = next) {
		next = kernel->next;
		free(kernel->name);
		sim_object_free(kernel);
	}
	for (struct sim_object *o = sim.loose; o; o = o->next)
		while (o->type == SIM_CTX && (module = loaded(library, (CUcontext)o)))
			sim_module_release(module);
	sim_object_free(library);
	return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel *out, CUlibrary library, const char *name)
{
	SIM_API(SIM_INIT);
	CUkernel kernel;

	SIM_VALUE(out && name);
	if (!SIM_GET(SIM_LIBRARY, library))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!found(name))
		return CUDA_ERROR_NOT_FOUND;
	for (kernel = library->kernels; kernel && strcmp(kernel->name, name) != 0;)
		kernel = kernel->next;
	if (!kernel) {
		kernel = sim_object_new(SIM_KERNEL, sizeof(*kernel), NULL);
		kernel->library = library;
		kernel->name = strdup(name);
		kernel->next = library->kernels;
		library->kernels = kernel;
	}
	*out = kernel;
	return CUDA_SUCCESS;
}

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
	SIM_API(SIM_CURRENT);
	SIM_VALUE(module);
	if (!SIM_GET(SIM_LIBRARY, library))
		return CUDA_ERROR_INVALID_HANDLE;
	return library_module(module, library);
}

CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary library)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(count);
	if (!SIM_GET(SIM_LIBRARY, library))
		return CUDA_ERROR_INVALID_HANDLE;
	*count = 0;
	for (CUkernel kernel = library->kernels; kernel; kernel = kernel->next)
		++*count;
	return CUDA_SUCCESS;
}

static CUresult kernel_function(CUfunction *function, CUkernel kernel)
{
	CUmodule module;
	CUresult rc = library_module(&module, kernel->library);

	if (rc == CUDA_SUCCESS)
		*function = function_of(module, kernel->name);
	return rc;
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
	SIM_API(SIM_CURRENT);
	SIM_VALUE(function);
	if (!SIM_GET(SIM_KERNEL, kernel))
		return CUDA_ERROR_INVALID_HANDLE;
	return kernel_function(function, kernel);
}

CUresult cuKernelGetLibrary(CUlibrary *library, CUkernel kernel)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(library);
	if (!SIM_GET(SIM_KERNEL, kernel))
		return CUDA_ERROR_INVALID_HANDLE;
	*library = kernel->library;
	return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char **name, CUkernel kernel)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(name);
	if (!SIM_GET(SIM_KERNEL, kernel))
		return CUDA_ERROR_INVALID_HANDLE;
	*name = kernel->name;
	return CUDA_SUCCESS;
}

/* --- functions --- */

#define FUNCTION(function)                                                                         \
	do {                                                                                       \
		if (!SIM_GET(SIM_FUNCTION, function))                                              \
			return CUDA_ERROR_INVALID_HANDLE;                                          \
	} while (0)

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(value && (unsigned)attribute < CU_FUNC_ATTRIBUTE_MAX);
	FUNCTION(function);
	*value = function->attributes[attribute];
	return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
	SIM_API(SIM_INIT);
	FUNCTION(function);
	SIM_VALUE(attribute >= CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
		  attribute < CU_FUNC_ATTRIBUTE_MAX);
	function->attributes[attribute] = value;
	return CUDA_SUCCESS;
}

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config)
{
	SIM_API(SIM_INIT);
	(void)config;
	FUNCTION(function);
	return CUDA_SUCCESS;
}

CUresult cuFuncGetModule(CUmodule *module, CUfunction function)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(module);
	FUNCTION(function);
	*module = function->module;
	return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char **name, CUfunction function)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(name);
	FUNCTION(function);
	*name = function->name;
	return CUDA_SUCCESS;
}

static CUresult launch(CUfunction function, unsigned grid, unsigned block, CUstream handle)
{
	CUstream stream = sim_stream(handle);
	CUDA_KERNEL_NODE_PARAMS params = {.func = function};
	CUresult rc;

	if (SIM_GET(SIM_KERNEL, (CUkernel)(void *)function)) {
		rc = kernel_function(&function, (CUkernel)(void *)function);
		if (rc != CUDA_SUCCESS)
			return rc;
	}
	FUNCTION(function);
	SIM_VALUE(grid && block && block <= 1024);
	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	rc = sim_capture_check(stream);
	if (rc != CUDA_SUCCESS)
		return rc;
	if (stream->capture)
		return sim_capture_node(stream, NULL, CU_GRAPH_NODE_TYPE_KERNEL, &params,
					sizeof(params));
	sim_stream_effect(stream, NULL, NULL);
	sim_launch_grows(stream->head.ctx);
	return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz,
			unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
			CUstream stream, void **params, void **extra)
{
	SIM_API(SIM_CURRENT);
	(void)shared, (void)params, (void)extra;
	return launch(function, gx * gy * gz, bx * by * bz, stream);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int gx, unsigned int gy,
				   unsigned int gz, unsigned int bx, unsigned int by,
				   unsigned int bz, unsigned int shared, CUstream stream,
				   void **params)
{
	SIM_API(SIM_CURRENT);
	(void)shared, (void)params;
	return launch(function, gx * gy * gz, bx * by * bz, stream);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params,
			  void **extra)
{
	SIM_API(SIM_CURRENT);
	(void)params, (void)extra;
	SIM_VALUE(config);
	return launch(function, config->gridDimX * config->gridDimY * config->gridDimZ,
		      config->blockDimX * config->blockDimY * config->blockDimZ, config->hStream);
}
