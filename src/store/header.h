/*
 * What every file of this version begins with, whoever writes it.
 */
#ifndef GM_STORE_HEADER_H
#define GM_STORE_HEADER_H

#include "store/layout.h"

#include <string.h>

static inline void gm_header_identify(struct gm_header *header)
{
	memcpy(header->magic, GM_MAGIC, sizeof(header->magic));
	header->byte_order = GM_BYTE_ORDER;
	header->format_version = GM_FORMAT_VERSION;
	header->oldest_version = GM_FORMAT_OLDEST;
	header->header_bytes = GM_HEADER_BYTES;
	header->chunk_bytes = GM_CHUNK_BYTES;
	header->directory_offset = GM_HEADER_BYTES;
}

#endif
