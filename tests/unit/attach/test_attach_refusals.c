/*
 * The sentences of what forbids or prevents an attach, on a made-up proc filesystem: yama's levels,
 * users, capabilities, tracers, programs that cannot load the shim. Each is held against
 * docs/attach.md (argv[1]), where it stands word for word with N, M, A and B for the numbers.
 */
#include "attach/refusal.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define PID    4711
#define TRACER 4712
#define USER   1001
#define OWN    1002
#define PTRACE "0000000000080000" /* CAP_SYS_PTRACE is bit 19 */
#define NONE   "0000000000000000"

static char proc[64];
static char *document;

static void put(const char *name, const void *bytes, size_t count)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", proc, name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, count, file), count);
	fclose(file);
}

static void take(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", proc, name);
	unlink(path);
}

/* The state of a process, as /proc/PID/status has it. */
struct process {
	char state;
	int tracer;
	unsigned uid;
	const char *capabilities;
	bool shadow_stack;
	unsigned threads;
};

static void put_status(const char *directory, struct process process)
{
	char name[64], text[512];
	int used = snprintf(text, sizeof(text),
			    "Name:\tpython3\nState:\t%c (as it is)\nTracerPid:\t%d\n"
			    "Uid:\t%u\t%u\t%u\t%u\nThreads:\t%u\nCapEff:\t%s\n%s",
			    process.state, process.tracer, process.uid, process.uid, process.uid,
			    process.uid, process.threads, process.capabilities,
			    process.shadow_stack ? "x86_Thread_features:\tshstk wrss \n" : "");

	snprintf(name, sizeof(name), "%s/status", directory);
	put(name, text, (size_t)used);
}

static void put_target(struct process process)
{
	put_status("4711", process);
}

static void put_own(struct process process)
{
	put_status("self", process);
}

static void put_yama(const char *level)
{
	put("sys/kernel/yama/ptrace_scope", level, strlen(level));
}

static const struct process plain = {.state = 'S', .uid = USER, .capabilities = NONE};

static int prepare(void **state)
{
	static const char *const folders[] = {"", "/4711", "/self", "/sys", "/sys/kernel",
					      "/sys/kernel/yama"};
	char path[256];

	(void)state;
	strcpy(proc, "/tmp/attach_proc_XXXXXX");
	if (!mkdtemp(proc))
		return -1;
	for (size_t i = 1; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", proc, folders[i]);
		mkdir(path, 0700);
	}
	put_target(plain);
	put_own(plain);
	return 0;
}

static int clear(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", proc);
	return system(command);
}

/* The document has the sentence, in which `from` stands for `to`. */
static void is_documented(const char *sentence)
{
	static const struct {
		const char *number, *letter;
	} letters[] = {{"4711", "N"}, {"4712", "M"}, {"1001", "A"}, {"1002", "B"}};
	char text[1024] = "`";

	for (const char *at = sentence; *at;) {
		size_t i, letters_count = sizeof(letters) / sizeof(letters[0]);

		for (i = 0; i < letters_count && strncmp(at, letters[i].number, 4); i++)
			;
		strncat(text, i < letters_count ? letters[i].letter : at, 1);
		at += i < letters_count ? 4 : 1;
	}
	strcat(text, "`");
	if (!strstr(document, text))
		fail_msg("docs/attach.md lacks %s", text);
}

static void may_not(const char *sentence)
{
	char error[1024] = "";

	assert_false(gm_may_attach(proc, PID, error, sizeof(error)));
	assert_string_equal(error, sentence);
	is_documented(sentence);
}

static void test_processes(void **state)
{
	(void)state;
	put_target((struct process){'Z', 0, USER, NONE, false, 1});
	may_not("process 4711 has ended");
	put_target((struct process){'Z', 0, USER, NONE, false, .threads = 3});
	may_not("the main thread of process 4711 has ended, and with it what /proc shows of the "
		"process");
	put_target((struct process){'T', 0, USER, NONE, false, 1});
	may_not("process 4711 is stopped (SIGSTOP, Ctrl-Z) and has to go on first");
	put_target((struct process){'S', TRACER, USER, NONE, false, 1});
	may_not("process 4711 is traced by process 4712, a debugger or strace: it has to be "
		"detached "
		"first");
	take("4711/status");
	may_not("there is no process 4711 to attach to");
}

