/*
 * The document as JSON (contract.md, section 4): every key is always there, absent facts are null
 * and absent lists empty.
 */
#ifndef GM_REPORT_RENDER_JSON_H
#define GM_REPORT_RENDER_JSON_H

#include "report/job.h"
#include <jansson.h>
#include <stdio.h>

/* The whole document of one file. The caller owns the reference. */
json_t *gm_json_doc(struct gm_doc *doc);

/* A document about no file: every key, objects null and lists empty. */
json_t *gm_json_empty(void);

/* The document of several files: `runs[]` and `job`; of one file, its document. */
json_t *gm_json_job(struct gm_job *job);

/* Pieces that other renderers share. */
json_t *gm_json_stack(struct gm_doc *doc, const struct gm_stack *stack);
json_t *gm_json_site(struct gm_doc *doc, const struct gm_site *site);
json_t *gm_json_bytes(uint64_t bytes);
json_t *gm_json_string(const char *text);

/* Writes the value and a newline; 0 or -errno. Drops the reference. */
int gm_json_write(json_t *value, FILE *out);

#endif
