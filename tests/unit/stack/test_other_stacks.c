/*
 * Walks on stacks that are not the thread's own, and through frames that have no ordinary caller:
 * coroutines whose first return address is made up, stacks that end at a page that cannot be read
 * or that comes and goes, stacks that were switched by hand, signals at every instruction and on
 * stacks of their own, and code that registers its tables at run time. A walk must not read what is
 * not there, must find what can be found, and must say when it could not go on.
 */
#include "cmocka_all.h"
#include "probe.h"
#include "sanitized.h"
#include "stack/elf_symbols.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__x86_64__)

#define NOINLINE  __attribute__((noinline))
#define BARRIER() __asm__ volatile("" ::: "memory")
#define HERE()	  ((uintptr_t)__builtin_return_address(0))
#define PAGE	  4096u
#define MOST	  64u

/* A stack as it was taken, by a walk and by the library's callers. */
static struct {
	uintptr_t pc[MOST];
	unsigned frames, flags;
	bool incomplete;
	bool by_walk_alone; /* where one walk may see more than the next */
	uintptr_t returns_to[2]; /* of the functions that led there, as the compiler knows them */
} taken;

static NOINLINE void take(void)
{
	struct gm_walk walk = {.pc = taken.pc, .max = MOST};
	const struct gm_stack_record *record;

	if (!taken.by_walk_alone) {
		record = gm_store_record(GM_TABLE_STACKS, probe_stack(0));
		assert_non_null(record);
		taken.flags = record->flags;
	}
	gm_native_walk(&walk);
	taken.frames = walk.frames;
	taken.incomplete = walk.incomplete;
	taken.returns_to[0] = HERE();
	BARRIER();
}

static NOINLINE void body(void)
{
	take();
	taken.returns_to[1] = HERE();
	BARRIER();
}

/* Where in the walk a return address is; MOST if it is not there. */
static unsigned index_of(uintptr_t pc)
{
	for (unsigned i = 0; i < taken.frames; i++)
		if (taken.pc[i] == pc)
			return i;
	return MOST;
}

/* The walk came as far as the function that called body(). */
static void check_inner_frames(void)
{
	unsigned i = index_of(taken.returns_to[0]);

	assert_true(i + 1 < taken.frames);
	assert_int_equal(taken.pc[i + 1], taken.returns_to[1]);
}

static void check_incomplete(void)
{
	check_inner_frames();
	assert_true(taken.incomplete);
	assert_int_equal(taken.flags, GM_STACK_INCOMPLETE);
}

static void check_complete(uintptr_t outer)
{
	check_inner_frames();
	assert_true(index_of(outer) < taken.frames);
	assert_false(taken.incomplete);
	assert_int_equal(taken.flags, 0);
}

/* ---- stacks by hand ---- */

/*
 * switch_to(save, to): saves the registers that functions keep and the stack pointer, and goes on
 * where another stack was left. call_on(top, function): moves the stack pointer and calls, with
 * nothing that would lead back. call_across(top, function): the same with tables that do lead back.
 */
__asm__(".text\n"
	".type switch_to,@function\n"
	"switch_to:\n"
	"	push %rbp\n	push %rbx\n	push %r12\n	push %r13\n	push %r14\n	"
	"push %r15\n"
	"	mov %rsp,(%rdi)\n"
	"	mov %rsi,%rsp\n"
	"	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	pop %rbx\n	"
	"pop %rbp\n"
	"	ret\n"
	".size switch_to,.-switch_to\n"
	".type call_on,@function\n"
	"call_on:\n"
	"	.cfi_startproc\n"
	"	push %rbp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	mov %rsp,%rbp\n"
	"	mov %rdi,%rsp\n"
	"	call *%rsi\n"
	"	mov %rbp,%rsp\n"
	"	pop %rbp\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size call_on,.-call_on\n"
	".type call_across,@function\n"
	"call_across:\n"
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
	".size call_across,.-call_across\n");
void switch_to(void **save, void *to);
void call_on(char *top, void (*function)(void));
void call_across(char *top, void (*function)(void));

