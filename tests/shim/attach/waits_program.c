/*
 * Waits in one system call and says how that ended:
 *
 *   waits epoll|poll|sigtimedwait|recv|fork|exec
 *
 * It prints "ready" and waits for a minute at most: until standard input can be read (epoll, poll,
 * recv, whose sender is a child), or until SIGUSR1 comes (sigtimedwait); or without an end in a
 * handler that fork calls before the child exists, which in `exec` becomes `waits epoll` then. The
 * second line is what the call returned and
 * its errno.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MINUTE_MS 60000

static void say_ready(void)
{
	puts("ready");
	fflush(stdout);
}

static int wait_in_epoll(void)
{
	struct epoll_event event = {.events = EPOLLIN};
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, STDIN_FILENO, &event))
		return -2;
	say_ready();
	return epoll_wait(epoll, &event, 1, MINUTE_MS);
}

static int wait_in_poll(void)
{
	struct pollfd input = {STDIN_FILENO, POLLIN, 0};

	say_ready();
	return poll(&input, 1, MINUTE_MS);
}

static int wait_in_sigtimedwait(void)
{
	const struct timespec time = {.tv_sec = MINUTE_MS / 1000};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	say_ready();
	return sigtimedwait(&set, NULL, &time) == SIGUSR1 ? 1 : -1;
}

static int wait_in_recv(void)
{
	const struct timeval time = {.tv_sec = MINUTE_MS / 1000};
	int ends[2];
	char byte;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) ||
	    setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)))
		return -2;
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(read(STDIN_FILENO, &byte, 1) == 1 && write(ends[1], &byte, 1) == 1 ? 0 : 1);
	}
	say_ready();
	return (int)recv(ends[0], &byte, 1, 0);
}

static int bytes_read;

static void wait_before_fork(void)
{
	char byte;

	say_ready();
	bytes_read = (int)read(STDIN_FILENO, &byte, 1);
}

static int wait_in_fork(void)
{
	if (pthread_atfork(wait_before_fork, NULL, NULL))
		return -2;
	if (fork() == 0)
		_exit(0);
	return bytes_read;
}

static void exec_before_fork(void)
{
	wait_before_fork();
	execl("/proc/self/exe", "waits", "epoll", NULL);
	_exit(3);
}

static int wait_in_exec(void)
{
	return pthread_atfork(exec_before_fork, NULL, NULL) ? -2 : fork();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*wait)(void);
	} ways[] = {{"epoll", wait_in_epoll},
		    {"poll", wait_in_poll},
		    {"sigtimedwait", wait_in_sigtimedwait},
		    {"recv", wait_in_recv},
		    {"fork", wait_in_fork},
		    {"exec", wait_in_exec}};

	for (size_t i = 0; argc > 1 && i < sizeof(ways) / sizeof(ways[0]); i++)
		if (strcmp(argv[1], ways[i].name) == 0) {
			int result = ways[i].wait();

			printf("%d %s\n", result, result < 0 ? strerror(errno) : "good");
			return 0;
		}
	return 2;
}
