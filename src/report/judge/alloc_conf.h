/*
 * The program's settings of its framework's allocator, from its environment: advice must not name a
 * setting that is made already.
 */
#ifndef GM_REPORT_JUDGE_ALLOC_CONF_H
#define GM_REPORT_JUDGE_ALLOC_CONF_H

#include "report/doc/doc.h"

/*
 * Value of a key in PYTORCH_CUDA_ALLOC_CONF or PYTORCH_ALLOC_CONF ("True" of
 * "expandable_segments:True"), in the document's zone; NULL if it is not set.
 */
const char *gm_torch_setting(struct gm_doc *doc, const char *key);

/* True if the key is set to True. */
bool gm_torch_enabled(struct gm_doc *doc, const char *key);

/* The variable to set: the one that the program uses, else PYTORCH_CUDA_ALLOC_CONF. */
const char *gm_torch_conf_name(struct gm_doc *doc);

/* True if PyTorch hands out from cudaMallocAsync's pool, where settings of segments mean nothing.
 */
bool gm_torch_async_backend(struct gm_doc *doc);

#endif
