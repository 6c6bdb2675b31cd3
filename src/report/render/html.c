/*
 * Writing the page, see html.h. Its data is one JSON object {document, parts[], order[]},
 * compressed, in the place that the template keeps for it; the page says the same of itself in
 * viewer/src/payload.js.
 */
#include "report/render/html.h"
#include "report/render/json_parts.h"
#include "report/render/pack.h"
#include "report/render/page_parts.h"
#include <errno.h>
#include <string.h>

/* template_lacks, NULL or a sentence, and template[]: made by viewer/embed.py. */
#include "viewer_template.h"

#define PLACE "@GPUMEMTRACE_DATA@"

const char *gm_html_lacks(void)
{
	return template_lacks;
}

static json_t *parts(struct gm_doc *doc)
{
	int *numbers = gm_json_site_numbers(doc);

	return json_pack("{s:o, s:o, s:o}", "sites", gm_page_sites(doc, numbers), "memory_map",
			 gm_page_memory_map(doc, numbers), "history",
			 gm_page_history(doc, numbers));
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

static json_t *payload(struct gm_job *job, char *const *paths, unsigned count)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < job->count; i++)
		json_array_append_new(list, parts(job->docs[i]));
	return json_pack("{s:o, s:o, s:o}", "document", gm_json_job(job), "parts", list, "order",
			 given_order(job, paths, count));
}

/* Drops the reference. */
static bool write_payload(json_t *value, FILE *out)
{
	struct gm_pack pack;
	bool fine = value && gm_pack_begin(&pack, out);

	if (!value)
		return false;
	if (fine)
		fine = json_dump_callback(value, gm_pack_add, &pack,
					  JSON_COMPACT | JSON_REAL_PRECISION(12)) == 0;
	json_decref(value);
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
	    !write_payload(payload(job, paths, count), out) ||
	    fwrite(rest, 1, (size_t)(template + bytes - rest), out) == 0 || fflush(out) != 0)
		return errno ? -errno : -EIO;
	return 0;
}
