/*
 * Other formats than JSON: one file each, and the table that `export --format` goes by.
 */
#ifndef GM_REPORT_RENDER_EXPORT_EXPORT_H
#define GM_REPORT_RENDER_EXPORT_EXPORT_H

#include "report/doc/options.h"
#include "report/job/job.h"
#include <stdio.h>

/* Each returns 0 or -errno. One of `write` and `write_path` is there. */
struct gm_export_format {
	const char *name, *help;
	int (*write)(struct gm_doc *doc, const struct gm_options *options, FILE *file);
	/* For files that are changed in place; `error` gets a sentence. */
	int (*write_path)(struct gm_doc *doc, const struct gm_options *options, const char *path,
			  char *error, size_t error_bytes);
	/* Several processes in one; NULL if the format holds one: then each gets a file of its own.
	 */
	int (*write_job)(struct gm_job *job, const struct gm_options *options, FILE *file);
	bool binary; /* not for a terminal */
	bool adds; /* write_path adds to what is there, so several files may follow each other */
	const char *needs_blocks; /* as in struct gm_options */
};

extern const struct gm_export_format gm_export_formats[];
extern const unsigned gm_export_formats_count;

/* The format of a name, NULL. */
const struct gm_export_format *gm_export_find(const char *name);

#endif
