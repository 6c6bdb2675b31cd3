/*
 * The restricted pickle reader and what follows it, against bytes written down here: opcode by
 * opcode, cut at every byte, with every byte changed, and against ranges counted by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "report/import/pickle_reader.h"
#include "report/import/ranges.h"
#include "report/import/snapshot_replay.h"
#include "report/import/snapshot.h"
#include "report/render/export/pickle_writer.h"
#include <stdlib.h>
#include <string.h>

static struct gm_zone zone;
static char said[256];

static int free_zone(void **state)
{
	(void)state;
	gm_zone_free(&zone);
	return 0;
}

static const struct gm_value *read_bytes(const void *bytes, size_t count)
{
	*said = '\0';
	return gm_pickle_read(&zone, bytes, count, said, sizeof(said));
}

#define READ(text) read_bytes("\x80\x04" text, sizeof("\x80\x04" text) - 1)

static void numbers(void **state)
{
	static const struct {
		const char *bytes;
		size_t count;
		uint64_t number;
		bool negative;
	} cases[] = {
#define CASE(text, number, negative)                                                               \
	{"\x80\x04" text ".", sizeof("\x80\x04" text "."), number, negative}
		CASE("K\xff", 255, false),
		CASE("M\xff\xff", 65535, false),
		CASE("J\xff\xff\xff\x7f", 2147483647, false),
		CASE("J\x00\x00\x00\x80", 2147483648u, true),
		CASE("\x8a\x00", 0, false),
		CASE("\x8a\x01\xff", 1, true),
		CASE("\x8a\x02\xff\x00", 255, false),
		CASE("\x8a\x06\x00\x00\x00\x00\x00\x7f", 0x7f0000000000u, false),
		CASE("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f", INT64_MAX, false),
		CASE("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00", UINT64_MAX, false),
		CASE("\x8b\x02\x00\x00\x00\x34\x12", 0x1234, false),
		CASE("\x88", 1, false),
		CASE("\x89", 0, false),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct gm_value *value = read_bytes(cases[i].bytes, cases[i].count - 1);

		assert_non_null(value);
		assert_int_equal(value->number, cases[i].number);
		assert_int_equal(value->negative, cases[i].negative);
	}
	assert_true(READ("G\x3f\xf8\x00\x00\x00\x00\x00\x00.")->real == 1.5);
	assert_null(READ("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01."));
	assert_null(READ("\x8a\x0a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00."));
}

static void containers(void **state)
{
	const struct gm_value *value;
	unsigned count;

	(void)state;
	value = READ("}(\x8c\x01"
		     "aK\x01\x8c\x01"
		     "bK\x02\x8c\x01"
		     "aK\x03u.");
	assert_int_equal(value->type, GM_VALUE_DICT);
	assert_int_equal(gm_value_number(value, "a", 9), 3); /* put again: the last counts */
	assert_int_equal(gm_value_number(value, "b", 9), 2);
	assert_int_equal(gm_value_number(value, "c", 9), 9);
	value = READ("]\x94(K\x01h\x00"
		     "e."); /* holds itself */
	assert_int_equal(value->count, 2);
	assert_ptr_equal(value->items[1], value);
	assert_null(READ("K\x05\x86.")); /* a tuple of two needs two */
	value = READ("}X\x04\x00\x00\x00list(K\x05K\x06ts.");
	assert_non_null(gm_value_list(value, "list", &count));
	assert_int_equal(count, 2);
	assert_null(gm_value_list(value, "none", &count));
	assert_int_equal(count, 0);
	/* A tuple cannot be added to. */
	assert_null(READ("K\x01K\x02K\x03\x87K\x04"
			 "a."));
	assert_null(READ(")K\x04"
			 "a."));
}

/* A pickle that uses every opcode that is read. */
#define WHOLE                                                                                      \
	"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00}q\x00(\x8c\x01"                              \
	"aK\x01X\x01\x00\x00\x00"                                                                  \
	"bM\x02\x01\x8d\x01\x00\x00\x00\x00\x00\x00\x00"                                           \
	"cJ\x00\x00\x00\x01"                                                                       \
	"C\x01"                                                                                    \
	"d\x8a\x02\x00\x01"                                                                        \
	"B\x01\x00\x00\x00"                                                                        \
	"e\x8b\x01\x00\x00\x00\x01\x8c\x01"                                                        \
	"f]\x94(NG\x3f\xf0\x00\x00\x00\x00\x00\x00\x88\x89"                                        \
	"e\x8c\x01g)\x8c\x01hK\x01\x85\x8c\x01iK\x01K\x02\x86\x8c\x01jK\x01K\x02K\x03\x87"         \
	"\x8c\x01k(K\x01K\x02K\x03K\x04t\x8c\x01l]r\x07\x00\x00\x00K\x01"                          \
	"a\x8c\x01mj\x07\x00\x00\x00\x8c\x01nh\x00u\x8c\x01oNs."

