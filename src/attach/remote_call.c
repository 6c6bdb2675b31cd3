/*
 * Calls a function in a thread of another process (remote_call.h). x86-64.
 */
#include "attach/remote_call.h"

#include <stdio.h>

#ifdef __x86_64__

#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define NT_X86_XSTATE	0x202
#define GETSIGMASK	0x420a /* PTRACE_GETSIGMASK */
#define RED_ZONE	128
#define MOST_XSTATE	16384u
#define SOFTWARE_BYTES	464 /* offset of the extended state's description [sigcontext.h] */
#define LEGACY_XSTATE	576 /* 512 bytes and a header of 64 */
#define XSTATE_MAGIC1	0x46505853u
#define XSTATE_MAGIC2	0x46505845u
#define AMX_FEATURES	(3ull << 17) /* larger than what a stack may have */
#define ERESTARTSYS	512
#define ERESTARTNOHAND	514
#define ERESTART_BLOCK	516
#define NO_ALTERNATE	0x1234 /* no valid flags: the thread's alternate stack stays as it is */
#define KERNEL_UCONTEXT 304    /* bytes of it that the kernel reads */
#define TEXT_OFFSET	1024
#define TEXT_BYTES	3072u
#define MOST_THREADS	4096
#define STOP_MS		2000
#define PATIENT_MS	1000u /* then a thread will do whose wait begins anew */
#define ONLY_KERNEL	"it waits in a call that only the kernel can resume"
#define CANNOT_STOP                                                                                \
	"it waits in the kernel and cannot be stopped (state D: vfork, a frozen container, a "     \
	"device)"
#define BEGINS_ANEW                                                                                \
	"it waits in a call whose time would begin anew (--interrupt allows that at once)"

/*
 * Calls that return EINTR when a thread is stopped, although no signal came [signal(7)], and that
 * can be made again then, because they did nothing.
 */
static bool ends_by_stop(long call)
{
	switch (call) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
#ifdef SYS_epoll_pwait2
	case SYS_epoll_pwait2:
#endif
	case SYS_rt_sigtimedwait:
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_msgrcv:
	case SYS_msgsnd:
	case SYS_io_getevents:
	case SYS_recvfrom: /* with SO_RCVTIMEO; likewise those that follow */
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_accept:
	case SYS_accept4:
	case SYS_connect:
	case SYS_pause:
	case SYS_rt_sigsuspend:
#ifdef SYS_io_uring_enter
	case SYS_io_uring_enter:
#endif
		return true;
	default:
		return false;
	}
}

/* Calls whose time begins anew where they are made again. */
static bool is_timed(long call)
{
	return call == SYS_nanosleep || call == SYS_clock_nanosleep || call == SYS_poll ||
	       ends_by_stop(call);
}

/* The thread was stopped in a system call, which returned this. */
static bool returned(const struct user_regs_struct *r, long least, long most)
{
	return (long)r->orig_rax >= 0 && (long)r->rax >= -most && (long)r->rax <= -least;
}

/* The stop ended the call by EINTR. */
static bool was_ended(const struct user_regs_struct *r)
{
	return returned(r, EINTR, EINTR) && ends_by_stop((long)r->orig_rax);
}

/* Has the thread make its system call again: the instruction has two bytes. */
static void make_again(struct user_regs_struct *r)
{
	r->rip -= 2;
	r->rax = r->orig_rax;
}

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void sleep_us(unsigned us)
{
	const struct timespec time = {.tv_nsec = us * 1000L};

	nanosleep(&time, NULL);
}

/* Reads a file of /proc/PID/task/THREAD. Returns 0, or an error. */
static int read_task(const struct gm_injector *injector, pid_t thread, const char *file, char *text,
		     size_t bytes)
{
	char path[64];
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", injector->target->pid, thread, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	got = read(fd, text, bytes - 1);
	text[got > 0 ? got : 0] = '\0';
	close(fd);
	return 0;
}

/* A wait in the kernel that neither a signal nor a tracer ends [proc(5), stat]. */
static bool waits_uninterrupted(const struct gm_injector *injector, pid_t thread)
{
	char text[512];
	const char *name_end;

	if (read_task(injector, thread, "stat", text, sizeof(text)))
		return false;
	name_end = strrchr(text, ')');
	return name_end && strncmp(name_end, ") D", 3) == 0;
}

/*
 * Looks at a thread without disturbing it; what is wrong with it, or NULL. `anew`: a wait whose
 * time begins anew will do.
 */
