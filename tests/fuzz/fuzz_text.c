/*
 * Any bytes as a file of suppressions and as a file of rules, and as patterns held against
 * themselves.
 */
#include "harness.h"
#include "report/support/memory.h"
#include "report/stacks/rules.h"
#include "report/judge/suppress.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct gm_zone zone = {0};
	char path[64], error[256], text[256];
	size_t half = bytes / 2 < sizeof(text) - 1 ? bytes / 2 : sizeof(text) - 1;
	int fd;

	if (bytes > 1 << 16)
		return 0;
	harness_file(data, bytes, &fd, path);
	gm_suppressions_read(&zone, NULL, path, error, sizeof(error));
	gm_rules_extend(path, error, sizeof(error));
	gm_rules_forget();
	close(fd);
	memcpy(text, data, half);
	text[half] = '\0';
	if (half) {
		char pattern[256];

		memcpy(pattern, data + bytes - half, half);
		pattern[half] = '\0';
		gm_suppression_matches(pattern, text);
	}
	gm_zone_free(&zone);
	return 0;
}
