/*
 * Finding out how far the calling thread's own stack reaches (thread_stack.h).
 *
 * pthread_getattr_np would tell, but it calls malloc. Instead: glibc and musl put a thread's
 * control block at the end of its stack, and the stack of the process's first thread ends at
 * __libc_stack_end. That a stack pointer is on that very stack, and not on one that was mapped
 * somewhere below, is shown by every page in between being readable: below a thread's stack lies
 * its guard page, below the first thread's a gap that the kernel keeps free. (A program that gives
 * a thread a stack without a guard page, and has coroutines in the same mapping directly below it,
 * is not told apart.)
 */
#include "stack/thread_stack.h"

#include "stack/elf_symbols.h"
#include "stack/safe_read.h"

#include <sys/syscall.h>
#include <unistd.h>

#define PAGE	   4096u
#define CHUNK	   (64u * PAGE) /* asked for at a time: not far beyond the end of another stack */
#define MOST_BYTES (4096u * PAGE) /* that one look goes through */

GM_HOT_STACK uintptr_t gm_first_thread;

static uintptr_t program_stack_end; /* 0: not known */

static bool is_first_thread(void)
{
	if (gm_first_thread)
		return gm_thread_pointer() == gm_first_thread;
	return syscall(SYS_gettid) == getpid();
}

/*
 * Another thread, which can be the first of a process that it forked, has its control block at the
 * end of its stack, and when it has ended one that comes later may. So the first thread is only the
 * one that runs on the stack that the program began with.
 */
void gm_thread_stack_init(void)
{
	void *const *end = gm_objects_symbol("__libc_stack_end", NULL);

	program_stack_end = end ? (uintptr_t)*end : 0;
	if (!gm_first_thread && is_first_thread() &&
	    program_stack_end - (uintptr_t)__builtin_frame_address(0) < GM_LARGEST_STACK)
		gm_first_thread = gm_thread_pointer();
}

/*
 * The first page from `from` on that cannot be read, or what lies beyond the most that is looked
 * at; else `to`.
 */
static uintptr_t find_hole(uintptr_t from, uintptr_t to)
{
	uintptr_t most = from + MOST_BYTES < to ? from + MOST_BYTES : to;

	while (from < most) {
		uintptr_t next = from + CHUNK < most ? from + CHUNK : most;

		if (!gm_safe_pages(from, next))
			return from;
		from = next;
	}
	return most;
}

uintptr_t gm_thread_stack_learn(uintptr_t sp)
{
	uintptr_t end = is_first_thread() ? program_stack_end : gm_thread_pointer();
	uintptr_t low = sp & -(uintptr_t)PAGE, up_to, hole;

	if (end - sp >= GM_LARGEST_STACK)
		return 0;
	if (sp >= gm_thread.other_low && sp < gm_thread.other_end)
		return 0;
	up_to = gm_thread.stack_end ? gm_thread.stack_low : end & -(uintptr_t)PAGE;
	hole = low < up_to ? find_hole(low, up_to) : up_to;
	if (hole == up_to) {
		gm_thread.stack_low = low;
		__atomic_signal_fence(__ATOMIC_RELEASE);
		gm_thread.stack_end = end;
		return end;
	}
	gm_thread.other_end = 0; /* a signal may come in between */
	__atomic_signal_fence(__ATOMIC_RELEASE);
	gm_thread.other_low = low;
	__atomic_signal_fence(__ATOMIC_RELEASE);
	gm_thread.other_end = hole > low ? hole : low + PAGE;
	return 0;
}
