/*
 * Host programs that change what surrounds them: limits, the root folder, sandboxes, their own
 * text, their stacks. One by the argument. Each prints how many allocations it made, and ends
 * with 42.
 */
#include "cuda_calls.h"
#include "gpumemtrace.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define FEW  200
#define MANY 30000 /* their records need more than the file begins with */

extern char **environ;

static const char *program;
static char **named; /* the arguments after the name of the way */
static long allocations;

/* Blocks of which every other one stays. */
static __attribute__((noinline)) int run(long count)
{
	void *memory;
	long i;

	for (i = 0; i < count; i++) {
		if (cudaMalloc(&memory, 512) || (i % 2 && cudaFree(memory)))
			return 1;
		__atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
	}
	return 0;
}

static int plain(void)
{
	return run(FEW);
}

static int marked(void)
{
	if (run(FEW))
		return 1;
	gpumemtrace_mark("here");
	return run(FEW);
}

/* ---- limits ---- */

static int limit(int resource, rlim_t most)
{
	struct rlimit both = {most, most};

	return setrlimit(resource, &both);
}

/* No file may be written: a write is SIGXFSZ, which ends the process. */
static int no_file_at_all(void)
{
	return limit(RLIMIT_FSIZE, 0) || run(FEW);
}

static int no_longer_file(void)
{
	return run(FEW) || limit(RLIMIT_FSIZE, 0) || run(MANY);
}

static int no_more_address_space(void)
{
	struct rlimit all;

	if (run(FEW) || getrlimit(RLIMIT_AS, &all))
		return 1;
	return limit(RLIMIT_AS, 1 << 20) || run(FEW);
}

static int no_more_descriptors(void)
{
	return run(FEW) || limit(RLIMIT_NOFILE, 0) || run(MANY);
}

/* Whether a mapped file of the shim's is locked in memory. */
static int file_is_locked(void)
{
	FILE *mappings = fopen("/proc/self/smaps", "r");
	int ours = 0, found = 0;
	char line[4096];
	long kib;

	while (mappings && fgets(line, sizeof(line), mappings)) {
		if (strchr(line, '/'))
			ours = strstr(line, ".gmt") != NULL;
		else if (ours && sscanf(line, "Locked: %ld", &kib) == 1)
			found |= kib > 0;
	}
	if (mappings)
		fclose(mappings);
	return found;
}

/* All memory is locked from now on: a sparse file would be brought into memory whole. */
static int all_locked_from_now_on(void)
{
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		return run(FEW); /* not allowed here */
	return run(FEW) || file_is_locked();
}

/* The same, where next to nothing may be locked. */
static int locked_from_now_on(void)
{
	if (limit(RLIMIT_MEMLOCK, 8 << 20))
		return 1;
	if (geteuid() == 0 && (setgid(65534) || setuid(65534)))
		return 1;
	return mlockall(MCL_FUTURE) || run(FEW);
}

static void *run_in_thread(void *wrong)
{
	*(int *)wrong = run(FEW);
	return wrong;
}

/* RLIMIT_STACK is the size of a thread's stack, too. */
static int threads_of_that_size(void)
{
	pthread_t threads[8];
	int wrong[8], i, all = 0;

	for (i = 0; i < 8; i++)
		if (pthread_create(&threads[i], NULL, run_in_thread, &wrong[i]))
			return 1;
	for (i = 0; i < 8; i++) {
		pthread_join(threads[i], NULL);
		all |= wrong[i];
	}
	return all;
}

/* ---- the file system ---- */

static int empty_root(void)
{
	char folder[] = "/tmp/empty-XXXXXX";

	if (run(1) || !mkdtemp(folder))
		return 1;
	return chroot(folder) || chdir("/") || run(MANY);
}

static int without_proc(void)
{
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return 1;
	return mount("none", "/proc", "tmpfs", 0, NULL) || run(FEW);
}

