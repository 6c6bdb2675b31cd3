/*
 * A preload like libSegFault: on a crash it prints the stack from an alternate stack, puts the
 * default action back and lets the crash happen.
 */
#include <execinfo.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static char stack_memory[64 << 10];

static void on_crash(int signal)
{
	static const char line[] = "*** segv hook used: backtrace\n";
	void *frames[32];
	int count = backtrace(frames, 32);

	if (write(STDERR_FILENO, line, sizeof(line) - 1) < 0)
		_exit(8);
	backtrace_symbols_fd(frames, count, STDERR_FILENO);
	raise(signal);
}

static void __attribute__((constructor)) install(void)
{
	stack_t stack = {.ss_sp = stack_memory, .ss_size = sizeof(stack_memory)};
	struct sigaction action = {.sa_handler = on_crash,
				   .sa_flags = SA_ONSTACK | (int)SA_RESETHAND | SA_NODEFER};

	sigaltstack(&stack, NULL);
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGABRT, &action, NULL);
}
