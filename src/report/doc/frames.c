/*
 * Frames as people read them, see frames.h.
 */
#include "report/doc/frames.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *gm_module_name(const struct gm_frame *frame)
{
	const char *slash;

	if (!frame->module)
		return NULL;
	slash = strrchr(frame->module, '/');
	return slash ? slash + 1 : frame->module;
}

const char *gm_format_frame_short(const struct gm_frame *frame)
{
	static char text[512];
	const char *file = frame->file ? strrchr(frame->file, '/') : NULL;
	const char *module = gm_module_name(frame);
	int length = frame->function ? (int)strcspn(frame->function, "(") : 0;

	file = file ? file + 1 : frame->file;
	/* "(anonymous namespace)::f(int)" and "operator()(...)": keep what stands before the
	 * arguments */
	while (frame->function && frame->function[length] &&
	       (strncmp(frame->function + length, "(anonymous namespace)", 21) == 0 ||
		strncmp(frame->function + length, "()(", 3) == 0))
		length += 2 + (int)strcspn(frame->function + length + 2, "(");
	if (frame->function && file && frame->line)
		snprintf(text, sizeof(text), "%.*s (%s:%u)", length > 300 ? 300 : length,
			 frame->function, file, frame->line);
	else if (frame->function)
		snprintf(text, sizeof(text), "%.*s (%s)", length > 300 ? 300 : length,
			 frame->function,
			 file	  ? file
			 : module ? module
				  : "unknown module");
	else if (file && frame->line)
		snprintf(text, sizeof(text), "%s:%u", file, frame->line);
	else
		snprintf(text, sizeof(text), "%s+0x%" PRIx64, module ? module : "unknown",
			 frame->offset);
	return text;
}
