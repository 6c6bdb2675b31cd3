/*
 * Functions that several export formats share, see internal.h.
 */
#include "report/render/export/internal.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>

int gm_export_end(FILE *file)
{
	return fflush(file) == 0 && !ferror(file) ? 0 : -EIO;
}

uint64_t gm_export_job_start(const struct gm_job *job)
{
	uint64_t first = 0;

	for (unsigned i = 0; i < job->count; i++) {
		uint64_t start = job->docs[i]->header->started_realtime_ns;

		if (!job->docs[i]->superseded && start && (!first || start < first))
			first = start;
	}
	return first;
}

unsigned gm_export_level(const struct gm_options *options)
{
	return options->level < 0 ? GM_LEVEL_DRIVER : (unsigned)options->level;
}

const char *gm_export_frame_name(const struct gm_frame *frame, char *text, size_t bytes)
{
	const char *slash = frame->module ? strrchr(frame->module, '/') : NULL;

	if (frame->function)
		return frame->function;
	snprintf(text, bytes, "%s+0x%" PRIx64,
		 slash		 ? slash + 1
		 : frame->module ? frame->module
				 : "unknown",
		 frame->offset);
	return text;
}

const char *gm_export_frame_file(const struct gm_frame *frame)
{
	return frame->file ? frame->file : frame->module ? frame->module : "";
}
