/*
 * The ways out of a process that run no exit handlers: _exit, _Exit, quick_exit, and exec. Each closes
 * the books and goes on to the real one. A vfork child shares our memory: gm_finish compares pids.
 */
#include "interpose/preload.h"
#include "interpose/libraries.h"
#include "store/layout.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

extern char **environ;

/* The real functions, found when the shim was loaded: in the child of a fork another thread of the
 * parent's may have held the loader's lock, and exec and _exit must work there. */
#define NAMES(X) X(_exit) X(_Exit) X(quick_exit) X(execve) X(execv) X(execvp) X(execvpe) X(fexecve) X(execveat)

#define ENUM(name) END_##name,
#define TEXT(name) #name,
enum { NAMES(ENUM) ENDS };
static const char *const names[ENDS] = {NAMES(TEXT)};
static void *reals[ENDS];

static void *real_of(unsigned number)
{
	if (!reals[number])
		reals[number] = gm_next_symbol(names[number]);
	return reals[number];
}

void gm_ends_init(void)
{
	gm_next_symbols(names, reals, ENDS);
}

static void __attribute__((noreturn)) end_by(unsigned number, int status)
{
	void (*real)(int) = (void (*)(int))real_of(number);

	gm_finish(GM_END_EXIT, status, true);
	if (real)
		real(status);
	syscall(SYS_exit_group, status);
	__builtin_unreachable();
}

EXPORT void _exit(int status)
{
	end_by(END__exit, status);
}

EXPORT void _Exit(int status)
{
	end_by(END__Exit, status);
}

/* Its handlers run in the real one and end in libc's own _exit, which no wrapper sees. */
EXPORT void quick_exit(int status)
{
	end_by(END_quick_exit, status);
}

/* The books are closed before exec, since nothing of ours runs after it, and opened again if it fails. */
static int after_failed_exec(int result)
{
	int saved = errno;

	gm_finish_undone();
	errno = saved;
	return result;
}

#define EXEC(declaration, name, types, ...)                                                       \
	EXPORT declaration                                                                        \
	{                                                                                         \
		int(*real) types = (int(*) types)real_of(END_##name);                             \
                                                                                                  \
		if (!real) {                                                                      \
			errno = ENOSYS;                                                           \
			return -1;                                                                \
		}                                                                                 \
		gm_finish(GM_END_EXEC, -1, false);                                                \
		return after_failed_exec(real(__VA_ARGS__));                                      \
	}

EXEC(int execve(const char *path, char *const argv[], char *const envp[]), execve,
     (const char *, char *const *, char *const *), path, argv, envp)
EXEC(int execv(const char *path, char *const argv[]), execv, (const char *, char *const *), path, argv)
EXEC(int execvp(const char *file, char *const argv[]), execvp, (const char *, char *const *), file,
     argv)
EXEC(int execvpe(const char *file, char *const argv[], char *const envp[]), execvpe,
     (const char *, char *const *, char *const *), file, argv, envp)
EXEC(int fexecve(int fd, char *const argv[], char *const envp[]), fexecve,
     (int, char *const *, char *const *), fd, argv, envp)
EXEC(int execveat(int fd, const char *path, char *const argv[], char *const envp[], int flags), execveat,
     (int, const char *, char *const *, char *const *, int), fd, path, argv, envp, flags)

/* The variadic forms, as libc has them: the arguments become an array on the stack. */
#define COLLECT(first)                                                                            \
	va_list list;                                                                             \
	size_t count = 1, i;                                                                      \
                                                                                                  \
	va_start(list, first);                                                                    \
	while (va_arg(list, const char *))                                                        \
		count++;                                                                          \
	va_end(list);                                                                             \
	char *argv[count + 1];                                                                    \
	va_start(list, first);                                                                    \
	argv[0] = (char *)first;                                                                  \
	for (i = 1; i <= count; i++)                                                              \
		argv[i] = va_arg(list, char *)

EXPORT int execl(const char *path, const char *first, ...)
{
	COLLECT(first);
	va_end(list);
	return execve(path, argv, environ);
}

EXPORT int execlp(const char *file, const char *first, ...)
{
	COLLECT(first);
	va_end(list);
	return execvpe(file, argv, environ);
}

EXPORT int execle(const char *path, const char *first, ...)
{
	char *const *envp;

	COLLECT(first);
	envp = va_arg(list, char *const *);
	va_end(list);
	return execve(path, argv, envp);
}