static const char *look_before(const struct gm_injector *injector, pid_t thread, bool anew)
{
	char text[128];
	int error = read_task(injector, thread, "syscall", text, sizeof(text));
	long call;

	if (waits_uninterrupted(injector, thread))
		return CANNOT_STOP;
	if (error)
		return error == ENOENT ? "it has ended" : NULL;
	if (sscanf(text, "%ld", &call) != 1 || call < 0)
		return NULL; /* it runs */
	if (call == SYS_restart_syscall)
		return ONLY_KERNEL;
	return is_timed(call) && !anew ? BEGINS_ANEW : NULL;
}

/* A signal of the program's own is about to be delivered to the thread, and ends its call. */
static bool awaits_signal(const struct gm_injector *injector, pid_t thread)
{
	static const char *const names[] = {"\nSigPnd:", "\nShdPnd:", "\nSigBlk:"};
	uint64_t masks[3] = {0};
	char text[4096];

	if (read_task(injector, thread, "status", text, sizeof(text)))
		return true;
	for (unsigned i = 0; i < 3; i++) {
		const char *at = strstr(text, names[i]);

		if (!at || sscanf(at + strlen(names[i]), "%lx", &masks[i]) != 1)
			return true;
	}
	return ((masks[0] | masks[1]) & ~masks[2]) != 0;
}

/* ---- stopping one thread ---- */

static bool wait_for_stop(pid_t thread, int *status)
{
	unsigned waited;

	for (waited = 0; waited < STOP_MS * 10; waited++) {
		pid_t got = waitpid(thread, status, __WALL | WNOHANG);

		if (got == thread)
			return WIFSTOPPED(*status);
		if (got < 0 && errno != EINTR)
			return false;
		sleep_us(waited < 100 ? 20 : 100);
	}
	return false;
}

/* Stops a thread by no signal that the program could see. NULL, or why it could not be done. */
static const char *stop(pid_t thread)
{
	int status;

	if (ptrace(PTRACE_SEIZE, thread, NULL, NULL))
		return errno == ESRCH ? "it has ended" : "another tracer has it";
	ptrace(PTRACE_INTERRUPT, thread, NULL, NULL);
	while (wait_for_stop(thread, &status)) {
		if (status >> 16 == PTRACE_EVENT_STOP)
			return NULL;
		/* a signal of the program's own came first */
		ptrace(PTRACE_CONT, thread, NULL, (void *)(uintptr_t)WSTOPSIG(status));
	}
	return CANNOT_STOP;
}

/* ---- the call ---- */

/* Bytes of extended state with these features, in the layout of the processor's manual. */
static uint32_t xstate_bytes(uint64_t features)
{
	uint32_t bytes = LEGACY_XSTATE, size, offset, c, d;

	for (unsigned i = 2; i < 63; i++) {
		if (!(features >> i & 1))
			continue;
		__cpuid_count(13, i, size, offset, c, d);
		if (offset + size > bytes)
			bytes = offset + size;
	}
	return bytes;
}

/* Makes of the thread's extended state one that the kernel takes back. Its bytes, 0 if too many. */
static uint32_t frame_xstate(uint8_t *state)
{
	const uint32_t magic1 = XSTATE_MAGIC1, magic2 = XSTATE_MAGIC2;
	uint32_t bytes, extended;
	uint64_t features;

	memcpy(&features, state + SOFTWARE_BYTES, sizeof(features));
	features &= ~AMX_FEATURES;
	bytes = xstate_bytes(features);
	if (bytes + sizeof(magic2) > MOST_XSTATE)
		return 0;
	extended = bytes + (uint32_t)sizeof(magic2);
	memset(state + SOFTWARE_BYTES, 0, 48);
	memcpy(state + SOFTWARE_BYTES, &magic1, sizeof(magic1));
	memcpy(state + SOFTWARE_BYTES + 4, &extended, sizeof(extended));
	memcpy(state + SOFTWARE_BYTES + 8, &features, sizeof(features));
	memcpy(state + SOFTWARE_BYTES + 16, &bytes, sizeof(bytes));
	memcpy(state + bytes, &magic2, sizeof(magic2));
	return extended;
}