/* Memory for a stack between two pages that cannot be read; returns its end. */
static char *map_stack(size_t bytes)
{
	char *low = mmap(NULL, bytes + 2 * PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(low, MAP_FAILED);
	mprotect(low, PAGE, PROT_NONE);
	mprotect(low + PAGE + bytes, PAGE, PROT_NONE);
	return low + PAGE + bytes;
}

static void unmap_stack(char *end, size_t bytes)
{
	munmap(end - bytes - PAGE, bytes + 2 * PAGE);
}

static void *resume_main, *resume_coroutine;

static NOINLINE void coroutine(void)
{
	body();
	switch_to(&resume_coroutine, resume_main);
	abort();
}

/*
 * Runs coroutine() on a stack that ends at `end` and whose outermost return address is
 * `returns_to`.
 */
static void run_coroutine(char *end, uintptr_t returns_to)
{
	uintptr_t *sp = (uintptr_t *)end;

	*--sp = returns_to;
	*--sp = (uintptr_t)coroutine;
	sp -= 6;
	memset(sp, 0, 6 * sizeof(*sp));
	switch_to(&resume_main, sp);
}

static NOINLINE __attribute__((used, noreturn)) void before_never_returned_to(unsigned word)
{
	char text[100];

	memset(text, (int)word, sizeof(text));
	_exit(text[word % 100]);
}

/*
 * What a coroutine returns to, by the address where it begins: the rules there are another
 * function's.
 */
static NOINLINE __attribute__((used)) void never_returned_to(void)
{
	abort();
}

static uintptr_t data_word;

static void on_main_and_thread(void (*test)(void))
{
	pthread_t thread;

	test();
	assert_int_equal(pthread_create(&thread, NULL, (void *(*)(void *))(uintptr_t)test, NULL),
			 0);
	pthread_join(thread, NULL);
}

static void check_made_up_return_addresses(void)
{
	char *unmapped = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *heap = calloc(1, 64);
	const uintptr_t made_up[] = {(uintptr_t)never_returned_to,
				     (uintptr_t)before_never_returned_to + 8,
				     1,
				     UINTPTR_MAX,
				     0x7fffffffffffull,
				     0x8000000000000000ull,
				     0x4141414141414141ull,
				     (uintptr_t)&data_word,
				     (uintptr_t)unmapped + 16,
				     (uintptr_t)heap};

	for (size_t i = 0; i < sizeof(made_up) / sizeof(*made_up); i++) {
		char *end = map_stack(16 * PAGE);

		for (volatile int times = 0; times < 3; times++) {
			run_coroutine(end, made_up[i]);
			check_incomplete();
		}
		unmap_stack(end, 16 * PAGE);
	}
	munmap(unmapped, PAGE);
	free(heap);
}

/*
 * Of a made-up address inside a function that the address sanitizer has instrumented, the walk goes
 * on by that function's rules into words of the stack that the sanitizer changes between two walks.
 */
static void test_made_up_return_addresses(void **state)
{
	(void)state;
	if (SANITIZED)
		skip();
	probe_start(GM_STACKS_NATIVE, 64);
	on_main_and_thread(check_made_up_return_addresses);
}

/* A return address of 0 is how a stack's end is marked: nothing is missing. */
static void check_end_mark(void)
{
	char *end = map_stack(16 * PAGE);

	run_coroutine(end, 0);
	check_inner_frames();
	assert_false(taken.incomplete);
	unmap_stack(end, 16 * PAGE);
}

static void test_end_mark(void **state)
{
	(void)state;
	probe_start(GM_STACKS_NATIVE, 64);
	on_main_and_thread(check_end_mark);
}

/* The frame's caller, by the tables, would be on the guard page. */
static void check_guard_page_above(void)
{
	char *end = map_stack(16 * PAGE);

	call_on(end, body);
	check_incomplete();
	call_on(end - 16, body); /* there are words above the return address */
	check_incomplete();
	unmap_stack(end, 16 * PAGE);
}

static void test_guard_page_above(void **state)
{
	(void)state;
	probe_start(GM_STACKS_NATIVE, 64);
	on_main_and_thread(check_guard_page_above);
}

/*
 * Stacks in one mapping, one below the other with nothing between, so that what lies above one can
 * be read: it is another's, and goes.
 */
static void check_freed_above(void)
{
	enum { BYTES = 8 * PAGE, STACKS = 4 };
	char *low = mmap(NULL, STACKS * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);

	for (int i = STACKS; i > 0; i--) {
		run_coroutine(low + i * BYTES, (uintptr_t)never_returned_to);
		check_inner_frames();
		call_on(low + i * BYTES, body);
		check_inner_frames();
	}
	munmap(low + (STACKS - 1) * BYTES, BYTES);
	mprotect(low + (STACKS - 2) * BYTES, BYTES, PROT_NONE);
	run_coroutine(low + (STACKS - 2) * BYTES, (uintptr_t)never_returned_to);
	check_incomplete();
	call_on(low + (STACKS - 2) * BYTES, body);
	check_incomplete();
	munmap(low, (STACKS - 1) * BYTES);
}

static void test_freed_above(void **state)
{
	(void)state;
	probe_start(GM_STACKS_NATIVE, 64);
	on_main_and_thread(check_freed_above);
}

static char *contested;
static bool stop_contest;

static void *contest(void *data)
{
	while (!__atomic_load_n(&stop_contest, __ATOMIC_ACQUIRE)) {
		mprotect(contested, PAGE, PROT_READ | PROT_WRITE);
		mprotect(contested, PAGE, PROT_NONE);
	}
	return data;
}

/* Another thread maps the page above the stack, and unmaps it, all the time. */
static void test_changing_above(void **state)
{
	char *end = map_stack(16 * PAGE);
	pthread_t thread;

	(void)state;
	probe_start(GM_STACKS_NATIVE, 64);
	contested = end;
	taken.by_walk_alone = true;
	assert_int_equal(pthread_create(&thread, NULL, contest, NULL), 0);
	for (volatile int i = 0; i < 2000; i++) {
		run_coroutine(end, (uintptr_t)never_returned_to);
		check_inner_frames();
		call_on(end, body);
		check_inner_frames();
	}
	taken.by_walk_alone = false;
	__atomic_store_n(&stop_contest, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	unmap_stack(end, 16 * PAGE);
}

/* Stacks at every small distance below a thread's own, which is mapped first. */
static void *below_the_threads_stack(void *data)
{
	for (int i = 0; i < 40; i++) {
		char *end = map_stack(8 * PAGE);

		run_coroutine(end, (uintptr_t)never_returned_to);
		check_incomplete();
		if (i % 4 == 0)
			unmap_stack(end, 8 * PAGE);
	}
	body();
	check_complete(taken.returns_to[1]);
	return data;
}

static void test_below_the_threads_stack(void **state)
{
	pthread_t thread;

	(void)state;
	probe_start(GM_STACKS_NATIVE, 64);
	assert_int_equal(pthread_create(&thread, NULL, below_the_threads_stack, NULL), 0);
	pthread_join(thread, NULL);
}

/* ---- stacks whose ends are known ---- */

static uintptr_t context_function;

static void in_context(void)
{
	body();
	context_function = taken.returns_to[1];
	BARRIER();
}

static void check_makecontext(void)
{
	ucontext_t here, context;
	char *end = map_stack(16 * PAGE);

	getcontext(&context);
	context.uc_stack.ss_sp = end - 16 * PAGE;
	context.uc_stack.ss_size = 16 * PAGE;
	context.uc_link = &here;
	makecontext(&context, in_context, 0);
	swapcontext(&here, &context);
	check_complete(context_function);
	unmap_stack(end, 16 * PAGE);
}

static void test_makecontext(void **state)
{
	(void)state;
	probe_start(GM_STACKS_NATIVE, 64);
	on_main_and_thread(check_makecontext);
}

/* Code that switches stacks and says in its tables where it came from is seen through. */
static NOINLINE void across(char *end)
{
	call_across(end, body);
	BARRIER();
}

static void check_switch_with_tables(void)
{
	char *end = map_stack(16 * PAGE);
	uintptr_t outer = HERE();

	across(end);
	check_complete(outer);
	unmap_stack(end, 16 * PAGE);
}

static void test_switch_with_tables(void **state)
{
	(void)state;
	probe_start(GM_STACKS_NATIVE, 64);
	on_main_and_thread(check_switch_with_tables);
}

/* ---- signals ---- */

static volatile sig_atomic_t handled;

static void on_own_stack(int number)
{
	(void)number;
	body();
	handled++;
	BARRIER();
}

static NOINLINE void raise_on(char *end)
{
	stack_t stack = {.ss_sp = end - 16 * PAGE, .ss_size = 16 * PAGE}, before;
	struct sigaction action = {.sa_handler = on_own_stack, .sa_flags = SA_ONSTACK};

	sigaction(SIGUSR1, &action, NULL);
	sigaltstack(&stack, &before);
	raise(SIGUSR1);
	sigaltstack(&before, NULL);
}

static void check_signal_stack(void)
{
	char *end = map_stack(16 * PAGE);
	uintptr_t outer = HERE();

	for (volatile int i = 0; i < 3; i++) {
		handled = 0;
		raise_on(end);
		assert_int_equal(handled, 1);
		check_complete(outer);
	}
	unmap_stack(end, 16 * PAGE);
}

static void test_signal_stack(void **state)
{
	(void)state;
	probe_start(GM_STACKS_NATIVE, 64);
	on_main_and_thread(check_signal_stack);
}

static struct gm_object own;
static unsigned long steps, steps_agreed;

/*
 * Comes after each instruction. What both say is compared where this program's own code is
 * interrupted.
 */
static void on_step(int number, siginfo_t *info, void *data)
{
	const ucontext_t *context = data;
	uintptr_t pc = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];

	(void)number;
	(void)info;
	if (pc < own.start || pc >= own.end)
		return;
	steps++;
	steps_agreed += probe_unwinders_agree();
}

static NOINLINE int aligned_by_hand(int a, ...)
{
	volatile char room[100] __attribute__((aligned(64)));
	volatile char *more = __builtin_alloca((size_t)a + 16);

	room[0] = more[0] = (char)a;
	return room[0] + more[0];
}

static NOINLINE int with_many_registers(int a, int b, int c, int d, int e, int f)
{
	int sum = aligned_by_hand(a, b);

	for (int i = 0; i < 2; i++)
		/* getppid is called through the linkage table and unbound at first */
		sum += a * b + c * d + e * f + getppid();
	return sum;
}

static void step_flag(bool on)
{
	if (on)
		__asm__ volatile("pushfq\n orq $0x100,(%%rsp)\n popfq\n" ::: "memory", "cc");
	else
		__asm__ volatile("pushfq\n andq $~0x100,(%%rsp)\n popfq\n" ::: "memory", "cc");
}

/*
 * A handler can interrupt prologues, epilogues and stubs, where the usual registers lead nowhere
 * yet.
 */
static void test_signal_at_each_instruction(void **state)
{
	const struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};

	(void)state;
	if (!probe_start_with("libgcc", 64) || !probe_start_with("unwind tables", 64) || SANITIZED)
		skip();
	assert_true(gm_object_at((uintptr_t)on_step, &own));
	sigaction(SIGTRAP, &action, NULL);
	step_flag(true);
	with_many_registers(1, 2, 3, 4, 5, 6);
	step_flag(false);
	signal(SIGTRAP, SIG_DFL);
	assert_true(steps > 30);
	assert_int_equal(steps_agreed, steps);
}

