/*
 * The file and its complete history as one archive (journal/archive.h).
 */
#include "report/doc/options.h"
#include "report/journal/archive.h"
#include "report/journal/journal_file.h"
#include "report/render/export/internal.h"
#include "report/support/progress.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define LEVEL	    9
#define PIECE_BYTES (1u << 20)

struct packer {
	FILE *out;
	ZSTD_CCtx *zstd;
	unsigned char in[PIECE_BYTES], packed[PIECE_BYTES];
	bool failed;
};

static void pack(struct packer *packer, const void *data, size_t bytes, bool last)
{
	ZSTD_inBuffer in = {data, bytes, 0};
	size_t left = 1;

	while (!packer->failed && (last ? left != 0 : in.pos < in.size)) {
		ZSTD_outBuffer out = {packer->packed, sizeof(packer->packed), 0};

		left = ZSTD_compressStream2(packer->zstd, &out, &in,
					    last ? ZSTD_e_end : ZSTD_e_continue);
		packer->failed = ZSTD_isError(left) ||
				 fwrite(packer->packed, 1, out.pos, packer->out) != out.pos;
	}
}

/* The output file, as it was read; of a live one the copy that the document is from. */
static uint64_t pack_file(struct packer *packer, const struct gm_doc *doc)
{
	uint64_t bytes = gm_reader_bytes(doc->reader);
	const void *image = gm_reader_image(doc->reader);

	packer->failed |= !image;
	pack(packer, image, bytes, true);
	return bytes;
}

static uint64_t pack_journal(struct packer *packer, struct gm_journal_file *journal)
{
	uint64_t bytes = gm_journal_bytes(journal), at = 0;

	while (at < bytes && !packer->failed) {
		size_t part = bytes - at < PIECE_BYTES ? (size_t)(bytes - at) : PIECE_BYTES;
		size_t got = gm_journal_raw(journal, packer->in, part, at);

		gm_progress("packing the history, MiB", at >> 20, bytes >> 20);
		if (!got)
			break;
		pack(packer, packer->in, got, false);
		at += got;
	}
	pack(packer, NULL, 0, true);
	return at;
}

static bool write_archive(struct packer *packer, struct gm_doc *doc)
{
	struct gm_archive_head head = {
		.frame = GM_ARCHIVE_FRAME,
		.frame_bytes = sizeof(head) - 2 * sizeof(uint32_t),
		.magic = GM_ARCHIVE_MAGIC,
		.byte_order = GM_BYTE_ORDER,
		.version = GM_ARCHIVE_VERSION,
	};

	packer->failed = fwrite(&head, sizeof(head), 1, packer->out) != 1;
	head.file_offset = (uint64_t)ftello(packer->out);
	head.file_bytes = pack_file(packer, doc);
	head.journal_offset = (uint64_t)ftello(packer->out);
	head.journal_bytes = pack_journal(packer, doc->journal);
	return !packer->failed && fseeko(packer->out, 0, SEEK_SET) == 0 &&
	       fwrite(&head, sizeof(head), 1, packer->out) == 1;
}

int gm_export_zst(struct gm_doc *doc, const struct gm_options *options, const char *path,
		  char *error, size_t error_bytes)
{
	struct packer *packer;
	bool fine = false;

	(void)options;
	if (!doc->journal || doc->archive) {
		snprintf(error, error_bytes, "%s %s", doc->path,
			 doc->archive ? "is in the zstd form already"
				      : "has no complete history to pack; record with "
					"GPUMEMTRACE_EVENTS=all");
		return -ENODATA;
	}
	packer = gm_realloc(NULL, sizeof(*packer));
	packer->zstd = ZSTD_createCCtx();
	packer->out = fopen(path, "we");
	if (packer->zstd && packer->out) {
		ZSTD_CCtx_setParameter(packer->zstd, ZSTD_c_compressionLevel, LEVEL);
		ZSTD_CCtx_setParameter(packer->zstd, ZSTD_c_checksumFlag, 1);
		fine = write_archive(packer, doc);
	}
	if (packer->out && fclose(packer->out) != 0)
		fine = false;
	ZSTD_freeCCtx(packer->zstd);
	if (!fine)
		snprintf(error, error_bytes, "%s cannot be written: %s", path,
			 errno ? strerror(errno) : "out of memory");
	free(packer);
	return fine ? 0 : -EIO;
}