/* The registers as a handler's frame holds them, in the order of REG_R8 and what follows. */
static void fill_context(ucontext_t *context, const struct user_regs_struct *r)
{
	const long long registers[] = {(long long)r->r8,
				       (long long)r->r9,
				       (long long)r->r10,
				       (long long)r->r11,
				       (long long)r->r12,
				       (long long)r->r13,
				       (long long)r->r14,
				       (long long)r->r15,
				       (long long)r->rdi,
				       (long long)r->rsi,
				       (long long)r->rbp,
				       (long long)r->rbx,
				       (long long)r->rdx,
				       (long long)r->rax,
				       (long long)r->rcx,
				       (long long)r->rsp,
				       (long long)r->rip,
				       (long long)r->eflags,
				       (long long)(r->cs | r->ss << 48)};

	memcpy(context->uc_mcontext.gregs, registers, sizeof(registers));
}

struct call {
	uint64_t function, number, argument;
	const char *text;
};

/* The latest call that was made: the thread's registers before it, and as they were set for it. */
static struct {
	pid_t thread; /* 0: none was made */
	struct user_regs_struct before, set;
} latest;

/* Lays the frame and sets the registers. NULL, or why nothing was called. */
static const char *make_call(struct gm_injector *injector, pid_t thread, struct user_regs_struct *r,
			     const struct call *call)
{
	static uint8_t state[MOST_XSTATE] __attribute__((aligned(64)));
	struct iovec vector = {state, sizeof(state)};
	ucontext_t context = {.uc_flags = 7, .uc_stack.ss_flags = NO_ALTERNATE};
	uint64_t fp, frame;
	uint32_t bytes;

	if (ptrace(PTRACE_GETREGSET, thread, NT_X86_XSTATE, &vector) ||
	    ptrace(GETSIGMASK, thread, sizeof(uint64_t), &context.uc_sigmask))
		return "its state cannot be read";
	bytes = frame_xstate(state);
	if (!bytes)
		return "its extended state is too large";
	if (was_ended(r) || returned(r, ERESTARTSYS, ERESTARTNOHAND) ||
	    returned(r, ERESTART_BLOCK, ERESTART_BLOCK))
		make_again(r); /* afterwards */
	fp = (r->rsp - RED_ZONE - bytes) & ~63ull;
	frame = ((fp - sizeof(context) - TEXT_OFFSET - TEXT_BYTES) & ~15ull) - 8;
	fill_context(&context, r);
	context.uc_mcontext.fpregs = (void *)(uintptr_t)fp;
	if (call->text && !gm_target_write(injector->target, frame + 8 + TEXT_OFFSET, call->text,
					   strlen(call->text) + 1))
		return "its stack cannot be written";
	if (!gm_target_write(injector->target, fp, state, bytes) ||
	    !gm_target_write(injector->target, frame + 8, &context, KERNEL_UCONTEXT) ||
	    !gm_target_write(injector->target, frame, &injector->end, sizeof(injector->end)))
		return "its stack cannot be written";
	r->rsp = frame;
	r->rip = call->function;
	r->orig_rax = (unsigned long long)-1; /* else the kernel would make a call again here */
	r->rax = 0;
	r->rdi = call->text ? frame + 8 + TEXT_OFFSET : call->number;
	r->rsi = call->argument;
	return ptrace(PTRACE_SETREGS, thread, NULL, r) ? "its registers cannot be set" : NULL;
}

/* Returns the reason why no call may be made in the stopped thread, or NULL if one may. */
static const char *unfit(const struct gm_injector *injector, pid_t thread,
			 const struct user_regs_struct *r, bool anew)
{
	if (returned(r, ERESTART_BLOCK, ERESTART_BLOCK) && r->orig_rax == SYS_restart_syscall)
		return ONLY_KERNEL;
	if (returned(r, ERESTART_BLOCK, ERESTART_BLOCK) && !anew)
		return BEGINS_ANEW;
	if (returned(r, EINTR, EINTR) && (!was_ended(r) || awaits_signal(injector, thread)))
		return "a signal ends its call";
	return gm_unsafe(injector->place, thread, r->rip, r->rsp, injector->outside_cuda);
}

/*
 * Lets a thread go in which no call is made. The kernel resumes its system call, unless the stop
 * ended that: then it is made again.
 */
static void let_go(const struct gm_injector *injector, pid_t thread, struct user_regs_struct *r)
{
	if (!was_ended(r) || awaits_signal(injector, thread))
		return;
	make_again(r);
	ptrace(PTRACE_SETREGS, thread, NULL, r);
}

/* An attempt at one thread: to make a call in it, or to do something with the latest. */
struct attempt {
	const char *(*act)(const struct attempt *);
	struct gm_injector *injector;
	pid_t thread;
	const struct call *call;
	bool anew;
	const char *why; /* NULL: it was done */
};

