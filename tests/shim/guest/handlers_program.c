/*
 * A signal handler that allocates and frees, in the middle of everything, hundreds of times a
 * second of processor time; a second way jumps out of the handler. With stacks of its own or the
 * thread's. What the handler does inside a CUDA call is not recorded, what it does elsewhere is. A
 * third way makes marks and copies, between which a pool's events come: those are not for handlers,
 * but hang nobody.
 */
#include "cuda_calls.h"
#include "gpumemtrace.h"

#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t in_call, handled, jumping, marking;
static sigjmp_buf back;

/* The simulated driver's own lock is no signal handler's business: outside of calls only. */
static void on_timer(int signal)
{
	void *memory;

	(void)signal;
	if (in_call)
		return;
	if (marking) {
		gpumemtrace_pool_alloc(&back, 77, 0);
		gpumemtrace_pool_free(&back);
		handled++;
		return;
	}
	if (cudaMalloc(&memory, 77) || cudaFree(memory))
		_exit(9);
	handled++;
	if (jumping)
		siglongjmp(back, 1);
}

static int marks(const char *copy)
{
	void *memory;
	unsigned i;

	in_call = marking = 1;
	if (cudaMalloc(&memory, 1000) || cudaFree(memory))
		return 3;
	in_call = 0;
	for (i = 0; i < 4000 || handled < 100; i++) {
		gpumemtrace_mark("round");
		if (i % 1000 == 0)
			gpumemtrace_snapshot(copy);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static char stack_memory[256 << 10];
	stack_t stack = {.ss_sp = stack_memory, .ss_size = sizeof(stack_memory)};
	struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_ONSTACK};
	struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
	volatile unsigned long long rounds = 0;

	jumping = argc > 1 && !strcmp(argv[1], "jump");
	if (argc > 2)
		sigaltstack(&stack, NULL);
	sigaction(SIGPROF, &action, NULL);
	setitimer(ITIMER_PROF, &often, NULL);
	if (argc > 2 && !strcmp(argv[1], "marks"))
		return marks(argv[2]);
	if (sigsetjmp(back, 1))
		in_call = 0;
	while (handled < 100) {
		volatile int idle = 10000; /* time for the handler */
		void *memory;

		in_call = 1;
		if (cudaMalloc(&memory, 1000) || cudaFree(memory))
			return 3;
		rounds++;
		in_call = 0;
		while (idle--)
			;
	}
	setitimer(ITIMER_PROF, &never, NULL);
	printf("{\"live\": 0, \"allocations\": %llu}\n", rounds + (unsigned long long)handled);
	return 0;
}
