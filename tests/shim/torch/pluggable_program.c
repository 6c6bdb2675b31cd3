/*
 * PyTorch with an allocator of the program's own, simulated:
 *   pluggable current        in the place of PyTorch's: every tensor is a call of it
 *   pluggable early          the same, but it was used before PyTorch was loaded, and nobody else
 * allocates pluggable mempool TRACE  a MemPool's: PyTorch's own allocator divides what it gave At
 * the end the allocator's own counters as JSON.
 */
#include "../../sim/torch/c10_cuda.h"
#include "../../sim/torch/torch_cuda.h"
#include "own_allocator.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define METHOD(name) "_ZN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocator" name

int cudaMalloc(void **pointer, size_t bytes);

static void no_mark(const char *name)
{
	(void)name;
}

/* Tensors of 1 to 16 MiB, the odd ones given back. */
static int tensors(struct gpusim_pluggable *self, void *torch_cuda)
{
	void *(*take)(struct gpusim_pluggable *, size_t, signed char, void *) =
		(void *(*)(struct gpusim_pluggable *, size_t, signed char, void *))dlsym(
			torch_cuda, METHOD("6mallocEmaP11CUstream_st"));
	void (*give)(struct gpusim_pluggable *, void *) =
		(void (*)(struct gpusim_pluggable *, void *))dlsym(torch_cuda,
								   METHOD("10raw_deleteEPv"));
	void *tensor[16];

	if (!take || !give)
		return 1;
	for (unsigned i = 0; i < 16; i++)
		tensor[i] = take(self, (size_t)(i + 1) << 20, 0, NULL);
	for (unsigned i = 0; i < 16; i += 2)
		give(self, tensor[i]);
	return 0;
}

static void use_early(void)
{
	own_free(own_malloc(1 << 20, 0, NULL), 1 << 20, 0, NULL);
	own_counters = (struct own_counters){0};
}

static int with_torch(int argc, char **argv)
{
	void *c10_cuda = dlopen("libc10_cuda.so", RTLD_NOW | RTLD_LOCAL);
	void *torch_cuda = dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_LOCAL);
	struct gpusim_pluggable *(*make)(gpusim_alloc_function *, gpusim_free_function *) =
		(struct gpusim_pluggable * (*)(gpusim_alloc_function *, gpusim_free_function *))
			dlsym(torch_cuda, "gpusim_pluggable_make");
	int (*replay)(const char *, unsigned, void (*)(const char *)) =
		(int (*)(const char *, unsigned, void (*)(const char *)))dlsym(c10_cuda,
									     "gpusim_torch_replay");
	struct gpusim_mempool *pool = dlsym(c10_cuda, "gpusim_torch_mempool");
	struct gpusim_pluggable *self;
	void *other; /* 8 MiB of somebody else's */
	int failed;

	if (!make || !replay || !pool)
		return 2;
	self = make(own_malloc, own_free);
	if (strcmp(argv[1], "early") == 0) {
		failed = tensors(self, torch_cuda);
	} else if (strcmp(argv[1], "current") == 0) {
		failed = cudaMalloc(&other, 8 << 20) || tensors(self, torch_cuda);
	} else {
		pool->self = self;
		pool->raw_alloc =
			(void *(*)(void *, unsigned long))dlsym(torch_cuda, METHOD("9raw_allocEm"));
		pool->raw_delete =
			(void (*)(void *, void *))dlsym(torch_cuda, METHOD("10raw_deleteEPv"));
		failed = argc < 3 || replay(argv[2], 0, no_mark);
	}
	printf("{\"bytes\": %lu, \"peak\": %lu, \"total\": %lu}\n", own_counters.bytes,
	       own_counters.peak, own_counters.total);
	return failed;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	if (strcmp(argv[1], "early") == 0)
		use_early();
	return with_torch(argc, argv);
}
