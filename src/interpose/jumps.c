/*
 * longjmp under its four names. A jump out of a CUDA call ends it without its wrapper's knowledge: what
 * the program calls afterwards, deeper in its stack, would pass for that call's inner ones. Whether a
 * jump leaves the call is told by where it leads to, which glibc keeps mangled in the buffer.
 */
#include "interpose/preload.h"
#include "interpose/libraries.h"

#include <stdlib.h>

#if defined(__x86_64__)

#define EXPORT __attribute__((visibility("default")))

/* Declared here: <setjmp.h> gives the names other meanings where the compiler is told to fortify. */
#define NAMES(X) X(longjmp) X(_longjmp) X(siglongjmp) X(__longjmp_chk)

#define ENUM(name) JUMP_##name,
#define TEXT(name) #name,
enum { NAMES(ENUM) JUMPS };
static const char *const names[JUMPS] = {NAMES(TEXT)};
typedef void jump_fn(void *buffer, int value);
static jump_fn *reals[JUMPS];

/* Jumps happen in signal handlers, where nothing can be looked up. */
void gm_jumps_init(void)
{
	gm_next_symbols(names, (void **)reals, JUMPS);
}

/*
 * The stack pointer that the jump restores: the seventh word of glibc's buffer, rotated, and xored with
 * the guard in the thread's control block (its PTR_DEMANGLE, which every program's setjmp relies on).
 */
static uintptr_t target_of(const void *buffer)
{
	uintptr_t mangled = ((const uintptr_t *)buffer)[6], guard;

	__asm__("mov %%fs:0x30, %0" : "=r"(guard));
	return (mangled >> 17 | mangled << 47) ^ guard;
}

static void __attribute__((noreturn)) jump_by(unsigned number, void *buffer, int value)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), outermost = gm_thread.outermost;

	/* Over it: from below to above. One that stays below is the call's own business. */
	if (outermost && here < outermost && outermost < target_of(buffer))
		gm_call_abandoned();
	if (!reals[number]) /* before our constructor ran */
		reals[number] = (jump_fn *)gm_next_symbol(names[number]);
	if (!reals[number])
		abort(); /* no libc has a jump of that name: nobody could have meant it */
	reals[number](buffer, value);
	__builtin_unreachable();
}

#define JUMP(name)                                                                                 \
	EXPORT void name(void *buffer, int value) __attribute__((noreturn));                       \
	void name(void *buffer, int value)                                                         \
	{                                                                                          \
		jump_by(JUMP_##name, buffer, value);                                               \
	}
NAMES(JUMP)

#else

void gm_jumps_init(void)
{
}

#endif
