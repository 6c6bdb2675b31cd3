/*
 * Opening what a path names: an output file, its zstd form, a snapshot of PyTorch's; and the
 * complete history that belongs to it.
 */
#include "report/load/files.h"
#include "report/import/import.h"
#include "report/journal/archive.h"
#include "report/journal/journal_file.h"
#include "report/load/internal.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A history by its own name stands for the file that it is beside. */
static const char *main_path(struct gm_doc *doc, const char *path)
{
	size_t length = strlen(path), suffix = strlen(GM_HISTORY_SUFFIX);
	char magic[sizeof(GM_JOURNAL_MAGIC)] = "";
	FILE *file;

	if (length <= suffix || strcmp(path + length - suffix, GM_HISTORY_SUFFIX) != 0)
		return path;
	file = fopen(path, "re");
	if (file && fread(magic, 1, sizeof(magic), file) != sizeof(magic))
		magic[0] = '\0';
	if (file)
		fclose(file);
	return memcmp(magic, GM_JOURNAL_MAGIC, sizeof(magic)) == 0
		       ? gm_zone_strndup(&doc->zone, path, length - suffix)
		       : path;
}

/* An archive's output file, and its history (`*journal`, NULL after a sentence in `why`). */
static struct gm_reader *read_archive(const char *path, struct gm_journal_file **journal, char *why,
				      size_t why_bytes, char *error, size_t error_bytes)
{
	struct gm_reader *reader = NULL;
	struct gm_archive archive;
	unsigned char *image;
	uint64_t bytes;

	*journal = NULL;
	if (!gm_archive_open(&archive, path, error, error_bytes))
		return NULL;
	image = gm_archive_unpack(&archive, &bytes);
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

bool gm_open_files(struct gm_doc *doc, const char *path, char *error, size_t error_bytes)
{
	char why[1024] = "";

	doc->archive = gm_archive_detect(path);
	if (doc->archive) {
		doc->reader =
			read_archive(path, &doc->journal, why, sizeof(why), error, error_bytes);
	} else if (gm_import_detect(path)) {
		doc->reader = gm_import_open(&doc->zone, path, &doc->imported, &doc->imported_count,
					     error, error_bytes);
	} else {
		doc->reader = gm_reader_open(main_path(doc, path), error, error_bytes);
		if (doc->reader)
			doc->journal =
				gm_journal_find(gm_reader_path(doc->reader),
						gm_reader_header(doc->reader), why, sizeof(why));
	}
	if (!doc->reader)
		return false;
	doc->header = gm_reader_header(doc->reader);
	if (*why)
		gm_doc_warn(doc, "%s", why);
	return true;
}

void gm_warn_history(struct gm_doc *doc)
{
	const struct gm_journal_header *header =
		doc->journal ? gm_journal_header(doc->journal) : NULL;

	if (header && header->lost)
		gm_doc_warn(doc,
			    "the complete history ends after %.9g s: %s; %llu later events are not "
			    "in it",
			    gm_seconds(header->lost_from_ns),
			    header->loss == GM_JOURNAL_CAP
				    ? "GPUMEMTRACE_MAX_EVENTS was reached, raise it"
				    : "the disk was full",
			    (unsigned long long)header->lost);
}

void gm_close_files(struct gm_doc *doc)
{
	gm_journal_close(doc->journal);
	gm_reader_close(doc->reader);
}
