/*
 * The cache of names: what goes in comes out, nothing comes out of a file that is not as it was
 * written, and a directory that is not the user's own is left alone.
 */
#include "report/support/user_cache.h"
#include "report/symbols/symbol_cache.h"
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static const unsigned char build[20] = {1, 2, 3, 0xff}, other_build[20] = {1, 2, 4};

static const struct gm_frame inlined[2] = {
	{.function = "_Z5innerv", .file = "/src/a.h", .line = 7, .inlined = true},
	{.function = "outer", .file = "/src/a.c", .line = UINT32_MAX},
};
static const struct gm_frame unknown = {0};

static char root[] = "/tmp/symbol-cache-XXXXXX";

static struct gm_symbol_answers two_answers(struct gm_zone *zone)
{
	struct gm_symbol_answers answers = {0};

	gm_symbol_answers_add(zone, &answers, UINT64_MAX, &unknown, 1);
	gm_symbol_answers_add(zone, &answers, 0x1234, inlined, 2);
	gm_symbol_answers_add(zone, &answers, 0x1234, inlined, 2); /* asked twice */
	return answers;
}

static void assert_two(const struct gm_symbol_answers *answers)
{
	const struct gm_symbol_answer *answer;

	assert_int_equal(answers->known_count, 2);
	answer = gm_symbol_answers_find(answers, 0x1234);
	assert_non_null(answer);
	assert_int_equal(answer->count, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_string_equal(answer->frames[i].function, inlined[i].function);
		assert_string_equal(answer->frames[i].file, inlined[i].file);
		assert_int_equal(answer->frames[i].line, inlined[i].line);
		assert_int_equal(answer->frames[i].inlined, inlined[i].inlined);
	}
	answer = gm_symbol_answers_find(answers, UINT64_MAX);
	assert_non_null(answer);
	assert_int_equal(answer->count, 1);
	assert_null(answer->frames[0].function);
	assert_null(answer->frames[0].file);
	assert_null(gm_symbol_answers_find(answers, 0x1235));
	assert_null(gm_symbol_answers_find(answers, 0));
}

static void comes_back(void **state)
{
	struct gm_zone zone = {0};
	struct gm_symbol_answers answers = two_answers(&zone), found;
	unsigned char *data;
	size_t bytes;

	(void)state;
	data = gm_symbol_answers_encode(&answers, "source", &bytes);
	assert_true(gm_symbol_answers_decode(&zone, data, bytes, "source", &found));
	assert_two(&found);
	assert_false(gm_symbol_answers_decode(&zone, data, bytes, "sourc", &found));
	assert_false(gm_symbol_answers_decode(&zone, data, bytes, "source2", &found));
	assert_int_equal(found.known_count, 0);
	free(data);
	gm_zone_free(&zone);
}

static void damage_is_refused(void **state)
{
	struct gm_zone zone = {0};
	struct gm_symbol_answers answers = two_answers(&zone), found;
	unsigned char *data;
	size_t bytes;

	(void)state;
	data = gm_symbol_answers_encode(&answers, "source", &bytes);
	for (size_t at = 0; at < bytes; at++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			data[at] ^= (unsigned char)(1u << bit);
			assert_false(
				gm_symbol_answers_decode(&zone, data, bytes, "source", &found));
			data[at] ^= (unsigned char)(1u << bit);
		}
		assert_false(gm_symbol_answers_decode(&zone, data, at, "source", &found));
	}
	assert_true(gm_symbol_answers_decode(&zone, data, bytes, "source", &found));
	free(data);
	gm_zone_free(&zone);
}

/* Opens the cache with these variables; NULL unsets. */
static int open_with(const char *home, const char *cache_home)
{
	home ? setenv("HOME", home, 1) : unsetenv("HOME");
	cache_home ? setenv("XDG_CACHE_HOME", cache_home, 1) : unsetenv("XDG_CACHE_HOME");
	return gm_user_cache_open();
}

static void refused(const char *home, const char *cache_home)
{
	assert_int_equal(open_with(home, cache_home), -1);
}

static const char *in_root(char path[256], const char *name)
{
	snprintf(path, 256, "%s/%s", root, name);
	return path;
}

