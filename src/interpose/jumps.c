/*
 * longjmp under its four names. A jump out of a CUDA call ends that call without its wrapper's
 * knowledge: what the program calls afterwards, deeper in its stack, would be taken for calls
 * inside it. The address that a jump leads to, which glibc keeps mangled in the buffer, shows
 * whether it leaves the call.
 */
#include "recorder/calls/call.h"
#include "recorder/state/libc_functions.h"

#include <stdlib.h>

#if defined(__x86_64__)

#define EXPORT __attribute__((visibility("default")))

/*
 * The jumps are declared here, because <setjmp.h> redirects the names where the compiler is to
 * fortify.
 */
#define NAMES(X) X(longjmp) X(_longjmp) X(siglongjmp) X(__longjmp_chk)

typedef void jump_fn(void *buffer, int value);

/*
 * The stack pointer that the jump restores: the seventh word of glibc's buffer, rotated, and xored
 * with the guard in the thread's control block (its PTR_DEMANGLE, which every program's setjmp
 * relies on).
 */
static uintptr_t target_of(const void *buffer)
{
	uintptr_t mangled = ((const uintptr_t *)buffer)[6], guard;

	__asm__("mov %%fs:0x30, %0" : "=r"(guard));
	return (mangled >> 17 | mangled << 47) ^ guard;
}

static void __attribute__((noreturn))
jump_by(enum gm_libc_function function, void *buffer, int value)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), outermost = gm_thread.outermost;
	jump_fn *real = (jump_fn *)gm_libc_find(function);

	/* A jump leaves the call if it leads from below the call to above it. */
	if (outermost && here < outermost && outermost < target_of(buffer))
		gm_call_over();
	if (!real)
		abort(); /* no libc has a jump of that name: the program cannot have meant it */
	real(buffer, value);
	__builtin_unreachable();
}

#define JUMP(name)                                                                                 \
	EXPORT void name(void *buffer, int value) __attribute__((noreturn));                       \
	void name(void *buffer, int value)                                                         \
	{                                                                                          \
		jump_by(GM_LIBC_##name, buffer, value);                                            \
	}
NAMES(JUMP)

#endif
