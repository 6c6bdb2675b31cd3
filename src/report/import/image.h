/*
 * An output file made in memory from records, table by table, so that what was read from elsewhere
 * goes the same way as what the shim wrote.
 */
#ifndef GM_REPORT_IMPORT_IMAGE_H
#define GM_REPORT_IMPORT_IMAGE_H

#include "store/layout.h"

struct gm_image {
	struct gm_header header;
	struct {
		unsigned char *bytes;
		uint32_t count;
		size_t record_bytes, room;
	} tables[GM_TABLES_NOW];
};

/* Prepares an empty image: fixed fields filled, figures and strings unknown. */
void gm_image_begin(struct gm_image *image);
void gm_image_end(struct gm_image *image);

/* Adds a zeroed record and returns it; valid until the next of its table. `*number` may be NULL. */
void *gm_image_add(struct gm_image *image, enum gm_table_id table, size_t record_bytes,
		   uint32_t *number);

/* A record that was added. */
void *gm_image_record(struct gm_image *image, enum gm_table_id table, uint32_t number);

/* Adds a string of `bytes` bytes (not ended by NUL; NULs in it are replaced); its number. */
uint32_t gm_image_string(struct gm_image *image, const char *text, size_t bytes);

/* The whole file, from malloc. */
unsigned char *gm_image_bytes(struct gm_image *image, size_t *bytes);

#endif
