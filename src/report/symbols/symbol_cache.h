/*
 * The user's directory of answers about builds, $XDG_CACHE_HOME/gpumemtrace or
 * ~/.cache/gpumemtrace: a file for each build id. It saves time and nothing else: what cannot be
 * read or written, or is not as this tool leaves it, is as if it were not there. Several processes
 * may use it at once. Nothing here is thread-safe, and nothing is told to the user.
 */
#ifndef GM_REPORT_SYMBOLS_SYMBOL_CACHE_H
#define GM_REPORT_SYMBOLS_SYMBOL_CACHE_H

#include "report/symbols/symbol_answers.h"

#define GM_SYMBOL_CACHE_FILE_BYTES (16u << 20)	/* of one build; what is larger is not kept */
#define GM_SYMBOL_CACHE_BYTES	   (128u << 20) /* of all; the longest unused go first */

/*
 * Opens the directory, which is made if it is not there. Returns a descriptor, -1 if there is none
 * to be used: no home, not writable, not this user's own, or writable by others.
 */
int gm_symbol_cache_open(void);

/* The answers about a build that were found in `source`; none if there are none. */
void gm_symbol_cache_read(struct gm_zone *zone, int directory, const unsigned char *build_id,
			  unsigned build_id_bytes, const char *source,
			  struct gm_symbol_answers *answers);

/* Keeps the answers, if any were added. The file of that build is replaced whole. */
void gm_symbol_cache_write(int directory, const unsigned char *build_id, unsigned build_id_bytes,
			   const char *source, const struct gm_symbol_answers *answers);

/* Removes the longest unused files until all are at most `most_bytes`. */
void gm_symbol_cache_trim(int directory, uint64_t most_bytes);

#endif