static void directories(void **state)
{
	char home[256], path[256], link[256];
	struct stat status;
	int fd;

	(void)state;
	refused(NULL, NULL);
	refused("", NULL);
	refused("tmp", NULL);
	refused(NULL, "relative");
	refused(in_root(home, "nowhere"), NULL);
	refused("/dev/null", NULL);
	refused(NULL, "/dev/null");
	refused("/proc", NULL); /* nobody can write there */

	assert_int_equal(mkdir(in_root(home, "home"), 0755), 0);
	fd = open_with(home, NULL);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(stat(in_root(path, "home/.cache/gpumemtrace"), &status), 0);
	assert_int_equal(status.st_mode & 07777, 0700);

	chmod(path, 0770);
	refused(home, NULL);
	chmod(path, 0700);
	assert_int_equal(rename(path, in_root(link, "home/.cache/real")), 0);
	assert_int_equal(symlink("real", path), 0);
	refused(home, NULL);

	fd = open_with(home, in_root(path, "xdg"));
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(stat(in_root(path, "xdg/gpumemtrace"), &status), 0);
}

/* A user's own directory alone; who is not root cannot try. */
static void others_own_it(void **state)
{
	char path[256];

	(void)state;
	if (geteuid() != 0)
		skip();
	mkdir(in_root(path, "theirs"), 0755);
	mkdir(in_root(path, "theirs/gpumemtrace"), 0700);
	assert_int_equal(chown(path, 1000, 1000), 0);
	refused(NULL, in_root(path, "theirs"));
	/* Nor is anything made in another user's home, where its owner could not use it. */
	mkdir(in_root(path, "their_home"), 0755);
	assert_int_equal(chown(path, 1000, 1000), 0);
	refused(path, NULL);
	assert_int_equal(access(in_root(path, "their_home/.cache"), F_OK), -1);
}

static int open_new(const char *name)
{
	char path[256];
	int fd = open_with(NULL, in_root(path, name));

	assert_true(fd >= 0);
	return fd;
}

static unsigned known(int cache, const unsigned char *id, const char *source)
{
	struct gm_zone zone = {0};
	struct gm_symbol_answers found;
	unsigned count;

	gm_symbol_cache_read(&zone, cache, id, sizeof(build), source, &found);
	count = found.known_count;
	gm_zone_free(&zone);
	return count;
}

static void files(void **state)
{
	struct gm_zone zone = {0};
	struct gm_symbol_answers answers = two_answers(&zone), found;
	int cache = open_new("files");
	char name[] = "010203ff00000000000000000000000000000000.symbols";
	struct stat status;

	(void)state;
	gm_symbol_cache_write(cache, build, sizeof(build), "source", &answers);
	gm_symbol_cache_read(&zone, cache, build, sizeof(build), "source", &found);
	assert_two(&found);
	assert_int_equal(fstatat(cache, name, &status, 0), 0);
	assert_int_equal(status.st_mode & 07777, 0600);
	assert_int_equal(known(cache, other_build, "source"), 0);
	assert_int_equal(known(cache, build, "another"), 0);

	/* What is added joins what was known. */
	gm_symbol_answers_add(&zone, &found, 5, &unknown, 1);
	gm_symbol_cache_write(cache, build, sizeof(build), "source", &found);
	assert_int_equal(known(cache, build, "source"), 3);

	/* Not a file that only this user writes. */
	fchmodat(cache, name, 0666, 0);
	assert_int_equal(known(cache, build, "source"), 0);
	fchmodat(cache, name, 0600, 0);
	assert_int_equal(renameat(cache, name, cache, "real"), 0);
	assert_int_equal(symlinkat("real", cache, name), 0);
	assert_int_equal(known(cache, build, "source"), 0);
	unlinkat(cache, name, 0);
	assert_int_equal(mkfifoat(cache, name, 0600), 0);
	assert_int_equal(known(cache, build, "source"), 0);

	/* Whatever is there is replaced. */
	gm_symbol_cache_write(cache, build, sizeof(build), "source", &answers);
	assert_int_equal(known(cache, build, "source"), 2);
	close(cache);
	gm_zone_free(&zone);
}

