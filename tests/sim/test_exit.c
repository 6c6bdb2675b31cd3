/*
 * What calls answer while the process ends. An exit handler registered before the first CUDA call
 * runs after cudart's own and gets 4; one registered later still succeeds. The handlers check, and
 * the last of them ends the process with the verdict.
 */
#include <stdlib.h>
#include <unistd.h>
#include "selftest.h"

static void *kept;

static void registered_before(void)
{
	void *p;

	CHECK(cudaMalloc(&p, 100), 4);
	CHECK(cudaFree(kept), 4);
	CHECK(checks, 3);
	fflush(stdout);
	_exit(failures != 0);
}

static void registered_after(void)
{
	void *p;

	CHECK(cudaMalloc(&p, 100), 0);
}

int main(void)
{
	atexit(registered_before);
	if (cudaMalloc(&kept, 100) != cudaSuccess)
		return 1;
	atexit(registered_after);
	return 1; /* the handler knows better */
}