/* The root is exchanged, and the one with the output file is gone from the process's view. */
static int other_root(void)
{
	char folder[] = "/tmp/root-XXXXXX", old[64];

	if (run(1) || !mkdtemp(folder) || unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return 1;
	snprintf(old, sizeof(old), "%s/old", folder);
	if (mount("none", folder, "tmpfs", 0, NULL) || mkdir(old, 0755) ||
	    syscall(SYS_pivot_root, folder, old) || chdir("/") || umount2("/old", MNT_DETACH))
		return 1;
	return run(MANY);
}

/* All descriptors that are open become the program's own file, which nobody else may write. */
static int descriptors_taken(void)
{
	FILE *file = tmpfile();
	struct stat status;
	int i;

	if (!file || run(1))
		return 1;
	for (i = 3; i < 256; i++)
		dup2(fileno(file), i);
	return run(MANY) || fstat(255, &status) || status.st_size != 0;
}

/* ---- sandboxes ---- */

#ifdef __x86_64__
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define CALL(name)                                                                                 \
	{                                                                                          \
#name, SYS_##name                                                                  \
	}

static const struct {
	const char *name;
	uint32_t number;
} calls[] = {
	CALL(access),	     CALL(clock_gettime),  CALL(close),
	CALL(fallocate),     CALL(fcntl),	   CALL(flock),
	CALL(fstat),	     CALL(ftruncate),	   CALL(futex),
	CALL(getcwd),	     CALL(getpid),	   CALL(getppid),
	CALL(gettid),	     CALL(kill),	   CALL(link),
	CALL(linkat),	     CALL(lseek),	   CALL(lstat),
	CALL(madvise),	     CALL(mkdir),	   CALL(mmap),
	CALL(mprotect),	     CALL(mremap),	   CALL(munlock),
	CALL(munmap),	     CALL(nanosleep),	   CALL(newfstatat),
	CALL(openat),	     CALL(poll),	   CALL(prctl),
	CALL(pread64),	     CALL(prlimit64),	   CALL(process_vm_readv),
	CALL(pwrite64),	     CALL(read),	   CALL(readlink),
	CALL(rename),	     CALL(renameat2),	   CALL(rt_sigaction),
	CALL(rt_sigpending), CALL(rt_sigprocmask), CALL(rt_sigtimedwait),
	CALL(sched_yield),   CALL(sendfile),	   CALL(stat),
	CALL(statfs),	     CALL(uname),	   CALL(unlink),
	CALL(write),
};

/* Calls of the program, of the simulated driver and of the loader, also after the filter is set. */
static const uint32_t own_calls[] = {SYS_brk,	    SYS_close,	SYS_exit_group, SYS_fstat,
				     SYS_futex,	    SYS_mmap,	SYS_mprotect,	SYS_munmap,
				     SYS_getrandom, SYS_openat, SYS_read,	SYS_newfstatat,
				     SYS_write};

static struct sock_filter filter[2 * (COUNT(calls) + COUNT(own_calls)) + 8];
static unsigned short filter_length;

static void add(uint16_t code, uint32_t value, uint8_t otherwise)
{
	filter[filter_length++] = (struct sock_filter)BPF_JUMP(code, value, 0, otherwise);
}

static void allow_if(uint32_t value)
{
	add(BPF_JMP | BPF_JEQ | BPF_K, value, 1);
	add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0);
}

static int set_filter(uint32_t rest)
{
	struct sock_fprog all = {.filter = filter};

	add(BPF_RET | BPF_K, rest, 0);
	all.len = filter_length;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all);
}

/* Only the program's own calls and those that the arguments name are allowed. */
static int only_named_calls(uint32_t rest)
{
	add(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0);
	for (size_t i = 0; i < COUNT(own_calls); i++)
		allow_if(own_calls[i]);
	for (char **word = named; *word; word++) {
		size_t i = 0;

		while (i < COUNT(calls) && strcmp(calls[i].name, *word))
			i++;
		if (i == COUNT(calls))
			return 1;
		allow_if(calls[i].number);
	}
	return set_filter(rest);
}

static int named_calls_from_the_start(void)
{
	return only_named_calls(SECCOMP_RET_KILL_PROCESS) || run(MANY);
}

static int named_calls_later(void)
{
	return run(1) || only_named_calls(SECCOMP_RET_KILL_PROCESS) || run(MANY);
}

static int other_calls_fail(void)
{
	return only_named_calls(SECCOMP_RET_ERRNO | EPERM) || run(MANY);
}

static int other_calls_fail_later(void)
{
	return run(1) || only_named_calls(SECCOMP_RET_ERRNO | EPERM) || run(MANY);
}

#define SERVED 0x1badc0de /* a sixth argument that the filter lets pass */

static int ends_when; /* the system call at which the handler ends the process; -1: none */

