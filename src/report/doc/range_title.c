/*
 * See range_title.h.
 */
#include "report/doc/range_title.h"
#include <string.h>

/* The length of a suffix like ", seq = 12" at `text`; 0 if there is none. */
static size_t suffix_length(const char *text)
{
	static const char *const keys[] = {", seq = ", ", op_id = "};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		size_t length = strlen(keys[i]), digits;

		if (strncmp(text, keys[i], length) != 0)
			continue;
		digits = strspn(text + length, "0123456789#");
		return digits ? length + digits : 0;
	}
	return 0;
}

const char *gm_range_title(struct gm_doc *doc, const char *name)
{
	char *title = gm_zone_strdup(&doc->zone, name), *to = title;

	for (const char *from = name; *from;) {
		size_t skipped = suffix_length(from);

		from += skipped;
		if (!skipped)
			*to++ = *from++;
	}
	*to = '\0';
	return title;
}
