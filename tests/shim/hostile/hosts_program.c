/*
 * Host programs of unusual kinds, one by the argument. Each makes ALLOCATIONS allocations in all,
 * or as many as it prints, and ends with 42.
 */
#include "cuda_calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define ALLOCATIONS 2000
#define MANY	    4096
#define STACK_BYTES 65536

static long allocations;
static volatile sig_atomic_t interrupts;

static void *allocate(void *count)
{
	void *memory;
	intptr_t i;

	for (i = 0; i < (intptr_t)count; i++) {
		if (cudaMalloc(&memory, 512))
			_exit(4);
		__atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
		if (i % 2 && cudaFree(memory))
			_exit(5);
	}
	return NULL;
}

static int run(intptr_t count)
{
	allocate((void *)count);
	return 0;
}

/* ---- threads ---- */

static int many_threads(void)
{
	static pthread_t threads[MANY];
	pthread_attr_t small;
	int i, made = 0;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, STACK_BYTES);
	for (i = 0; i < MANY; i++)
		made += pthread_create(&threads[made], &small, allocate, (void *)2) == 0;
	for (i = 0; i < made; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

static void *last_thread(void *main_thread)
{
	pthread_join(*(pthread_t *)main_thread, NULL);
	allocate((void *)ALLOCATIONS);
	printf("{\"allocations\": %ld}\n", allocations);
	fflush(stdout);
	exit(42);
}

static int main_thread_leaves(void)
{
	static pthread_t self;
	pthread_t thread;

	self = pthread_self();
	if (pthread_create(&thread, NULL, last_thread, &self))
		return 1;
	pthread_exit(NULL);
}

static int cancelled_threads(void)
{
	pthread_t thread;
	int i;

	for (i = 0; i < 200; i++) {
		if (pthread_create(&thread, NULL, allocate, (void *)10))
			return 1;
		pthread_cancel(thread);
		pthread_join(thread, NULL);
	}
	return run(100);
}

static int real_time(void)
{
	struct sched_param first = {.sched_priority = 1};
	cpu_set_t one;
	pthread_t threads[4];
	int i;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(0, sizeof(one), &one);
	sched_setscheduler(0, SCHED_FIFO, &first); /* as far as it is allowed */
	for (i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, allocate, (void *)500))
			return 1;
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

/* ---- stacks ---- */

static ucontext_t back, coroutines[8];

static void coroutine(int number)
{
	int i;

	for (i = 0; i < 50; i++) {
		allocate((void *)5);
		swapcontext(&coroutines[number], &back);
	}
}

static int contexts(void)
{
	int i, round;

	for (i = 0; i < 8; i++) {
		getcontext(&coroutines[i]);
		coroutines[i].uc_stack.ss_sp = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
						    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		coroutines[i].uc_stack.ss_size = STACK_BYTES;
		coroutines[i].uc_link = &back;
		makecontext(&coroutines[i], (void (*)(void))coroutine, 1, i);
	}
	for (round = 0; round < 40; round++)
		for (i = 0; i < 8; i++)
			swapcontext(&back, &coroutines[i]);
	return 0;
}

static __attribute__((noinline)) int deep(int depth)
{
	volatile char frame[512];

	frame[0] = (char)depth;
	return depth ? deep(depth - 1) + frame[0] - (char)depth : run(200);
}

/* ---- signals ---- */

static void count_interrupt(int number)
{
	(void)number;
	interrupts++;
}

static void call_in_handler(int number)
{
	(void)number;
	interrupts++;
	cudaMalloc(NULL, 256); /* refused before it does anything that a handler must not */
}

static int timer_storm(void (*handler)(int))
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
	struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
	stack_t stack = {.ss_sp = malloc(STACK_BYTES * 2), .ss_size = STACK_BYTES * 2};

	sigaltstack(&stack, NULL);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	while (interrupts < 200)
		run(50);
	setitimer(ITIMER_REAL, &never, NULL);
	return 0;
}

static int all_blocked(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	kill(getpid(), SIGUSR1);
	return run(ALLOCATIONS);
}

/* ---- the kernel's view of the process ---- */

static int frozen(void)
{
	pid_t parent = getpid(), child = fork();
	int i, status;

	if (child == 0) {
		for (i = 0; i < 20; i++) {
			kill(parent, SIGSTOP);
			usleep(2000);
			kill(parent, SIGCONT);
			usleep(1000);
		}
		_exit(0);
	}
	do {
		run(100);
	} while (waitpid(child, &status, WNOHANG) == 0);
	return 0;
}

static int traced_by_child(void)
{
	pid_t parent = getpid(), child;
	int i, status;

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	child = fork();
	if (child == 0) {
		for (i = 0; i < 20; i++)
			if (ptrace(PTRACE_ATTACH, parent, NULL, NULL) == 0) {
				waitpid(parent, &status, __WALL);
				ptrace(PTRACE_DETACH, parent, NULL, NULL);
			}
		_exit(0);
	}
	do {
		run(100);
	} while (waitpid(child, &status, WNOHANG) == 0);
	return 0;
}

static int closes_everything(void)
{
	int i;

	run(10);
	for (i = 0; i < 20; i++) {
		syscall(SYS_close_range, 3u, ~0u, 0u);
		run(100);
	}
	return 0;
}

