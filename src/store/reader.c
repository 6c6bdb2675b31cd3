/*
 * Opening an output file and handing out checked copies of its records. Everything read is taken
 * for hostile: see reader.h. What is wrong with a file is collected as warnings; only a file of
 * which nothing can be used is refused.
 */
#include "store/reader.h"
#include "store/header.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_WARNINGS 16
#define MAX_POINTERS 4 /* pointer files that lead to pointer files */
#define ALIGNMENT    4096u /* so that chunks of the copy are whole pages */
#define MAX_COPIES   5 /* tries to copy a live file between two of its updates */

/* The chunks of a table; `chunks[i]` is a byte offset into the copy, 0 if there is none. */
struct table {
	uint32_t record_bytes;
	uint32_t count;
	uint32_t chunk_slots;
	bool lacks; /* records that the file should have */
	uint64_t *chunks;
};

/* A file that nobody changes any more: its chunks are copied when records of them are read. */
struct settled {
	int fd;
	bool failed;	 /* a chunk could not be read */
	bool *read;	 /* by number of the chunk */
	uint32_t chunks; /* elements of `read` */
};

struct gm_reader {
	char *path;
	unsigned char *bytes;	 /* the copy */
	struct settled *settled; /* NULL: the copy has all of the file */
	uint64_t size;
	struct gm_header header;
	struct table tables[GM_TABLES];
	char *strings; /* the string table in one piece, ended by a NUL */
	uint32_t string_bytes;
	bool damaged, torn;
	unsigned warnings;
	char *warning[MAX_WARNINGS];
};

static void add_warning(struct gm_reader *reader, const char *format, va_list args)
{
	char text[512];

	if (reader->warnings == MAX_WARNINGS)
		return;
	vsnprintf(text, sizeof(text), format, args);
	reader->warning[reader->warnings] = strdup(text);
	if (reader->warning[reader->warnings])
		reader->warnings++;
}

void gm_reader_warn(struct gm_reader *reader, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add_warning(reader, format, args);
	va_end(args);
}

__attribute__((format(printf, 2, 3))) static void damage(struct gm_reader *reader,
							 const char *format, ...)
{
	va_list args;

	reader->damaged = true;
	va_start(args, format);
	add_warning(reader, format, args);
	va_end(args);
}

