/*
 * Sizes, counts, times, percentages and frames in words, see format.h.
 */
#include "report/support/format.h"
#include "store/layout.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const binary_units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};

const char *gm_format_size(char text[GM_FORMAT_BYTES], uint64_t bytes)
{
	double value = (double)bytes;
	unsigned unit = 0;

	if (bytes == GM_NO_BYTES)
		return strcpy(text, "-");
	/* 1023.96 KiB would be rounded to "1024.0 KiB" */
	while (value >= 1023.95 && unit < 5) {
		value /= 1024;
		unit++;
	}
	if (unit == 0)
		snprintf(text, GM_FORMAT_BYTES, "%" PRIu64 " B", bytes);
	else
		snprintf(text, GM_FORMAT_BYTES, "%.*f %s", value < 99.95 ? 2 : 1, value,
			 binary_units[unit]);
	return text;
}

const char *gm_format_amount(char text[GM_FORMAT_BYTES], double bytes)
{
	double value = fabs(bytes);
	unsigned unit = 0;

	while (value >= 1023.95 && unit < 6) {
		value /= 1024;
		unit++;
	}
	snprintf(text, GM_FORMAT_BYTES, "%s%.*f %s", bytes < 0 ? "-" : "",
		 unit == 0	 ? 0
		 : value < 99.95 ? 2
				 : 1,
		 value, binary_units[unit]);
	return text;
}

uint64_t gm_whole_bytes(double bytes)
{
	if (isnan(bytes) || bytes >= 0x1p63)
		return GM_NO_BYTES;
	return bytes < 0 ? 0 : (uint64_t)llround(bytes);
}

const char *gm_format_change(char text[GM_FORMAT_BYTES], uint64_t before, uint64_t after)
{
	char size[GM_FORMAT_BYTES];

	gm_format_size(size, after >= before ? after - before : before - after);
	snprintf(text, GM_FORMAT_BYTES, "%s%.28s",
		 after > before	  ? "+"
		 : after < before ? "-"
				  : "",
		 size);
	return text;
}

const char *gm_format_count(char text[GM_FORMAT_BYTES], uint64_t count)
{
	char digits[24];
	int length = snprintf(digits, sizeof(digits), "%" PRIu64, count);
	char *to = text;

	if (count == GM_NO_BYTES)
		return strcpy(text, "-");
	for (int i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = '\0';
	return text;
}

const char *gm_format_time(char text[GM_FORMAT_BYTES], double seconds)
{
	if (isnan(seconds))
		return strcpy(text, "-");
	if (seconds < 1e-3)
		snprintf(text, GM_FORMAT_BYTES, "%.0f us", seconds * 1e6);
	else if (seconds < 1)
		snprintf(text, GM_FORMAT_BYTES, "%.1f ms", seconds * 1e3);
	else if (seconds < 120)
		snprintf(text, GM_FORMAT_BYTES, "%.2f s", seconds);
	else if (seconds < 7200)
		snprintf(text, GM_FORMAT_BYTES, "%.0f min %.0f s", floor(seconds / 60),
			 floor(fmod(seconds, 60)));
	else
		snprintf(text, GM_FORMAT_BYTES, "%.0f h %.0f min", floor(seconds / 3600),
			 floor(fmod(seconds, 3600) / 60));
	return text;
}

const char *gm_format_percent(char text[GM_FORMAT_BYTES], uint64_t part, uint64_t whole)
{
	if (!whole || whole == GM_NO_BYTES || part == GM_NO_BYTES)
		return strcpy(text, "-");
	snprintf(text, GM_FORMAT_BYTES, "%.1f %%", 100.0 * (double)part / (double)whole);
	return text;
}
