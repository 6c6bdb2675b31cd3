/*
 * Archives (archive.h): writing and opening them.
 */
#include "report/journal/archive.h"
#include "report/doc/options.h"
#include "report/journal/byte_source.h"
#include "report/journal/journal_file.h"
#include "report/support/progress.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEVEL	       9
#define PIECE_BYTES    (1u << 20)
#define MAX_FILE_BYTES (16ull << 30) /* as the reader's */

static bool read_head(int fd, struct gm_archive_head *head)
{
	return pread(fd, head, sizeof(*head), 0) == (ssize_t)sizeof(*head) &&
	       head->frame == GM_ARCHIVE_FRAME &&
	       memcmp(head->magic, GM_ARCHIVE_MAGIC, sizeof(head->magic)) == 0;
}

bool gm_archive_detect(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct gm_archive_head head;
	bool is = fd >= 0 && read_head(fd, &head);

	if (fd >= 0)
		close(fd);
	return is;
}

bool gm_archive_open(struct gm_archive *archive, const char *path, char *error, size_t error_bytes)
{
	const char *fault = NULL;

	archive->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (archive->fd < 0)
		fault = strerror(errno);
	else if (!read_head(archive->fd, &archive->head))
		fault = "is no archive of gpumemtrace";
	else if (archive->head.byte_order != GM_BYTE_ORDER)
		fault = "was written on a machine of the other byte order";
	else if (archive->head.version > GM_ARCHIVE_VERSION)
		fault = "is in a newer format; use the gpumem-report that wrote it";
	else if (archive->head.file_bytes > MAX_FILE_BYTES || !archive->head.file_offset)
		fault = "is damaged, or was not written to its end";
	if (!fault)
		return true;
	if (archive->fd >= 0)
		close(archive->fd);
	snprintf(error, error_bytes, "%s: %s", path, fault);
	return false;
}

/* The output file's bytes, as many as there are; NULL without memory for them. */
static unsigned char *unpack(struct gm_archive *archive, uint64_t *bytes)
{
	struct gm_source source = gm_source_compressed(dup(archive->fd), archive->head.file_offset,
						       archive->head.file_bytes);
	unsigned char *image = NULL;
	uint64_t room = 0;
	size_t got;

	*bytes = 0;
	do { /* what the head says is not believed before it has come */
		if (*bytes == room) {
			unsigned char *grown;

			room = room ? 2 * room : PIECE_BYTES;
			grown = realloc(image, room);
			if (!grown) {
				free(image);
				image = NULL;
				break;
			}
			image = grown;
		}
		got = gm_source_read(&source, image + *bytes, room - *bytes);
		*bytes += got;
	} while (got);
	gm_source_close(&source);
	return image;
}

struct gm_reader *gm_archive_read(const char *path, struct gm_journal_file **journal, char *why,
				  size_t why_bytes, char *error, size_t error_bytes)
{
	struct gm_reader *reader = NULL;
	struct gm_archive archive;
	unsigned char *image;
	uint64_t bytes;

	*journal = NULL;
	if (!gm_archive_open(&archive, path, error, error_bytes))
		return NULL;
	image = unpack(&archive, &bytes);
	if (!image)
		snprintf(error, error_bytes, "%s: out of memory", path);
	else
		reader = gm_reader_from_image(path, image, bytes, error, error_bytes);
	if (reader)
		*journal = gm_journal_in_archive(archive.fd, archive.head.journal_offset,
						 archive.head.journal_bytes,
						 gm_reader_header(reader), why, why_bytes);
	else
		close(archive.fd);
	return reader;
}

/* ---- writing ---- */

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

	pack(packer, gm_reader_image(doc->reader), bytes, true);
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