static unsigned count_files(int cache)
{
	DIR *list = fdopendir(openat(cache, ".", O_RDONLY | O_DIRECTORY));
	unsigned count = 0;

	while (readdir(list))
		count++;
	closedir(list);
	return count - 2;
}

static void bounded(void **state)
{
	struct gm_zone zone = {0};
	struct gm_symbol_answers answers = two_answers(&zone);
	int cache = open_new("bounded");
	struct stat status;
	unsigned char id[20] = {9};

	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		struct timespec times[2] = {{1000 + i, 0}, {1000 + i, 0}};
		char name[64];

		id[1] = (unsigned char)i;
		gm_symbol_cache_write(cache, id, sizeof(id), "source", &answers);
		snprintf(name, sizeof(name), "09%02x%036d.symbols", i, 0);
		assert_int_equal(utimensat(cache, name, times, 0), 0);
		assert_int_equal(fstatat(cache, name, &status, 0), 0);
	}
	close(openat(cache, "keep.txt", O_CREAT | O_WRONLY, 0600)); /* not one of ours */
	id[1] = 0;
	assert_int_equal(known(cache, id, "source"), 2); /* the oldest was used just now */
	gm_user_cache_trim(cache, GM_SYMBOL_CACHE_SUFFIX, 10 * (uint64_t)status.st_size);
	assert_int_equal(count_files(cache), 11);
	gm_user_cache_trim(cache, GM_SYMBOL_CACHE_SUFFIX, 3 * (uint64_t)status.st_size + 1);
	assert_int_equal(count_files(cache), 4);
	for (unsigned i = 0; i < 10; i++) {
		id[1] = (unsigned char)i;
		assert_int_equal(known(cache, id, "source"), i == 0 || i >= 8 ? 2 : 0);
	}
	close(cache);
	gm_zone_free(&zone);
}

static void too_large(void **state)
{
	struct gm_zone zone = {0};
	struct gm_symbol_answers answers = {0};
	int cache = open_new("large");
	struct gm_frame frame = {.function = gm_zone_alloc(&zone, 1 << 20, 1)};

	(void)state;
	memset((char *)frame.function, 'a', (1 << 20) - 1);
	for (unsigned i = 0; i < 17; i++)
		gm_symbol_answers_add(&zone, &answers, i, &frame, 1);
	gm_symbol_cache_write(cache, build, sizeof(build), "source", &answers);
	assert_int_equal(count_files(cache), 0);
	close(cache);
	gm_zone_free(&zone);
}

/* Writes and reads a hundred times; 0 if every file that was found was whole. */
static int write_and_read(int cache, unsigned writer)
{
	for (unsigned round = 0; round < 100; round++) {
		struct gm_zone zone = {0};
		struct gm_symbol_answers answers = {0};
		unsigned found;

		for (unsigned i = 0; i <= writer; i++)
			gm_symbol_answers_add(&zone, &answers, i, inlined, 2);
		gm_symbol_cache_write(cache, build, sizeof(build), "source", &answers);
		gm_user_cache_trim(cache, GM_SYMBOL_CACHE_SUFFIX, 1 << 20);
		gm_zone_free(&zone);
		found = known(cache, build, "source");
		if (found < 1 || found > 8)
			return 1;
	}
	return 0;
}

static void at_once(void **state)
{
	int cache = open_new("at_once"), status;

	(void)state;
	for (unsigned writer = 0; writer < 8; writer++)
		if (fork() == 0)
			_exit(write_and_read(cache, writer));
	for (unsigned writer = 0; writer < 8; writer++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_int_equal(count_files(cache), 1);
	close(cache);
}

static int make_root(void **state)
{
	(void)state;
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	char command[300];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(comes_back),  cmocka_unit_test(damage_is_refused),
		cmocka_unit_test(directories), cmocka_unit_test(others_own_it),
		cmocka_unit_test(files),       cmocka_unit_test(bounded),
		cmocka_unit_test(too_large),   cmocka_unit_test(at_once),
	};

	return cmocka_run_group_tests(tests, make_root, remove_root);
}
