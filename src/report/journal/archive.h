/*
 * The zstd form of a recording, one file that holds all of it: a skippable frame with struct
 * gm_archive_head, then the output file and its history as a frame each, so that `zstd -d` gives
 * the two one after the other. Made by `export --format zst`; read wherever an output file is.
 */
#ifndef GM_REPORT_JOURNAL_ARCHIVE_H
#define GM_REPORT_JOURNAL_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GM_ARCHIVE_FRAME   0x184d2a50u /* zstd's magic number of a skippable frame */
#define GM_ARCHIVE_MAGIC   "GPUMEMZ"   /* 8 bytes with the NUL */
#define GM_ARCHIVE_VERSION 1u

struct gm_archive_head {
	uint32_t frame,
		frame_bytes; /* zstd's: GM_ARCHIVE_FRAME, and the size of what follows here */
	char magic[8];
	uint32_t byte_order, version;
	uint64_t file_offset, file_bytes; /* of the frame; of its contents, uncompressed */
	uint64_t journal_offset, journal_bytes;
	uint64_t reserved;
};

struct gm_archive {
	struct gm_archive_head head;
	int fd;
};

/* True if the file at `path` begins like an archive. */
bool gm_archive_detect(const char *path);

/* Opens an archive; false after a sentence. The caller closes `fd`. */
bool gm_archive_open(struct gm_archive *archive, const char *path, char *error, size_t error_bytes);

/*
 * The bytes of the output file in it, as many as there are; NULL without memory for them. The
 * caller frees them.
 */
unsigned char *gm_archive_unpack(struct gm_archive *archive, uint64_t *bytes);

#endif
