/*
 * The index against libdwfl's own look-up, on libraries of this machine and on this program, whose
 * symbols overlap on purpose.
 */
#include "report/symbols/symbol_index.h"
#include "../../hygiene/effort.h"
#include <dlfcn.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

/* Aliases, a weak one that begins earlier, a local one inside, one nested, and bytes of none. */
__asm__(".text\n"
	".weak early\n.type early,@function\nearly:\n.skip 16,0x90\n"
	".globl outer\n.type outer,@function\nouter:\n.skip 8,0x90\n"
	".type inside,@function\ninside:\n.skip 8,0x90\n"
	".globl nested\n.type nested,@function\nnested:\n.skip 8,0x90\n"
	".size inside,8\n.size nested,8\n.size outer,24\n.size early,24\n"
	".globl alias_a,alias_b\n.weak alias_c\n"
	".type alias_a,@function\n.type alias_b,@function\n.type alias_c,@function\n"
	"alias_c:\nalias_a:\nalias_b:\n.skip 16,0x90\n"
	".size alias_a,16\n.size alias_b,12\n.size alias_c,16\n"
	"label_without_size:\n.skip 32,0x90\n"
	".globl global_label\nglobal_label:\n.skip 4,0x90\n"
	".type local,@function\nlocal:\n.skip 16,0x90\n.size local,16\n");

static char *debug_path;
static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
	.section_address = dwfl_offline_section_address,
	.debuginfo_path = &debug_path,
};

/* `bytes` of a file's addresses at every `step`; returns how many of them have a name. */
static unsigned compare(const char *path, GElf_Addr from, GElf_Addr bytes, unsigned step)
{
	Dwfl *session = dwfl_begin(&callbacks);
	Dwfl_Module *module;
	struct gm_symbol_index *index;
	unsigned named = 0;

	dwfl_report_begin(session);
	module = dwfl_report_elf(session, path, path, -1, 0, true);
	dwfl_report_end(session, NULL, NULL);
	assert_non_null(module);
	index = gm_symbol_index_new(module);
	for (GElf_Addr address = from; address < from + bytes; address += step) {
		const char *wanted = dwfl_module_addrname(module, address);
		const char *found = gm_symbol_index_name(index, address);

		if (!wanted != !found || (wanted && strcmp(wanted, found) != 0))
			fail_msg("%s, %#lx: %s, libdwfl says %s", path, (unsigned long)address,
				 found ? found : "nothing", wanted ? wanted : "nothing");
		named += wanted != NULL;
	}
	gm_symbol_index_free(index);
	dwfl_end(session);
	return named;
}

static void overlapping(void **state)
{
	struct link_map *self = dlopen(NULL, RTLD_NOW); /* what glibc's handles are */
	extern char early[];

	(void)state;
	assert_non_null(self);
	assert_true(compare("/proc/self/exe", (uintptr_t)early - self->l_addr, 160, 1) >= 90);
}

static void libraries(void **state)
{
	Dl_info info;
	unsigned thinned = test_thinned();

	(void)state;
	assert_true(dladdr((void *)(uintptr_t)dlopen, &info)); /* the C library */
	assert_true(compare(info.dli_fname, 0, 0x200000, 97 * thinned) > 1000 / thinned);
	assert_true(dladdr((void *)(uintptr_t)dwfl_begin, &info));
	assert_true(compare(info.dli_fname, 0, 0x80000, 41 * thinned) > 100 / thinned);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(overlapping),
		cmocka_unit_test(libraries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
