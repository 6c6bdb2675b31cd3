/*
 * Host programs that change what surrounds them: limits, the root folder, their own text, their
 * stacks. One by the argument. Each prints how many allocations it made, and ends with 42.
 */
#include "cuda_calls.h"

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
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FEW  200
#define MANY 30000 /* their records need more than the file begins with */

extern char **environ;

static const char *program;
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

static const struct {
	const char *name;
	int (*run)(void);
} ways[] = {
	{"plain", plain},
	{"fsize", no_file_at_all},
	{"fsize-later", no_longer_file},
	{"as-later", no_more_address_space},
	{"nofile-later", no_more_descriptors},
	{"mlock", locked_from_now_on},
	{"mlock-all", all_locked_from_now_on},
	{"threads", threads_of_that_size},
	{"chroot", empty_root},
	{"no-proc", without_proc},
	{"spawn", children_of_threads},
	{"text", own_text_moved},
	{"assembly", through_assembly},
	{"sigaltstack", alternate_stacks},
};

int main(int argc, char **argv)
{
	size_t i;

	program = argv[0];
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
