/*
 * Sizes, counts, times and frames in words.
 */
#include "report/support/format.h"
#include "report/doc/doc.h"
#include "report/doc/frames.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void sizes(void **state)
{
	char text[GM_FORMAT_BYTES];

	(void)state;
	assert_string_equal(gm_format_size(text, 0), "0 B");
	assert_string_equal(gm_format_size(text, 1023), "1023 B");
	assert_string_equal(gm_format_size(text, 1024), "1.00 KiB");
	assert_string_equal(gm_format_size(text, 1024 * 1024 - 51),
			    "1.00 MiB"); /* not 1024.0 KiB */
	assert_string_equal(gm_format_size(text, 1024 * 1024 - 52), "1023.9 KiB");
	assert_string_equal(gm_format_size(text, 1536), "1.50 KiB");
	assert_string_equal(gm_format_size(text, (1 << 20) - 1), "1.00 MiB");
	assert_string_equal(gm_format_size(text, 150ull << 20), "150.0 MiB");
	assert_string_equal(gm_format_size(text, 8ull << 30), "8.00 GiB");
	assert_string_equal(gm_format_size(text, UINT64_MAX - 1), "16384.0 PiB");
	assert_string_equal(gm_format_size(text, GM_NO_BYTES), "-");
	assert_string_equal(gm_format_change(text, 2048, 1024), "-1.00 KiB");
	assert_string_equal(gm_format_change(text, 0, 1024), "+1.00 KiB");
	assert_string_equal(gm_format_change(text, 5, 5), "0 B");
	assert_string_equal(gm_format_count(text, 1234567), "1,234,567");
	assert_string_equal(gm_format_count(text, 123), "123");
	assert_string_equal(gm_format_percent(text, 1, 8), "12.5 %");
	assert_string_equal(gm_format_percent(text, 1, 0), "-");
	assert_string_equal(gm_format_time(text, 0.000035), "35 us");
	assert_string_equal(gm_format_time(text, 125), "2 min 5 s");
	assert_string_equal(gm_format_time(text, NAN), "-");
}

static void frames(void **state)
{
	struct gm_frame frame = {.function = "ns::f<int>(char const*, int)",
				 .file = "/src/a/b.cpp",
				 .line = 12,
				 .module = "/usr/lib/libx.so.1",
				 .offset = 0x1234};

	(void)state;
	assert_string_equal(gm_format_frame_short(&frame), "ns::f<int> (b.cpp:12)");
	frame.function = "(anonymous namespace)::g(int)";
	assert_string_equal(gm_format_frame_short(&frame), "(anonymous namespace)::g (b.cpp:12)");
	frame.function = "A::operator()(int) const";
	assert_string_equal(gm_format_frame_short(&frame), "A::operator() (b.cpp:12)");
	frame.file = NULL;
	assert_string_equal(gm_format_frame_short(&frame), "A::operator() (libx.so.1)");
	frame.function = NULL;
	assert_string_equal(gm_format_frame_short(&frame), "libx.so.1+0x1234");
	frame.module = NULL;
	assert_string_equal(gm_format_frame_short(&frame), "unknown+0x1234");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(frames),
	};

	return cmocka_run_group_tests_name("format", tests, NULL, NULL);
}