/* Reads up to `size` bytes from `offset`; returns how many there were, or -errno. */
static int64_t read_fully(int fd, void *buffer, uint64_t size, uint64_t offset)
{
	uint64_t done = 0;

	while (done < size) {
		ssize_t n = pread(fd, (char *)buffer + done, size - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (uint64_t)n;
	}
	return (int64_t)done;
}

/* The target of a pointer file, NULL if it is none. A relative target is beside the pointer. */
static char *pointer_target(const char *path, const char *text, size_t size)
{
	size_t magic = strlen(GM_POINTER_MAGIC), length;
	const char *slash = strrchr(path, '/');
	char *target;

	if (size <= magic || memcmp(text, GM_POINTER_MAGIC, magic) != 0)
		return NULL;
	length = strcspn(text + magic, "\n");
	if (length == 0)
		return NULL;
	if (text[magic] == '/' || !slash)
		return strndup(text + magic, length);
	if (asprintf(&target, "%.*s/%.*s", (int)(slash - path), path, (int)length, text + magic) <
	    0)
		return NULL;
	return target;
}

static uint64_t directory_end(const struct gm_header *header)
{
	return header->directory_offset +
	       (uint64_t)header->directory_capacity * sizeof(struct gm_directory_entry);
}

/* Returns the fault of the header's fixed part, or NULL. */
static const char *header_fault(const struct gm_header *header)
{
	static char text[160];

	if (gm_header_predates_versions(header->magic))
		return "was written by a development version before format 1; record it again with "
		       "this version";
	if (memcmp(header->magic, GM_MAGIC, sizeof(header->magic)) != 0)
		return "is not an output file of gpumemtrace";
	if (header->byte_order == __builtin_bswap32(GM_BYTE_ORDER))
		return "was written on a machine of the other byte order; read it on such a "
		       "machine";
	if (header->byte_order != GM_BYTE_ORDER)
		return "has a damaged header";
	if (header->format_version > GM_FORMAT_VERSION &&
	    header->oldest_version > GM_FORMAT_VERSION) {
		snprintf(text, sizeof(text),
			 "has format version %u and this gpumem-report reads up to %u; "
			 "use the gpumem-report of the gpumemtrace that wrote it",
			 header->format_version, GM_FORMAT_VERSION);
		return text;
	}
	if (header->header_bytes < 512 || header->header_bytes > (1u << 20) ||
	    header->chunk_bytes < 4096 || header->chunk_bytes > (16u << 20) ||
	    header->directory_offset < header->header_bytes ||
	    header->directory_offset > (1u << 24) || header->directory_capacity > (1u << 24) ||
	    header->data_offset < directory_end(header) || header->data_offset >= (1ull << 32))
		return "has a damaged header";
	return NULL;
}

static uint64_t used_bytes(const struct gm_header *header)
{
	uint32_t chunks = header->chunk_count;

	if (chunks > header->directory_capacity)
		chunks = header->directory_capacity;
	return header->data_offset + (uint64_t)chunks * header->chunk_bytes;
}

/*
 * Returns whether no process writes to the file any more: its process said that it ended, and had
 * the file locked as long as it lived (store/new_file.h). Of a process that said nothing the lock
 * does not tell enough, because some filesystems keep the locks of each machine to itself.
 */
static bool is_settled(int fd, const struct gm_header *header)
{
	if (header->end == GM_END_NONE || !(header->features & GM_FEATURE_LOCKED) ||
	    flock(fd, LOCK_SH | LOCK_NB) != 0)
		return false;
	flock(fd, LOCK_UN);
	return true;
}

static void settled_free(struct settled *settled)
{
	if (!settled)
		return;
	if (settled->fd >= 0)
		close(settled->fd);
	free(settled->read);
	free(settled);
}

static uint64_t chunk_offset(const struct gm_reader *reader, uint32_t number)
{
	return reader->header.data_offset + (uint64_t)number * reader->header.chunk_bytes;
}

static uint32_t chunk_number(const struct gm_reader *reader, uint64_t offset)
{
	return (uint32_t)((offset - reader->header.data_offset) / reader->header.chunk_bytes);
}

/* Returns whether the copy has the chunk at an offset of the file. */
static bool read_chunk(const struct gm_reader *reader, uint64_t offset)
{
	uint32_t number = chunk_number(reader, offset);
	uint64_t start = chunk_offset(reader, number), bytes = reader->header.chunk_bytes;
	struct settled *settled = reader->settled;

	if (!settled || settled->read[number])
		return true;
	if (bytes > reader->size - start)
		bytes = reader->size - start;
	settled->read[number] =
		read_fully(settled->fd, reader->bytes + start, bytes, start) == (int64_t)bytes;
	settled->failed |= !settled->read[number];
	return settled->read[number];
}

/* Gives back the memory of the whole chunk at an offset of the file; false if it is cut short. */
static bool give_back(const struct gm_reader *reader, uint64_t offset)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)reader->bytes + offset;
	uintptr_t end = start + reader->header.chunk_bytes;

	if (offset + reader->header.chunk_bytes > reader->size)
		return false;
	start = (start + page - 1) / page * page;
	end = end / page * page;
	if (start < end)
		madvise((void *)start, end - start, MADV_DONTNEED);
	return true;
}

/* Gets memory for the used part of a file, without the part that it lacks; -errno. */
static int make_room(struct gm_reader *reader, uint64_t file_bytes, uint64_t *want)
{
	*want = used_bytes(&reader->header);
	if (*want > file_bytes)
		*want = file_bytes;
	if (*want > GM_MAX_FILE_BYTES)
		return -EFBIG;
	free(reader->bytes);
	reader->bytes = aligned_alloc(ALIGNMENT, (*want + ALIGNMENT) / ALIGNMENT * ALIGNMENT);
	return reader->bytes ? 0 : -ENOMEM;
}

