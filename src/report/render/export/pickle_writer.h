/*
 * Writing Python pickles (protocol 2, which every Python 3 and torch-free readers take):
 * containers, texts, numbers. What was put once can be referred to by its number in the pickle's
 * memo.
 */
#ifndef GM_REPORT_RENDER_EXPORT_PICKLE_WRITER_H
#define GM_REPORT_RENDER_EXPORT_PICKLE_WRITER_H

#include "report/support/numbering.h"
#include <stdint.h>
#include <stdio.h>

struct gm_pickle {
	FILE *file;
	struct gm_numbering texts; /* their numbers are not the memo's */
	uint32_t *memo_of_text;
	uint32_t memo; /* numbers given out */
};

void gm_pickle_begin(struct gm_pickle *pickle, FILE *file);
void gm_pickle_end(struct gm_pickle *pickle);

/* A dict or list, then its contents (keys and values in turn), then the end of the same kind. */
void gm_pickle_dict(struct gm_pickle *pickle);
void gm_pickle_dict_end(struct gm_pickle *pickle);
void gm_pickle_list(struct gm_pickle *pickle);
void gm_pickle_list_end(struct gm_pickle *pickle);

void gm_pickle_text(struct gm_pickle *pickle, const char *text);
void gm_pickle_unsigned(struct gm_pickle *pickle, uint64_t number);
void gm_pickle_signed(struct gm_pickle *pickle, int64_t number);
void gm_pickle_bool(struct gm_pickle *pickle, bool value);

/* Two numbers as a tuple. */
void gm_pickle_pair(struct gm_pickle *pickle, int64_t a, int64_t b);

/* Remembers what was put last (after its end); gm_pickle_again puts the same thing again. */
uint32_t gm_pickle_remember(struct gm_pickle *pickle);
void gm_pickle_again(struct gm_pickle *pickle, uint32_t memo);

#endif