static void cut_and_changed(void **state)
{
	unsigned char bytes[sizeof(WHOLE) - 1];
	unsigned read = 0;

	(void)state;
	assert_non_null(read_bytes(WHOLE, sizeof(bytes)));
	for (size_t length = 0; length < sizeof(bytes); length++) {
		/* From the heap, so that a byte read too far is seen by sanitizers. */
		unsigned char *copy = malloc(length + 1);

		assert_non_null(copy);
		memcpy(copy, WHOLE, length);
		assert_null(read_bytes(copy, length));
		assert_true(*said);
		free(copy);
	}
	for (size_t at = 2; at < sizeof(bytes); at++)
		for (unsigned change = 1; change < 256; change++) {
			memcpy(bytes, WHOLE, sizeof(bytes));
			bytes[at] = (unsigned char)(bytes[at] ^ change);
			if (read_bytes(bytes, sizeof(bytes)))
				read++;
			else
				assert_true(*said);
		}
	assert_true(read > 0); /* a changed letter is still a pickle */
}

static void nothing_is_called(void **state)
{
	static const unsigned char code[] = {'c',  'i',	 'o',  'R',  'b',  'P',	 'Q',
					     0x81, 0x82, 0x83, 0x84, 0x92, 0x93, 0x8f,
					     0x90, 0x91, 0x96, 0x97, 0x98};

	(void)state;
	for (size_t i = 0; i < sizeof(code); i++) {
		const unsigned char bytes[] = {0x80, 4, 'N', code[i], 'a', '\n', 'b', '\n', '.'};

		assert_null(read_bytes(bytes, sizeof(bytes)));
		assert_non_null(strstr(said, "not executed"));
	}
}

/* What our own writer writes is read as what was written. */
static void written_and_read(void **state)
{
	static const int64_t values[] = {0,
					 1,
					 255,
					 256,
					 -1,
					 -128,
					 -129,
					 65536,
					 INT32_MAX,
					 INT32_MIN,
					 (int64_t)INT32_MAX + 1,
					 (int64_t)INT32_MIN - 1,
					 0x7f0000000000,
					 INT64_MAX,
					 INT64_MIN,
					 -256};
	const size_t count = sizeof(values) / sizeof(values[0]);
	struct gm_pickle pickle;
	const struct gm_value *list;
	char *bytes;
	size_t size;
	FILE *file = open_memstream(&bytes, &size);

	(void)state;
	assert_non_null(file);
	gm_pickle_begin(&pickle, file);
	gm_pickle_list(&pickle);
	for (size_t i = 0; i < count; i++)
		gm_pickle_signed(&pickle, values[i]);
	gm_pickle_unsigned(&pickle, UINT64_MAX);
	gm_pickle_text(&pickle, "once");
	gm_pickle_text(&pickle, "once");
	gm_pickle_list_end(&pickle);
	gm_pickle_end(&pickle);
	assert_int_equal(fclose(file), 0);
	list = read_bytes(bytes, size);
	assert_non_null(list);
	assert_int_equal(list->count, count + 3);
	for (size_t i = 0; i < count; i++) {
		const struct gm_value *value = list->items[i];

		assert_int_equal(value->negative, values[i] < 0);
		assert_int_equal(value->number,
				 values[i] < 0 ? 0 - (uint64_t)values[i] : (uint64_t)values[i]);
	}
	assert_int_equal(list->items[count]->number, UINT64_MAX);
	assert_true(gm_value_is(list->items[count + 1], "once"));
	assert_ptr_equal(list->items[count + 1], list->items[count + 2]);
	free(bytes);
}

static void ranges(void **state)
{
	struct gm_ranges set = {0};
	struct gm_tagged_range cut;

	(void)state;
	assert_true(gm_ranges_add(&set, 100, 200, 1));
	assert_true(gm_ranges_add(&set, 300, 400, 3));
	assert_true(gm_ranges_add(&set, 200, 300, 2));
	assert_false(gm_ranges_add(&set, 399, 401, 4));
	assert_false(gm_ranges_add(&set, 50, 101, 4));
	assert_false(gm_ranges_add(&set, 500, 500, 4));
	assert_int_equal(set.count, 3);
	assert_int_equal(gm_ranges_at(&set, 199), 0);
	assert_int_equal(gm_ranges_at(&set, 200), 1);
	assert_int_equal(gm_ranges_at(&set, 400), 3);
	assert_null(gm_ranges_find(&set, 201));
	assert_int_equal(gm_ranges_find(&set, 200)->tag, 2);
	/* from the middle: two are left; beyond its end: only what is there */
	assert_true(gm_ranges_cut(&set, 120, 150, &cut));
	assert_int_equal(set.count, 4);
	assert_int_equal(cut.start, 120);
	assert_int_equal(cut.end, 150);
	assert_true(gm_ranges_cut(&set, 150, 900, &cut));
	assert_int_equal(cut.end, 200);
	assert_false(gm_ranges_cut(&set, 150, 160, &cut));
	assert_true(gm_ranges_remove(&set, 100));
	assert_false(gm_ranges_remove(&set, 100));
	assert_int_equal(set.count, 2);
	gm_ranges_free(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(numbers, free_zone),
		cmocka_unit_test_teardown(containers, free_zone),
		cmocka_unit_test_teardown(cut_and_changed, free_zone),
		cmocka_unit_test_teardown(nothing_is_called, free_zone),
		cmocka_unit_test_teardown(written_and_read, free_zone),
		cmocka_unit_test(ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
