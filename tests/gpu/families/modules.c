/*
 * Modules loaded and never unloaded, about 36 a work unit (gpuowl#5): a row of the ledger rises, no
 * allocation site is blamed. And what a larger stack limit costs.
 */
#include "family.h"
#include "gpumemtrace.h"

#define MODULES 36

static const char image[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			    ".visible .entry k()\n{\n\tret;\n}\n";

NAMED CUmodule load(void)
{
	CUmodule module = NULL;
	CUfunction function;

	OK(cuModuleLoadData(&module, image));
	OK(cuModuleGetFunction(&function, module, "k"));
	return module;
}

int main(void)
{
	unsigned long long before, loaded, limited;
	CUmodule first;
	int i;

	OK(cudaFree(0));
	before = free_bytes();
	first = load();
	for (i = 1; i < MODULES; i++)
		load();
	OK(cuModuleUnload(first));
	loaded = free_bytes();
	OK(cudaDeviceSetLimit(cudaLimitStackSize, 16384));
	limited = free_bytes();
	gpumemtrace_mark("loaded"); /* the ledger is sampled at marks */
	expect("ledger.modules_and_limits.0", before - limited);
	printf("fact %d modules took %llu bytes, the stack limit %llu\n", MODULES - 1,
	       before - loaded, loaded - limited);
	expect("usage.device.0.allocations", 0);
	expect("sites", 0);
	expect("leaks.exit_bytes", 0);
	return 0;
}
