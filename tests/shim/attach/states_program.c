/*
 * Brings itself into a state in which a process cannot be attached to, or not at once:
 *
 *   states vfork|leader|small|loader|malloc|seccomp|memory|threads [LIBRARY]
 *
 * vfork: its only thread waits for the child of a vfork; leader: its main thread has ended; small:
 * it runs on a stack of 64 KiB; loader, malloc: it is in the constructor, or in the malloc, of
 * LIBRARY; seccomp: it may open no file; memory: its address space is at its limit; threads: it
 * starts and ends threads without a pause. It prints "ready", waits until standard input has a byte
 * or ends, and prints "good".
 */
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define STACK_BYTES (64u << 10)

static const char *library;

static void say(const char *word)
{
	puts(word);
	fflush(stdout);
}

static void wait_for_input(void)
{
	char byte;

	say("ready");
	(void)!read(STDIN_FILENO, &byte, 1);
}

static bool in_vfork(void)
{
	char byte;
	int status;
	pid_t child;

	say("ready");
	child = vfork();
	if (child == 0)
		_exit(read(STDIN_FILENO, &byte, 1) < 0);
	return waitpid(child, &status, 0) == child && status == 0;
}

static void *outlive_main(void *unused)
{
	(void)unused;
	wait_for_input();
	say("good");
	exit(0);
}

static bool without_leader(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, outlive_main, NULL))
		return false;
	pthread_exit(NULL);
}

static bool on_small_stack(void)
{
	static ucontext_t here, there;
	/* What lies below must not be taken for a part of the stack. */
	char *stack = mmap(NULL, 2 * STACK_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (stack == MAP_FAILED ||
	    mprotect(stack + STACK_BYTES, STACK_BYTES, PROT_READ | PROT_WRITE) ||
	    getcontext(&there))
		return false;
	there.uc_stack.ss_sp = stack + STACK_BYTES;
	there.uc_stack.ss_size = STACK_BYTES;
	there.uc_link = &here;
	makecontext(&there, wait_for_input, 0);
	return swapcontext(&here, &there) == 0;
}

static bool in_loader(void)
{
	say("ready");
	return dlopen(library, RTLD_NOW) != NULL;
}

static bool in_malloc(void)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	void *(*allocate)(size_t) = handle ? (void *(*)(size_t))dlsym(handle, "malloc") : NULL;

	if (!allocate)
		return false;
	say("ready");
	return !allocate(1);
}

static bool under_seccomp(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return false;
	wait_for_input();
	return true;
}

static bool without_memory(void)
{
	struct rlimit limit;
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	if (!file || fscanf(file, "%lu", &pages) != 1)
		return false;
	fclose(file);
	limit.rlim_cur = limit.rlim_max = pages * (unsigned long)sysconf(_SC_PAGESIZE);
	if (setrlimit(RLIMIT_AS, &limit))
		return false;
	wait_for_input();
	return true;
}

static void *end_at_once(void *argument)
{
	return argument;
}

static bool with_short_threads(void)
{
	struct pollfd input = {STDIN_FILENO, POLLIN, 0};
	pthread_t threads[8];

	say("ready");
	while (poll(&input, 1, 0) == 0) {
		for (size_t i = 0; i < 8; i++)
			if (pthread_create(&threads[i], NULL, end_at_once, NULL))
				return false;
		for (size_t i = 0; i < 8; i++)
			pthread_join(threads[i], NULL);
	}
	return true;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		bool (*enter)(void);
	} states[] = {{"vfork", in_vfork},	  {"leader", without_leader},
		      {"small", on_small_stack},  {"loader", in_loader},
		      {"malloc", in_malloc},	  {"seccomp", under_seccomp},
		      {"memory", without_memory}, {"threads", with_short_threads}};

	library = argc > 2 ? argv[2] : NULL;
	for (size_t i = 0; argc > 1 && i < sizeof(states) / sizeof(states[0]); i++)
		if (strcmp(argv[1], states[i].name) == 0) {
			say(states[i].enter() ? "good" : "bad");
			return 0;
		}
	return 2;
}
