/*
 * A program that looks at everything a guest could change: errno, the signal mask, open
 * descriptors, threads, pending signals, who answers for backtrace and the unwinder. Prints
 * nothing, 0 when all is as it was.
 */
#include "cuda_calls.h"
#include "gpumemtrace.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void expect(int good, const char *what)
{
	if (!good) {
		fprintf(stderr, "changed: %s\n", what);
		exit(1);
	}
}

static int entries(const char *path)
{
	DIR *directory = opendir(path);
	int count = 0;

	while (directory && readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static void expect_errno(const char *what)
{
	expect(errno == 7777, what);
	errno = 7777;
}

static void errno_is_kept(void)
{
	void *memory, *library;
	size_t free_bytes, total_bytes;

	errno = 7777;
	cudaMalloc(&memory, 1000); /* the first call: the file is opened here */
	expect_errno("errno by the first cudaMalloc");
	cudaMemGetInfo(&free_bytes, &total_bytes);
	expect_errno("errno by cudaMemGetInfo");
	cudaFree(memory);
	expect_errno("errno by cudaFree");
	cudaFree((void *)0x1234);
	expect_errno("errno by a bad cudaFree");
	gpumemtrace_mark("mark");
	expect_errno("errno by a mark");
	library = dlopen("libm.so.6", RTLD_NOW);
	errno = 7777;
	dlclose(library);
	expect_errno("errno by dlclose");
}

/*
 * Both masks block the same signals. Their bytes cannot be compared: the kernel writes 8 of the 128
 * that a sigset_t has, the others keep what the stack held.
 */
static int same_signals(const sigset_t *one, const sigset_t *other)
{
	int signal;

	for (signal = 1; signal < NSIG; signal++)
		if (sigismember(one, signal) != sigismember(other, signal))
			return 0;
	return 1;
}

static int no_signals(const sigset_t *set)
{
	int signal;

	for (signal = 1; signal < NSIG; signal++)
		if (sigismember(set, signal))
			return 0;
	return 1;
}

/* The object that a name leads to from here. */
static const char *object_of(const char *name)
{
	void *symbol = dlsym(RTLD_DEFAULT, name);
	Dl_info info;

	return symbol && dladdr(symbol, &info) ? info.dli_fname : "";
}

int main(void)
{
	int descriptors = entries("/proc/self/fd"), threads = entries("/proc/self/task"), i;
	sigset_t before, after, pending;

	sigprocmask(SIG_SETMASK, NULL, &before);
	errno_is_kept();
	for (i = 0; i < 1000; i++) {
		void *memory;

		cudaMalloc(&memory, 100 + (size_t)i);
		cudaFree(memory);
	}
	sigprocmask(SIG_SETMASK, NULL, &after);
	expect(same_signals(&before, &after), "the signal mask");
	sigpending(&pending);
	expect(no_signals(&pending), "pending signals");
	expect(entries("/proc/self/fd") == descriptors, "the number of open descriptors");
	expect(entries("/proc/self/task") == threads, "the number of threads");
	expect(strstr(object_of("backtrace"), "libc.so") != NULL, "whose backtrace is called");
	expect(!strstr(object_of("_Unwind_Backtrace"), "unwind"),
	       "whose _Unwind_Backtrace is called");
	expect(!strstr(object_of("_Unwind_RaiseException"), "unwind"), "whose unwinder throws");
	return 0;
}
