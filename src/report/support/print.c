/*
 * Harmless names in texts (print.h).
 */
#include "report/support/print.h"
#include "report/support/memory.h"
#include "store/reader.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SPEC_BYTES 32
#define LETTERS	   "abcdefghijklmnopqrstuvwxyz"

static uint32_t code_point(const unsigned char *text, unsigned length)
{
	static const unsigned char first[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	uint32_t code = text[0] & first[length];

	for (unsigned i = 1; i < length; i++)
		code = code << 6 | (text[i] & 0x3f);
	return code;
}

/* Controls, separators of lines and paragraphs, marks of direction, and invisible characters. */
static bool harmful(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c ||
	       (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
	       (code >= 0x2060 && code <= 0x206f) || code == 0xfeff ||
	       (code >= 0xe0000 && code <= 0xe007f);
}

static void write_escape(FILE *file, uint32_t code)
{
	static const char letters[] = "abtnvfr";

	if (code >= '\a' && code <= '\r')
		fprintf(file, "\\%c", letters[code - '\a']);
	else
		fprintf(file, code < 0x80 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x",
			code);
}

/* Returns whether a CI host would take what begins here for a command, without the backslash. */
static bool begins_command(const char *name, const char *at)
{
	if (at[0] == ':')
		return at[1] == ':' && (at == name || at[-1] == ' ' || at[-1] == '\t');
	return at[0] == '#' && at > name && at[-1] == '#' && at[1 + strspn(at + 1, LETTERS)] == '[';
}

static bool plain(const char *name, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if ((unsigned char)name[i] < 0x20 || (unsigned char)name[i] >= 0x7f ||
		    name[i] == '#' || name[i] == ':')
			return false;
	return true;
}

void gm_print_name(FILE *file, const char *name, size_t bytes)
{
	size_t whole = strnlen(name, bytes), i = 0;

	if (plain(name, whole)) {
		fwrite(name, 1, whole, file);
		return;
	}
	while (i < whole) {
		const unsigned char *at = (const unsigned char *)name + i;
		unsigned length = gm_utf8_length(at, strnlen(name + i, 4));

		if (length && i + length > whole)
			break; /* a character that the limit cuts in two */
		if (!length)
			fprintf(file, "\\x%02x", *at);
		else if (harmful(code_point(at, length)))
			write_escape(file, code_point(at, length));
		else {
			if (begins_command(name, name + i))
				fputc('\\', file);
			fwrite(at, 1, length, file);
		}
		i += length ? length : 1;
	}
}

char *gm_harmless(const char *name)
{
	char *harmless = NULL;
	size_t bytes = 0;
	FILE *memory = open_memstream(&harmless, &bytes);

	if (!memory)
		gm_no_memory();
	gm_print_name(memory, name, SIZE_MAX);
	fclose(memory);
	return harmless;
}

/* A conversion of the format: its flags, width and precision as numbers, and its size. */
struct conversion {
	char flags[8];
	int width, precision; /* -1: none */
	char size[3];
	char type;
};

static const char *read_number(const char *at, int *number, va_list *args)
{
	*number = 0;
	if (*at == '*') {
		*number = va_arg(*args, int);
		return at + 1;
	}
	while (*at >= '0' && *at <= '9')
		*number = *number * 10 + (*at++ - '0');
	return at;
}

/* Reads what follows a '%'. */
static const char *read_conversion(const char *at, struct conversion *to, va_list *args)
{
	size_t flags = strspn(at, "-+ #0"), size;

	*to = (struct conversion){.width = -1, .precision = -1};
	memcpy(to->flags, at, flags < sizeof(to->flags) ? flags : sizeof(to->flags) - 1);
	at += flags;
	if (*at == '*' || (*at >= '1' && *at <= '9'))
		at = read_number(at, &to->width, args);
	if (*at == '.')
		at = read_number(at + 1, &to->precision, args);
	size = strspn(at, "hljzt");
	memcpy(to->size, at, size < sizeof(to->size) ? size : sizeof(to->size) - 1);
	at += size;
	to->type = *at;
	return *at ? at + 1 : at;
}

static void write_text(FILE *file, const struct conversion *how, const char *text)
{
	char *name = NULL;
	size_t bytes = 0, limit = how->precision < 0 ? SIZE_MAX : (size_t)how->precision;
	bool left = how->width < -1 || strchr(how->flags, '-') != NULL;
	int width = how->width < -1 ? -how->width : how->width, pad;
	FILE *memory;

	text = text ? text : "(null)";
	if (width <= 0) {
		gm_print_name(file, text, limit);
		return;
	}
	memory = open_memstream(&name, &bytes);
	if (!memory)
		return;
	gm_print_name(memory, text, limit);
	fclose(memory);
	pad = (size_t)width > bytes ? width - (int)bytes : 0;
	fprintf(file, "%*s%s%*s", left ? 0 : pad, "", name, left ? pad : 0, "");
	free(name);
}

/* Integers are passed on as the widest type, by their size. */
static void write_integer(FILE *file, const struct conversion *how, va_list *args)
{
	char spec[SPEC_BYTES];
	bool is_signed = how->type == 'd' || how->type == 'i';
	uint64_t value;

	if (strchr("ljzt", how->size[0]) && how->size[0])
		value = va_arg(*args, uint64_t);
	else if (is_signed)
		value = (uint64_t)(int64_t)va_arg(*args, int);
	else
		value = va_arg(*args, unsigned);
	snprintf(spec, sizeof(spec), "%%%s*.*j%c", how->flags, how->type);
	fprintf(file, spec, how->width < 0 && how->width == -1 ? 0 : how->width, how->precision,
		(uintmax_t)value);
}

static void write_conversion(FILE *file, const struct conversion *how, va_list *args)
{
	char spec[SPEC_BYTES];

	snprintf(spec, sizeof(spec), "%%%s*.*%c", how->flags, how->type);
	switch (how->type) {
	case 's':
		write_text(file, how, va_arg(*args, const char *));
		break;
	case 'c':
		fputc(va_arg(*args, int), file);
		break;
	case 'd': case 'i': case 'u': case 'o': case 'x': case 'X':
		write_integer(file, how, args);
		break;
	case 'p':
		fprintf(file, "%p", va_arg(*args, void *));
		break;
	case '%':
		fputc('%', file);
		break;
	default: /* floating point */
		fprintf(file, spec, how->width == -1 ? 0 : how->width, how->precision,
			va_arg(*args, double));
	}
}

static void write_all(FILE *file, const char *format, va_list arguments)
{
	struct conversion how;
	va_list args;

	va_copy(args, arguments);
	while (*format) {
		size_t literal = strcspn(format, "%");

		fwrite(format, 1, literal, file);
		format += literal;
		if (*format == '%') {
			format = read_conversion(format + 1, &how, &args);
			write_conversion(file, &how, &args);
		}
	}
	va_end(args);
}

static char *format_whole(size_t *length, const char *format, va_list args)
{
	char *whole = NULL;
	FILE *memory = open_memstream(&whole, length);

	if (!memory)
		gm_no_memory();
	write_all(memory, format, args);
	fclose(memory);
	return whole;
}

int gm_vprintf(FILE *file, const char *format, va_list args)
{
	size_t length = 0;
	char *whole = format_whole(&length, format, args);

	fwrite(whole, 1, length, file);
	free(whole);
	return (int)length;
}

int gm_printf(FILE *file, const char *format, ...)
{
	va_list args;
	int length;

	va_start(args, format);
	length = gm_vprintf(file, format, args);
	va_end(args);
	return length;
}

void gm_vsnprintf(char *text, size_t bytes, const char *format, va_list args)
{
	size_t length = 0;
	char *whole = format_whole(&length, format, args);

	if (length >= bytes) {
		length = bytes - 1;
		while (length && ((unsigned char)whole[length] & 0xc0) == 0x80)
			length--;
	}
	memcpy(text, whole, length);
	text[length] = '\0';
	free(whole);
}
