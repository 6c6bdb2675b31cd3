/*
 * The ways out of a process that run no exit handlers: _exit, _Exit, quick_exit, daemon, and exec.
 * Each completes the file, or says how it ended, and goes on to the real function. A child of vfork
 * shares its parent's memory, which is why gm_finish compares pids.
 */
#include "recorder/process/finish.h"
#include "recorder/state/libc_functions.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

extern char **environ;

static void __attribute__((noreturn)) end_by(enum gm_libc_function function, int status)
{
	void (*real)(int) = (void (*)(int))gm_libc_find(function);

	gm_finish(status, true);
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
 * The C library's daemon() leaves the parent by an _exit of its own, which no wrapper sees. This
 * one does the same steps with the exported functions.
 */
EXPORT int daemon(int nochdir, int noclose)
{
	struct stat st;
	pid_t child = fork();
	int null, i;

	if (child < 0)
		return -1;
	if (child > 0)
		_exit(0);
	if (setsid() < 0)
		return -1;
	if (!nochdir) {
		int moved = chdir("/"); /* the C library goes on where it is, too */

		(void)moved;
	}
	if (noclose)
		return 0;
	null = open("/dev/null", O_RDWR);
	if (null < 0)
		return -1;
	if (fstat(null, &st) < 0 || !S_ISCHR(st.st_mode) || st.st_rdev != makedev(1, 3)) {
		close(null);
		errno = ENODEV;
		return -1;
	}
	for (i = 0; i < 3; i++)
		dup2(null, i);
	if (null > 2)
		close(null);
	return 0;
}

/*
 * The file says before exec that the process ended, since nothing of ours runs after it, and no
 * longer says so if exec fails.
 */
static int after_failed_exec(int result, bool begun)
{
	if (begun)
		gm_exec_failed();
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
		bool begun = gm_exec_begin();                                                     \
                                                                                                  \
		return after_failed_exec(real(__VA_ARGS__), begun);                               \
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
