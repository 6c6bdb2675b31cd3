/*
 * See byte_source.h.
 */
#include "report/journal/byte_source.h"
#include "report/support/memory.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define BUFFER_BYTES (128u << 10)
#define WINDOW_LOG   27 /* the most that zstd itself takes, unless told: memory for hostile files */

struct gm_source gm_source_plain(int fd)
{
	return (struct gm_source){.fd = fd};
}

struct gm_source gm_source_compressed(int fd, uint64_t offset, uint64_t bytes)
{
	struct gm_source source = {.fd = fd, .start = offset, .bytes = bytes};

	source.zstd = ZSTD_createDStream();
	source.buffer = gm_realloc(NULL, BUFFER_BYTES);
	if (source.zstd)
		ZSTD_DCtx_setParameter(source.zstd, ZSTD_d_windowLogMax, WINDOW_LOG);
	gm_source_rewind(&source);
	return source;
}

void gm_source_close(struct gm_source *source)
{
	ZSTD_freeDStream(source->zstd);
	free(source->buffer);
	close(source->fd);
}

void gm_source_rewind(struct gm_source *source)
{
	source->at = source->start;
	source->given = 0;
	source->in = (ZSTD_inBuffer){source->buffer, 0, 0};
	if (source->zstd)
		ZSTD_DCtx_reset(source->zstd, ZSTD_reset_session_only);
}

bool gm_source_packed(const struct gm_source *source)
{
	return source->buffer;
}

void gm_source_seek(struct gm_source *source, uint64_t offset)
{
	source->at = offset;
}

size_t gm_source_raw(const struct gm_source *source, void *to, size_t bytes, uint64_t offset)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t got =
			pread(source->fd, (char *)to + done, bytes - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		done += (size_t)got;
	}
	return done;
}

static size_t read_compressed(struct gm_source *source, void *to, size_t bytes)
{
	ZSTD_outBuffer out = {to, bytes, 0};

	if (out.size > source->bytes - source->given)
		out.size = (size_t)(source->bytes - source->given);
	while (source->zstd && out.pos < out.size) {
		size_t had = out.pos, rc;

		if (source->in.pos == source->in.size) {
			source->in.size =
				gm_source_raw(source, source->buffer, BUFFER_BYTES, source->at);
			source->in.pos = 0;
			source->at += source->in.size;
		}
		rc = ZSTD_decompressStream(source->zstd, &out, &source->in);
		if (ZSTD_isError(rc) || (out.pos == had && source->in.pos == source->in.size &&
					 source->in.size < BUFFER_BYTES))
			break;
	}
	source->given += out.pos;
	return out.pos;
}

size_t gm_source_read(struct gm_source *source, void *to, size_t bytes)
{
	size_t got;

	if (gm_source_packed(source))
		return read_compressed(source, to, bytes);
	got = gm_source_raw(source, to, bytes, source->at);
	source->at += got;
	return got;
}