/* Copies what comes before the chunks. The header that was read may be older than the file is. */
static int begin_settled(struct gm_reader *reader, int fd)
{
	struct stat st;
	uint64_t want, first;
	int64_t got = fstat(fd, &st) < 0 ? -errno : 0;
	int rc;

	reader->settled = calloc(1, sizeof(*reader->settled));
	if (!reader->settled)
		return -ENOMEM;
	reader->settled->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (reader->settled->fd < 0)
		return -errno;
	if (got == 0)
		got = read_fully(fd, &reader->header, sizeof(reader->header), 0);
	rc = got < 0 ? (int)got : make_room(reader, (uint64_t)st.st_size, &want);
	if (rc)
		return rc;
	first = reader->header.data_offset < want ? reader->header.data_offset : want;
	got = read_fully(fd, reader->bytes, first, 0);
	if (got < 0)
		return (int)got;
	reader->size = (uint64_t)got == first ? want : (uint64_t)got;
	reader->torn = reader->header.sequence & 1;
	return reader->size < offsetof(struct gm_header, dropped_records) ? -ENODATA : 0;
}

/* Copies the used part; again while a live process changes it, a few times. */
static int copy_file(struct gm_reader *reader, int fd, uint64_t file_bytes)
{
	struct gm_header after;
	uint64_t want;
	int64_t got;

	for (unsigned tries = 0; tries < MAX_COPIES; tries++) {
		int rc = make_room(reader, file_bytes, &want);

		if (rc)
			return rc;
		got = read_fully(fd, reader->bytes, want, 0);
		if (got < 0)
			return (int)got;
		reader->size = (uint64_t)got;
		if (reader->size < offsetof(struct gm_header, dropped_records))
			return -ENODATA;
		memset(&after, 0, sizeof(after));
		got = read_fully(fd, &after, sizeof(after), 0);
		if (got < 0)
			return (int)got;
		memcpy(&reader->header, reader->bytes,
		       reader->size < sizeof(after) ? reader->size : sizeof(after));
		reader->torn = (after.sequence & 1) || after.sequence != reader->header.sequence ||
			       after.chunk_count != reader->header.chunk_count;
		if (!reader->torn || after.end == GM_END_EXIT)
			break;
		reader->header.chunk_count = after.chunk_count;
	}
	return 0;
}

/* Finds the chunks of each table by the directory; -errno. */
static int index_chunks(struct gm_reader *reader)
{
	const struct gm_header *header = &reader->header;
	uint64_t base = header->data_offset;
	uint32_t chunks = header->chunk_count;
	unsigned odd = 0, cut = 0;

	if (chunks > header->directory_capacity) {
		damage(reader, "the header counts %u chunks and has room for %u", chunks,
		       header->directory_capacity);
		chunks = header->directory_capacity;
	}
	if (reader->settled) {
		reader->settled->chunks = chunks;
		reader->settled->read = calloc((size_t)chunks + 1, sizeof(bool));
		if (!reader->settled->read)
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < chunks; i++) {
		uint64_t at =
			header->directory_offset + (uint64_t)i * sizeof(struct gm_directory_entry);
		uint64_t offset = base + (uint64_t)i * header->chunk_bytes;
		struct gm_directory_entry entry;
		struct table *table;

		if (at + sizeof(entry) > reader->size || offset >= reader->size) {
			cut += chunks - i;
			break;
		}
		cut += offset + header->chunk_bytes > reader->size;
		memcpy(&entry, reader->bytes + at, sizeof(entry));
		/* A table's chunks are in order: number n comes after n others. */
		if (entry.table >= GM_TABLES || entry.ordinal > i) {
			odd++;
			continue;
		}
		table = &reader->tables[entry.table];
		if (entry.ordinal >= table->chunk_slots) {
			uint32_t slots = entry.ordinal + 1;
			uint64_t *grown = realloc(table->chunks, slots * sizeof(*grown));

			if (!grown) {
				odd++;
				continue;
			}
			memset(grown + table->chunk_slots, 0,
			       (slots - table->chunk_slots) * sizeof(*grown));
			table->chunks = grown;
			table->chunk_slots = slots;
		}
		if (table->chunks[entry.ordinal])
			odd++;
		else
			table->chunks[entry.ordinal] = offset;
	}
	if (odd)
		damage(reader, "%u entries of the file's directory make no sense", odd);
	if (cut)
		damage(reader, "the file is cut short: %u of its %u chunks are not whole", cut,
		       chunks);
	return 0;
}

