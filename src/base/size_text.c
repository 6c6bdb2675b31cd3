/*
 * Reading a size (size_text.h). The arithmetic is that of integers, so that "4.35MB" is 4350000
 * bytes and not one less, and so that no setting of the locale turns the decimal point into
 * something else.
 */
#include "base/size_text.h"

#include <stddef.h>

/* 10^20 times the largest unit is below 2^128, and 2^64 has 20 digits. */
#define MOST_DIGITS	     20
#define MOST_EXPONENT_DIGITS 3

/* A number is digits * 10^exponent. */
struct number {
	unsigned __int128 digits;
	int count; /* of the digits kept */
	int exponent;
};

static const char *skip_space(const char *text)
{
	while (*text == ' ' || (*text >= '\t' && *text <= '\r'))
		text++;
	return text;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Digits before the decimal point (`place` 0) or after it (1). Later digits change no size. */
static const char *read_digits(const char *text, int place, struct number *number)
{
	for (; is_digit(*text); text++) {
		if (number->count == MOST_DIGITS) {
			number->exponent += 1 - place;
			continue;
		}
		number->digits = number->digits * 10 + (unsigned)(*text - '0');
		number->count += number->digits != 0;
		number->exponent -= place;
	}
	return text;
}

/* An exponent, if there is one. NULL if its digits are missing or too many. */
static const char *read_exponent(const char *text, struct number *number)
{
	int sign = 1, value = 0, count;

	if ((*text | 0x20) != 'e')
		return text;
	text++;
	if (*text == '+' || *text == '-')
		sign = *text++ == '-' ? -1 : 1;
	for (count = 0; is_digit(text[count]) && count <= MOST_EXPONENT_DIGITS; count++)
		value = value * 10 + (text[count] - '0');
	number->exponent += sign * value;
	return count >= 1 && count <= MOST_EXPONENT_DIGITS ? text + count : NULL;
}

static const char *read_number(const char *text, struct number *number)
{
	const char *start = text, *point;

	point = text = read_digits(text, 0, number);
	if (*text == '.')
		text = read_digits(text + 1, 1, number);
	if (point == start && text <= point + 1)
		return NULL; /* there is no digit on either side of the point */
	return read_exponent(text, number);
}

/* The unit's factor; NULL if there is another letter. */
static const char *read_unit(const char *text, uint64_t *factor)
{
	static const char prefixes[] = "kmgtp";
	uint64_t base = 1000;
	unsigned power;

	*factor = 1;
	for (power = 0; prefixes[power] && prefixes[power] != (*text | 0x20); power++)
		;
	if (!prefixes[power])
		return (*text | 0x20) == 'b' ? text + 1 : text;
	text++;
	if ((*text | 0x20) != 'b') { /* "G" or "GiB"; "Gi" is neither */
		base = 1024;
		if ((text[0] | 0x20) == 'i' && (text[1] | 0x20) == 'b')
			text++;
	}
	for (power++; power; power--)
		*factor *= base;
	return (*text | 0x20) == 'b' ? text + 1 : text;
}

bool gm_parse_size(const char *text, uint64_t *bytes)
{
	struct number number = {0};
	unsigned __int128 value;
	uint64_t factor;

	text = read_number(skip_space(text), &number);
	if (!text)
		return false;
	text = skip_space(read_unit(skip_space(text), &factor));
	if (*text)
		return false;
	value = number.digits * factor;
	for (; number.exponent < 0 && value; number.exponent++)
		value /= 10;
	for (; number.exponent > 0 && value && value < UINT64_MAX; number.exponent--)
		value *= 10;
	if (value >= UINT64_MAX)
		return false;
	*bytes = (uint64_t)value;
	return true;
}
