/*
 * Any bytes as a file of the cache of names, its check sum taken for right: what is accepted can be
 * read whole, and is written again as the same answers.
 */
#include "harness.h"
#include "report/symbols/symbol_answers.h"

#include <string.h>

#define SOURCE "source"

static void read_whole(const struct gm_symbol_answers *answers)
{
	for (unsigned i = 0; i < answers->known_count; i++) {
		const struct gm_symbol_answer *answer = &answers->known[i];

		if (gm_symbol_answers_find(answers, answer->offset) != answer)
			abort();
		for (unsigned k = 0; k < answer->count; k++) {
			const struct gm_frame *frame = &answer->frames[k];

			if ((frame->function && strlen(frame->function) == SIZE_MAX) ||
			    (frame->file && strlen(frame->file) == SIZE_MAX))
				abort();
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct gm_zone zone = {0};
	struct gm_symbol_answers answers, again;
	unsigned char *aligned = gm_zone_alloc(&zone, bytes, 1), *written;
	size_t written_bytes;

	if (bytes)
		memcpy(aligned, data, bytes);
	if (gm_symbol_answers_parse(&zone, aligned, bytes, SOURCE, &answers)) {
		read_whole(&answers);
		written = gm_symbol_answers_encode(&answers, SOURCE, &written_bytes);
		if (!gm_symbol_answers_decode(&zone, written, written_bytes, SOURCE, &again) ||
		    again.known_count != answers.known_count)
			abort();
		free(written);
	}
	gm_zone_free(&zone);
	return 0;
}
