/*
 * The answers that were found about addresses of one build of an object: the functions and lines at
 * each offset, as bytes that a file keeps. The format is this tool's own and may change with it; an
 * answer that is not understood is refused whole.
 */
#ifndef GM_REPORT_SYMBOLS_SYMBOL_ANSWERS_H
#define GM_REPORT_SYMBOLS_SYMBOL_ANSWERS_H

#include "report/doc/doc.h"

struct gm_symbol_answer {
	uint64_t offset;
	const struct gm_frame *frames; /* function (as in the object), file, line, inlined */
	unsigned count;
};

struct gm_symbol_answers {
	const struct gm_symbol_answer *known; /* by offset, each once */
	unsigned known_count;
	struct gm_symbol_answer *added; /* as they came */
	unsigned added_count;
};

/* The answer at an offset, NULL if it is not known. Those added since are not looked through. */
const struct gm_symbol_answer *gm_symbol_answers_find(const struct gm_symbol_answers *answers,
						      uint64_t offset);

/* Adds an answer; the texts stay the caller's and must live as long as the zone. */
void gm_symbol_answers_add(struct gm_zone *zone, struct gm_symbol_answers *answers, uint64_t offset,
			   const struct gm_frame *frames, unsigned count);

/*
 * The bytes of a file of all answers that were found in the objects that `source` describes. From
 * malloc, `*bytes` long.
 */
unsigned char *gm_symbol_answers_encode(const struct gm_symbol_answers *answers, const char *source,
					size_t *bytes);

/*
 * Reads such bytes; false, and no answers, if they are damaged, hostile, of another version or
 * another source. The texts point into `data`.
 */
bool gm_symbol_answers_decode(struct gm_zone *zone, const unsigned char *data, size_t bytes,
			      const char *source, struct gm_symbol_answers *answers);

/* Reads answers without the check sum, for bytes that have none (fuzzing). */
bool gm_symbol_answers_parse(struct gm_zone *zone, const unsigned char *data, size_t bytes,
			     const char *source, struct gm_symbol_answers *answers);

#endif
