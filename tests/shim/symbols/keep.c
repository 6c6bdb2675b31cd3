/*
 * Keeps 1 MiB and 2 MiB of the simulated device, from one function on two lines of main.
 */
#include <stddef.h>

extern int cuInit(unsigned int flags);
extern int cuDevicePrimaryCtxRetain(void **context, int device);
extern int cuCtxSetCurrent(void *context);
extern int cuMemAlloc_v2(unsigned long long *pointer, size_t bytes);

static void __attribute__((noinline)) keep(size_t bytes)
{
	unsigned long long pointer;

	if (cuMemAlloc_v2(&pointer, bytes) != 0)
		__builtin_trap();
	__asm__ volatile(""); /* no tail call */
}

int main(void)
{
	void *context;

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
		return 1;
	keep(1 << 20);
	keep(2 << 20);
	return 0;
}