/* Makes the call that was trapped, as the broker of a sandbox or an emulator does. */
static void serve(int number, siginfo_t *info, void *context)
{
	ucontext_t *at = context;
	greg_t *registers = at->uc_mcontext.gregs;

	(void)number;
	(void)info;
	if (ends_when == registers[REG_RAX]) {
		printf("{\"allocations\": %ld}\n", allocations);
		fflush(stdout);
		_exit(42);
	}
	registers[REG_RAX] =
		syscall(registers[REG_RAX], registers[REG_RDI], registers[REG_RSI],
			registers[REG_RDX], registers[REG_R10], registers[REG_R8], SERVED);
	if (registers[REG_RAX] < 0)
		registers[REG_RAX] = -errno;
}

/* All calls but a few that need their thread or six arguments are served by a handler of SIGSYS. */
static int calls_served(void)
{
	static const uint32_t direct[] = {
		SYS_exit_group,	      SYS_futex,	  SYS_mmap,	   SYS_mremap,
		SYS_process_vm_readv, SYS_rt_sigprocmask, SYS_rt_sigreturn};
	struct sigaction action = {.sa_sigaction = serve, .sa_flags = SA_SIGINFO | SA_NODEFER};

	add(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[5]), 0);
	allow_if(SERVED);
	add(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0);
	for (size_t i = 0; i < COUNT(direct); i++)
		allow_if(direct[i]);
	ends_when = *named ? atoi(*named) : -1;
	return run(1) || sigaction(SIGSYS, &action, NULL) || set_filter(SECCOMP_RET_TRAP) ||
	       run(MANY);
}

/* An exec whose system calls are served, and that a handler ends when it comes to it. */
static int exec_served(void)
{
	char number[16], *const none[] = {NULL};

	snprintf(number, sizeof(number), "%d", SYS_execve);
	named = (char *[]){number, NULL};
	return calls_served() || execve("/nowhere", none, none);
}
#endif

/* ---- threads' ends and timers ---- */

static pthread_key_t keys[2];

/* A destructor that calls CUDA, and asks to be called again. */
static void at_thread_end(void *round)
{
	if (run(2))
		_exit(1);
	if ((intptr_t)round < 4)
		pthread_setspecific(keys[(intptr_t)round % 2], (char *)round + 1);
}

static void *set_key(void *none)
{
	pthread_setspecific(keys[0], (void *)1);
	pthread_exit(none);
}

static int ends_of_threads(void)
{
	pthread_t thread;
	int i;

	for (i = 0; i < 2; i++)
		if (pthread_key_create(&keys[i], at_thread_end))
			return 1;
	for (i = 0; i < FEW; i++)
		if (pthread_create(&thread, NULL, set_key, NULL) || pthread_join(thread, NULL))
			return 1;
	return 0;
}

static void at_timer(union sigval fired)
{
	if (run(2))
		_exit(1);
	__atomic_fetch_add((int *)fired.sival_ptr, 1, __ATOMIC_RELEASE);
}

/* Each expiration has a thread of its own. Timers that fire once: all of them are waited for. */
static int threads_of_timers(void)
{
	struct itimerspec soon = {.it_value = {.tv_nsec = 1}};
	int fired = 0, i;

	for (i = 0; i < FEW; i++) {
		struct sigevent event = {.sigev_notify = SIGEV_THREAD,
					 .sigev_notify_function = at_timer,
					 .sigev_value = {.sival_ptr = &fired}};
		timer_t timer;

		if (timer_create(CLOCK_MONOTONIC, &event, &timer) ||
		    timer_settime(timer, 0, &soon, NULL) || run(2))
			return 1;
	}
	while (__atomic_load_n(&fired, __ATOMIC_ACQUIRE) < FEW)
		sched_yield();
	return 0;
}

/* ---- processes ---- */

static int spawn_one(void)
{
	char *const words[] = {(char *)program, (char *)"nothing", NULL};
	int status;
	pid_t child;

	if (posix_spawn(&child, program, NULL, NULL, words, environ))
		return 1;
	if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 42)
		return 1;
	child = vfork();
	if (child == 0) {
		execve(program, words, environ);
		_exit(1);
	}
	return waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 42;
}

static void *spawn_in_thread(void *wrong)
{
	int i;

	*(int *)wrong = 0;
	for (i = 0; i < 10 && !*(int *)wrong; i++)
		*(int *)wrong = spawn_one() || run(10);
	return wrong;
}

static int children_of_threads(void)
{
	pthread_t threads[4];
	int wrong[4], i, all = 0;

	for (i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, spawn_in_thread, &wrong[i]))
			return 1;
	for (i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		all |= wrong[i];
	}
	return all;
}

/* ---- text and stacks ---- */

