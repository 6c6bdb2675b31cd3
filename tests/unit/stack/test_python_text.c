/*
 * Line tables and texts of CPython by hand-made examples; what they should say follows from
 * Objects/lnotab_notes.txt and Objects/locations.md, and the whole from python_frames.py.
 */
#include "cmocka_all.h"
#include "stack/python_layout.h"
#include "stack/python_text.h"

#include <string.h>

static uint32_t line(enum gm_python_lines kind, const uint8_t *table, size_t bytes, int position)
{
	return gm_python_line(kind, table, bytes, 10, position);
}

static void test_lnotab(void **state)
{
	/* the notes' example: offsets 0, 6, 50, 350, 361 are lines 1, 2, 7, 207, 208 and on */
	static const uint8_t table[] = {6, 1, 44, 5, 255, 0, 45, 127, 0, 73, 11, 1, 2, 0xfe};

	(void)state;
	assert_int_equal(line(GM_LINES_LNOTAB, table, sizeof(table), -1), 10);
	assert_int_equal(line(GM_LINES_LNOTAB, table, sizeof(table), 0), 10);
	assert_int_equal(line(GM_LINES_LNOTAB, table, sizeof(table), 5), 10);
	assert_int_equal(line(GM_LINES_LNOTAB, table, sizeof(table), 6), 11);
	assert_int_equal(line(GM_LINES_LNOTAB, table, sizeof(table), 349), 16);
	assert_int_equal(line(GM_LINES_LNOTAB, table, sizeof(table), 350), 216);
	assert_int_equal(line(GM_LINES_LNOTAB, table, sizeof(table), 361), 217);
	assert_int_equal(line(GM_LINES_LNOTAB, table, sizeof(table), 363), 215);
	assert_int_equal(line(GM_LINES_LNOTAB, table, 0, 8), 10);
	assert_int_equal(line(GM_LINES_LNOTAB, table, 1, 8), 10);
}

static void test_pairs(void **state)
{
	/* 0-5: first line, 6-9: none, 10-299: +2 (two pieces), 300-: -1 */
	static const uint8_t table[] = {6, 0, 4, 0x80, 254, 2, 36, 0, 8, 0xff};

	(void)state;
	assert_int_equal(line(GM_LINES_PAIRS, table, sizeof(table), -1), 10);
	assert_int_equal(line(GM_LINES_PAIRS, table, sizeof(table), 5), 10);
	assert_int_equal(line(GM_LINES_PAIRS, table, sizeof(table), 6), 0);
	assert_int_equal(line(GM_LINES_PAIRS, table, sizeof(table), 10), 12);
	assert_int_equal(line(GM_LINES_PAIRS, table, sizeof(table), 299), 12);
	assert_int_equal(line(GM_LINES_PAIRS, table, sizeof(table), 300), 11);
	assert_int_equal(line(GM_LINES_PAIRS, table, sizeof(table), 308), 0); /* past the end */
}

static void test_locations(void **state)
{
	static const uint8_t table[] = {
		0x80 | 0 << 3 | 1,  0x11,		     /* 2 units, short form: no step */
		0x80 | 11 << 3 | 0, 1,		 2,	     /* 1 unit, one line on */
		0x80 | 15 << 3 | 7,			     /* 8 units without a line */
		0x80 | 13 << 3 | 2, 0x40 | 0x28, 0x03,	     /* 3 units, +116: (3 << 6 | 40) >> 1 */
		0x80 | 14 << 3 | 0, 5,		 0,    0, 0, /* 1 unit, -2 */
	};

	(void)state;
	assert_int_equal(line(GM_LINES_LOCATIONS, table, sizeof(table), -2), 10);
	assert_int_equal(line(GM_LINES_LOCATIONS, table, sizeof(table), 0), 10);
	assert_int_equal(line(GM_LINES_LOCATIONS, table, sizeof(table), 2), 10);
	assert_int_equal(line(GM_LINES_LOCATIONS, table, sizeof(table), 4), 11);
	assert_int_equal(line(GM_LINES_LOCATIONS, table, sizeof(table), 6), 0);
	assert_int_equal(line(GM_LINES_LOCATIONS, table, sizeof(table), 20), 0);
	assert_int_equal(line(GM_LINES_LOCATIONS, table, sizeof(table), 22), 127);
	assert_int_equal(line(GM_LINES_LOCATIONS, table, sizeof(table), 28), 125);
	assert_int_equal(line(GM_LINES_LOCATIONS, table, sizeof(table), 30), 0);
}

