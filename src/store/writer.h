/*
 * Writing the output file: creating and naming it, mapping it, handing out records. Knows tables and
 * chunks, nothing of allocations. Calls libc only, no malloc; never kills or stops the program.
 */
#ifndef GM_STORE_WRITER_H
#define GM_STORE_WRITER_H

#include "store/layout.h"
#include "store/place.h"
#include <stdbool.h>

/* The open file's header, NULL while there is none (then nothing below may be called). */
extern struct gm_header *gm_file;

/*
 * Creates the output file of `pattern` (GPUMEMTRACE_OUT, already expanded) with room for `cap_bytes`
 * and fills the header's fixed part. Returns 0; -errno with gm_file set when no file could be made and
 * private memory, written at exit, takes its place; -errno with gm_file NULL when that failed too.
 * Not thread-safe: the caller holds its start lock.
 */
int gm_store_create(const char *path, uint64_t cap_bytes);

/* The path in use (it can differ from the one asked for), "" for none. Static storage. */
const char *gm_store_path(void);

/* Where the file lies; NULL where it is in private memory. */
const struct gm_place *gm_store_place(void);

/*
 * Trims the file, and the history beside it (journal.h), to its used size (the private fallback is
 * written here) and moves it to where it was wanted, but before an exec, which can fail; the mapping
 * stays. Other threads may go on recording: what needs more room is dropped from now on. The caller has set `end`. 0 or -errno.
 */
int gm_store_finish(void);

/* The end did not come (a failed exec): the file may grow again. */
void gm_store_resume(void);

/* A consistent copy of the file as it stands, to `path` (0600, not followed if a link). 0 or -errno. */
int gm_store_copy(const char *path);

/* Drops the mapping's bookkeeping without touching the file: in the child of a fork. */
void gm_store_forget(void);

/*
 * At once in the child of a fork(): zeroed private memory where the parent's file is mapped, so that
 * nothing faults that still has an address of it.
 */
void gm_store_in_child(void);

/*
 * Room for `count` consecutive records at the end of a table; `*index` gets the first one's number.
 * Returns the first record's address (zeroed), or NULL when the file is full (counted as dropped).
 * Records are invisible to readers until gm_store_publish. With count > 1 the records are consecutive
 * in number but not always in memory: address each through gm_store_record. errno stays. Not thread-safe per table:
 * the caller holds the lock that guards the table.
 */
void *gm_store_append(enum gm_table_id table, uint32_t count, uint32_t *index);

/*
 * Makes room for one more record of a table without waiting: 0, and gm_store_append of it takes no
 * lock; -ENOSPC: the file is full; -EAGAIN: that needs a lock that is held. Signal-safe; the caller
 * holds the table's lock.
 */
int gm_store_try_room(enum gm_table_id table);

/* Makes everything appended to the table so far visible (release). */
void gm_store_publish(enum gm_table_id table);

/*
 * A record's spot in the file instead of its number, for tables whose records are multiples of these
 * bytes: the way there is one addition, through no table of chunks. gm_store_number leads back.
 */

static inline uint32_t gm_store_spot(const void *record)
{
	return (uint32_t)((uint64_t)((const char *)record - (const char *)gm_file) / GM_SPOT_BYTES);
}

static inline void *gm_store_at(uint32_t spot)
{
	return (char *)gm_file + (uint64_t)spot * GM_SPOT_BYTES;
}

/* The number of a record of a table. Any thread, no lock. */
uint32_t gm_store_number(enum gm_table_id table, const void *record);

/* Address of an existing record; NULL for GM_NONE or out of range. Any thread, no lock. */
void *gm_store_record(enum gm_table_id table, uint32_t index);

/*
 * Copies a string of at most `max` bytes (cut at a character boundary of UTF-8) into the string table.
 * Returns its number or GM_NONE. Not interned: the caller keeps the number. Thread-safe.
 */
uint32_t gm_store_string(const char *text, size_t max);

#endif
