/*
 * Answers about builds in the user's cache (support/user_cache.h): a file for each build id. A file
 * that is not as this tool leaves it is as if it were not there.
 */
#ifndef GM_REPORT_SYMBOLS_SYMBOL_CACHE_H
#define GM_REPORT_SYMBOLS_SYMBOL_CACHE_H

#include "report/symbols/symbol_answers.h"

#define GM_SYMBOL_CACHE_SUFFIX	   ".symbols"
#define GM_SYMBOL_CACHE_FILE_BYTES (16u << 20)	/* of one build; what is larger is not kept */
#define GM_SYMBOL_CACHE_BYTES	   (128u << 20) /* of all; the longest unused go first */

/* The answers about a build that were found in `source`; none if there are none. */
void gm_symbol_cache_read(struct gm_zone *zone, int directory, const unsigned char *build_id,
			  unsigned build_id_bytes, const char *source,
			  struct gm_symbol_answers *answers);

/* Keeps the answers, if any were added. The file of that build is replaced whole. */
void gm_symbol_cache_write(int directory, const unsigned char *build_id, unsigned build_id_bytes,
			   const char *source, const struct gm_symbol_answers *answers);

#endif
