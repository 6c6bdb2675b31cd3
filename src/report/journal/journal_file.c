/*
 * See journal_file.h. Plain histories are read with pread, so that a live one can be read too;
 * compressed ones through zstd's streaming interface.
 */
#include "report/journal/journal_file.h"
#include "account/sizes.h"
#include "report/journal/archive.h"
#include "report/journal/byte_source.h"
#include "report/support/memory.h"
#include "report/support/progress.h"
#include "store/header.h"
#include "store/output_path.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB (1u << 20)

struct gm_journal_file {
	struct gm_source source;
	struct gm_journal_header header;
	struct gm_journal_state state;
	uint64_t chunk_number;	 /* of the next chunk */
	const uint8_t *at, *end; /* the rest of the one in hand */
	uint64_t left;		 /* entries in it */
	const char *damage;
	enum { OUTSIDE, BEFORE, WITHIN } parts; /* of a checkpoint: whether they are entries */
	uint64_t checkpoint;			/* the chunk in which that one begins */
	union {
		struct gm_journal_chunk head;
		uint8_t bytes[GM_JOURNAL_CHUNK_BYTES];
	} chunk;
};

/* Returns the reason why a header is unusable; NULL if it is usable. */
static const char *header_fault(const struct gm_journal_header *header)
{
	if (gm_header_predates_versions(header->magic))
		return "was written by a development version before format 1";
	if (memcmp(header->magic, GM_JOURNAL_MAGIC, sizeof(header->magic)) != 0)
		return "is no history of gpumemtrace";
	if (header->byte_order != GM_BYTE_ORDER)
		return "was written on a machine of the other byte order, or is damaged";
	if (header->oldest_version > GM_JOURNAL_VERSION)
		return "is in a newer format; use the gpumem-report of the gpumemtrace that wrote "
		       "it";
	if (header->header_bytes < sizeof(*header) || header->header_bytes > MIB ||
	    header->chunk_bytes != GM_JOURNAL_CHUNK_BYTES)
		return "has a damaged header";
	return NULL;
}

static bool belongs_to(const struct gm_journal_header *header, const struct gm_header *file)
{
	return header->pid == file->pid && header->pid_start_ticks == file->pid_start_ticks &&
	       header->started_realtime_ns == file->started_realtime_ns &&
	       header->started_monotonic_ns == file->started_monotonic_ns;
}

void gm_journal_rewind(struct gm_journal_file *file)
{
	static char skipped[4096];
	size_t left;

	file->chunk_number = 0;
	file->at = file->end = NULL;
	file->left = 0;
	file->damage = NULL;
	file->parts = OUTSIDE;
	memset(&file->header, 0, sizeof(file->header));
	gm_source_rewind(&file->source);
	gm_source_read(&file->source, &file->header, sizeof(file->header));
	left = file->header.header_bytes > sizeof(file->header) && file->header.header_bytes <= MIB
		       ? file->header.header_bytes - sizeof(file->header)
		       : 0;
	while (left) {
		size_t part = left < sizeof(skipped) ? left : sizeof(skipped);

		if (gm_source_read(&file->source, skipped, part) != part)
			break;
		left -= part;
	}
}

static struct gm_journal_file *begin(struct gm_source source, const struct gm_header *owner,
				     const char *name, char *why, size_t why_bytes)
{
	struct gm_journal_file *file = gm_realloc(NULL, sizeof(*file));
	const char *fault;

	memset(file, 0, offsetof(struct gm_journal_file, chunk));
	file->source = source;
	gm_journal_rewind(file);
	fault = header_fault(&file->header);
	if (!fault && !belongs_to(&file->header, owner))
		fault = "is the history of another process; the one of this file is missing";
	if (!fault)
		return file;
	snprintf(why, why_bytes, "%s %s", name, fault);
	gm_journal_close(file);
	return NULL;
}

struct gm_journal_file *gm_journal_from(int fd, const struct gm_header *header, const char *name,
					char *why, size_t why_bytes)
{
	return begin(gm_source_plain(fd), header, name, why, why_bytes);
}

