/*
 * Reading an output file: of a finished, a killed or a still running process, or a damaged one. The
 * file is copied into memory, at once while its process may change it, else a chunk when a record
 * of it is asked for, and every count, offset and index in it is checked before use: whatever its
 * bytes are, nothing here reads outside the copy, loops or aborts. Calls libc only.
 */
#ifndef GM_STORE_READER_H
#define GM_STORE_READER_H

#include "store/layout.h"
#include <stdbool.h>

struct gm_reader;

/*
 * Opens `path`, following pointer files (contract.md, GPUMEMTRACE_OUT). Returns NULL when nothing
 * can be read; `error` then holds a sentence that names the file and the reason. The caller closes
 * it.
 */
struct gm_reader *gm_reader_open(const char *path, char *error, size_t error_bytes);
void gm_reader_close(struct gm_reader *reader);

/* Gives the copy's memory back: header, strings and warnings stay, tables are empty from now on. */
void gm_reader_drop_records(struct gm_reader *reader);

/*
 * Opens a file that is in memory: takes `bytes` (from malloc), also when it fails. `path` is the
 * file's name.
 */
struct gm_reader *gm_reader_from_image(const char *path, void *bytes, uint64_t size, char *error,
				       size_t error_bytes);

/* Adds a warning that does not make the file incomplete, a sentence. */
void gm_reader_warn(struct gm_reader *reader, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The file that was read: `path` or where its pointer led. Lives as long as the reader. */
const char *gm_reader_path(const struct gm_reader *reader);

/* The header's copy; fields that a shorter header lacks are zero. */
const struct gm_header *gm_reader_header(const struct gm_reader *reader);

/*
 * The whole copy of the file (see gm_reader_release), and how many bytes of it are in use. Lives as
 * long as the reader. NULL: a part of the file cannot be read.
 */
const void *gm_reader_image(const struct gm_reader *reader);
uint64_t gm_reader_bytes(const struct gm_reader *reader);

/* True when nothing is missing or damaged; else the warnings say what is. */
bool gm_reader_complete(const struct gm_reader *reader);

/*
 * True when counters may disagree with the records: an update was under way when the file was read.
 */
bool gm_reader_torn(const struct gm_reader *reader);

/* Number of warnings, and one of them: a sentence each. */
unsigned gm_reader_warnings(const struct gm_reader *reader);
const char *gm_reader_warning(const struct gm_reader *reader, unsigned index);

/* Records of a table that can be read (never more than the file really holds). */
uint32_t gm_reader_count(const struct gm_reader *reader, enum gm_table_id table);

/*
 * True if the file should have more records of a table than can be read: it is cut short or
 * damaged.
 */
bool gm_reader_lacks(const struct gm_reader *reader, enum gm_table_id table);

/*
 * Copies record `index` of a table to `record` of `bytes` bytes. A record that is shorter in the
 * file (older format) is filled up with zeros. False, and zeros, if there is no such record.
 */
bool gm_reader_get(const struct gm_reader *reader, enum gm_table_id table, uint32_t index,
		   void *record, size_t bytes);

/* Returns how many records lie in a chunk, the unit of gm_reader_release; at least 1. */
uint32_t gm_reader_chunk_records(const struct gm_reader *reader, enum gm_table_id table);

/*
 * Gives back the memory of the chunk that a record lies in. Of a file that was copied at once the
 * image has zeros there from then on, and gm_reader_get finds none of its records; of others the
 * chunk is read again when it is asked for. The counts stay.
 */
void gm_reader_release(struct gm_reader *reader, enum gm_table_id table, uint32_t index);

/* Gives back the memory of all chunks that can be read again. */
void gm_reader_release_settled(struct gm_reader *reader);

/* True if a record was not found because the file could not be read, by an error of the system. */
bool gm_reader_failed(const struct gm_reader *reader);

/*
 * The allocation records that were emptied after the last work (layout.h, "The end of the work"),
 * the one emptied last first: copies at most `most` of them to `records`, with the state
 * GM_STATE_EMPTY. Returns how many there are, however large `most` is; 0 where a damaged chain does
 * not lead to its end.
 */
uint32_t gm_reader_freed_after_work(const struct gm_reader *reader, struct gm_alloc_record *records,
				    uint32_t most);

/* Length of the valid UTF-8 sequence at `text`, which has `left` bytes; 0 if there is none. */
unsigned gm_utf8_length(const unsigned char *text, size_t left);

/* A string of the string table, valid UTF-8; NULL for GM_NONE or a number out of range. */
const char *gm_reader_string(const struct gm_reader *reader, uint32_t number);

#endif
