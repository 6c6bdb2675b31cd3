/*
 * The bytes of symbol_answers.h: a header, a record for each answer by rising offset, the records
 * of their frames in the same order, then texts that end in NUL, the source first. Numbers are in
 * the machine's byte order. Calls libc and zlib's crc32.
 */
#include "report/symbols/symbol_answers.h"
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define MAGIC "gmsym2\r\n" /* its last byte but two is the version */

struct header {
	char magic[8];
	uint32_t crc; /* of all that follows it */
	uint32_t answers, frames, text_bytes;
};

struct answer_record {
	uint64_t offset;
	uint32_t frames, zero;
};

struct frame_record {
	uint32_t function, file; /* offset of the text; NO_TEXT: not known */
	uint32_t line, inlined;
};

#define NO_TEXT	 UINT32_MAX
#define CRC_FROM (offsetof(struct header, crc) + sizeof(uint32_t))

static uint32_t check_sum(const unsigned char *data, size_t bytes)
{
	return (uint32_t)crc32_z(0, data + CRC_FROM, bytes - CRC_FROM);
}

const struct gm_symbol_answer *gm_symbol_answers_find(const struct gm_symbol_answers *answers,
						      uint64_t offset)
{
	size_t low = 0, high = answers->known_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (answers->known[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low < answers->known_count && answers->known[low].offset == offset
		       ? &answers->known[low]
		       : NULL;
}

void gm_symbol_answers_add(struct gm_zone *zone, struct gm_symbol_answers *answers, uint64_t offset,
			   const struct gm_frame *frames, unsigned count)
{
	struct gm_frame *copy = gm_zone_alloc(zone, count, sizeof(*copy));
	struct gm_symbol_answer *answer =
		gm_zone_push(zone, &answers->added, &answers->added_count, sizeof(*answer));

	memcpy(copy, frames, count * sizeof(*copy));
	*answer = (struct gm_symbol_answer){offset, copy, count};
}

static int compare_answers(const void *a, const void *b)
{
	const struct gm_symbol_answer *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* All answers by offset, each once, from malloc. */
static struct gm_symbol_answer *gather(const struct gm_symbol_answers *answers, unsigned *count)
{
	unsigned all = answers->known_count + answers->added_count, kept = 0;
	struct gm_symbol_answer *list = gm_realloc(NULL, all * sizeof(*list));

	if (answers->known_count)
		memcpy(list, answers->known, answers->known_count * sizeof(*list));
	if (answers->added_count)
		memcpy(list + answers->known_count, answers->added,
		       answers->added_count * sizeof(*list));
	if (all)
		qsort(list, all, sizeof(*list), compare_answers);
	for (unsigned i = 0; i < all; i++)
		if (!kept || list[kept - 1].offset != list[i].offset)
			list[kept++] = list[i];
	*count = kept;
	return list;
}

static size_t text_room(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

static uint32_t put_text(unsigned char *texts, size_t *used, const char *text)
{
	size_t at = *used;

	if (!text)
		return NO_TEXT;
	memcpy(texts + at, text, text_room(text));
	*used += text_room(text);
	return (uint32_t)at;
}

/* Writes the records and texts of `count` answers behind a header that says how many there are. */
static void put_answers(unsigned char *data, const struct header *header,
			const struct gm_symbol_answer *list, const char *source)
{
	struct answer_record *answers = (struct answer_record *)(data + sizeof(*header));
	struct frame_record *frames = (struct frame_record *)(answers + header->answers);
	unsigned char *texts = (unsigned char *)(frames + header->frames);
	size_t used = 0;

	put_text(texts, &used, source);
	for (unsigned i = 0; i < header->answers; i++) {
		answers[i] = (struct answer_record){list[i].offset, list[i].count, 0};
		for (unsigned k = 0; k < list[i].count; k++) {
			const struct gm_frame *frame = &list[i].frames[k];

			frames->function = put_text(texts, &used, frame->function);
			frames->file = put_text(texts, &used, frame->file);
			frames->line = frame->line;
			frames++->inlined = frame->inlined;
		}
	}
}

unsigned char *gm_symbol_answers_encode(const struct gm_symbol_answers *answers, const char *source,
					size_t *bytes)
{
	struct header header = {.magic = MAGIC};
	unsigned count;
	struct gm_symbol_answer *list = gather(answers, &count);
	size_t texts = text_room(source), frames = 0;
	unsigned char *data;

	for (unsigned i = 0; i < count; i++)
		for (unsigned k = 0; k < list[i].count; k++, frames++)
			texts += text_room(list[i].frames[k].function) +
				 text_room(list[i].frames[k].file);
	header.answers = count;
	header.frames = (uint32_t)frames;
	header.text_bytes = (uint32_t)texts;
	*bytes = sizeof(header) + count * sizeof(struct answer_record) +
		 frames * sizeof(struct frame_record) + texts;
	data = gm_realloc(NULL, *bytes);
	memcpy(data, &header, sizeof(header));
	put_answers(data, &header, list, source);
	header.crc = check_sum(data, *bytes);
	memcpy(data, &header, sizeof(header));
	free(list);
	return data;
}

/* A text that begins within the texts, the last of which ends in NUL; false if there is none. */
static bool get_text(const char *texts, uint32_t text_bytes, uint32_t at, const char **text)
{
	*text = at == NO_TEXT ? NULL : texts + at;
	return at == NO_TEXT || at < text_bytes;
}

static bool get_frame(const struct frame_record *record, const char *texts, uint32_t text_bytes,
		      struct gm_frame *frame)
{
	frame->line = record->line;
	frame->inlined = record->inlined != 0;
	return record->inlined <= 1 &&
	       get_text(texts, text_bytes, record->function, &frame->function) &&
	       get_text(texts, text_bytes, record->file, &frame->file);
}

/* The answers behind a header whose sizes are right. */
static bool get_answers(struct gm_zone *zone, const struct header *header,
			const unsigned char *data, struct gm_symbol_answers *answers)
{
	const struct answer_record *records = (const void *)(data + sizeof(*header));
	const struct frame_record *frame_records = (const void *)(records + header->answers);
	const char *texts = (const char *)(frame_records + header->frames);
	struct gm_symbol_answer *list = gm_zone_alloc(zone, header->answers, sizeof(*list));
	struct gm_frame *frames = gm_zone_alloc(zone, header->frames, sizeof(*frames));
	uint32_t used = 0;

	for (uint32_t i = 0; i < header->frames; i++)
		if (!get_frame(&frame_records[i], texts, header->text_bytes, &frames[i]))
			return false;
	for (uint32_t i = 0; i < header->answers; i++) {
		uint32_t count = records[i].frames;

		if (count == 0 || count > header->frames - used || records[i].zero ||
		    (i && records[i].offset <= records[i - 1].offset))
			return false;
		list[i] = (struct gm_symbol_answer){records[i].offset, frames + used, count};
		used += count;
	}
	answers->known = list;
	answers->known_count = header->answers;
	return used == header->frames;
}

bool gm_symbol_answers_parse(struct gm_zone *zone, const unsigned char *data, size_t bytes,
			     const char *source, struct gm_symbol_answers *answers)
{
	struct gm_symbol_answers found = {0};
	struct header header;
	uint64_t wanted;

	*answers = found;
	if (bytes < sizeof(header))
		return false;
	memcpy(&header, data, sizeof(header));
	wanted = sizeof(header) + (uint64_t)header.answers * sizeof(struct answer_record) +
		 (uint64_t)header.frames * sizeof(struct frame_record) + header.text_bytes;
	if (memcmp(header.magic, MAGIC, sizeof(header.magic)) != 0 || wanted != bytes ||
	    header.text_bytes == 0 || data[bytes - 1] != '\0' ||
	    strcmp((const char *)data + bytes - header.text_bytes, source) != 0 ||
	    !get_answers(zone, &header, data, &found))
		return false;
	*answers = found;
	return true;
}

bool gm_symbol_answers_decode(struct gm_zone *zone, const unsigned char *data, size_t bytes,
			      const char *source, struct gm_symbol_answers *answers)
{
	uint32_t crc;

	memset(answers, 0, sizeof(*answers));
	if (bytes < sizeof(struct header))
		return false;
	memcpy(&crc, data + offsetof(struct header, crc), sizeof(crc));
	return crc == check_sum(data, bytes) &&
	       gm_symbol_answers_parse(zone, data, bytes, source, answers);
}
