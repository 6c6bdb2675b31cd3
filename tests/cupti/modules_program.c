/*
 * Loads three modules, fails to load a fourth and unloads two, by functions that dlsym and
 * cuGetProcAddress gave, as frameworks do. For equal.bats.
 */
#include "cuda_calls.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static const char image[] = ".version 8.0\n.target sm_80\n.address_size 64\n";

static void *library;

static void check(CUresult error)
{
	if (error) {
		fprintf(stderr, "error %d\n", error);
		exit(2);
	}
}

static void *look_up(const char *name)
{
	void *found = dlsym(library, name);

	if (!found)
		exit(4);
	return found;
}

static void *ask(const char *name)
{
	CUresult (*get)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *) =
		(__typeof__(get))look_up("cuGetProcAddress_v2");
	void *found = NULL;

	check(get(name, &found, 12000, 0, NULL));
	return found;
}

static void load_and_unload(void)
{
	CUresult (*load_library)(void **, const void *, void *, void **, unsigned, void *, void **,
				 unsigned) = (__typeof__(load_library))ask("cuLibraryLoadData");
	CUresult (*unload_library)(void *) = (__typeof__(unload_library))ask("cuLibraryUnload");
	CUresult (*load)(void **, const void *) = (__typeof__(load))look_up("cuModuleLoadData");
	CUresult (*unload)(void *) = (__typeof__(unload))look_up("cuModuleUnload");
	void *code, *module, *kept;

	check(load_library(&code, image, NULL, NULL, 0, NULL, NULL, 0));
	check(load(&module, image));
	check(load(&kept, image));
	if (!load(&kept, "no image"))
		exit(5);
	check(unload_library(code));
	check(unload(module));
}

int main(void)
{
	CUcontext context;

	library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library)
		exit(3);
	check(((__typeof__(&cuInit))look_up("cuInit"))(0));
	check(((__typeof__(&cuDevicePrimaryCtxRetain))look_up("cuDevicePrimaryCtxRetain"))(&context,
											   0));
	check(((__typeof__(&cuCtxSetCurrent))look_up("cuCtxSetCurrent"))(context));
	load_and_unload();
	return 0;
}
