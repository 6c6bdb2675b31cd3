/*
 * The stack that belongs to the calling thread: how much of it is known to be readable without
 * asking.
 *
 * A thread can run on other stacks too (coroutines, signal handlers with a stack of their own, code
 * that switches stacks by itself). Of those nothing is known but the page that is in use: what lies
 * above it may be a guard page, or be freed or mapped anew by another thread at any moment. A walk
 * therefore reads directly only what this header says, and everything else through safe_read.h.
 */
#ifndef GM_STACK_THREAD_STACK_H
#define GM_STACK_THREAD_STACK_H

#include "store/thread_state.h"

#include <stdbool.h>
#include <stdint.h>

#define GM_LARGEST_STACK (1ull << 30)

/* The address of the calling thread's control block: its own for as long as it lives. */
static inline uintptr_t gm_thread_pointer(void)
{
	uintptr_t thread;

#if defined(__x86_64__) /* compilers that are not new do not know the other there */
	__asm__("mov %%fs:0, %0" : "=r"(thread));
#else
	thread = (uintptr_t)__builtin_thread_pointer();
#endif
	return thread;
}

/*
 * The thread's own stack is readable from gm_thread.stack_low up to stack_end, where it ends;
 * stack_end 0: not known yet. Between other_low and other_end it is readable too, but a page above
 * is not or is not of this thread: that is another stack.
 */

/*
 * The process's first thread, by its gm_thread_pointer; 0 if it is not known. No other thread ever
 * has this one, not after it ended nor in the child of a fork.
 */
extern GM_HIDDEN uintptr_t gm_first_thread;

/* Finds the end of the stack that the program began with. Once, before the first walk. */
void gm_thread_stack_init(void);

/*
 * The end of the thread's own stack if `sp` is in the part that is known to be readable up to
 * there, else 0.
 */
static inline uintptr_t gm_thread_stack_end(uintptr_t sp)
{
	uintptr_t end = gm_thread.stack_end;

	return sp >= gm_thread.stack_low && sp < end ? end : 0;
}

/* Returns whether so many bytes from `sp` upwards are in that part. */
static inline bool gm_thread_stack_has(uintptr_t sp, uintptr_t bytes)
{
	return sp >= gm_thread.stack_low && sp + bytes <= gm_thread.stack_end;
}

/*
 * The same where gm_thread_stack_end answered 0: finds out whether `sp` is on the thread's own
 * stack, by system calls, and remembers it. Any context; errno is kept.
 */
uintptr_t gm_thread_stack_learn(uintptr_t sp);

#endif
