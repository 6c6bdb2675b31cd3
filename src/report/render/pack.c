/*
 * gzip and base64 on the way to a file, see pack.h.
 */
#include "report/render/pack.h"
#include <string.h>

#define GZIP_WINDOW (15 + 16) /* the largest window, with gzip's header */

static void write_group(struct gm_pack *pack, const unsigned char bytes[3], unsigned count)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	unsigned bits = (unsigned)bytes[0] << 16 | (unsigned)bytes[1] << 8 | bytes[2];
	char text[4] = {digits[bits >> 18], digits[bits >> 12 & 63],
			count > 1 ? digits[bits >> 6 & 63] : '=',
			count > 2 ? digits[bits & 63] : '='};

	if (fwrite(text, 1, sizeof(text), pack->out) != sizeof(text))
		pack->failed = true;
}

static void encode(struct gm_pack *pack, const unsigned char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		pack->rest[pack->rest_count++] = bytes[i];
		if (pack->rest_count == 3) {
			write_group(pack, pack->rest, 3);
			pack->rest_count = 0;
		}
	}
}

static void deflate_all(struct gm_pack *pack, int flush)
{
	unsigned char buffer[16384];
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
	pack->failed = deflateInit2(&pack->stream, Z_BEST_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 9,
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
	if (pack->rest_count)
		write_group(pack, last, pack->rest_count);
	deflateEnd(&pack->stream);
	return !pack->failed;
}
