/*
 * See range_records.h.
 */
#include "account/range_records.h"
#include <stddef.h>

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_word(char c)
{
	return is_hex(c) || (c >= 'g' && c <= 'z') || (c >= 'G' && c <= 'Z') || c == '_';
}

/* The length of a word of hexadecimal digits, as of an address or a UUID; 0: it is none. */
static size_t hex_word(const char *text)
{
	size_t length = 0, digits = 0;

	for (; is_hex(text[length]); length++)
		digits += is_digit(text[length]);
	return length >= 4 && digits >= 2 && !is_word(text[length]) ? length : 0;
}

bool gm_range_pattern(char *to, const char *text)
{
	bool any = false, inside = false;

	while (*text) {
		size_t hex = inside ? 0 : hex_word(text);

		if (hex || is_digit(*text)) {
			text += hex;
			while (!hex && is_digit(*text))
				text++;
			*to++ = '#';
			any = true;
			inside = true;
		} else {
			inside = is_word(*text);
			*to++ = *text++;
		}
	}
	*to = '\0';
	return any;
}

/*
 * Adds an instance to the samples, of which there is every second, fourth, … where there are many.
 */
static void sample(struct gm_range_record *record, const struct gm_range_instance *instance)
{
	if ((record->measured - 1) % record->stride)
		return;
	if (record->samples_count == GM_RANGE_SAMPLES) {
		for (unsigned i = 0; i < GM_RANGE_SAMPLES / 2; i++)
			record->samples[i] = record->samples[2 * i];
		record->samples_count = GM_RANGE_SAMPLES / 2;
		record->stride *= 2;
		if ((record->measured - 1) % record->stride)
			return;
	}
	record->samples[record->samples_count++] = (struct gm_range_sample){
		instance->start_bytes, instance->peak_bytes, instance->retained_bytes};
}

void gm_range_add_instance(struct gm_range_record *record, const struct gm_range_instance *instance)
{
	uint64_t added = instance->peak_bytes - instance->start_bytes;

	record->measured++;
	if (record->measured == 1 || instance->peak_bytes < record->lowest_peak_bytes)
		record->lowest_peak_bytes = instance->peak_bytes;
	if (added > record->most_added_bytes)
		record->most_added_bytes = added;
	if (record->measured == 1 || instance->peak_bytes > record->highest.peak_bytes)
		record->highest = *instance;
	if (record->measured == 1 ||
	    instance->retained_bytes > record->most_retained.retained_bytes)
		record->most_retained = *instance;
	record->retained_bytes += instance->retained_bytes;
	sample(record, instance);
}
