/*
 * A run with another batch, from two recordings.
 */
#ifndef GM_REPORT_WHATIF_OTHER_BATCH_H
#define GM_REPORT_WHATIF_OTHER_BATCH_H

#include "report/whatif/requests.h"

#include <stddef.h>

/*
 * Changes the sizes of `requests`, those of a run with the batch `batch`, to what a run with the
 * batch `wanted` would ask for: each lies on a line through the request itself and the same request
 * of `other`, a run with the batch `other_batch`. The two runs have to make the same requests and
 * frees in the same order. Otherwise `requests` stays as it is, and the function returns false with
 * a sentence in `error`.
 */
bool gm_requests_other_batch(struct gm_requests *requests, double batch,
			     const struct gm_requests *other, double other_batch, double wanted,
			     char *error, size_t error_bytes);

#endif
