/*
 * gzip and base64 on the way to a file, see pack.h.
 */
#include "report/render/page/pack.h"
#include <string.h>

/*
 * Of a document of 162 MB, level 3 makes a tenth more bytes than zlib's default in less than half
 * of its time.
 */
#define LEVEL 3
#define GZIP_WINDOW (15 + 16) /* the largest window, with gzip's header */

static void put_group(const unsigned char bytes[3], unsigned count, char text[4])
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	unsigned bits = (unsigned)bytes[0] << 16 | (unsigned)bytes[1] << 8 | bytes[2];

	text[0] = digits[bits >> 18];
	text[1] = digits[bits >> 12 & 63];
	text[2] = count > 1 ? digits[bits >> 6 & 63] : '=';
	text[3] = count > 2 ? digits[bits & 63] : '=';
}

#define PIECE 16384 /* bytes that deflate gives at a time */

static void encode(struct gm_pack *pack, const unsigned char *bytes, size_t count)
{
	char text[PIECE / 3 * 4 + 8];
	size_t used = 0;

	for (size_t i = 0; i < count; i++) {
		pack->rest[pack->rest_count++] = bytes[i];
		if (pack->rest_count == 3) {
			put_group(pack->rest, 3, text + used);
			used += 4;
			pack->rest_count = 0;
		}
	}
	if (fwrite(text, 1, used, pack->out) != used)
		pack->failed = true;
}

static void deflate_all(struct gm_pack *pack, int flush)
{
	unsigned char buffer[PIECE];
	int rc;

	do {
		pack->stream.next_out = buffer;
		pack->stream.avail_out = sizeof(buffer);
		rc = deflate(&pack->stream, flush);
		encode(pack, buffer, sizeof(buffer) - pack->stream.avail_out);
	} while (rc == Z_OK && pack->stream.avail_out == 0);
	if (rc == Z_STREAM_ERROR)
		pack->failed = true;
}

bool gm_pack_begin(struct gm_pack *pack, FILE *out)
{
	*pack = (struct gm_pack){.out = out};
	pack->failed = deflateInit2(&pack->stream, LEVEL, Z_DEFLATED, GZIP_WINDOW, 9,
				    Z_DEFAULT_STRATEGY) != Z_OK;
	return !pack->failed;
}

int gm_pack_add(const char *text, size_t bytes, void *data)
{
	struct gm_pack *pack = data;

	while (bytes && !pack->failed) {
		uInt part = bytes < 1u << 30 ? (uInt)bytes : 1u << 30;

		pack->stream.next_in = (unsigned char *)text;
		pack->stream.avail_in = part;
		deflate_all(pack, Z_NO_FLUSH);
		text += part;
		bytes -= part;
	}
	return pack->failed ? -1 : 0;
}

bool gm_pack_end(struct gm_pack *pack)
{
	unsigned char last[3] = {0};

	if (!pack->failed)
		deflate_all(pack, Z_FINISH);
	memcpy(last, pack->rest, pack->rest_count);
	if (pack->rest_count) {
		char text[4];

		put_group(last, pack->rest_count, text);
		if (fwrite(text, 1, sizeof(text), pack->out) != sizeof(text))
			pack->failed = true;
	}
	deflateEnd(&pack->stream);
	return !pack->failed;
}
