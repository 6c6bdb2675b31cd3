/*
 * Makes children in every way while threads allocate, and holds each child to what it must do: end
 * in time (an alarm kills one that waits for a lock that nobody holds any more) and with its own
 * status. Arguments: the way, and how often. Prints the parent's books.
 */
#include "../../hygiene/effort.h"
#include "cuda_calls.h"
#include "gpumemtrace.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS	  4
#define MOST_S	  60 /* a child that takes longer hangs */
#define KEPT_BYTES 1000
#define MORE                                                                                       \
	(20000 / (int)test_thinned()) /* blocks for which the file must still grow at the end */
#define MORE_BYTES 64

extern char **environ;

static uint64_t allocations;
static int stop;
static const char *program;

/*
 * The loader's lock stays held in the child of a fork made while another thread was inside dlopen
 * or dlclose; glibc's own dl_iterate_phdr waits for ever there. So no libraries where the child
 * records.
 */
static int loading;

static void *work(void *unused)
{
	(void)unused;
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		void *memory, *library = loading ? dlopen("libm.so.6", RTLD_NOW) : NULL;

		if (cudaMalloc(&memory, KEPT_BYTES) || cudaFree(memory))
			abort();
		__atomic_fetch_add(&allocations, 1, __ATOMIC_SEQ_CST);
		if (library)
			dlclose(library); /* every call site is looked up again: the loader's lock
					   */
	}
	return NULL;
}

/* What a child does that goes on by itself: tracker work of its own, without the (parent's) device.
 */
static void use_tracker(void)
{
	char block[16];
	int i;

	for (i = 0; i < 10; i++)
		gpumemtrace_pool_alloc(block + i, 100, 0);
	for (i = 1; i < 10; i++)
		gpumemtrace_pool_free(block + i);
	gpumemtrace_mark("child");
}

static void *use_first(void *block)
{
	gpumemtrace_pool_alloc(block, 50, 0);
	return NULL;
}

/* Another thread than the one that forked opens the child's file. */
static void use_another_thread(void)
{
	char block[1];
	pthread_t thread;

	if (pthread_create(&thread, NULL, use_first, block) || pthread_join(thread, NULL))
		_exit(9);
	gpumemtrace_pool_free(block);
}

static void child_by(const char *way)
{
	char *const none[] = {NULL}, *const arguments[] = {(char *)program, (char *)"child", NULL};

	alarm(MOST_S);
	/* the parent's figures are not the child's, and its lock may be held for ever */
	if (gpumemtrace_live_bytes(0) || gpumemtrace_peak_bytes(0))
		_exit(8);
	gpumemtrace_reset_peak(0);
	if (!strcmp(way, "threads"))
		use_another_thread();
	if (!strcmp(way, "exec") || !strcmp(way, "clone-exec"))
		execve(program, arguments, environ);
	else if (!strcmp(way, "failing-exec"))
		execve("/nowhere/at/all", arguments, none);
	else if (strcmp(way, "idle") && strcmp(way, "clone-idle"))
		use_tracker();
	if (!strcmp(way, "exit"))
		exit(7);
	_exit(7);
}

/* By hook_fork.so, in the middle of the call. */
static pid_t fork_inside(void)
{
	const pid_t *child = (const pid_t *)dlsym(RTLD_DEFAULT, "forked_child");
	void *memory;

	if (!child || cudaMalloc(&memory, 4242))
		return -1;
	if (*child > 0) {
		cudaFree(memory);
		__atomic_fetch_add(&allocations, 1, __ATOMIC_SEQ_CST);
	}
	return *child;
}

/* The loader's list is locked at the moment of the clone, by a thread that the child does not have.
 */
static int hold_list(struct dl_phdr_info *info, size_t bytes, void *moment)
{
	(void)info;
	(void)bytes;
	pthread_barrier_wait(moment); /* locked */
	pthread_barrier_wait(moment); /* cloned */
	return 1;
}

static void *hold(void *moment)
{
	dl_iterate_phdr(hold_list, moment);
	return NULL;
}

static pid_t clone_locked(void)
{
	pthread_barrier_t moment;
	pthread_t holder;
	pid_t child;

	pthread_barrier_init(&moment, NULL, 2);
	if (pthread_create(&holder, NULL, hold, &moment))
		return -1;
	pthread_barrier_wait(&moment);
	child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (child == 0)
		return 0;
	pthread_barrier_wait(&moment);
	pthread_join(holder, NULL);
	return child;
}

static pid_t make_child(const char *way)
{
	char *const arguments[] = {(char *)program, (char *)"child", NULL};
	pid_t child;

	if (!strcmp(way, "spawn"))
		return posix_spawn(&child, program, NULL, NULL, arguments, environ) ? -1 : child;
	if (!strcmp(way, "vfork")) {
		child = vfork();
		if (child == 0) {
			execve("/nowhere/at/all", arguments, environ);
			_exit(7);
		}
		return child;
	}
	if (!strcmp(way, "inside"))
		child = fork_inside();
	else if (!strcmp(way, "clone-locked"))
		child = clone_locked();
	else if (!strncmp(way, "clone", 5))
		child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	else
		child = fork();
	if (child == 0)
		child_by(way);
	return child;
}

/* A child that closed its parent's books would be seen here at the latest. */
static int grow(void)
{
	for (int i = 0; i < MORE; i++) {
		void *memory;

		if (cudaMalloc(&memory, MORE_BYTES))
			return 0;
	}
	allocations += MORE;
	return 1;
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";
	int children = argc > 2 ? (atoi(argv[2]) - 1) / (int)test_thinned() + 1 : 1, i;
	pthread_t threads[THREADS];
	void *kept;

	program = argv[0];
	loading = strcmp(way, "record") && strcmp(way, "inside") && strcmp(way, "exit") &&
		  strcmp(way, "clone-record") && strcmp(way, "clone-locked") &&
		  strcmp(way, "threads");
	if (!strcmp(way, "child"))
		return 7;
	if (cudaMalloc(&kept, KEPT_BYTES))
		return 2;
	allocations = 1;
	/* looked up here: the child of a raw clone cannot, for a thread may hold the loader's lock
	 */
	gpumemtrace_reset_peak(0);
	gpumemtrace_pool_alloc(NULL, 0, 0);
	gpumemtrace_pool_free(NULL);
	gpumemtrace_mark("parent");
	if (gpumemtrace_live_bytes(0) != KEPT_BYTES || gpumemtrace_peak_bytes(0) != KEPT_BYTES)
		return 5;
	for (i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	while (__atomic_load_n(&allocations, __ATOMIC_ACQUIRE) < 2 * THREADS)
		sched_yield();
	for (i = 0; i < children; i++) {
		pid_t child = make_child(way);
		int status;

		if (child < 0 || waitpid(child, &status, 0) != child)
			return 3;
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 7) {
			fprintf(stderr, "child %d by %s ended with status %#x\n", i, way, status);
			return 4;
		}
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	if (!grow())
		return 6;
	printf("{\"pid\": %d, \"live\": %d, \"live_count\": %d, \"allocations\": %llu}\n", getpid(),
	       KEPT_BYTES + MORE * MORE_BYTES, MORE + 1, (unsigned long long)allocations);
	return 0;
}