/* Stops a thread, makes the call if it can be made there, and lets it go. NULL: it was made. */
static const char *try_thread(const struct attempt *attempt)
{
	struct gm_injector *injector = attempt->injector;
	pid_t thread = attempt->thread;
	double began = now_us();
	struct user_regs_struct r, changed;
	const char *why = stop(thread);

	injector->stops++;
	if (why)
		return why;
	if (ptrace(PTRACE_GETREGS, thread, NULL, &r)) {
		why = "its registers cannot be read";
	} else {
		why = unfit(injector, thread, &r, attempt->anew);
		changed = r;
		if (!why)
			why = make_call(injector, thread, &changed, attempt->call);
		if (why) {
			let_go(injector, thread, &r);
		} else {
			latest.thread = thread;
			latest.before = r;
			latest.set = changed;
		}
	}
	ptrace(PTRACE_DETACH, thread, NULL, NULL);
	injector->paused_us = now_us() - began;
	injector->thread = thread;
	return why;
}

/*
 * Gives a thread its own registers back if it has executed nothing of the latest call. The kernel
 * then resumes or makes again the system call in which the thread was, as at any stop.
 */
static const char *withdraw(const struct attempt *attempt)
{
	pid_t thread = attempt->thread;
	struct user_regs_struct now;
	const char *why = stop(thread);

	if (why)
		return why;
	if (ptrace(PTRACE_GETREGS, thread, NULL, &now) || now.rip != latest.set.rip ||
	    now.rsp != latest.set.rsp)
		why = "it has begun the call";
	else if (ptrace(PTRACE_SETREGS, thread, NULL, &latest.before))
		why = "its registers cannot be set";
	else
		let_go(attempt->injector, thread, &latest.before);
	ptrace(PTRACE_DETACH, thread, NULL, NULL);
	return why;
}

/* NULL if the thread's stack pointer is above the frame of the latest call. */
static const char *look_above(const struct attempt *attempt)
{
	struct user_regs_struct r;
	const char *why = stop(attempt->thread);

	attempt->injector->stops++;
	if (why)
		return why;
	why = "it is in the call";
	if (!ptrace(PTRACE_GETREGS, attempt->thread, NULL, &r)) {
		if (r.rsp > latest.set.rsp)
			why = NULL;
		let_go(attempt->injector, attempt->thread, &r);
	}
	ptrace(PTRACE_DETACH, attempt->thread, NULL, NULL);
	return why;
}

static void *run_attempt(void *data)
{
	struct attempt *attempt = data;

	attempt->why = attempt->act(attempt);
	return NULL;
}

/*
 * Has a thread of this process make the attempt. The tracer is that thread and not the process: at
 * its end the kernel detaches a thread that did not stop in time, which would otherwise stand still
 * from its stop until the end of this process [ptrace(2)].
 */
static const char *attempt_in_own_thread(struct attempt *attempt)
{
	pthread_t tracer;

	if (pthread_create(&tracer, NULL, run_attempt, attempt))
		return "there is no thread to trace it";
	pthread_join(tracer, NULL);
	return attempt->why;
}

/* Writes the reason why no call was made. */
static void explain(const struct gm_injector *injector, unsigned threads, unsigned wait_ms,
		    char *error, size_t bytes)
{
	pid_t pid = injector->target->pid;

	if (!threads)
		snprintf(error, bytes, "process %d has ended", pid);
	else if (injector->why == gm_other_program)
		snprintf(error, bytes, "process %d has begun another program (exec) meanwhile",
			 pid);
	else
		snprintf(error, bytes,
			 "no thread of process %d came to a place where a call can be made, within "
			 "%.1f s; of the last one: %s",
			 pid, (double)wait_ms / 1000, injector->why);
}

