/*
 * What calls take beside allocations goes with the context: after a reset the ledger says nothing
 * of it, and of the device's next context only what was taken in that. The same code is loaded
 * again there.
 */
#include "family.h"
#include "gpumemtrace.h"

CUresult cuStreamCreate(CUstream *stream, unsigned flags);

#define LOCAL (6 * MIB) /* see meson.build */

static const char image[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			    ".visible .entry k()\n{\n\tret;\n}\n";

static void load_and_launch(int modules, int streams)
{
	CUfunction kernel = NULL;
	CUstream stream = NULL;
	CUmodule module;

	while (modules--) {
		OK(cuModuleLoadData(&module, image));
		OK(cuModuleGetFunction(&kernel, module, "k"));
	}
	while (streams--)
		OK(cuStreamCreate(&stream, 1));
	OK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
}

int main(void)
{
	unsigned long long before, taken;

	OK(cudaFree(0));
	load_and_launch(7, 5);
	gpumemtrace_mark("first"); /* the ledger is sampled at marks */
	OK(cudaDeviceReset());
	OK(cudaFree(0));
	before = free_bytes();
	load_and_launch(2, 1);
	taken = before - free_bytes();
	gpumemtrace_mark("second");
	expect("ledger.modules_and_limits.0", 4 * MIB);
	expect("ledger.streams.0", 2 * MIB);
	expect("ledger.first_launches_of_kernels.0", LOCAL);
	expect("ledger.unexplained.0", 0);
	return taken == 6 * MIB + LOCAL ? 0 : 3;
}
