/*
 * Allocates with all kinds of frames between the call and main. Argument: which kind. Prints how
 * many allocations it made. The shapes of x86-64 alone are skipped elsewhere: then it exits
 * with 77.
 */
#include "cuda_calls.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define NOINLINE  __attribute__((noinline))
#define BARRIER() __asm__ volatile("" ::: "memory")
#define STACK	  (64u << 10)

static volatile unsigned allocations;

static NOINLINE void allocate(void)
{
	void *memory;

	if (cudaMalloc(&memory, 4096) || cudaFree(memory))
		abort();
	allocations++;
}

/* ---- frames ---- */

static NOINLINE void varying(unsigned bytes)
{
	volatile char *room = __builtin_alloca(bytes);

	room[0] = room[bytes - 1] = 1;
	allocate();
	BARRIER();
}

static NOINLINE void aligned(unsigned bytes)
{
	volatile char room[100] __attribute__((aligned(128)));

	room[0] = (char)bytes;
	varying(bytes + (unsigned)(room[0] & 1));
	BARRIER();
}

static NOINLINE void large(unsigned bytes)
{
	volatile char room[100000];

	room[0] = room[99999] = (char)bytes;
	aligned(bytes);
	BARRIER();
}

static NOINLINE void recurse(unsigned frames)
{
	if (frames)
		recurse(frames - 1);
	else
		large(300);
	BARRIER();
}

static int compare(const void *a, const void *b)
{
	recurse(3);
	return *(const int *)a - *(const int *)b;
}

static void all_frames(void)
{
	int numbers[] = {3, 1, 2};

	for (unsigned i = 0; i < 40; i++)
		recurse(i);
	recurse(300); /* deeper than is kept */
	qsort(numbers, 3, sizeof(*numbers), compare);
}

static void *thread_main(void *data)
{
	all_frames();
	return data;
}

static void shape_frames(void)
{
	pthread_t thread[3];

	all_frames();
	for (int i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, thread_main, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
}

/* ---- signals ---- */

static void on_signal(int number)
{
	(void)number;
	varying(200);
	BARRIER();
}

static void shape_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal}, on_own = action;
	stack_t stack = {.ss_sp = malloc(STACK), .ss_size = STACK};

	on_own.sa_flags = SA_ONSTACK;
	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR2, &on_own, NULL);
	for (int i = 0; i < 20; i++) {
		raise(SIGUSR1);
		raise(SIGUSR2);
		kill(getpid(), SIGUSR1);
	}
}

/* ---- coroutines ---- */

static ucontext_t main_context, coroutine_context;

static void coroutine(void)
{
	for (int i = 0; i < 10; i++) {
		aligned(100);
		swapcontext(&coroutine_context, &main_context);
	}
}

static void shape_coroutines(void)
{
	getcontext(&coroutine_context);
	coroutine_context.uc_stack.ss_sp = malloc(STACK);
	coroutine_context.uc_stack.ss_size = STACK;
	coroutine_context.uc_link = &main_context;
	makecontext(&coroutine_context, coroutine, 0);
	for (int i = 0; i < 11; i++) {
		swapcontext(&main_context, &coroutine_context);
		allocate();
	}
}

/* ---- a library that comes and goes ---- */