/*
 * Reads the path that a pointer file leads to into `target`; false if the file is no pointer file.
 */
static bool follow(int fd, char target[GM_PATH_BYTES])
{
	size_t magic = strlen(GM_POINTER_MAGIC);
	char text[GM_PATH_BYTES + 64];
	ssize_t got = pread(fd, text, sizeof(text) - 1, 0);

	if (got <= (ssize_t)magic || memcmp(text, GM_POINTER_MAGIC, magic) != 0)
		return false;
	text[got] = '\0';
	snprintf(target, GM_PATH_BYTES, "%.*s", (int)strcspn(text + magic, "\n"), text + magic);
	return *target == '/';
}

static int open_regular(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
		close(fd);
		errno = EINVAL;
		return -1;
	}
	return fd;
}

static struct gm_journal_file *find_compressed(const char *path, const struct gm_header *header,
					       char *why, size_t why_bytes)
{
	struct gm_archive archive;
	char name[GM_PATH_BYTES], error[1024];

	if (snprintf(name, sizeof(name), "%s" GM_HISTORY_SUFFIX ".zst", path) >=
		    (int)sizeof(name) ||
	    !gm_archive_detect(name) || !gm_archive_open(&archive, name, error, sizeof(error)))
		return NULL;
	return gm_journal_in_archive(archive.fd, archive.head.journal_offset,
				     archive.head.journal_bytes, header, why, why_bytes);
}

struct gm_journal_file *gm_journal_find(const char *path, const struct gm_header *header, char *why,
					size_t why_bytes)
{
	struct gm_journal_file *file;
	char name[GM_PATH_BYTES], target[GM_PATH_BYTES];
	int fd = -1;

	*why = '\0';
	if (!(header->features & GM_FEATURE_JOURNAL))
		return NULL;
	if (snprintf(name, sizeof(name), "%s" GM_HISTORY_SUFFIX, path) < (int)sizeof(name))
		fd = open_regular(name);
	if (fd >= 0 && follow(fd, target)) {
		close(fd);
		snprintf(name, sizeof(name), "%s", target);
		fd = open_regular(name);
	}
	if (fd >= 0)
		return gm_journal_from(fd, header, name, why, why_bytes);
	snprintf(why, why_bytes, "the complete history, %s, cannot be read: %s", name,
		 strerror(errno));
	file = find_compressed(path, header, why, why_bytes);
	if (file)
		*why = '\0';
	return file;
}

struct gm_journal_file *gm_journal_in_archive(int fd, uint64_t offset, uint64_t bytes,
					      const struct gm_header *header, char *why,
					      size_t why_bytes)
{
	return begin(gm_source_compressed(fd, offset, bytes), header, "the archive's history", why,
		     why_bytes);
}

void gm_journal_close(struct gm_journal_file *file)
{
	if (!file)
		return;
	gm_source_close(&file->source);
	free(file);
}

/* Says what is wrong and ends the reading. */
static bool damaged(struct gm_journal_file *file, const char *what)
{
	file->damage = what;
	file->left = 0;
	file->at = file->end = NULL;
	return false;
}

/* The next chunk with entries in it; false at the end. */
static bool open_chunk(struct gm_journal_file *file)
{
	const struct gm_journal_chunk *head = &file->chunk.head;
	uint64_t number = file->chunk_number;
	size_t got;

	if (file->damage || number >= file->header.chunk_count)
		return false;
	if (file->parts == BEFORE && number != file->checkpoint)
		return damaged(file, "has a damaged part"); /* the list names a chunk without one */
	gm_progress("reading the history, MiB", number * sizeof(file->chunk) / MIB,
		    file->header.chunk_count * sizeof(file->chunk) / MIB);
	got = gm_source_read(&file->source, file->chunk.bytes, sizeof(file->chunk));
	if (got < sizeof(*head))
		return damaged(file, "is cut short");
	if (head->magic != GM_JOURNAL_CHUNK_MAGIC || head->number != (uint32_t)number)
		return damaged(file, "has a damaged part");
	if ((uint32_t)head->filled > sizeof(file->chunk) - sizeof(*head))
		return damaged(file, "has a damaged part");
	if (sizeof(*head) + (uint32_t)head->filled > got)
		return damaged(file, "is cut short");
	file->chunk_number++;
	file->at = file->chunk.bytes + sizeof(*head);
	file->end = file->at + (uint32_t)head->filled;
	file->left = head->filled >> 32;
	gm_journal_begin(&file->state, head->base_ns, head->base_serial);
	return true;
}

