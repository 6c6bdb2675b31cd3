/*
 * Code that is asked for again and again, as cuBLAS does before every launch: what the first time
 * loads is measured, on each device, and the driver is not asked about its memory any more after
 * that. Code that is unloaded and loaded again may have the same handle and is measured again.
 */
#include "family.h"
#include "gpumemtrace.h"

void gpusim_after(void (*callback)(const char *function));
CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *options,
			   void **values, unsigned count, CUlibraryOption *library_options,
			   void **library_values, unsigned library_count);
CUresult cuLibraryUnload(CUlibrary library);
CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name);
CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel);

#define MODULE (2 * MIB)
#define TIMES  1000

static const char image[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			    ".visible .entry k()\n{\n\tret;\n}\n";
static unsigned looks; /* at the device's memory, by whomever */

static void called(const char *function)
{
	looks += !strcmp(function, "cuMemGetInfo_v2");
}

static CUlibrary load(void)
{
	CUlibrary library;

	OK(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
	return library;
}

static void use(CUlibrary library)
{
	CUfunction function;
	CUkernel kernel;

	OK(cuLibraryGetKernel(&kernel, library, "k"));
	OK(cuKernelGetFunction(&function, kernel));
}

static void use_often(CUlibrary library)
{
	for (unsigned i = 0; i < TIMES; i++)
		use(library);
}

static void reload(void)
{
	CUlibrary library = load();

	use(library);
	OK(cuLibraryUnload(library));
}

int main(void)
{
	CUlibrary library;
	unsigned before, i;

	gpusim_after(called);
	OK(cudaFree(0));
	OK(cudaSetDevice(1));
	OK(cudaFree(0));
	library = load();
	use(library);
	OK(cudaSetDevice(0));
	use(library);
	before = looks;
	use_often(library);
	if (looks != before) {
		fprintf(stderr, "%u looks at the memory for code that is there\n", looks - before);
		return 3;
	}
	for (i = 0; i < 3; i++)
		reload();
	gpumemtrace_mark("used");
	expect("ledger.modules_and_limits.0", MODULE);
	expect("ledger.modules_and_limits.1", MODULE);
	expect("ledger.unexplained.0", 0);
	expect("ledger.unexplained.1", 0);
	return 0;
}
