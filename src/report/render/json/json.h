/*
 * The document as JSON (contract.md, section 4): every key is always there, absent facts are null
 * and absent lists empty.
 */
#ifndef GM_REPORT_RENDER_JSON_JSON_H
#define GM_REPORT_RENDER_JSON_JSON_H

#include "report/job/job.h"
#include "report/render/json/json_out.h"

/*
 * Writes the whole document of one file (of none, with nothing in it, if `doc` is NULL). `more`: a
 * key to add or to replace, with its value (the reference is dropped), or NULL.
 */
void gm_json_put_doc(struct gm_json_out *out, struct gm_doc *doc, const char *more, json_t *value);

/* The document of several files: `runs[]` and `job`; of one file, its document. */
void gm_json_put_job(struct gm_json_out *out, struct gm_job *job, const char *more, json_t *value);

/* These write the documents to a file, with a newline; 0 or -errno. */
int gm_json_write_doc(struct gm_doc *doc, const char *more, json_t *value, FILE *file);
int gm_json_write_job(struct gm_job *job, const char *more, json_t *value, FILE *file);
int gm_json_write_line(struct gm_doc *doc, FILE *file);

#endif