static bool next(struct gm_journal_file *file, struct gm_journal_entry *entry)
{
	while (!file->left) {
		if (file->at != file->end)
			return damaged(file, "has a damaged part");
		if (!open_chunk(file))
			return false;
	}
	file->at = gm_journal_get(&file->state, file->at, file->end, entry);
	if (!file->at)
		return damaged(file, "has a damaged part");
	if (entry->what == GM_JOURNAL_ADD)
		entry->alloc.physical_bytes +=
			gm_driver_bytes(entry->alloc.level, entry->alloc.kind, entry->alloc.bytes);
	file->left--;
	return true;
}

/* Entries before a checkpoint from which reading goes on, and other checkpoints, are passed over.
 */
static bool is_passed_over(struct gm_journal_file *file, const struct gm_journal_entry *entry)
{
	bool part = entry->what == GM_JOURNAL_PART;

	if (part && file->parts == BEFORE && entry->record.part == GM_PART_BEGIN)
		file->parts = WITHIN;
	else if (part && file->parts == WITHIN && entry->record.part == GM_PART_END)
		file->parts = OUTSIDE;
	else
		return file->parts == BEFORE || (part && file->parts == OUTSIDE);
	return false;
}

bool gm_journal_next(struct gm_journal_file *file, struct gm_journal_entry *entry)
{
	while (next(file, entry))
		if (!is_passed_over(file, entry))
			return true;
	return false;
}

static uint64_t chunk_offset(const struct gm_journal_file *file, uint64_t number)
{
	return file->header.header_bytes + number * GM_JOURNAL_CHUNK_BYTES;
}

/* Reads the head of a chunk. Returns false if there is no such chunk. */
static bool read_head(const struct gm_journal_file *file, uint64_t number,
		      struct gm_journal_chunk *head)
{
	return number < file->header.chunk_count &&
	       gm_source_raw(&file->source, head, sizeof(*head), chunk_offset(file, number)) ==
		       sizeof(*head) &&
	       head->magic == GM_JOURNAL_CHUNK_MAGIC && head->number == (uint32_t)number;
}

/* Finds the chunk in which the latest checkpoint begins that was complete before the moment. */
static bool find_checkpoint(const struct gm_journal_file *file, uint64_t at_ns, uint64_t *begin)
{
	uint32_t count = file->header.checkpoints;
	struct gm_journal_chunk head;

	if (count > GM_JOURNAL_CHECKPOINTS || gm_source_packed(&file->source))
		return false;
	while (count-- > 0) {
		uint64_t checkpoint = file->header.checkpoint[count];

		*begin = checkpoint >> 32;
		if (read_head(file, (uint32_t)checkpoint + 1ull, &head) && head.base_ns <= at_ns)
			return read_head(file, *begin, &head);
	}
	return false;
}

void gm_journal_resume(struct gm_journal_file *file, uint64_t at_ns)
{
	uint64_t begin;

	gm_journal_rewind(file);
	if (!find_checkpoint(file, at_ns, &begin))
		return;
	gm_source_seek(&file->source, chunk_offset(file, begin));
	file->chunk_number = file->checkpoint = begin;
	file->parts = BEFORE;
}

const struct gm_journal_header *gm_journal_header(const struct gm_journal_file *file)
{
	return &file->header;
}

uint64_t gm_journal_bytes(const struct gm_journal_file *file)
{
	return chunk_offset(file, file->header.chunk_count);
}

const char *gm_journal_damage(const struct gm_journal_file *file)
{
	return file->damage;
}

size_t gm_journal_raw(struct gm_journal_file *file, void *buffer, size_t bytes, uint64_t offset)
{
	return gm_source_raw(&file->source, buffer, bytes, offset);
}
