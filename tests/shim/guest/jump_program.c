/*
 * Jumps out of hooked calls (hook_jump.so) and goes on from the same function: with calls from
 * deeper in the stack and of its own, and with calls that jump inside themselves. Prints its books.
 */
#include "cuda_calls.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdio.h>

#define ROUNDS 100

static jmp_buf here;
static volatile int jumps;

static int __attribute__((noinline)) allocate(size_t bytes)
{
	void *memory;

	return cudaMalloc(&memory, bytes);
}

/* One byte of the frame is written: what the call that was left had on the stack stays as it was.
 */
static int __attribute__((noinline)) allocate_deeper(size_t bytes)
{
	volatile char frame[32 << 10];
	int result;

	frame[0] = 1;
	result = allocate(bytes);
	return result + frame[0] - 1;
}

int main(void)
{
	jmp_buf **jump_to = (jmp_buf **)dlsym(RTLD_DEFAULT, "jump_to");
	volatile int i;

	if (!jump_to)
		return 2;
	*jump_to = &here;
	for (i = 0; i < ROUNDS; i++) {
		if (setjmp(here) == 0)
			allocate(666);
		else
			jumps++;
		if (allocate_deeper(2000) || allocate_deeper(667) || allocate(1000) ||
		    allocate(667))
			return 3;
	}
	printf("{\"live\": %d, \"live_count\": %d, \"jumps\": %d}\n",
	       ROUNDS * (2000 + 667 + 1000 + 667), ROUNDS * 4, jumps);
	return 0;
}
