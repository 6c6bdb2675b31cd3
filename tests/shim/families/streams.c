/*
 * What streams take when they are made, and what launches take on them: local memory is one for all
 * streams; a stack limit gives it back, and the next launch of a kernel that is long known takes it
 * again. A captured launch runs nothing yet.
 */
#include "family.h"
#include "gpumemtrace.h"

CUresult cuStreamCreate(CUstream *stream, unsigned flags);
CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority);

#define STREAMS 5
#define LOCAL (6 * MIB) /* see meson.build */

static const char image[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			    ".visible .entry k()\n{\n\tret;\n}\n";
static CUstream streams[STREAMS];
static CUfunction kernel;

static void launch(CUstream stream)
{
	OK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
}

/* Bytes that each of these took. */
static unsigned long long make_streams(void)
{
	unsigned long long before = free_bytes();
	int i;

	OK(cudaStreamCreate((cudaStream_t *)&streams[0]));
	for (i = 1; i < STREAMS - 1; i++)
		OK(cuStreamCreate(&streams[i], 1));
	OK(cuStreamCreateWithPriority(&streams[i], 1, -1));
	return before - free_bytes();
}

static unsigned long long launch_everywhere(void)
{
	unsigned long long before = free_bytes();
	int i;

	launch(NULL);
	for (i = 0; i < STREAMS; i++)
		launch(streams[i]);
	return before - free_bytes();
}

static void capture(void)
{
	CUgraph graph;

	OK(cuStreamBeginCapture(streams[0], (CUstreamCaptureMode)0));
	launch(streams[0]);
	OK(cuStreamEndCapture(streams[0], &graph));
}

int main(void)
{
	unsigned long long made, launched, again;
	CUmodule module;

	OK(cudaFree(0));
	OK(cuModuleLoadData(&module, image));
	OK(cuModuleGetFunction(&kernel, module, "k"));
	made = make_streams();
	capture();
	launched = launch_everywhere();
	OK(cudaDeviceSetLimit(cudaLimitStackSize, 1024));
	again = launch_everywhere();
	gpumemtrace_mark("launched");
	expect("ledger.streams.0", made);
	expect("ledger.first_launches_of_kernels.0", LOCAL);
	expect("ledger.modules_and_limits.0", 2 * MIB);
	expect("ledger.unexplained.0", 0);
	return made == STREAMS * 2 * MIB && launched == LOCAL && again == LOCAL ? 0 : 3;
}
