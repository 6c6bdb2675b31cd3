/*
 * The ways out of a process that run no exit handlers: _exit, _Exit, quick_exit, and exec. Each
 * completes the file and goes on to the real function. A child of vfork shares its parent's memory,
 * which is why gm_finish compares pids.
 */
#include "recorder/process/finish.h"
#include "recorder/state/libc_functions.h"
#include "store/layout.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

extern char **environ;

static void __attribute__((noreturn)) end_by(enum gm_libc_function function, int status)
{
	void (*real)(int) = (void (*)(int))gm_libc_find(function);

	gm_finish(GM_END_EXIT, status, true);
	if (real)
		real(status);
	syscall(SYS_exit_group, status);
	__builtin_unreachable();
}

EXPORT void _exit(int status)
{
	end_by(GM_LIBC__exit, status);
}

EXPORT void _Exit(int status)
{
	end_by(GM_LIBC__Exit, status);
}

/*
 * The handlers of quick_exit run in the real function, which ends in libc's own _exit that no
 * wrapper sees.
 */
EXPORT void quick_exit(int status)
{
	end_by(GM_LIBC_quick_exit, status);
}

/*
 * The file is completed before exec, since nothing of ours runs after it, and reopened if exec
 * fails.
 */
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
		int(*real) types = (int(*) types)gm_libc_find(GM_LIBC_##name);                     \
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
EXEC(int execv(const char *path, char *const argv[]), execv, (const char *, char *const *), path,
     argv)
EXEC(int execvp(const char *file, char *const argv[]), execvp, (const char *, char *const *), file,
     argv)
EXEC(int execvpe(const char *file, char *const argv[], char *const envp[]), execvpe,
     (const char *, char *const *, char *const *), file, argv, envp)
EXEC(int fexecve(int fd, char *const argv[], char *const envp[]), fexecve,
     (int, char *const *, char *const *), fd, argv, envp)
EXEC(int execveat(int fd, const char *path, char *const argv[], char *const envp[], int flags),
     execveat, (int, const char *, char *const *, char *const *, int), fd, path, argv, envp, flags)

/* For the variadic forms: the arguments become an array on the stack, as in libc. */
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
