/*
 * A frame in words.
 */
#ifndef GM_REPORT_DOC_FRAMES_H
#define GM_REPORT_DOC_FRAMES_H

#include "report/doc/doc.h"

/* Name of a frame's object without its directory; NULL for Python frames. In the frame's own text.
 */
const char *gm_module_name(const struct gm_frame *frame);

/* Shortest form that names a place: "step (train.py:41)", "libfoo.so+0x1234". In static storage,
 * until the next call. */
const char *gm_format_frame_short(const struct gm_frame *frame);

#endif
