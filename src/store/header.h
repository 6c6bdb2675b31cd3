/*
 * The start of every output file, which the writer and the snapshot importer fill in alike, and the
 * magic numbers of development versions.
 */
#ifndef GM_STORE_HEADER_H
#define GM_STORE_HEADER_H

#include "store/layout.h"

#include <stdbool.h>
#include <string.h>

/*
 * Fills in the fields that tell what the file is and how it is laid out; the directory is still
 * empty.
 */
static inline void gm_header_identify(struct gm_header *header)
{
	memcpy(header->magic, GM_MAGIC, sizeof(header->magic));
	header->byte_order = GM_BYTE_ORDER;
	header->format_version = GM_FORMAT_VERSION;
	header->oldest_version = GM_FORMAT_OLDEST;
	header->header_bytes = GM_HEADER_BYTES;
	header->chunk_bytes = GM_CHUNK_BYTES;
	header->directory_offset = GM_HEADER_BYTES;
	header->data_offset = GM_HEADER_BYTES;
}

/* True of an output file or history that a development version wrote before format 1. */
static inline bool gm_header_predates_versions(const char *magic)
{
	return !memcmp(magic, "GPUMEMT", sizeof("GPUMEMT")) ||
	       !memcmp(magic, "GPUMEMV", sizeof("GPUMEMV"));
}

#endif