/* The same user, without the capability. */
static void test_yama(void **state)
{
	char error[1024];

	(void)state;
	may_not("process 4711 may not be attached to: it is not dumpable "
		"(prctl(PR_SET_DUMPABLE), a setuid program), which takes CAP_SYS_PTRACE");
	put_yama("0\n");
	may_not("process 4711 may not be attached to: it is not dumpable "
		"(prctl(PR_SET_DUMPABLE), a setuid program), which takes CAP_SYS_PTRACE");
	put_yama("1\n");
	may_not("kernel.yama.ptrace_scope is 1: process 4711 may be attached to by its parents and "
		"with CAP_SYS_PTRACE; use sudo, in a container --cap-add SYS_PTRACE, or set it to "
		"0");
	put_yama("2\n");
	may_not("kernel.yama.ptrace_scope is 2: attaching to process 4711 takes CAP_SYS_PTRACE; "
		"use "
		"sudo, in a container --cap-add SYS_PTRACE");
	put_yama("3\n");
	may_not("kernel.yama.ptrace_scope is 3: nobody may attach to a process until the machine "
		"is "
		"started anew");
	put("4711/mem", "", 0);
	assert_true(gm_may_attach(proc, PID, error, sizeof(error)));
}

static void test_users_and_capabilities(void **state)
{
	static const char *const levels[] = {"0\n", "1\n", "2\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		put_yama(levels[i]);
		put_target(plain);
		put_own((struct process){'R', 0, OWN, NONE, false, 1});
		may_not("process 4711 belongs to user 1001 and this one is user 1002: run "
			"gpumem-report as that user, or with CAP_SYS_PTRACE (sudo)");
		put_own((struct process){'R', 0, USER, NONE, false, 1});
		put_target((struct process){'S', 0, USER, PTRACE, false, 1});
		may_not("process 4711 has capabilities that this one lacks: attaching takes "
			"CAP_SYS_PTRACE; use sudo, in a container --cap-add SYS_PTRACE");
		put_own((struct process){'R', 0, OWN, PTRACE, false, 1});
		may_not("process 4711 may not be attached to, although CAP_SYS_PTRACE is there: it "
			"belongs to another user namespace, or a security module refuses it");
	}
	put_yama("3\n");
	may_not("kernel.yama.ptrace_scope is 3: nobody may attach to a process until the machine "
		"is "
		"started anew");
}

static void cannot(struct gm_target_object *objects, unsigned count, const char *sentence)
{
	const struct gm_target target = {.pid = PID, .objects = objects, .count = count};
	char error[1024] = "";

	assert_false(gm_can_load(proc, &target, error, sizeof(error)));
	assert_string_equal(error, sentence);
	is_documented(sentence);
}

static void test_programs(void **state)
{
	static char static_path[] = "/bin/busybox", musl[] = "/lib/ld-musl-x86_64.so.1",
		    loader[] = "/lib64/ld-linux-x86-64.so.2",
		    glibc[] = "/lib/x86_64-linux-gnu/libc.so.6";
	struct gm_target_object statically = {.path = static_path, .code = true},
				with_musl = {.path = musl, .code = true},
				with_glibc = {.path = glibc, .code = true};
	struct gm_target_object starting = {.path = loader, .code = true};
	const struct gm_target good = {.pid = PID, .objects = &with_glibc, .count = 1};
	Elf64_Ehdr header = {.e_machine = EM_X86_64};
	char error[1024];

	(void)state;
#ifndef __x86_64__
	skip();
#endif
	memcpy(header.e_ident, ELFMAG, SELFMAG);
	header.e_ident[EI_CLASS] = ELFCLASS64;
	put("4711/exe", &header, sizeof(header));
	cannot(&statically, 1,
	       "process 4711 is a static program: it has no loader that could load the shim");
	cannot(&starting, 1,
	       "process 4711 is starting: its C library is not loaded yet; try again");
	cannot(&with_musl, 1,
	       "process 4711 uses musl, and the shim needs glibc as its C library");
	assert_true(gm_can_load(proc, &good, error, sizeof(error)));
	put_target((struct process){'S', 0, USER, NONE, true, 1});
	cannot(&with_glibc, 1,
	       "process 4711 has a shadow stack (CET), which a call from outside would break; "
	       "start "
	       "it with GPUMEMTRACE_START=asleep instead");
	header.e_machine = EM_386;
	header.e_ident[EI_CLASS] = ELFCLASS32;
	put("4711/exe", &header, sizeof(header));
	cannot(&with_glibc, 1, "process 4711 is no 64-bit x86 program");
}

static char *read_document(const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = calloc(1, 1 << 20);

	if (!file || !text || !fread(text, 1, (1 << 20) - 1, file))
		exit(2);
	fclose(file);
	return text;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_processes, prepare, clear),
		cmocka_unit_test_setup_teardown(test_yama, prepare, clear),
		cmocka_unit_test_setup_teardown(test_users_and_capabilities, prepare, clear),
		cmocka_unit_test_setup_teardown(test_programs, prepare, clear),
	};
	int failed;

	if (argc != 2)
		return 2;
	document = read_document(argv[1]);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(document);
	return failed;
}
