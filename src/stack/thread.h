/*
 * What the processor knows of the calling thread.
 */
#ifndef GM_STACK_THREAD_H
#define GM_STACK_THREAD_H

#include "store/hot.h"

#include <stdint.h>

#define GM_LARGEST_STACK (1ull << 30)

/* Where the first thread's stack ends, __libc_stack_end; 0 if that is not known. Of cfi.c. */
extern GM_HIDDEN uintptr_t gm_program_stack_end;

/*
 * The process's first thread, by its gm_thread_pointer; 0 if it is not known. No other thread ever has
 * this one, not after it ended nor in the child of a fork. Of stack.c.
 */
extern GM_HIDDEN uintptr_t gm_first_thread;

/* The address of the calling thread's control block, which is its own for as long as the thread lives. */
static inline uintptr_t gm_thread_pointer(void)
{
	uintptr_t thread;

#if defined(__x86_64__) /* older compilers do not know the builtin there */
	__asm__("mov %%fs:0, %0" : "=r"(thread));
#else
	thread = (uintptr_t)__builtin_thread_pointer();
#endif
	return thread;
}

/*
 * Up to where the stack can be read without asking: threads have their control block at its end,
 * the first thread's end is known from its start. On any other stack (a fiber's) nothing is known: 0.
 */
static inline uintptr_t gm_stack_end_above(uintptr_t sp)
{
	uintptr_t thread = gm_thread_pointer();

	if (thread - sp < GM_LARGEST_STACK / 4)
		return thread;
	if (gm_program_stack_end - sp < GM_LARGEST_STACK)
		return gm_program_stack_end;
	return 0;
}

#endif