bool gm_inject(struct gm_injector *injector, uint64_t function, const char *text, uint64_t number,
	       uint64_t argument, unsigned wait_ms, char *error, size_t error_bytes)
{
	const struct call call = {function, number, argument, text};
	unsigned patient_ms = wait_ms / 2 < PATIENT_MS ? wait_ms / 2 : PATIENT_MS;
	double began = now_us(), until = began + 1e3 * wait_ms;
	static pid_t threads[MOST_THREADS];
	unsigned count, i;
	bool anew;

	injector->why = "it has no thread";
	latest.thread = 0;
	if (text && strlen(text) >= TEXT_BYTES) {
		snprintf(error, error_bytes, "the path %s is too long", text);
		return false;
	}
	do {
		anew = injector->interrupt || now_us() > began + 1e3 * patient_ms;
		count = gm_target_threads(injector->target, threads, MOST_THREADS);
		for (i = 0; i < count; i++) {
			injector->why = look_before(injector, threads[i], anew);
			if (!injector->why)
				injector->why = attempt_in_own_thread(&(struct attempt){
					try_thread, injector, threads[i], &call, anew, NULL});
			if (!injector->why)
				return true;
			if (injector->why == gm_other_program)
				break;
		}
		sleep_us(1000);
	} while (count && injector->why != gm_other_program && now_us() < until);
	explain(injector, count, wait_ms, error, error_bytes);
	return false;
}

bool gm_withdraw(struct gm_injector *injector)
{
	struct attempt attempt = {withdraw, injector, latest.thread, NULL, false, NULL};
	bool withdrawn = latest.thread && !attempt_in_own_thread(&attempt);

	latest.thread = 0;
	return withdrawn;
}

/*
 * Reads the stack pointer of a thread that waits in the kernel, after the number of its system call
 * and, unless that is -1, six arguments [proc(5), syscall].
 */
static bool waiting_at(const struct gm_injector *injector, pid_t thread, uint64_t *sp)
{
	char text[256], *at = text;
	long call;
	int i;

	if (read_task(injector, thread, "syscall", text, sizeof(text)))
		return false;
	call = strtol(text, &at, 10);
	if (at == text)
		return false; /* "running" */
	for (i = call < 0 ? 6 : 0; i < 7; i++)
		*sp = strtoull(at, &at, 16);
	return true;
}

bool gm_has_returned(struct gm_injector *injector)
{
	struct attempt attempt = {look_above, injector, latest.thread, NULL, false, NULL};
	uint64_t sp;

	if (!latest.thread)
		return false;
	if (waiting_at(injector, latest.thread, &sp))
		return sp > latest.set.rsp;
	return !attempt_in_own_thread(&attempt);
}

/* libc's end of signal handlers, by its code: it has no symbol. */
static uint64_t find_end(const struct gm_target *target, const struct gm_target_object *libc)
{
	static const uint8_t code[] = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05};
	size_t bytes = libc->end - libc->start, at;
	uint8_t *text = malloc(bytes), *found = NULL;

	for (at = 0; text && at < bytes; at += 4096)
		if (!gm_target_read(target, libc->start + at, text + at, 4096))
			memset(text + at, 0, 4096);
	if (text)
		found = memmem(text, bytes, code, sizeof(code));
	at = found ? (size_t)(found - text) : 0;
	free(text);
	return found ? libc->start + at : 0;
}

bool gm_injector_open(struct gm_injector *injector, const struct gm_target *target, char *error,
		      size_t error_bytes)
{
	const struct gm_target_object *libc = gm_target_find(target, "libc.so.6");

	if (!libc)
		libc = gm_target_find(target, "libc-2.");
	*injector = (struct gm_injector){.target = target};
	injector->end = libc ? find_end(target, libc) : 0;
	if (!injector->end) {
		snprintf(error, error_bytes,
			 "the C library of process %d is of a kind that is not known", target->pid);
		return false;
	}
	injector->place = gm_safe_place_open(target, error, error_bytes);
	return injector->place != NULL;
}

void gm_injector_close(struct gm_injector *injector)
{
	gm_safe_place_close(injector->place);
	injector->place = NULL;
}

#else

bool gm_injector_open(struct gm_injector *injector, const struct gm_target *target, char *error,
		      size_t error_bytes)
{
	*injector = (struct gm_injector){.target = target};
	snprintf(error, error_bytes, "attaching is possible on x86-64 only");
	return false;
}

void gm_injector_close(struct gm_injector *injector)
{
	(void)injector;
}

bool gm_inject(struct gm_injector *injector, uint64_t function, const char *text, uint64_t number,
	       uint64_t argument, unsigned wait_ms, char *error, size_t error_bytes)
{
	(void)injector, (void)function, (void)text, (void)number, (void)argument, (void)wait_ms;
	snprintf(error, error_bytes, "attaching is possible on x86-64 only");
	return false;
}

bool gm_withdraw(struct gm_injector *injector)
{
	(void)injector;
	return false;
}

bool gm_has_returned(struct gm_injector *injector)
{
	(void)injector;
	return false;
}

#endif