static void use_library(const char *path, bool elsewhere)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *base;
	void (*call)(void (*)(void)) =
		(void (*)(void (*)(void)))(uintptr_t)dlsym(library, "call_back");
	Dl_info info;

	if (!call || !dladdr((void *)(uintptr_t)call, &info))
		abort();
	base = info.dli_fbase;
	call(allocate);
	call(allocate);
	dlclose(library);
	if (elsewhere) /* the next one cannot lie where this one did */
		mmap(base, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* LIBRARIES: two paths of libraries whose frames differ in size. */
static void shape_reloading(void)
{
	char *both = strdup(getenv("LIBRARIES")), *second = strchr(both, ':');

	*second++ = '\0';
	for (int i = 0; i < 20; i++)
		use_library(i & 1 ? both : second, i % 4 == 3);
	free(both);
}

#if defined(__x86_64__)

/* ---- at each instruction ---- */

static volatile bool stepping;

static void on_step(int number)
{
	(void)number;
	if (stepping)
		allocate();
	BARRIER();
}

static NOINLINE int stepped_through(int a, int b)
{
	volatile char room[64] __attribute__((aligned(64)));
	int sum = 0;

	for (int i = 0; i < 3; i++) {
		room[i] = (char)(a + i);
		sum += room[i] * b + getppid();
	}
	return sum;
}

static void shape_instructions(void)
{
	signal(SIGTRAP, on_step);
	stepped_through(1, 2); /* binds getppid */
	__asm__ volatile("pushfq\n orq $0x100,(%%rsp)\n popfq\n" ::: "memory", "cc");
	stepping = true;
	stepped_through(3, 4);
	stepping = false; /* what follows pushes a word of which the tables know nothing */
	__asm__ volatile("pushfq\n andq $~0x100,(%%rsp)\n popfq\n" ::: "memory", "cc");
}

/* ---- stacks switched by hand ---- */

/* switch_by_hand(top, function): calls it on the stack that ends at `top`; tables lead back to this
 * one. */
__asm__(".text\n"
	".type switch_by_hand,@function\n"
	"switch_by_hand:\n"
	"	.cfi_startproc\n"
	"	push %rbp\n"
	"	.cfi_def_cfa_offset 16\n	.cfi_offset 6,-16\n"
	"	mov %rsp,%rbp\n"
	"	.cfi_def_cfa_register 6\n"
	"	mov %rdi,%rsp\n"
	"	call *%rsi\n"
	"	mov %rbp,%rsp\n"
	"	pop %rbp\n"
	"	.cfi_def_cfa 7,8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size switch_by_hand,.-switch_by_hand\n");
void switch_by_hand(char *top, void (*function)(void));

static void shape_switches(void)
{
	char *low = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (int i = 0; i < 5; i++)
		switch_by_hand(low + STACK - 16 * i, allocate);
}

/* ---- code made at run time ---- */

void __register_frame(const void *entries);

/* A function that calls its argument from a frame of 24 bytes, and its table. */
static const uint8_t made_code[] = {0x48, 0x83, 0xec, 24, 0xff, 0xd7, 0x48, 0x83, 0xc4, 24, 0xc3};
struct made_table {
	uint32_t cie_bytes, cie_id;
	uint8_t cie[16]; /* version 1, "zR", absolute addresses, CFA rsp + 8, return address at CFA
			    - 8 */
	uint32_t fde_bytes, fde_cie;
	uint64_t start, bytes;
	uint8_t fde[8]; /* from 4 on CFA is rsp + 32, from 10 on rsp + 8 */
	uint32_t end;
} __attribute__((packed));

static void shape_made_code(void)
{
	static struct made_table table = {
		20, 0, {1, 'z', 'R', 0, 1, 0x78, 16, 1, 0, 0x0c, 7, 8, 0x90, 1}, 28, 28, 0,
		sizeof(made_code), {0, 0x44, 0x0e, 32, 0x46, 0x0e, 8}, 0};
	char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(code, made_code, sizeof(made_code));
	table.start = (uintptr_t)code;
	__register_frame(&table);
	for (int i = 0; i < 5; i++)
		((void (*)(void (*)(void)))(uintptr_t)code)(allocate);
}

#else

static void not_here(void)
{
	exit(77);
}
#define shape_instructions not_here
#define shape_switches	   not_here
#define shape_made_code	   not_here

#endif

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} shapes[] = {{"frames", shape_frames},		{"signals", shape_signals},
		      {"coroutines", shape_coroutines}, {"reloading", shape_reloading},
		      {"instructions", shape_instructions}, {"switches", shape_switches},
		      {"made_code", shape_made_code}};

	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
		if (argc > 1 && !strcmp(argv[1], shapes[i].name)) {
			shapes[i].run();
			printf("{\"allocations\": %u}\n", allocations);
			return 0;
		}
	return 2;
}