/* Offset of a record in the file, which does not hold all of it where it is 0. */
static uint64_t offset_of(const struct gm_reader *reader, const struct table *table, uint32_t index)
{
	uint32_t per_chunk, chunk;
	uint64_t offset;

	if (index >= table->count)
		return 0;
	per_chunk = reader->header.chunk_bytes / table->record_bytes;
	chunk = index / per_chunk;
	if (chunk >= table->chunk_slots || !table->chunks[chunk])
		return 0;
	offset = table->chunks[chunk] + (uint64_t)(index % per_chunk) * table->record_bytes;
	return offset + table->record_bytes > reader->size ? 0 : offset;
}

/* Address of a record in the copy; NULL where the file does not hold all of it. */
static const unsigned char *locate(const struct gm_reader *reader, const struct table *table,
				   uint32_t index)
{
	uint64_t offset = offset_of(reader, table, index);

	return offset && read_chunk(reader, offset) ? reader->bytes + offset : NULL;
}

/* Takes the tables' sizes from the header; counts that the chunks cannot hold are lowered. */
static void size_tables(struct gm_reader *reader)
{
	static const char *const names[GM_TABLES_NOW] = {"strings",
							 "modules",
							 "frames",
							 "stack frames",
							 "stacks",
							 "sites",
							 "allocations",
							 "devices",
							 "levels",
							 "usage",
							 "pools",
							 "errors",
							 "out-of-memory events",
							 "out-of-memory sites",
							 "out-of-memory blocks",
							 "implicit frees",
							 "marks",
							 "timeline",
							 "events",
							 "ledger",
							 "costs",
							 "retries",
							 "torch",
							 "vmm",
							 "contexts",
							 "ledger history",
							 "functions",
							 "peaks",
							 "peak blocks"};

	for (unsigned i = 0; i < GM_TABLES_NOW; i++) {
		const struct gm_table_info *info = &reader->header.tables[i];
		struct table *table = &reader->tables[i];
		uint64_t room;

		if (info->count == 0)
			continue;
		if (info->record_bytes == 0 || info->record_bytes > reader->header.chunk_bytes) {
			damage(reader, "the table of %s has records of %u bytes and was left out",
			       names[i], info->record_bytes);
			table->lacks = true;
			continue;
		}
		room = (uint64_t)(reader->header.chunk_bytes / info->record_bytes) *
		       table->chunk_slots;
		table->record_bytes = info->record_bytes;
		table->count = info->count;
		if (info->count > room) {
			table->count = (uint32_t)room;
			damage(reader, "table %s: %u of its %u records can be read", names[i],
			       table->count, info->count);
		}
		while (table->count > 0 && !offset_of(reader, table, table->count - 1))
			table->count--;
		table->lacks = table->count < info->count;
		if (table->lacks && info->count <= room)
			damage(reader, "table %s: %u of its %u records can be read", names[i],
			       table->count, info->count);
	}
}

