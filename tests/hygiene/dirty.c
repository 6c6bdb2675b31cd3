/*
 * Preloaded into each test program by hygiene.py: the stacks of main and of threads hold no zeros
 * where nothing was written yet. A program that reads a variable before it is set, or more of a
 * structure than the kernel filled, then reads what is different in every word.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#define MAIN_BYTES   (512u << 10)
#define THREAD_BYTES (64u << 10)
#define MARGIN_BYTES                                                                               \
	(4u << 10) /* left of a thread's stack: guest programs have threads with little */

typedef int main_function(int, char **, char **);
typedef int start_function(main_function *, int, char **, void (*)(void), void (*)(void),
			   void (*)(void), void *);
typedef int create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

int __libc_start_main(main_function *main, int argc, char **argv, void (*init)(void),
		      void (*fini)(void), void (*loader_fini)(void), void *stack_end);

static main_function *program;

struct thread {
	void *(*start)(void *);
	void *argument;
};

/* The bytes below the caller's frame: they are the stack of what the caller calls next. */
static __attribute__((noinline)) void dirty(size_t bytes)
{
	uint64_t *below = __builtin_alloca(bytes);
	size_t i;

	for (i = 0; i < bytes / sizeof(*below); i++)
		below[i] = (i + 1) * 0x9e3779b97f4a7c15u;
	__asm__ volatile("" : : "r"(below) : "memory");
}

/* dlsym may be the program's own (own_dlsym_program.c), or one that the shim is in the way of. */
static void *next(const char *name)
{
	static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
	void *function = NULL;
	size_t i;

	for (i = 0; !function && i < sizeof(versions) / sizeof(*versions); i++)
		function = dlvsym(RTLD_NEXT, name, versions[i]);
	if (!function)
		abort();
	return function;
}

static int dirty_main(int argc, char **argv, char **environment)
{
	dirty(MAIN_BYTES);
	return program(argc, argv, environment);
}

int __libc_start_main(main_function *main, int argc, char **argv, void (*init)(void),
		      void (*fini)(void), void (*loader_fini)(void), void *stack_end)
{
	start_function *start = (start_function *)next("__libc_start_main");

	program = main;
	return start(dirty_main, argc, argv, init, fini, loader_fini, stack_end);
}

static size_t stack_left(void)
{
	pthread_attr_t attributes;
	void *stack = NULL;
	size_t bytes = 0;

	if (pthread_getattr_np(pthread_self(), &attributes))
		return 0;
	pthread_attr_getstack(&attributes, &stack, &bytes);
	pthread_attr_destroy(&attributes);
	return (size_t)((char *)__builtin_frame_address(0) - (char *)stack);
}

static void *dirty_thread(void *data)
{
	struct thread thread = *(struct thread *)data;
	size_t left = stack_left();

	free(data);
	if (left > THREAD_BYTES + MARGIN_BYTES)
		dirty(THREAD_BYTES);
	else if (left > 2 * MARGIN_BYTES)
		dirty(left - 2 * MARGIN_BYTES);
	return thread.start(thread.argument);
}

int pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*start)(void *),
		   void *argument)
{
	create_function *create = (create_function *)next("pthread_create");
	struct thread *thread = malloc(sizeof(*thread));
	int failed;

	if (!thread)
		abort();
	*thread = (struct thread){start, argument};
	failed = create(id, attributes, dirty_thread, thread);
	if (failed)
		free(thread);
	return failed;
}
