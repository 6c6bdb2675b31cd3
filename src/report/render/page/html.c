/*
 * Writing the page, see html.h. Its data is one JSON object {document, frames[], parts[], order[]},
 * compressed, in the place that the template keeps for it; the page says the same of itself in
 * viewer/src/payload.js.
 */
#include "report/render/page/html.h"
#include "report/render/json/json.h"
#include "report/render/json/json_sites.h"
#include "report/render/page/internal.h"
#include "report/render/page/pack.h"
#include "viewer_template.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* template_lacks, NULL or a sentence, and template[]: made by viewer/embed.py. */

#define PLACE "@GPUMEMTRACE_DATA@"

const char *gm_html_lacks(void)
{
	return template_lacks;
}

static void put_part(struct gm_json_out *out, struct gm_doc *doc)
{
	int *numbers = gm_json_site_numbers(doc);

	gm_json_put_text(out, "{\"sites\": ");
	gm_page_put_sites(out, doc, numbers);
	gm_json_put_name(out, "memory_map");
	gm_page_put_memory_map(out, doc, numbers);
	gm_json_put_name(out, "history");
	gm_page_put_history(out, doc, numbers);
	gm_json_put_text(out, "}");
}

/* The files' numbers in the job, in the order in which they were given. */
static json_t *given_order(const struct gm_job *job, char *const *paths, unsigned count)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < count; i++)
		for (unsigned k = 0; k < job->count; k++)
			if (strcmp(job->docs[k]->path, paths[i]) == 0)
				json_array_append_new(list, json_integer(k));
	return list;
}

static void put_frames(struct gm_json_out *out, const struct gm_json_frames *frames)
{
	gm_json_put_text(out, ",\"frames\": [");
	for (unsigned i = 0; i < frames->count; i++) {
		if (i)
			gm_json_put_text(out, ",");
		gm_json_put_text(out, frames->texts[i]);
	}
	gm_json_put_text(out, "]");
}

static void put_payload(struct gm_json_out *out, struct gm_job *job, char *const *paths,
			unsigned count)
{
	struct gm_json_frames frames = {0};

	out->frames = &frames;
	gm_json_put_text(out, "{\"document\": ");
	gm_json_put_job(out, job, NULL, NULL);
	put_frames(out, &frames);
	gm_json_put_text(out, ",\"parts\": [");
	for (unsigned i = 0; i < job->count; i++) {
		if (i)
			gm_json_put_text(out, ",");
		put_part(out, job->docs[i]);
	}
	gm_json_put_text(out, "]");
	gm_json_put_key(out, "order", given_order(job, paths, count));
	gm_json_put_text(out, "}");
	free(frames.texts);
}

static bool write_payload(struct gm_job *job, char *const *paths, unsigned count, FILE *file)
{
	struct gm_pack pack;
	struct gm_json_out out = {.write = gm_pack_add, .data = &pack};
	bool fine = gm_pack_begin(&pack, file);

	if (fine) {
		put_payload(&out, job, paths, count);
		fine = gm_json_out_end(&out);
	}
	return gm_pack_end(&pack) && fine;
}

int gm_html_write(struct gm_job *job, char *const *paths, unsigned count, FILE *out)
{
	size_t bytes = sizeof(template);
	const unsigned char *place = memmem(template, bytes, PLACE, strlen(PLACE)), *rest;

	if (!place)
		return -ENOTSUP;
	rest = place + strlen(PLACE);
	if (fwrite(template, 1, (size_t)(place - template), out) == 0 ||
	    !write_payload(job, paths, count, out) ||
	    fwrite(rest, 1, (size_t)(template + bytes - rest), out) == 0 || fflush(out) != 0)
		return errno ? -errno : -EIO;
	return 0;
}