unsigned gm_utf8_length(const unsigned char *text, size_t left)
{
	unsigned length = text[0] < 0x80   ? 1
			  : text[0] < 0xc2 ? 0
			  : text[0] < 0xe0 ? 2
			  : text[0] < 0xf0 ? 3
			  : text[0] < 0xf5 ? 4
					   : 0;

	if (length > left)
		return 0;
	for (unsigned i = 1; i < length; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
	    (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f))
		return 0;
	return length;
}

/* The string table in one piece. Bytes that are no UTF-8 become '?'. */
static int gather_strings(struct gm_reader *reader)
{
	struct table *table = &reader->tables[GM_TABLE_STRINGS];
	uint32_t count = table->record_bytes == 1 ? table->count : 0;
	uint32_t at = 0;

	if (table->count && table->record_bytes != 1)
		damage(reader, "the table of strings is damaged; names are missing");
	reader->strings = calloc(1, (size_t)count + 1);
	if (!reader->strings)
		return -ENOMEM;
	while (at < count) {
		uint32_t piece = reader->header.chunk_bytes - at % reader->header.chunk_bytes;
		const unsigned char *from = locate(reader, table, at);

		if (piece > count - at)
			piece = count - at;
		if (from && from + piece <= reader->bytes + reader->size)
			memcpy(reader->strings + at, from, piece);
		at += piece;
	}
	reader->string_bytes = count;
	for (at = 0; at < count;) {
		unsigned char *text = (unsigned char *)reader->strings + at;
		unsigned length = gm_utf8_length(text, count - at);

		if (length == 0)
			*text = '?';
		at += length ? length : 1;
	}
	return 0;
}

/* Opens the file that `path` names or points at; the start of it goes to `header`. -errno or fd. */
static int open_target(struct gm_reader *reader, const char *path, uint64_t *file_bytes,
		       int64_t *head_bytes)
{
	char *name = strdup(path);
	struct stat st;
	int fd = -ENOMEM;

	for (unsigned hops = 0; name && hops <= MAX_POINTERS; hops++) {
		char *next;

		/* a device or a pipe, which a pointer may lead to, is not even opened */
		if (stat(name, &st) == 0 && S_ISREG(st.st_mode)) {
			fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
			errno = fd < 0 ? errno : EINVAL;
		} else {
			fd = -1;
			errno = lstat(name, &st) < 0  ? errno
				: S_ISDIR(st.st_mode) ? EISDIR
						      : EINVAL;
		}
		if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
			int error = errno;

			if (fd >= 0)
				close(fd);
			free(reader->path);
			reader->path = name;
			return -error;
		}
		memset(&reader->header, 0, sizeof(reader->header));
		*file_bytes = (uint64_t)st.st_size;
		*head_bytes = read_fully(fd, &reader->header, sizeof(reader->header), 0);
		next = *head_bytes > 0
			       ? pointer_target(name, (char *)&reader->header, (size_t)*head_bytes)
			       : NULL;
		free(reader->path);
		reader->path = name;
		if (!next)
			return fd;
		close(fd);
		fd = -ELOOP;
		name = next;
	}
	if (fd == -ELOOP)
		free(name);
	return fd;
}

/* Finds the tables in the copy. */
static int index_copy(struct gm_reader *reader)
{
	int rc;

	if (header_fault(&reader->header))
		return -EINVAL;
	if (reader->size < sizeof(reader->header))
		damage(reader, "the file is cut short within its header");
	rc = index_chunks(reader);
	if (rc)
		return rc;
	size_tables(reader);
	rc = gather_strings(reader);
	gm_reader_release_settled(reader);
	return rc;
}

static int load(struct gm_reader *reader, int fd, uint64_t file_bytes)
{
	int rc = is_settled(fd, &reader->header) ? begin_settled(reader, fd)
						 : copy_file(reader, fd, file_bytes);

	return rc ? rc : index_copy(reader);
}