/* As programs do that want huge pages for their code: copied, and moved over the original. */
static int move_text(struct dl_phdr_info *info, size_t bytes, void *data)
{
	(void)bytes;
	(void)data;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t from = (info->dlpi_addr + segment->p_vaddr) & -4096ul;
		size_t length = (segment->p_memsz + segment->p_vaddr % 4096 + 4095) & -4096ul;
		void *copy;

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
			continue;
		copy = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
		if (copy == MAP_FAILED)
			return -1;
		memcpy(copy, (void *)from, length);
		if (mprotect(copy, length, PROT_READ | PROT_EXEC) ||
		    mremap(copy, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)from) ==
			    MAP_FAILED)
			return -1;
	}
	return 1; /* the program alone */
}

static int own_text_moved(void)
{
	return run(FEW) || dl_iterate_phdr(move_text, NULL) != 1 || run(FEW);
}

#ifdef __x86_64__
/* A function without unwind tables, whose frame pointer points nowhere and whose stack is odd. */
int by_hand(int (*function)(void));
__asm__(".pushsection .text\n"
	".globl by_hand\n"
	".type by_hand, @function\n"
	"by_hand:\n"
	"	push %rbp\n"
	"	push %rbx\n"
	"	mov $0x10, %rbp\n"
	"	mov %rsp, %rbx\n"
	"	sub $0x3a8, %rsp\n"
	"	and $-64, %rsp\n"
	"	call *%rdi\n"
	"	mov %rbx, %rsp\n"
	"	pop %rbx\n"
	"	pop %rbp\n"
	"	ret\n"
	".size by_hand, . - by_hand\n"
	".popsection\n");

static int through_assembly(void)
{
	int i, wrong = 0;

	for (i = 0; i < 10 && !wrong; i++)
		wrong = by_hand(plain);
	return wrong;
}
#else
#define through_assembly plain
#endif

static void call_on_that_stack(int number)
{
	(void)number;
	if (run(FEW))
		_exit(3);
}

