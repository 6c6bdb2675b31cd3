/*
 * A stream of bytes from a file, as they are or through zstd, that can be read from its start
 * again.
 */
#ifndef GM_REPORT_JOURNAL_BYTE_SOURCE_H
#define GM_REPORT_JOURNAL_BYTE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zstd.h>

struct gm_source {
	int fd;
	uint64_t start, at;    /* of the file: where the stream begins and the next read is */
	uint64_t bytes, given; /* of a compressed one: its plain size, and what was handed out */
	ZSTD_DStream *zstd;    /* NULL: plain */
	unsigned char *buffer;
	ZSTD_inBuffer in;
};

/* Both functions take the descriptor. A compressed source hands out at most `bytes` plain bytes. */
struct gm_source gm_source_plain(int fd);
struct gm_source gm_source_compressed(int fd, uint64_t offset, uint64_t bytes);
void gm_source_close(struct gm_source *source);
void gm_source_rewind(struct gm_source *source);

/* Up to `bytes`; fewer at the end, or where it cannot be read on. */
size_t gm_source_read(struct gm_source *source, void *to, size_t bytes);

/* True for a compressed one. */
bool gm_source_packed(const struct gm_source *source);

/* Goes on at that offset of the file, of a plain one. */
void gm_source_seek(struct gm_source *source, uint64_t offset);

/* From any place of a plain one; does not move the stream. */
size_t gm_source_raw(const struct gm_source *source, void *to, size_t bytes, uint64_t offset);

#endif