struct gm_reader *gm_reader_from_image(const char *path, void *bytes, uint64_t size, char *error,
				       size_t error_bytes)
{
	struct gm_reader *reader = calloc(1, sizeof(*reader));
	int rc = -ENOMEM;

	if (!reader) {
		free(bytes);
	} else {
		reader->path = strdup(path);
		reader->bytes = bytes;
		reader->size = size;
		memcpy(&reader->header, bytes,
		       size < sizeof(reader->header) ? size : sizeof(reader->header));
		rc = reader->path ? index_copy(reader) : -ENOMEM;
	}
	if (rc == 0)
		return reader;
	snprintf(error, error_bytes, "%s: %s", path, strerror(-rc));
	gm_reader_close(reader);
	return NULL;
}

struct gm_reader *gm_reader_open(const char *path, char *error, size_t error_bytes)
{
	struct gm_reader *reader = calloc(1, sizeof(*reader));
	uint64_t file_bytes = 0;
	int64_t head = 0;
	const char *fault;
	int fd, rc;

	if (!reader) {
		snprintf(error, error_bytes, "%s: out of memory", path);
		return NULL;
	}
	fd = open_target(reader, path, &file_bytes, &head);
	if (fd < 0) {
		bool pointed = reader->path && strcmp(path, reader->path) != 0;

		snprintf(error, error_bytes, "%s: %s%s%s: %s", path,
			 pointed ? "points at " : "cannot be opened", pointed ? reader->path : "",
			 pointed ? ", which cannot be opened" : "",
			 fd == -EINVAL ? "it is no file with contents to read" : strerror(-fd));
		gm_reader_close(reader);
		return NULL;
	}
	fault = head < 0 ? strerror((int)-head) : header_fault(&reader->header);
	if (!fault && head < (int64_t)offsetof(struct gm_header, dropped_records))
		fault = "is cut short within its header; nothing in it can be read";
	if (head == 0)
		fault = "is empty";
	rc = fault ? 0 : load(reader, fd, file_bytes);
	close(fd);
	if (!fault && rc == 0)
		return reader;
	snprintf(error, error_bytes, "%s: %s", path, fault ? fault : strerror(-rc));
	gm_reader_close(reader);
	return NULL;
}

bool gm_reader_lacks(const struct gm_reader *reader, enum gm_table_id table)
{
	return reader->tables[table].lacks;
}

void gm_reader_drop_records(struct gm_reader *reader)
{
	for (unsigned i = 0; i < GM_TABLES; i++) {
		free(reader->tables[i].chunks);
		reader->tables[i] = (struct table){0};
	}
	free(reader->bytes);
	reader->bytes = NULL;
	settled_free(reader->settled);
	reader->settled = NULL;
}

void gm_reader_close(struct gm_reader *reader)
{
	if (!reader)
		return;
	gm_reader_drop_records(reader);
	for (unsigned i = 0; i < reader->warnings; i++)
		free(reader->warning[i]);
	free(reader->strings);
	free(reader->path);
	free(reader);
}

const char *gm_reader_path(const struct gm_reader *reader)
{
	return reader->path;
}

const struct gm_header *gm_reader_header(const struct gm_reader *reader)
{
	return &reader->header;
}

const void *gm_reader_image(const struct gm_reader *reader)
{
	for (uint32_t i = 0; reader->settled && i < reader->settled->chunks; i++)
		if (chunk_offset(reader, i) < reader->size &&
		    !read_chunk(reader, chunk_offset(reader, i)))
			return NULL;
	return reader->bytes;
}

uint64_t gm_reader_bytes(const struct gm_reader *reader)
{
	return reader->size;
}

bool gm_reader_complete(const struct gm_reader *reader)
{
	return !reader->damaged;
}

bool gm_reader_torn(const struct gm_reader *reader)
{
	return reader->torn;
}

unsigned gm_reader_warnings(const struct gm_reader *reader)
{
	return reader->warnings;
}

const char *gm_reader_warning(const struct gm_reader *reader, unsigned index)
{
	return index < reader->warnings ? reader->warning[index] : NULL;
}

uint32_t gm_reader_count(const struct gm_reader *reader, enum gm_table_id table)
{
	return table < GM_TABLES ? reader->tables[table].count : 0;
}

