/*
 * The accounting of a run that is replayed from a snapshot: records of sites, levels, usage and the
 * timeline in an image of an output file, changed by the same functions (src/account) as the
 * tracker's.
 */
#ifndef GM_REPORT_IMPORT_SNAPSHOT_BOOKS_H
#define GM_REPORT_IMPORT_SNAPSHOT_BOOKS_H

#include "report/import/image.h"
#include "report/support/numbering.h"

struct gm_import_books {
	struct gm_image *image;
	struct gm_numbering sites;
	uint64_t width_ns; /* of a point of the timeline */
	uint64_t now_ns;
	uint64_t serial;
};

/*
 * `duration_ns` is what the timeline divides. The windows divide the work, as the tracker's do:
 * `work_ns` are the `frees` ascending times at which allocations followed on frees, one for each
 * free.
 */
void gm_import_books_begin(struct gm_import_books *books, struct gm_image *image,
			   uint64_t duration_ns, const uint64_t *work_ns, size_t frees);
void gm_import_books_end(struct gm_import_books *books);

/* The site of a stack; a new one if it was not there. */
uint32_t gm_import_books_site(struct gm_import_books *books, uint32_t stack, unsigned level,
			      unsigned kind, int device);

/*
 * `bytes` more or less at a site, its level and, at the driver's level, its kind's usage. `ended`:
 * it is the last part of an allocation.
 */
void gm_import_books_add(struct gm_import_books *books, uint32_t site, uint64_t bytes);
void gm_import_books_take(struct gm_import_books *books, uint32_t site, uint64_t bytes, bool ended);

/* A series has this value from now on. */
void gm_import_books_series(struct gm_import_books *books, int device, enum gm_series series,
			    uint64_t bytes);

/* The level record of a device, made if it is not there. */
struct gm_level_record *gm_import_books_level(struct gm_import_books *books, int device,
					      unsigned level);

#endif
