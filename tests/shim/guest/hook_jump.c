/*
 * A preload behind the shim with a cudaMalloc that jumps: for 666 bytes out of the call, to where
 * `jump_to` says, by every name of longjmp in turn; for 667 bytes inside it, before it calls on.
 */
#undef _FORTIFY_SOURCE
#include "api/cuda_abi.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stddef.h>

extern jmp_buf *jump_to;
jmp_buf *jump_to;

void __longjmp_chk(jmp_buf buffer, int value) __attribute__((noreturn));
cudaError_t cudaMalloc(void **memory, size_t bytes);

static void jump(void)
{
	static unsigned jumps;

	switch (jumps++ % 4) {
	case 0:
		longjmp(*jump_to, 1);
	case 1:
		_longjmp(*jump_to, 1);
	case 2:
		siglongjmp(*jump_to, 1);
	default:
		__longjmp_chk(*jump_to, 1);
	}
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
	cudaError_t (*real)(void **, size_t) =
		(cudaError_t(*)(void **, size_t))dlsym(RTLD_NEXT, "cudaMalloc");
	jmp_buf inside;

	if (bytes == 666 && jump_to)
		jump();
	if (bytes == 667 && !setjmp(inside))
		longjmp(inside, 1);
	return real(memory, bytes);
}
