/*
 * Jumps out of driver calls, and of runtime calls that wait for one, when the work is done: what
 * they took stands in nobody's books. What comes afterwards does, from deeper in the stack and from
 * another thread: allocations once, modules with what they cost. The simulator calls back when a
 * driver function is over, before the shim knows: from there it jumps.
 */
#include "family.h"
#include "gpumemtrace.h"

#include <pthread.h>
#include <setjmp.h>

void gpusim_after(void (*callback)(const char *function));

#define LOST   (4 * MIB)
#define BLOCK  (6 * MIB)
#define MODULE (2 * MIB)

static const char image[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			    ".visible .entry k()\n{\n\tret;\n}\n";
static CUcontext context;
static const char *leaves; /* the driver's function that is left at its end, once */
static jmp_buf out;

static void called(const char *function)
{
	if (!leaves || strcmp(function, leaves) != 0)
		return;
	leaves = NULL;
	longjmp(out, 1);
}

static void load(void)
{
	CUmodule module;

	OK(cuModuleLoadData(&module, image));
}

static void allocate(void)
{
	void *p;

	OK(cudaMalloc(&p, leaves ? LOST : BLOCK));
}

/* What the call that was left had on the stack stays as it was: of the frame one byte is written.
 */
static void __attribute__((noinline)) deeper(void (*step)(void))
{
	volatile char frame[32 << 10];

	frame[0] = 1;
	step();
	OK(!frame[0]);
}

static void leave(const char *function, void (*step)(void))
{
	leaves = function;
	if (!setjmp(out)) {
		step();
		OK(1); /* it came back */
	}
}

static void *load_too(void *unused)
{
	OK(cuCtxSetCurrent(context));
	load();
	return unused;
}

int main(void)
{
	unsigned long long before;
	pthread_t thread;

	OK(cudaFree(0));
	OK(cuCtxGetCurrent(&context));
	before = free_bytes();
	gpusim_after(called);
	leave("cuModuleLoadData", load);
	deeper(load);
	leave("cuMemAlloc_v2", allocate);
	/* what it costs is told only while no thread is in an allocation */
	OK(pthread_create(&thread, NULL, load_too, NULL));
	OK(pthread_join(thread, NULL));
	deeper(allocate);
	gpumemtrace_mark("left");
	expect("usage.device.0.current_bytes", BLOCK);
	expect("usage.device.0.allocations", 1);
	expect("ledger.allocations.0", BLOCK);
	expect("ledger.modules_and_limits.0", 2 * MODULE);
	expect("ledger.unexplained.0", before - free_bytes() - BLOCK - 2 * MODULE);
	return 0;
}