/* ---- code made at run time ---- */

void __register_frame(const void *entries);
void __deregister_frame(const void *entries);

/* A function that calls its argument from a frame of `frame` bytes, with its table. */
struct made_code {
	uint8_t code[32];
	struct {
		uint32_t cie_bytes, cie_id;
		uint8_t cie[16];
		uint32_t fde_bytes, fde_cie;
		uint64_t start, bytes;
		uint8_t fde[8];
		uint32_t end;
	} __attribute__((packed)) table;
};

static void make_code(struct made_code *made, uint8_t frame)
{
	const uint8_t code[] = {0x48, 0x83, 0xec, frame, /* sub $frame, %rsp */
				0xff, 0xd7,		 /* call *%rdi */
				0x48, 0x83, 0xc4, frame, /* add $frame, %rsp */
				0xc3};
	const uint8_t cie[] = {1, 'z', 'R', 0, 1, 0x78, 16, 1, 0, /* addresses are absolute */
			       0x0c, 7, 8,			  /* CFA: rsp + 8 */
			       0x90, 1};			  /* return address at CFA - 8 */
	const uint8_t fde[] = {0, 0x44, 0x0e, (uint8_t)(frame + 8), 0x46, 0x0e, 8};

	memset(made, 0, sizeof(*made));
	memcpy(made->code, code, sizeof(code));
	memcpy(made->table.cie, cie, sizeof(cie));
	memcpy(made->table.fde, fde, sizeof(fde));
	made->table.cie_bytes = 4 + sizeof(made->table.cie);
	made->table.fde_bytes = 4 + 16 + sizeof(made->table.fde);
	made->table.fde_cie = 8 + sizeof(made->table.cie) + 4;
	made->table.start = (uintptr_t)made->code;
	made->table.bytes = sizeof(code);
}

