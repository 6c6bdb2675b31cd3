/*
 * A program that takes up Python late, as many do: embed LIBPROBE LIBPYTHON HOME. Stacks before
 * there is an interpreter, in it, on a thread of the program's that visits it, and after it ended.
 */
#include "probe.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BARRIER() __asm__ volatile("" ::: "memory")

static void *python;
static char text[1 << 16];

static void *find(const char *name)
{
	void *symbol = dlsym(python, name);

	if (!symbol) {
		printf("no %s\n", name);
		exit(1);
	}
	return symbol;
}

static int failures;

static void expect(int holds, const char *what)
{
	if (holds)
		return;
	printf("failed: %s\n%s", what, text);
	failures++;
}

static __attribute__((noinline)) void take_plain(void)
{
	probe_describe(probe_stack(0), text, sizeof(text));
	BARRIER();
}

/* What Python calls: a frame of the program's between the shim and the interpreter. */
static __attribute__((noinline)) void from_python(void)
{
	take_plain();
	BARRIER();
}

static void run(const char *source)
{
	char script[1000];

	snprintf(script, sizeof(script), "import ctypes\ncall = ctypes.CFUNCTYPE(None)(%llu)\n%s",
		 (unsigned long long)(uintptr_t)from_python, source);
	if (((int (*)(const char *))find("PyRun_SimpleString"))(script))
		exit(1);
}

static const char script[] = "def f():\n"
			     "    call()\n"
			     "def g():\n"
			     "    f()\n"
			     "g()\n";

static int has_script(void)
{
	/* the two lines before are run()'s */
	return strstr(text, "python\tf\t<string>\t4\npython\tg\t<string>\t6\npython\t<module>\t"
			    "<string>\t7\n") != NULL;
}

static void *visit(void *data)
{
	int (*ensure)(void) = find("PyGILState_Ensure");
	void (*release)(int) = find("PyGILState_Release");
	int state;

	(void)data;
	take_plain();
	expect(!strstr(text, "\npython\t"), "a thread that has not met Python");
	state = ensure();
	take_plain();
	expect(!strstr(text, "\npython\t"), "a thread in Python without a frame");
	run(script);
	expect(has_script(), "frames on the program's own thread");
	release(state);
	take_plain();
	expect(!strstr(text, "\npython\t"), "a thread that left Python");
	return NULL;
}

static void live_once(void)
{
	void *saved;
	pthread_t thread;

	((void (*)(int))find("Py_InitializeEx"))(0);
	run(script); /* its code is new: it is now that the interpreter is noticed */
	run(script);
	expect(has_script(), "frames of the embedded interpreter");
	expect(!strncmp(strchr(text, '\n') + 1, "native\t", 7), "natives first");
	expect(!strstr(text, "libpython"), "no interpreter frames");
	saved = ((void *(*)(void))find("PyEval_SaveThread"))();
	take_plain();
	expect(!strstr(text, "\npython\t"), "between calls of Python");
	pthread_create(&thread, NULL, visit, NULL);
	pthread_join(thread, NULL);
	((void (*)(void *))find("PyEval_RestoreThread"))(saved);
	run(script);
	expect(has_script(), "frames again");
	((int (*)(void))find("Py_FinalizeEx"))();
	take_plain();
	expect(!strstr(text, "\npython\t") && strstr(text, "native\t"), "after the end");
}

/*
 * An interpreter that is noticed and then unloaded: what was known of it is code no more. Nothing
 * is imported, for an extension module would keep the library where it is. Some stay all the same.
 */
static int live_and_go(const char *library)
{
	void *remains;

	python = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
	if (!python)
		return 1;
	((void (*)(int))find("Py_InitializeEx"))(0);
	probe_start(GM_STACKS_FULL, 200);
	take_plain();
	expect(*gm_stack_python() != 0, "an interpreter that was there first");
	((int (*)(void))find("Py_FinalizeEx"))();
	dlclose(python);
	gm_stack_modules_changed(); /* as the shim's dlclose does */
	remains = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
	take_plain();
	expect(!strstr(text, "\npython\t") && strstr(text, "native\t"), "after it has gone");
	expect(!*gm_stack_python() == !remains, "an interpreter that has gone");
	return failures != 0;
}

/* In a process of its own: CPython can be begun only so often. */
static void go_in_child(const char *library)
{
	int status;

	if (fork() == 0) {
		status = live_and_go(library);
		fflush(stdout);
		_exit(status);
	}
	wait(&status);
	expect(status == 0, "a process whose interpreter is unloaded");
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	setenv("PYTHONHOME", argv[2], 1);
	go_in_child(argv[1]);
	probe_start(GM_STACKS_FULL, 200);
	take_plain();
	expect(!*gm_stack_python() && !strstr(text, "\npython\t"),
	       "before there is an interpreter");
	python = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
	if (!python) {
		printf("%s\n", dlerror());
		return 1;
	}
	take_plain();
	expect(!strstr(text, "\npython\t"), "an interpreter that has not begun");
	live_once();
	if (strncmp(gm_stack_python(), "3.12.", 5)) /* 3.12.1 itself crashes the second time */
		live_once();
	printf("Python %s\n", gm_stack_python());
	return failures != 0;
}
