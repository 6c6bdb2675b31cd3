/*
 * Marks that a program makes before its first CUDA event, when there is no file yet. A process that
 * never calls CUDA gets no file from them.
 */
#ifndef GM_RECORDER_EARLY_MARKS_H
#define GM_RECORDER_EARLY_MARKS_H

#include "store/layout.h"

/*
 * Keeps a mark; the oldest is dropped for it if need be. `name` may be NULL and is copied. Any
 * thread.
 */
void gm_early_mark(const char *name, enum gm_mark_source source);

/* Hands the marks to the tracker, once the file is open. Any thread. */
void gm_early_marks_record(void);

#endif