static NOINLINE void call_made(const struct made_code *made)
{
	((void (*)(void (*)(void)))(uintptr_t)made->code)(body);
	BARRIER();
}

/*
 * What was registered is seen through, also when it becomes another in its place; what was not ends
 * the walk.
 */
static void test_made_code(void **state)
{
	struct made_code *made = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uintptr_t outer = HERE();

	(void)state;
	if (made == MAP_FAILED)
		skip();
	probe_start(GM_STACKS_NATIVE, 64);
	for (volatile uint8_t frame = 24; frame < 120; frame += 16) {
		make_code(made, frame);
		__register_frame(&made->table);
		for (volatile int i = 0; i < 3; i++) {
			call_made(made);
			check_inner_frames();
			assert_true(index_of(outer) < taken.frames);
			assert_false(taken.incomplete);
		}
		__deregister_frame(&made->table);
		call_made(made);
		check_incomplete();
	}
	munmap(made, PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_made_up_return_addresses),
		cmocka_unit_test(test_end_mark),
		cmocka_unit_test(test_guard_page_above),
		cmocka_unit_test(test_freed_above),
		cmocka_unit_test(test_changing_above),
		cmocka_unit_test(test_below_the_threads_stack),
		cmocka_unit_test(test_makecontext),
		cmocka_unit_test(test_switch_with_tables),
		cmocka_unit_test(test_signal_stack),
		cmocka_unit_test(test_signal_at_each_instruction),
		cmocka_unit_test(test_made_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	return 77; /* no reader of unwind tables for this processor */
}

#endif
