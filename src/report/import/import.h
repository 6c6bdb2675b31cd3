/*
 * Memory snapshots of other tools as output files: PyTorch's pickles, as
 * torch.cuda.memory._dump_snapshot and pickle.dump(torch.cuda.memory_snapshot()) write them.
 */
#ifndef GM_REPORT_IMPORT_IMPORT_H
#define GM_REPORT_IMPORT_IMPORT_H

#include "report/doc/doc.h"

/* True if the file begins as a pickle does. */
bool gm_import_detect(const char *path);

/*
 * Reads a snapshot. `*devices` (in the zone) and `*count` get what is known beyond the file. NULL
 * when it cannot be read: `error` then holds a sentence that names the file and the reason.
 */
struct gm_reader *gm_import_open(struct gm_zone *zone, const char *path,
				 struct gm_imported **devices, unsigned *count, char *error,
				 size_t error_bytes);

/* The same for a file's content; `path` is what it is called. */
struct gm_reader *gm_import_bytes(struct gm_zone *zone, const char *path, const void *bytes,
				  size_t size, struct gm_imported **devices, unsigned *count,
				  char *error, size_t error_bytes);

#endif
