/*
 * The user's directory of files that save time and nothing else, $XDG_CACHE_HOME/gpumemtrace or
 * ~/.cache/gpumemtrace: a file that cannot be read or written is as if it were not there. Several
 * processes may use it at once. Nothing here is thread-safe, and nothing is told to the user.
 */
#ifndef GM_REPORT_SUPPORT_USER_CACHE_H
#define GM_REPORT_SUPPORT_USER_CACHE_H

#include "report/support/memory.h"
#include <stdint.h>

#define GM_USER_CACHE_NAME_BYTES 192 /* of a file's name, its NUL included */

/*
 * Opens the directory, which is made if it is not there. Returns a descriptor, -1 if there is none
 * to be used: no home, not writable, not this user's own, or writable by others.
 */
int gm_user_cache_open(void);

/*
 * Returns the contents of a file in the zone, which then counts as used now; NULL if there is none,
 * others can write to it, or it is longer than `most_bytes`.
 */
unsigned char *gm_user_cache_read(struct gm_zone *zone, int directory, const char *name,
				  size_t most_bytes, size_t *bytes);

/* Replaces a file whole. */
void gm_user_cache_write(int directory, const char *name, const void *data, size_t bytes);

/*
 * Removes the longest unused of the files whose names contain `suffix`, those left half written
 * among them, until all of these are at most `most_bytes`.
 */
void gm_user_cache_trim(int directory, const char *suffix, uint64_t most_bytes);

#endif