static int undumpable(void)
{
	prctl(PR_SET_DUMPABLE, 0);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return run(ALLOCATIONS);
}

static int no_clock_counter(void)
{
#ifdef __x86_64__
	prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
#endif
	return run(ALLOCATIONS);
}

static int other_user(void)
{
	run(100);
	if (geteuid() == 0 && (setgid(65534) || setuid(65534)))
		return 1;
	return run(ALLOCATIONS);
}

static int few_descriptors(void)
{
	struct rlimit none = {3, 3};

	setrlimit(RLIMIT_NOFILE, &none);
	return run(ALLOCATIONS);
}

static int locked_memory(void)
{
	struct rlimit little = {1 << 20, 1 << 20};

	setrlimit(RLIMIT_MEMLOCK, &little);
	mlockall(MCL_CURRENT);
	return run(ALLOCATIONS);
}

static int own_file_table(void)
{
	return unshare(CLONE_FILES | CLONE_FS) || chdir("/") || run(ALLOCATIONS);
}

/* ---- the address space ---- */

static int holes_everywhere(void)
{
	int i;

	for (i = 0; i < 20000; i++) /* many mappings, none of which merges with the next */
		mmap(NULL, 4096, i % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return run(ALLOCATIONS);
}

static int libraries_come_and_go(const char *library)
{
	void *(*named)(void);
	int i;

	for (i = 0; i < 300; i++) {
		void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);

		named = handle ? (void *(*)(void))dlsym(handle, "plugin_run") : NULL;
		if (!named || named())
			return 1;
		dlclose(handle);
		allocations += 6;
	}
	return 0;
}

static int other_namespace(const char *library)
{
	void *handle = dlmopen(LM_ID_NEWLM, library, RTLD_NOW);
	int (*named)(void) = handle ? (int (*)(void))dlsym(handle, "plugin_run") : NULL;

	if (named)
		named(); /* it reaches CUDA's libraries of its own: the preload is not there */
	return run(ALLOCATIONS);
}

/* No exception of the shim's arithmetic is seen: neither as a flag nor as a signal. */
static int exceptions_are_signals(void)
{
	int wrong = feclearexcept(FE_ALL_EXCEPT) || run(ALLOCATIONS);

	wrong |= fetestexcept(FE_ALL_EXCEPT) != 0;
	feenableexcept(FE_ALL_EXCEPT);
	return run(ALLOCATIONS) || wrong;
}

static int environment_is_gone(void)
{
	run(10);
	clearenv();
	return run(ALLOCATIONS);
}

static int ends_with_7(pid_t child)
{
	int status;

	return waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7;
}

static int vfork_child(void)
{
	pid_t child = vfork();

	if (child == 0)
		_exit(7);
	return ends_with_7(child);
}

static int many_children(void)
{
	int i;

	for (i = 0; i < 50; i++) {
		pid_t child = fork();

		if (child == 0)
			_exit(7);
		if (!ends_with_7(child) || !vfork_child())
			return 1;
		run(20);
	}
	return 0;
}

static int by_name(const char *way, const char *library)
{
	if (!strcmp(way, "plain"))
		return run(ALLOCATIONS);
	if (!strcmp(way, "threads"))
		return many_threads();
	if (!strcmp(way, "leader"))
		return main_thread_leaves();
	if (!strcmp(way, "cancel"))
		return cancelled_threads();
	if (!strcmp(way, "fifo"))
		return real_time();
	if (!strcmp(way, "contexts"))
		return contexts();
	if (!strcmp(way, "deep"))
		return deep(8000);
	if (!strcmp(way, "storm"))
		return timer_storm(count_interrupt);
	if (!strcmp(way, "handler"))
		return timer_storm(call_in_handler);
	if (!strcmp(way, "blocked"))
		return all_blocked();
	if (!strcmp(way, "frozen"))
		return frozen();
	if (!strcmp(way, "ptrace"))
		return traced_by_child();
	if (!strcmp(way, "closefrom"))
		return closes_everything();
	if (!strcmp(way, "undumpable"))
		return undumpable();
	if (!strcmp(way, "tsc"))
		return no_clock_counter();
	if (!strcmp(way, "user"))
		return other_user();
	if (!strcmp(way, "nofile"))
		return few_descriptors();
	if (!strcmp(way, "mlock"))
		return locked_memory();
	if (!strcmp(way, "unshare"))
		return own_file_table();
	if (!strcmp(way, "mappings"))
		return holes_everywhere();
	if (!strcmp(way, "plugins"))
		return libraries_come_and_go(library);
	if (!strcmp(way, "dlmopen"))
		return other_namespace(library);
	if (!strcmp(way, "floats"))
		return exceptions_are_signals();
	if (!strcmp(way, "clearenv"))
		return environment_is_gone();
	if (!strcmp(way, "children"))
		return many_children();
	return 1;
}

int main(int argc, char **argv)
{
	int wrong = by_name(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : "");

	printf("{\"allocations\": %ld, \"interrupts\": %d}\n", allocations, (int)interrupts);
	return wrong ? 1 : 42;
}
