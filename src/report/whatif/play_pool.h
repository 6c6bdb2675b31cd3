/*
 * Replaying a history through the model of the driver's pool of stream-ordered memory.
 */
#ifndef GM_REPORT_WHATIF_PLAY_POOL_H
#define GM_REPORT_WHATIF_PLAY_POOL_H

#include "report/whatif/play_requests.h"

/* As gm_requests_replay, for settings with `driver_pool`. */
struct gm_replayed_run gm_requests_replay_pool(const struct gm_requests *requests,
					       const struct gm_model_options *options,
					       struct gm_replay_ways ways);

#endif
