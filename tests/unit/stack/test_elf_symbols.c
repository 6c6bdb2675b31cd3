/* Symbols, versions and build ids as found by hand, held against the loader's own answers. */
#include "cmocka_all.h"
#include "stack/elf_symbols.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int exported_here(void);

__attribute__((visibility("default"))) int exported_here(void)
{
	return 17;
}

static struct gm_object object_of(const void *address)
{
	struct gm_object object;

	assert_true(gm_object_at((uintptr_t)address, &object));
	return object;
}

static struct gm_object libc_object(void)
{
	return object_of(dlsym(RTLD_DEFAULT, "getppid"));
}

static void test_symbols_equal_dlsym(void **state)
{
	static const char *const names[] = {"puts",	      "malloc", "environ",
					    "memcpy",	      "strlen", "dlsym",
					    "pthread_create", "stdout", "qsort"};
	struct gm_object libc = libc_object();

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		void *handle = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);

		assert_ptr_equal(gm_object_symbol(&libc, names[i], NULL), dlsym(handle, names[i]));
	}
	assert_null(gm_object_symbol(&libc, "no_such_symbol_at_all", NULL));
	assert_null(gm_object_symbol(&libc, "errno", NULL)); /* thread-local */
}

static void test_versions(void **state)
{
	struct gm_object libc = libc_object();
	void *handle = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	/* realpath changed its meaning in 2.3: two versions, two functions */
	void *old = dlvsym(handle, "realpath", "GLIBC_2.2.5");
	void *new = dlvsym(handle, "realpath", "GLIBC_2.3");

	(void)state;
	if (!old || !new)
		skip();
	assert_ptr_not_equal(old, new);
	assert_ptr_equal(gm_object_symbol(&libc, "realpath", "GLIBC_2.2.5"), old);
	assert_ptr_equal(gm_object_symbol(&libc, "realpath", "GLIBC_2.3"), new);
	assert_ptr_equal(gm_object_symbol(&libc, "realpath", NULL), new);
	assert_null(gm_object_symbol(&libc, "realpath", "GLIBC_2.99"));
}

static void test_the_program_comes_first(void **state)
{
	struct gm_object found;

	(void)state;
	assert_ptr_equal(gm_objects_symbol("exported_here", &found), (void *)exported_here);
	assert_string_equal(found.path, "");
	assert_null(gm_objects_symbol("no_such_symbol_at_all", NULL));
}

static void test_objects(void **state)
{
	struct gm_object libc = libc_object(), self = object_of((void *)exported_here), again;
	Dl_info info;

	(void)state;
	dladdr(dlsym(RTLD_DEFAULT, "getppid"), &info);
	assert_ptr_equal((void *)libc.base, info.dli_fbase);
	assert_string_equal(gm_object_basename(&libc), "libc.so.6");
	assert_string_equal(gm_object_soname(&libc), "libc.so.6");
	assert_null(gm_object_soname(&self));
	assert_true(gm_object_of_dynamic(libc.dynamic, &again));
	assert_int_equal(again.base, libc.base);
	assert_false(gm_object_at(0x10, &again));
	assert_false(gm_object_at((uintptr_t)&again, &again)); /* the stack */
}

static void test_needed(void **state)
{
	struct gm_object self = object_of((void *)exported_here);
	const char *name, *file = NULL, *version;
	bool libc = false;

	(void)state;
	for (unsigned i = 0; (name = gm_object_needed(&self, i)); i++)
		libc = libc || !strcmp(name, "libc.so.6");
	assert_true(libc);
	/* what this program's own calls are bound to */
	version = gm_object_needed_version(&self, "dlsym", &file);
	assert_non_null(version);
	assert_int_equal(strncmp(version, "GLIBC_2.", 8), 0);
	assert_non_null(file);
	assert_ptr_equal(dlvsym(RTLD_DEFAULT, "dlsym", version), (void *)dlsym);
	assert_null(gm_object_needed_version(&self, "exported_here", NULL));
	assert_null(gm_object_needed_version(&self, "no_such_symbol_at_all", NULL));
}

/* `readelf -n` has the last word; without it nothing can be said. */
static void test_build_id(void **state)
{
	struct gm_object libc = libc_object();
	unsigned bytes = 0;
	const unsigned char *id = gm_object_build_id(&libc, &bytes);
	char command[4200], expected[100] = "", found[100] = "";
	FILE *pipe;

	(void)state;
	snprintf(command, sizeof(command),
		 "readelf -n '%s' 2>/dev/null | sed -n 's/.*Build ID: //p'", libc.path);
	pipe = popen(command, "r");
	if (!pipe || !fgets(expected, sizeof(expected), pipe))
		skip();
	pclose(pipe);
	expected[strcspn(expected, "\n")] = '\0';
	for (unsigned i = 0; i < bytes; i++)
		sprintf(found + 2 * i, "%02x", id[i]);
	assert_string_equal(found, expected);
}

static int look_everywhere(const struct gm_object *object, void *data)
{
	unsigned bytes;

	++*(unsigned *)data;
	gm_object_symbol(object, "no_such_symbol_at_all", NULL);
	gm_object_needed_version(object, "no_such_symbol_at_all", NULL);
	gm_object_soname(object);
	gm_object_build_id(object, &bytes);
	assert_true(object->start < object->end);
	return 0;
}

/* Every object there is, the vDSO with its unrelocated addresses among them. */
static void test_every_object(void **state)
{
	unsigned objects = 0;

	(void)state;
	assert_int_equal(gm_objects_each(look_everywhere, &objects), 0);
	assert_true(objects >= 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_symbols_equal_dlsym),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_the_program_comes_first),
		cmocka_unit_test(test_objects),
		cmocka_unit_test(test_needed),
		cmocka_unit_test(test_build_id),
		cmocka_unit_test(test_every_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