bool gm_reader_get(const struct gm_reader *reader, enum gm_table_id table, uint32_t index,
		   void *record, size_t bytes)
{
	const struct table *from = &reader->tables[table];
	const unsigned char *at = locate(reader, from, index);
	size_t have;

	memset(record, 0, bytes);
	if (!at)
		return false;
	have = from->record_bytes < bytes ? from->record_bytes : bytes;
	memcpy(record, at, have);
	return true;
}

uint32_t gm_reader_chunk_records(const struct gm_reader *reader, enum gm_table_id table)
{
	uint32_t bytes = reader->tables[table].record_bytes;

	return bytes ? reader->header.chunk_bytes / bytes : 1;
}

void gm_reader_release(struct gm_reader *reader, enum gm_table_id table, uint32_t index)
{
	uint32_t number = index / gm_reader_chunk_records(reader, table);
	struct table *from = &reader->tables[table];

	if (number >= from->chunk_slots || !from->chunks[number])
		return;
	if (!give_back(reader, from->chunks[number]))
		return;
	if (reader->settled)
		reader->settled->read[chunk_number(reader, from->chunks[number])] = false;
	else
		from->chunks[number] = 0;
}

void gm_reader_release_settled(struct gm_reader *reader)
{
	for (uint32_t i = 0; reader->settled && i < reader->settled->chunks; i++)
		if (reader->settled->read[i] && give_back(reader, chunk_offset(reader, i)))
			reader->settled->read[i] = false;
}

bool gm_reader_failed(const struct gm_reader *reader)
{
	return reader->settled && reader->settled->failed;
}

/* The number of the allocation record at an offset of the file, GM_NONE if there is none. */
static uint32_t alloc_at(const struct gm_reader *reader, uint64_t offset)
{
	const struct gm_header *header = &reader->header;
	const struct table *table = &reader->tables[GM_TABLE_ALLOCS];
	struct gm_directory_entry entry;
	uint64_t chunk, inside, at;

	if (offset < header->data_offset || !table->record_bytes)
		return GM_NONE;
	chunk = (offset - header->data_offset) / header->chunk_bytes;
	inside = (offset - header->data_offset) % header->chunk_bytes;
	at = header->directory_offset + chunk * sizeof(entry);
	if (chunk >= header->chunk_count || at + sizeof(entry) > reader->size ||
	    inside % table->record_bytes)
		return GM_NONE;
	memcpy(&entry, reader->bytes + at, sizeof(entry));
	if (entry.table != GM_TABLE_ALLOCS)
		return GM_NONE;
	at = (uint64_t)entry.ordinal * (header->chunk_bytes / table->record_bytes) +
	     inside / table->record_bytes;
	return at < table->count ? (uint32_t)at : GM_NONE;
}

uint32_t gm_reader_freed_after_work(const struct gm_reader *reader, struct gm_alloc_record *records,
				    uint32_t most)
{
	const struct gm_header *header = &reader->header;
	uint32_t limit = gm_reader_count(reader, GM_TABLE_ALLOCS), count = 0;
	uint32_t offset = header->worked ? header->emptied_at_work : header->emptied;

	while (offset != header->emptied_at_work) {
		uint32_t number = alloc_at(reader, (uint64_t)offset * GM_OFFSET_UNIT_BYTES);
		struct gm_alloc_record record;

		if (count == limit ||
		    !gm_reader_get(reader, GM_TABLE_ALLOCS, number, &record, sizeof(record)) ||
		    (record.state & GM_STATE_MASK) != GM_STATE_EMPTY)
			return 0;
		offset = record.state >> GM_STATE_BITS;
		record.state = GM_STATE_EMPTY;
		if (count < most)
			records[count] = record;
		count++;
	}
	return count;
}

const char *gm_reader_string(const struct gm_reader *reader, uint32_t number)
{
	return number < reader->string_bytes ? reader->strings + number : NULL;
}
