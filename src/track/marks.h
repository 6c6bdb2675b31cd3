/*
 * Marks, which the program, an NVTX range or a signal makes, and copies of the file.
 */
#ifndef GM_TRACK_MARKS_H
#define GM_TRACK_MARKS_H

#include "store/layout.h"

/* Records a mark and closes the window. The first 255 bytes of `name` are copied. */
void gm_track_mark(const char *name, enum gm_mark_source source);

/* Copies the file to `path`, consistently. Returns 0 or -errno. */
int gm_track_copy(const char *path);

/*
 * Records a mark by a signal, whose name is in the file already, and copies the file to `path`. It
 * waits for nothing: if a lock is held it does nothing and returns -EAGAIN. Safe in signal
 * handlers.
 */
int gm_track_signal(uint32_t name_string, const char *path);

#endif
