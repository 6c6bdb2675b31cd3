/*
 * Opening archives, see archive.h. render/export/zst.c writes them.
 */
#include "report/journal/archive.h"
#include "report/journal/byte_source.h"
#include "store/layout.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE_BYTES    (1u << 20)
#define MAX_FILE_BYTES (16ull << 30) /* as the reader's */
#define LEAST_BOUND    (64ull << 20)
#define MOST_RATIO     1000

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

/*
 * Output files and histories are packed to a fifth or a twentieth, so one that is to become
 * thousands of times as large was made to exhaust the memory.
 */
static bool unpacks_to_too_much(const struct gm_archive *archive)
{
	struct stat st;
	uint64_t most;

	if (fstat(archive->fd, &st) < 0)
		return true;
	most = LEAST_BOUND + (uint64_t)st.st_size * MOST_RATIO;
	return archive->head.file_bytes > most || archive->head.journal_bytes > most;
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
	else if (unpacks_to_too_much(archive))
		fault = "says that it unpacks to more than a thousand times its size";
	if (!fault)
		return true;
	if (archive->fd >= 0)
		close(archive->fd);
	snprintf(error, error_bytes, "%s: %s", path, fault);
	return false;
}

unsigned char *gm_archive_unpack(struct gm_archive *archive, uint64_t *bytes)
{
	struct gm_source source = gm_source_compressed(dup(archive->fd), archive->head.file_offset,
						       archive->head.file_bytes);
	unsigned char *image = NULL;
	uint64_t room = 0;
	size_t got;

	*bytes = 0;
	do { /* the head's size is not believed before so much has come */
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