/* A handler on a stack of its own of the least size, which is at the end of a mapping. */
static int alternate_stacks(void)
{
	size_t bytes = 65536;
	char *memory = mmap(NULL, bytes + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	stack_t stack = {.ss_sp = memory, .ss_size = bytes};
	struct sigaction action = {.sa_handler = call_on_that_stack, .sa_flags = SA_ONSTACK};
	int i;

	mprotect(memory + bytes, 4096, PROT_NONE);
	if (sigaltstack(&stack, NULL) || sigaction(SIGUSR1, &action, NULL))
		return 1;
	for (i = 0; i < 10; i++)
		raise(SIGUSR1);
	return run(FEW);
}

/* ---- children that all end at once ---- */

/* A hundred at a time, which all want one name for their file. */
static int many_recording_children(void)
{
	int round, i, status, wrong = 0;

	for (round = 0; round < 4; round++) {
		for (i = 0; i < 100; i++) {
			pid_t child = fork();

			if (child == 0)
				exit(run(2) ? 1 : 7);
			wrong |= child < 0;
		}
		while (wait(&status) > 0)
			wrong |= !WIFEXITED(status) || WEXITSTATUS(status) != 7;
	}
	return wrong || run(FEW);
}

/* ---- memory that is protected otherwise ---- */

/* No mapping that is there now can be changed any more (Linux 6.10), those of the shim included. */
static int all_sealed(void)
{
	enum { MSEAL = 462 };
	FILE *maps = fopen("/proc/self/maps", "r");
	struct {
		unsigned long from, to;
	} range[1000];
	char line[4096];
	int ranges = 0, i;

	if (!maps || run(FEW))
		return 1;
	while (ranges < 1000 && fgets(line, sizeof(line), maps))
		if (!strstr(line, "[heap]") &&
		    sscanf(line, "%lx-%lx", &range[ranges].from, &range[ranges].to) == 2)
			ranges++;
	fclose(maps);
	for (i = 0; i < ranges; i++)
		if (syscall(MSEAL, range[i].from, range[i].to - range[i].from, 0) &&
		    errno == ENOSYS)
			return 1;
	return run(MANY);
}

/* With LD_BIND_NOW: the loader does not look up anything in the program's symbols any more. */
static int headers_hidden(void)
{
	extern const char __ehdr_start[];

	if (run(FEW) || mprotect((void *)((uintptr_t)__ehdr_start & ~4095ul), 4096, PROT_NONE))
		return 1;
	return run(FEW);
}

#define PAGES 64

static char *guarded; /* pages that cannot be accessed until a handler says so, as a collector's */
static volatile sig_atomic_t faults;

static void allow_page(int number, siginfo_t *fault, void *context)
{
	char *page = (char *)((uintptr_t)fault->si_addr & ~4095ul);

	(void)number;
	(void)context;
	faults++;
	if (page < guarded || page >= guarded + PAGES * 4096)
		_exit(9); /* a fault of another's making */
	mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

/* The address of an allocation goes to such a page, and is read from it. */
static int arguments_guarded(void)
{
	struct sigaction action = {.sa_sigaction = allow_page, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	char *memory =
		mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = {.ss_sp = memory, .ss_size = 65536};
	int i;

	guarded = mmap(NULL, PAGES * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (sigaltstack(&stack, NULL) || sigaction(SIGSEGV, &action, NULL))
		return 1;
	for (i = 0; i < PAGES; i++) {
		void **memory_at = (void **)(guarded + i * 4096 + 8);

		if (cudaMalloc(memory_at, 512))
			return 1;
		allocations++;
		mprotect(guarded + i * 4096, 4096, PROT_NONE);
		if (cudaFree(*memory_at))
			return 1;
	}
	return faults != 2 * PAGES;
}

/* ---- coroutines that another thread goes on with after each switch ---- */

#define FIBERS	 16
#define CARRIERS 4
#define TURNS	 40

static struct {
	ucontext_t own, back;
	int turns;
} fibers[FIBERS];
static pthread_barrier_t round_over;

static void fiber(int number)
{
	while (fibers[number].turns < TURNS && !run(5)) {
		fibers[number].turns++;
		swapcontext(&fibers[number].own, &fibers[number].back);
	}
}

static void *carry(void *number)
{
	int turn, i;

	for (turn = 0; turn < TURNS; turn++) {
		for (i = (turn + (int)(intptr_t)number) % CARRIERS; i < FIBERS; i += CARRIERS)
			swapcontext(&fibers[i].back, &fibers[i].own);
		pthread_barrier_wait(&round_over);
	}
	return NULL;
}

static int fibers_of_threads(void)
{
	pthread_t threads[CARRIERS];
	int i, turns = 0;

	pthread_barrier_init(&round_over, NULL, CARRIERS);
	for (i = 0; i < FIBERS; i++) {
		getcontext(&fibers[i].own);
		fibers[i].own.uc_stack.ss_sp = malloc(65536);
		fibers[i].own.uc_stack.ss_size = 65536;
		makecontext(&fibers[i].own, (void (*)(void))fiber, 1, i);
	}
	for (i = 0; i < CARRIERS; i++)
		if (pthread_create(&threads[i], NULL, carry, (void *)(intptr_t)i))
			return 1;
	for (i = 0; i < CARRIERS; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < FIBERS; i++)
		turns += fibers[i].turns;
	return turns != FIBERS * TURNS;
}

static const struct {
	const char *name;
	int (*run)(void);
} ways[] = {
	{"plain", plain},
	{"mark", marked},
	{"fsize", no_file_at_all},
	{"fsize-later", no_longer_file},
	{"as-later", no_more_address_space},
	{"nofile-later", no_more_descriptors},
	{"mlock", locked_from_now_on},
	{"mlock-all", all_locked_from_now_on},
	{"threads", threads_of_that_size},
	{"chroot", empty_root},
	{"no-proc", without_proc},
	{"root", other_root},
	{"dup2", descriptors_taken},
#ifdef __x86_64__
	{"seccomp", named_calls_from_the_start},
	{"seccomp-later", named_calls_later},
	{"seccomp-errno", other_calls_fail},
	{"seccomp-errno-later", other_calls_fail_later},
	{"seccomp-trap", calls_served},
	{"seccomp-exec", exec_served},
#endif
	{"keys", ends_of_threads},
	{"timers", threads_of_timers},
	{"spawn", children_of_threads},
	{"text", own_text_moved},
	{"assembly", through_assembly},
	{"sigaltstack", alternate_stacks},
	{"forks", many_recording_children},
	{"sealed", all_sealed},
	{"hidden", headers_hidden},
	{"guarded", arguments_guarded},
	{"fibers", fibers_of_threads},
};

int main(int argc, char **argv)
{
	size_t i;

	program = argv[0];
	named = argv + (argc > 1 ? 2 : 1);
	if (argc > 1 && !strcmp(argv[1], "nothing"))
		return 42;
	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (argc > 1 && !strcmp(argv[1], ways[i].name)) {
			int wrong = ways[i].run();

			printf("{\"allocations\": %ld}\n", allocations);
			return wrong ? 1 : 42;
		}
	return 1;
}
