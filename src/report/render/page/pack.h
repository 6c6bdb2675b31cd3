/*
 * Text of any size, compressed by gzip and written in base64 as it comes: what a page can hold
 * without a character that HTML or a script would read as its own.
 */
#ifndef GM_REPORT_RENDER_PAGE_PACK_H
#define GM_REPORT_RENDER_PAGE_PACK_H

#include <stdbool.h>
#include <stdio.h>
#include <zlib.h>

struct gm_pack {
	FILE *out;
	z_stream stream;
	unsigned char rest[3]; /* bytes that do not fill a group of base64 yet */
	unsigned rest_count;
	bool failed;
};

/* Begins; false without memory. gm_pack_end must follow in any case. */
bool gm_pack_begin(struct gm_pack *pack, FILE *out);

/* Adds text; 0 or -1, as json_dump_callback wants it. `data` is the pack. */
int gm_pack_add(const char *text, size_t bytes, void *data);

/* Writes what is left and frees; false if anything could not be written. */
bool gm_pack_end(struct gm_pack *pack);

#endif
