/*
 * Laying out tables in chunks as layout.h says (image.h).
 */
#include "report/import/image.h"
#include "report/support/memory.h"
#include "store/header.h"
#include <stdlib.h>
#include <string.h>

void gm_image_begin(struct gm_image *image)
{
	struct gm_header *header = &image->header;
	uint32_t *strings[] = {&header->command_string,	 &header->cwd_string,
			       &header->host_string,	 &header->program_string,
			       &header->settings_string, &header->environment_string,
			       &header->unwinder_string, &header->backend_string,
			       &header->python_string,	 &header->tracer_version_string,
			       &header->job_string};

	memset(image, 0, sizeof(*image));
	gm_header_identify(header);
	header->rank = header->local_rank = header->world_size = -1;
	header->exit_status = -1;
	header->heap_limit_bytes = header->stack_limit_bytes = GM_NO_BYTES;
	memset(header->window_mark, 0xff, sizeof(header->window_mark));
	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
		*strings[i] = GM_NONE;
}

void gm_image_end(struct gm_image *image)
{
	for (unsigned i = 0; i < GM_TABLES_NOW; i++)
		free(image->tables[i].bytes);
}

static unsigned char *make_room(struct gm_image *image, enum gm_table_id id, size_t record_bytes,
				size_t count)
{
	size_t wanted = (image->tables[id].count + count) * record_bytes;

	image->tables[id].record_bytes = record_bytes;
	if (wanted > image->tables[id].room) {
		image->tables[id].room = 2 * wanted;
		image->tables[id].bytes = gm_realloc(image->tables[id].bytes, 2 * wanted);
	}
	return image->tables[id].bytes + image->tables[id].count * record_bytes;
}

void *gm_image_add(struct gm_image *image, enum gm_table_id table, size_t record_bytes,
		   uint32_t *number)
{
	unsigned char *record = make_room(image, table, record_bytes, 1);

	if (number)
		*number = image->tables[table].count;
	image->tables[table].count++;
	return memset(record, 0, record_bytes);
}

void *gm_image_record(struct gm_image *image, enum gm_table_id table, uint32_t number)
{
	return image->tables[table].bytes + number * image->tables[table].record_bytes;
}

uint32_t gm_image_string(struct gm_image *image, const char *text, size_t bytes)
{
	uint32_t number = image->tables[GM_TABLE_STRINGS].count;
	unsigned char *to = make_room(image, GM_TABLE_STRINGS, 1, bytes + 1);

	for (size_t i = 0; i < bytes; i++)
		to[i] = text[i] ? (unsigned char)text[i] : '?';
	to[bytes] = '\0';
	image->tables[GM_TABLE_STRINGS].count += (uint32_t)bytes + 1;
	return number;
}

/* Copies a table into its chunks; returns how many it took. */
static uint32_t lay_out(const struct gm_image *image, unsigned id, uint32_t first,
			unsigned char *data, struct gm_directory_entry *directory)
{
	size_t size = image->tables[id].record_bytes, per_chunk = GM_CHUNK_BYTES / size;
	uint32_t chunks = 0;

	for (size_t done = 0; done < image->tables[id].count; done += per_chunk) {
		size_t records = image->tables[id].count - done;

		if (records > per_chunk)
			records = per_chunk;
		directory[first + chunks] = (struct gm_directory_entry){id, chunks};
		memcpy(data + (size_t)(first + chunks) * GM_CHUNK_BYTES,
		       image->tables[id].bytes + done * size, records * size);
		chunks++;
	}
	return chunks;
}

unsigned char *gm_image_bytes(struct gm_image *image, size_t *bytes)
{
	struct gm_header *header = &image->header;
	size_t chunks = 0, used = 0;
	unsigned char *whole;

	for (unsigned i = 0; i < GM_TABLES_NOW; i++) {
		size_t per_chunk;

		if (!image->tables[i].count)
			continue;
		header->tables[i].record_bytes = (uint32_t)image->tables[i].record_bytes;
		header->tables[i].count = image->tables[i].count;
		per_chunk = GM_CHUNK_BYTES / image->tables[i].record_bytes;
		chunks += (image->tables[i].count + per_chunk - 1) / per_chunk;
	}
	header->directory_capacity = (uint32_t)chunks;
	header->chunk_count = (uint32_t)chunks;
	header->data_offset = GM_HEADER_BYTES + chunks * sizeof(struct gm_directory_entry);
	header->data_offset = (header->data_offset + 4095) & ~4095ull;
	*bytes = header->data_offset + chunks * GM_CHUNK_BYTES;
	whole = gm_realloc(NULL, *bytes);
	memset(whole, 0, *bytes);
	memcpy(whole, header, sizeof(*header));
	for (unsigned i = 0; i < GM_TABLES_NOW; i++)
		if (image->tables[i].count)
			used += lay_out(image, i, (uint32_t)used, whole + header->data_offset,
					(struct gm_directory_entry *)(whole + GM_HEADER_BYTES));
	return whole;
}
