/*
 * Reading a complete history (store/journal_code.h): OUT.events beside an output file, or the part
 * of an archive (archive.h) that holds it. Streamed, a chunk at a time. Its bytes are taken for
 * hostile: whatever they are, nothing reads outside a chunk or loops; what cannot be read ends the
 * history.
 */
#ifndef GM_REPORT_JOURNAL_JOURNAL_FILE_H
#define GM_REPORT_JOURNAL_JOURNAL_FILE_H

#include "store/journal_code.h"
#include <stddef.h>

struct gm_journal_file;

/*
 * The history of the output file `path` with this header: PATH.events, a pointer at that place, or
 * PATH.events.zst. NULL where there is none; `why` then holds a sentence if there should be one or
 * what stands there cannot be used, else "".
 */
struct gm_journal_file *gm_journal_find(const char *path, const struct gm_header *header, char *why,
					size_t why_bytes);

/* The plain one of a descriptor (taken); `name` is what it is called. NULL, why. */
struct gm_journal_file *gm_journal_from(int fd, const struct gm_header *header, const char *name,
					char *why, size_t why_bytes);

/* The one in an archive, from its descriptor (taken) and where its compressed part begins. NULL,
 * why. */
struct gm_journal_file *gm_journal_in_archive(int fd, uint64_t offset, uint64_t bytes,
					      const struct gm_header *header, char *why,
					      size_t why_bytes);
void gm_journal_close(struct gm_journal_file *file);

/* From the start again, and then without checkpoints. */
void gm_journal_rewind(struct gm_journal_file *file);

/* The next entry; false at the end, which is also where damage begins. */
bool gm_journal_next(struct gm_journal_file *file, struct gm_journal_entry *entry);

/*
 * From the latest checkpoint on that was complete before the moment; from the start if there is
 * none, or the history is compressed. Then the parts of that checkpoint, up to its end, are among
 * the entries, beginning with GM_PART_BEGIN.
 */
void gm_journal_resume(struct gm_journal_file *file, uint64_t at_ns);

/* The header: of a live process's file as it was when the file was opened or rewound. */
const struct gm_journal_header *gm_journal_header(const struct gm_journal_file *file);

/* Bytes of the plain form. */
uint64_t gm_journal_bytes(const struct gm_journal_file *file);

/* NULL, or what is wrong with the chunk at which reading ended: half a sentence. */
const char *gm_journal_damage(const struct gm_journal_file *file);

/*
 * The whole plain form, piece by piece, as it is (for archives). Reads up to `bytes` from `offset`
 * on; 0 at the end. Only of plain files.
 */
size_t gm_journal_raw(struct gm_journal_file *file, void *buffer, size_t bytes, uint64_t offset);

#endif