/* Whatever the bytes, an answer comes and nothing outside the table is read (run under ASan too).
 */
static void test_any_bytes(void **state)
{
	uint8_t table[64];
	uint32_t seed = 1;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		size_t bytes = (seed >> 16) % sizeof(table);

		for (size_t i = sizeof(table) - bytes; i < sizeof(table); i++) {
			seed = seed * 1664525 + 1013904223;
			table[i] = (uint8_t)(seed >> 24);
		}
		for (int kind = GM_LINES_LNOTAB; kind <= GM_LINES_LOCATIONS; kind++)
			line((enum gm_python_lines)kind, table + sizeof(table) - bytes, bytes,
			     (int)(seed % 600));
	}
}

struct text {
	uint64_t references, type, length, hash;
	uint32_t state, padding;
	char rest[400];
};

static void make_text(struct text *text, const struct gm_python_layout *layout, unsigned kind,
		      bool ascii, const void *data, size_t characters)
{
	memset(text, 0, sizeof(*text));
	text->length = characters;
	text->state = (kind | 1u << 3 | (uint32_t)ascii << 4) << layout->state_shift | 1;
	memcpy((char *)text + (ascii ? layout->ascii_bytes : layout->compact_bytes), data,
	       kind * characters);
}

/* Texts as CPython of `layout` has them, read by `known`. */
static void check_texts(const struct gm_python_layout *layout,
			const struct gm_python_layout *known)
{
	static const uint16_t two[] = {'a', 0xe9, 0x6e2c, 0xd800, 0};
	static const uint32_t four[] = {'a', 0x1f600, 0x10ffff, 0x110000};
	const uint32_t *apart = four;
	struct text text;
	char to[64];

	make_text(&text, layout, 1, true, "plain", 5);
	assert_int_equal(gm_python_text(known, &text, to, sizeof(to)), 5);
	assert_string_equal(to, "plain");
	make_text(&text, layout, 1, false, "\xe9t\xff", 3);
	gm_python_text(known, &text, to, sizeof(to));
	assert_string_equal(to, "\xc3\xa9t\xc3\xbf");
	make_text(&text, layout, 2, false, two, 5);
	gm_python_text(known, &text, to, sizeof(to));
	assert_string_equal(to, "a\xc3\xa9\xe6\xb8\xac\xef\xbf\xbd\xef\xbf\xbd");
	make_text(&text, layout, 4, false, four, 4);
	gm_python_text(known, &text, to, sizeof(to));
	assert_string_equal(to, "a\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf\xef\xbf\xbd");
	/* cut where a character begins */
	assert_int_equal(gm_python_text(known, &text, to, 6), 5);
	assert_int_equal(gm_python_text(known, &text, to, 5), 1);
	assert_int_equal(gm_python_text(known, &text, to, 1), 0);
	/* not compact: its characters are apart, or there are none */
	text.state &= ~(1u << (layout->state_shift + 3));
	memcpy((char *)&text + layout->compact_bytes, &apart, sizeof(apart));
	gm_python_text(known, &text, to, sizeof(to));
	assert_string_equal(to, "a\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf\xef\xbf\xbd");
	memset((char *)&text + layout->compact_bytes, 0, sizeof(apart));
	assert_int_equal(gm_python_text(known, &text, to, sizeof(to)), 0);
	assert_string_equal(to, "");
}

static void test_texts(void **state)
{
	struct gm_python_layout future = *gm_python_layout(12);

	(void)state;
	for (unsigned minor = 8; minor <= 12; minor++)
		check_texts(gm_python_layout(minor), gm_python_layout(minor));
	future.state_shift = 16; /* 3.14 */
	check_texts(&future, &future);
	check_texts(gm_python_layout(12), &future); /* 3.14.10 */
}

