/*
 * Writing JSON part by part, see json_out.h.
 */
#include "report/render/json/json_out.h"
#include <errno.h>
#include <stdint.h>
#include <string.h>

#define FORMAT (JSON_COMPACT | JSON_REAL_PRECISION(12) | JSON_ENCODE_ANY)

static void flush(struct gm_json_out *out)
{
	if (out->used && out->write(out->text, out->used, out->data) != 0)
		out->failed = true;
	out->used = 0;
}

void gm_json_put(struct gm_json_out *out, const char *text, size_t bytes)
{
	if (out->used + bytes > sizeof(out->text))
		flush(out);
	if (bytes > sizeof(out->text)) {
		if (out->write(text, bytes, out->data) != 0)
			out->failed = true;
		return;
	}
	memcpy(out->text + out->used, text, bytes);
	out->used += bytes;
}

void gm_json_put_text(struct gm_json_out *out, const char *text)
{
	gm_json_put(out, text, strlen(text));
}

static int add(const char *text, size_t bytes, void *data)
{
	gm_json_put(data, text, bytes);
	return 0;
}

void gm_json_put_integer(struct gm_json_out *out, int64_t value)
{
	uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;
	char text[24], *at = text + sizeof(text);

	do {
		*--at = (char)('0' + left % 10);
		left /= 10;
	} while (left);
	if (value < 0)
		*--at = '-';
	gm_json_put(out, at, (size_t)(text + sizeof(text) - at));
}

bool gm_json_put_plain(struct gm_json_out *out, const char *string)
{
	size_t bytes = 0;

	for (; string[bytes]; bytes++) {
		unsigned char byte = (unsigned char)string[bytes];

		if (byte < 0x20 || byte >= 0x80 || byte == '"' || byte == '\\')
			return false;
	}
	gm_json_put(out, "\"", 1);
	gm_json_put(out, string, bytes);
	gm_json_put(out, "\"", 1);
	return true;
}

/* The most frequent values are written directly: jansson prepares for a tree each time. */
void gm_json_put_value(struct gm_json_out *out, json_t *value)
{
	const char *string = json_string_value(value);
	bool whole = string && strlen(string) == json_string_length(value);

	if (json_is_integer(value))
		gm_json_put_integer(out, json_integer_value(value));
	else if (json_is_null(value))
		gm_json_put(out, "null", 4);
	else if (!(whole && gm_json_put_plain(out, string)) &&
		 (!value || json_dump_callback(value, add, out, FORMAT) != 0))
		out->failed = true;
	json_decref(value);
}

void gm_json_put_name(struct gm_json_out *out, const char *key)
{
	gm_json_put_text(out, out->one_line ? ", \"" : ",\n\"");
	gm_json_put_text(out, key);
	gm_json_put_text(out, "\": ");
}

void gm_json_put_key(struct gm_json_out *out, const char *key, json_t *value)
{
	gm_json_put_name(out, key);
	gm_json_put_value(out, value);
}

bool gm_json_out_end(struct gm_json_out *out)
{
	flush(out);
	return !out->failed;
}

int gm_json_to_file(const char *text, size_t bytes, void *file)
{
	return fwrite(text, 1, bytes, file) == bytes ? 0 : -1;
}

int gm_json_write(json_t *value, FILE *file)
{
	int rc = value ? json_dumpf(value, file, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) : -1;

	json_decref(value);
	if (rc == 0 && fputc('\n', file) != EOF && fflush(file) == 0)
		return 0;
	return errno ? -errno : -EIO;
}
