/*
 * A pool of static lifetime is released after main, when the runtime is gone (opencv#8725,
 * cudf-spark#5955): frees answered 4 are teardown; the verdict is taken after them.
 */
#include "family.h"

static void *freed_late, *leaked;
static int answer;

static void late(void)
{
	answer = (int)cudaFree(freed_late);
	if (answer != 4)
		_Exit(3);
}

int main(void)
{
	atexit(late); /* before the first CUDA call, so it runs after cudart's own handlers */
	OK(cudaMalloc(&freed_late, 11 * MIB));
	OK(cudaMalloc(&leaked, 5 * MIB));
	expect("leaks.exit_bytes", 5 * MIB);
	expect("leaks.exit_count", 1);
	expect("usage.device.0.current_bytes", 5 * MIB);
	expect("errors", 0);
	return 0;
}
