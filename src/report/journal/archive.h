/*
 * The zstd form of a recording, one file that holds all of it: a skippable frame with struct
 * gm_archive_head, then the output file and its history as a frame each, so that `zstd -d` gives
 * the two one after the other. Made by `export --format zst`; read wherever an output file is.
 */
#ifndef GM_REPORT_JOURNAL_ARCHIVE_H
#define GM_REPORT_JOURNAL_ARCHIVE_H

#include "report/doc/doc.h"
#include "report/doc/options.h"

#define GM_ARCHIVE_FRAME   0x184d2a50u /* zstd's magic number of a skippable frame */
#define GM_ARCHIVE_MAGIC   "GPUMEMZ"   /* 8 bytes with the NUL */
#define GM_ARCHIVE_VERSION 1u

struct gm_archive_head {
	uint32_t frame,
		frame_bytes; /* zstd's: GM_ARCHIVE_FRAME, and the size of what follows here */
	char magic[8];
	uint32_t byte_order, version;
	uint64_t file_offset, file_bytes; /* where the frame begins; what is in it, uncompressed */
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

/* The output file in it, and its history (`*journal`, NULL after a sentence in `why`). NULL: error.
 */
struct gm_reader *gm_archive_read(const char *path, struct gm_journal_file **journal, char *why,
				  size_t why_bytes, char *error, size_t error_bytes);

/* export --format zst: as gm_export_format.write_path. */
int gm_export_zst(struct gm_doc *doc, const struct gm_options *options, const char *path,
		  char *error, size_t error_bytes);

#endif
