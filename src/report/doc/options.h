/*
 * The options of a command for loading, judging and rendering.
 */
#ifndef GM_REPORT_DOC_OPTIONS_H
#define GM_REPORT_DOC_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define GM_MOST_SUPPRESSIONS 8 /* files */

/* The options of a command for loading and judging; the common options of contract.md. */
struct gm_options {
	bool symbols;
	bool symbol_cache; /* names are kept in the user's cache */
	int device;	   /* -1: all */
	int kind, level;   /* -1: all */
	unsigned warmup;
	const char *since, *until; /* marks; NULL */
	uint64_t min_site_bytes;   /* sites whose figure is less are left out of the lists */
	bool min_is_peak;	   /* that figure is the most they held, else what is live */
	unsigned top;
	bool top_given; /* it bounds the lists of JSON, too */
	bool json, quiet, full, all, at_peak;
	bool at; /* --at TIME, in nanoseconds: */
	uint64_t at_ns;
	bool fine_timeline; /* from the complete history, where there is one */
	const char *sort;
	const char *suppressions[GM_MOST_SUPPRESSIONS];
	unsigned suppressions_count;
	bool no_shipped_suppressions;
	const char *needs_blocks; /* a name for an output that needs every block; NULL */
	bool keep_image;   /* the renderer copies the file: nothing of it is given back meanwhile */
	bool keep_records; /* the renderer reads the files' tables too; else a job drops them */
	struct gm_symbols *shared_symbols; /* of a job's documents; NULL: each has its own */
	int color;			   /* 0 never, 1 always, 2 auto */
};

#endif
