/*
 * Memory snapshots of other tools as output files: PyTorch's pickles, as
 * torch.cuda.memory._dump_snapshot and pickle.dump(torch.cuda.memory_snapshot()) write them.
 */
#ifndef GM_REPORT_IMPORT_IMPORT_H
#define GM_REPORT_IMPORT_IMPORT_H

#include "report/doc/doc.h"
#include "report/import/snapshot.h"

/* True if the file begins as a pickle does. */
bool gm_import_detect(const char *path);

/*
 * Reads a snapshot. `*devices` (in the zone) and `*count` get what is known beyond the file. NULL
 * when it cannot be read: `error` then holds a sentence that names the file and the reason.
 */
struct gm_reader *gm_import_open(struct gm_zone *zone, const char *path,
				 struct gm_imported **devices, unsigned *count, char *error,
				 size_t error_bytes);

/*
 * Reads a snapshot again and calls `use` with its typed records, which do not outlive the call.
 * Numbers of stacks are those of the reader that gm_import_open returns. `first_us` is the time
 * that figures of seconds count from. False if the file cannot be read (any more).
 */
bool gm_import_visit(const char *path,
		     void (*use)(const struct gm_snapshot *snapshot, uint64_t first_us, void *data),
		     void *data);

/* Does as gm_import_open, for a file's content; `path` is the file's name. */
struct gm_reader *gm_import_bytes(struct gm_zone *zone, const char *path, const void *bytes,
				  size_t size, struct gm_imported **devices, unsigned *count,
				  char *error, size_t error_bytes);

#endif