/* What 3.14 publishes, from its pycore_debug_offsets.h, member by member up to where we look. */
struct offsets_3_14 {
	char cookie[8];
	uint64_t version, free_threaded;
	uint64_t runtime[3];
	uint64_t interpreter[16];
	struct {
		uint64_t size, prev, next, interp, current_frame, thread_id, native_thread_id,
			datastack_chunk, status;
	} thread;
	struct {
		uint64_t size, previous, executable, instr_ptr, localsplus, owner, stackpointer,
			tlbc_index;
	} frame;
	struct {
		uint64_t size, filename, name, qualname, linetable, firstlineno, argcount,
			localsplusnames, localspluskinds, co_code_adaptive, co_tlbc;
	} code;
	struct {
		uint64_t size, ob_type;
	} object;
	uint64_t type[4], tuple[3], list[3], set[4], dict[3], number[2], integer[3];
	struct {
		uint64_t size, ob_size, ob_sval;
	} bytes;
	struct {
		uint64_t size, state, length, asciiobject_size;
	} text;
	struct {
		uint64_t size, collecting;
	} gc;
};

static const struct offsets_3_14 good = {
	.cookie = "xdebugpy",
	.version = 0x030e02f0,
	.interpreter = {[5] = 7824},
	.thread = {.interp = 16, .current_frame = 72},
	.frame = {.previous = 8, .executable = 0, .instr_ptr = 56, .owner = 74},
	.code = {.filename = 112,
		 .name = 120,
		 .qualname = 128,
		 .linetable = 136,
		 .firstlineno = 68,
		 .co_code_adaptive = 208},
	.object = {16, 8},
	.bytes = {33, 16, 32},
	.text = {64, 32, 16, 40},
	.gc = {216, 160},
};

static void test_published_3_14(void **state)
{
	struct offsets_3_14 offsets = good;
	struct gm_python_layout layout;

	(void)state;
	assert_null(gm_python_published_layout(&offsets, 14, &layout));
	assert_int_equal(layout.tstate_frame, 72);
	assert_int_equal(layout.frame_back, 8);
	assert_int_equal(layout.frame_code, 0);
	assert_int_equal(layout.frame_position, 56);
	assert_int_equal(layout.frame_owner, 74);
	assert_int_equal(layout.tstate_interp, 16);
	assert_int_equal(layout.gc_collecting, 7824 + 160);
	assert_int_equal(layout.code_filename, 112);
	assert_int_equal(layout.code_name, 120);
	assert_int_equal(layout.code_qualname, 128);
	assert_int_equal(layout.code_lines, 136);
	assert_int_equal(layout.code_firstlineno, 68);
	assert_int_equal(layout.code_code, 208);
	assert_int_equal(layout.state_shift, 16);
}

static void test_refusals(void **state)
{
	struct offsets_3_14 offsets = good;
	struct gm_python_layout layout;

	(void)state;
	offsets.free_threaded = 1;
	assert_string_equal(gm_python_published_layout(&offsets, 14, &layout),
			    "it is a free-threaded build");
	offsets = good;
	assert_string_equal(gm_python_published_layout(&offsets, 13, &layout),
			    "it publishes the structures of another version");
	assert_string_equal(gm_python_published_layout(&offsets, 15, &layout),
			    "its structures are not known");
	offsets.cookie[3] = 'x';
	assert_string_equal(gm_python_published_layout(&offsets, 14, &layout),
			    "it does not publish its structures");
	offsets = good;
	offsets.object.size = 32; /* Py_TRACE_REFS, say */
	assert_string_equal(gm_python_published_layout(&offsets, 14, &layout),
			    "the structures it publishes are not as expected");
	assert_null(gm_python_layout(7));
	assert_null(gm_python_layout(13));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lnotab),	  cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_locations), cmocka_unit_test(test_any_bytes),
		cmocka_unit_test(test_texts),	  cmocka_unit_test(test_published_3_14),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
