/*
 * The parser of sizes, and the shim's settings that are sizes, against sizes.tsv.
 * Usage: test_sizes sizes.tsv
 */
#include "base/size_text.h"
#include "recorder/state/settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_BYTES (4ull << 30) /* of GPUMEMTRACE_MAX_EVENTS (contract.md) */
#define MOST_ROW_BYTES 256

static unsigned rows, failures;

static void expect(bool holds, const char *what, const char *text)
{
	if (holds)
		return;
	failures++;
	fprintf(stderr, "%s is wrong for \"%s\"\n", what, text);
}

/* A table's text without its escapes, in place. */
static void unescape(char *text)
{
	char *to = text;

	for (; *text; text++, to++) {
		*to = *text;
		if (*text == '\\')
			*to = *++text == 't' ? '\t' : '\n';
	}
	*to = '\0';
}

static void check_parser(const char *text, bool good, uint64_t expected)
{
	uint64_t bytes = 12345;
	bool accepted = gm_parse_size(text, &bytes);

	expect(accepted == good, "what gm_parse_size takes", text);
	expect(bytes == (good ? expected : 12345), "what gm_parse_size makes", text);
}

/* A setting keeps its default for what is no size, and for 0, which is too small for this one. */
static void check_setting(const char *text, bool good, uint64_t expected)
{
	setenv("GPUMEMTRACE_MAX_EVENTS", text, 1);
	gm_settings_read();
	expect(gm_settings.max_events_bytes == (good && expected ? expected : DEFAULT_BYTES),
	       "what the setting becomes", text);
}

static void check_row(char *row)
{
	char *text = strchr(row, '"'), *end = strrchr(row, '"'), *value = strrchr(row, '\t');
	bool good;
	uint64_t expected;

	if (row[0] == '#')
		return;
	if (text != row || end == text || value != end + 1) {
		fprintf(stderr, "no row of a table: %s", row);
		exit(2);
	}
	*end = '\0';
	unescape(++text);
	good = value[1] != '-';
	expected = good ? strtoull(value + 1, NULL, 10) : 0;
	check_parser(text, good, expected);
	check_setting(text, good, expected);
	rows++;
}

int main(int argc, char **argv)
{
	char row[MOST_ROW_BYTES];
	FILE *table = argc == 2 ? fopen(argv[1], "r") : NULL;

	if (!table) {
		fprintf(stderr, "usage: %s sizes.tsv\n", argv[0]);
		return 2;
	}
	while (fgets(row, sizeof(row), table))
		check_row(row);
	fclose(table);
	printf("%u sizes, %u failures\n", rows, failures);
	return failures || rows < 100;
}
