/*
 * What is said when a process may not be read, and when no copy of a process is made.
 */
#include "holders/read_refusal.h"
#include "recorder/process/copy_refusal.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define GIB (1ull << 30)
#define MIB (1ull << 20)

static void says(struct gm_read_refusal refusal, const char *words)
{
	char text[512];

	refusal.pid = 4711;
	gm_read_refusal_text(&refusal, text, sizeof(text));
	if (!strstr(text, words))
		fail_msg("\"%s\" is not in \"%s\"", words, text);
}

static void test_reading(void **state)
{
	(void)state;
	says((struct gm_read_refusal){.reason = ESRCH, .scope = 3}, "there is no process 4711");
	says((struct gm_read_refusal){.reason = ENOSYS}, "does not have process_vm_readv");
	says((struct gm_read_refusal){.reason = EPERM, .other_user = true},
	     "4711 belongs to another user");
	says((struct gm_read_refusal){.reason = EPERM, .scope = 2, .other_user = true},
	     "4711 belongs to another user");
	says((struct gm_read_refusal){.reason = EPERM, .scope = 1},
	     "kernel.yama.ptrace_scope is 1; run as root");
	says((struct gm_read_refusal){.reason = EPERM, .scope = 2},
	     "kernel.yama.ptrace_scope is 2; run as root");
	/* root may not either, and the setting cannot be changed back */
	says((struct gm_read_refusal){.reason = EPERM, .scope = 3},
	     "kernel.yama.ptrace_scope is 3, which only a restart of the system changes");
	says((struct gm_read_refusal){.reason = EPERM}, "lacks CAP_SYS_PTRACE");
}

static const struct gm_copy_surroundings roomy = {.release = "6.1.0-37-amd64",
						  .resident_bytes = 8 * GIB,
						  .available_bytes = 16 * GIB,
						  .group_bytes = UINT64_MAX};

static void refused(struct gm_copy_surroundings now, const char *words)
{
	const char *text = gm_copy_refusal(&now);

	if (!words)
		assert_null(text);
	else if (!text || !strstr(text, words))
		fail_msg("\"%s\" is not in \"%s\"", words, text ? text : "");
}

static void test_kernels(void **state)
{
	static const char *const old[] = {"5.11.0-49-generic",
					  "5.4.0-26-generic",
					  "4.18.0-553.el8_10.x86_64",
					  "3.10.0",
					  "",
					  NULL};
	static const char *const late[] = {"5.12.0", "5.15.0-105-generic", "6.0", "10.0.1"};
	struct gm_copy_surroundings now = roomy;

	(void)state;
	for (unsigned i = 0; i < sizeof(old) / sizeof(*old); i++) {
		now.release = old[i];
		refused(now, "the kernel is older than 5.12");
	}
	for (unsigned i = 0; i < sizeof(late) / sizeof(*late); i++) {
		now.release = late[i];
		refused(now, NULL);
	}
}

static void test_memory(void **state)
{
	struct gm_copy_surroundings now = roomy;

	(void)state;
	refused(now, NULL);
	now.resident_bytes = UINT64_MAX;
	refused(now, "its size cannot be read");
	now.resident_bytes = 64 * GIB;
	refused(now, NULL);
	now.resident_bytes = 64 * GIB + 4096;
	refused(now, "more than 64 GiB resident");
	/* an eighth of 8 GiB and 300 MiB */
	now = roomy;
	now.available_bytes = GIB + 300 * MIB;
	refused(now, NULL);
	now.available_bytes--;
	refused(now, "too little memory is free");
	now = roomy;
	now.group_bytes = GIB + 300 * MIB;
	refused(now, NULL);
	now.group_bytes--;
	refused(now, "too little memory is free");
	now.group_bytes = 0;
	refused(now, "too little memory is free");
}

static void test_overcommit(void **state)
{
	struct gm_copy_surroundings now = roomy;

	(void)state;
	now.overcommit = 1;
	refused(now, NULL);
	now.overcommit = 2;
	refused(now, "vm.overcommit_memory is 2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reading), cmocka_unit_test(test_kernels),
		cmocka_unit_test(test_memory), cmocka_unit_test(test_overcommit)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
