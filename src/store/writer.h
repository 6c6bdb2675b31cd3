/*
 * The writer of the output file: it creates, names and maps the file and hands out records of its
 * tables. It knows nothing of allocations. It calls libc alone and no malloc, and never ends or
 * stops the program.
 */
#ifndef GM_STORE_WRITER_H
#define GM_STORE_WRITER_H

#include "store/layout.h"
#include "store/output_path.h"
#include <stdbool.h>

/*
 * The header of the open file. While it is NULL there is none, and none of the functions below may
 * be called.
 */
extern struct gm_header *gm_file;

/*
 * Creates the output file at `path` (GPUMEMTRACE_OUT, already expanded) with a capacity of
 * `cap_bytes`, and fills in the header's fixed part. Returns 0; -errno with gm_file set if no file
 * could be created and private memory, which is written at exit, replaces it; -errno with gm_file
 * NULL if there is no memory either. Not thread-safe: the caller holds the start lock.
 */
int gm_store_create(const char *path, uint64_t cap_bytes);

/*
 * Returns the path that the file has or will have at the end, "" without a file. The storage is
 * static.
 */
const char *gm_store_path(void);

/* Returns the paths of the file; NULL if it is private memory. */
const struct gm_output_path *gm_store_output_path(void);

/*
 * Cuts the file, and the history beside it (journal.h), to the size that is in use, writes the
 * private fallback, and moves the file to the path that was asked for. The mapping stays, and other
 * threads may go on recording; what needs a new chunk is dropped from now on. The caller has set
 * `end`, and calls this once. Returns 0 or -errno.
 */
int gm_store_finish(void);

/*
 * Lets go of a file that was completed while the process goes on: private memory with the same
 * content takes its place, so that addresses in it stay valid, and its lock ends. Other threads may
 * go on recording, of which some may be lost. Not for signal handlers.
 */
void gm_store_release(void);

/* Removes the file of a process that recorded nothing. The mapping stays. */
void gm_store_discard(void);

/*
 * Writes the private fallback, of which an exec would leave nothing. A file on disk is left as it
 * is, because the exec may fail while other threads record. Calls must not overlap. Returns 0 or
 * -errno.
 */
int gm_store_before_exec(void);

/*
 * Goes on in a new file at `path`, where the present one was completed (gm_store_finish): it begins
 * as a copy and is mapped in the place of the present one, so that whatever addresses and indices
 * other threads remember stay valid; some of what they record meanwhile may be lost. Returns 0 or
 * -errno, and then nothing has changed. Under the start lock. Not for signal handlers.
 */
int gm_store_move(const char *path);

/*
 * Copies the file as it is to a new file at `path` (new_file.h), where an earlier one of ours is
 * kept as NAME.old1 and so on. The caller holds the tracker's lock, so the copy is consistent.
 * Returns 0 or -errno: -EBUSY if `path` is the file of a live process, -EEXIST or -ELOOP if it is
 * not ours, -EAGAIN if another thread creates a file at the moment. Async-signal-safe.
 */
int gm_store_copy(const char *path);

/* Forgets the file in the child of a fork without touching it: the file is the parent's. */
void gm_store_forget(void);

/*
 * Maps zeroed private memory where the parent's file was mapped, so that an address in it that is
 * still in use does not fault. Called at once in the child of a fork.
 */
void gm_store_in_child(void);

/*
 * Appends `count` zeroed records to a table and stores the index of the first one in `*index`.
 * Returns its address, or NULL if the file is full, which is counted as dropped. Readers do not see
 * the records before gm_store_publish. The records need not be consecutive in memory: address each
 * one through gm_store_record. Keeps errno. The caller holds the lock that guards the table.
 */
void *gm_store_append(enum gm_table_id table, uint32_t count, uint32_t *index);

/*
 * Counts a record of a table that could not be kept, for another reason than gm_store_append, which
 * counts what it refuses. Safe from any thread, and in signal handlers.
 */
void gm_store_dropped(enum gm_table_id id);

/* Says that the figures of a table are incomplete, without counting a record. As safe. */
static inline void gm_store_incomplete(enum gm_table_id id)
{
	__atomic_fetch_or(&gm_file->dropped_tables, 1ull << id, __ATOMIC_RELAXED);
}

/*
 * Makes sure that `count` records can be appended to a table. Returns false, and counts nothing, if
 * the file is full. The caller holds the lock that guards the table.
 */
bool gm_store_ensure(enum gm_table_id table, uint32_t count);

/*
 * Reserves space for one more record of a table without waiting. Returns 0 if the next
 * gm_store_append of one record needs no lock, -ENOSPC if the file is full, or -EAGAIN if a lock
 * that is needed is held. Signal-safe; the caller holds the table's lock.
 */
int gm_store_try_reserve(enum gm_table_id table);

/* Makes all records that were appended to a table visible to readers, with release order. */
void gm_store_publish(enum gm_table_id table);

/*
 * Empties a table: its records are zeroed, and the next one that is appended has index 0 again. The
 * table keeps its chunks, so an index or an address that somebody remembers leads to memory that is
 * mapped. The caller holds the lock that guards the table.
 */
void gm_store_clear(enum gm_table_id table);

/*
 * An offset says where a record lies in the file, in units of 32 bytes. Where the records of a
 * table are multiples of that, the tracker remembers a record by its offset instead of its index:
 * the address is then one addition, and not a look-up in the table's list of chunks. gm_store_index
 * returns the index.
 */

static inline uint32_t gm_store_offset(const void *record)
{
	return (uint32_t)((uint64_t)((const char *)record - (const char *)gm_file) /
			  GM_OFFSET_UNIT_BYTES);
}

static inline void *gm_store_at(uint32_t offset)
{
	return (char *)gm_file + (uint64_t)offset * GM_OFFSET_UNIT_BYTES;
}

/* Returns the index of a record in its table. Any thread, without a lock. */
uint32_t gm_store_index(enum gm_table_id table, const void *record);

/*
 * Returns the address of a record; NULL for GM_NONE and for an index out of range. Any thread,
 * without a lock.
 */
void *gm_store_record(enum gm_table_id table, uint32_t index);

/*
 * Copies a string into the string table, cut after at most `max` bytes at a character boundary of
 * UTF-8. The text ends with a zero byte or has more than `max` bytes: the one after them is read.
 * Returns its offset in the table, or GM_NONE. The string is not interned: the caller
 * remembers the offset. Thread-safe.
 */
uint32_t gm_store_string(const char *text, size_t max);

#endif
