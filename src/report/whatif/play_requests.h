/*
 * Replaying a history through the model under one setting.
 */
#ifndef GM_REPORT_WHATIF_PLAY_REQUESTS_H
#define GM_REPORT_WHATIF_PLAY_REQUESTS_H

#include "report/whatif/driver_pool.h"
#include "report/whatif/requests.h"

/* Assumptions about facts that are not known, which are varied to see whether they matter. */
struct gm_replay_ways {
	enum gm_model_placement placement;
	unsigned seed;
	unsigned regions; /* from 1 in gm_usual_regions[]; 0: as the recorded run shows */
	enum { GM_STREAMS_AS_RECORDED, GM_STREAMS_AT_ONCE, GM_STREAMS_LATE } streams;
	/* bytes by which a request was smaller than its block, where that is not known */
	enum { GM_SIZES_AS_GIVEN, GM_SIZES_LEAST, GM_SIZES_HALF, GM_SIZES_RANDOM } sizes;
	bool keep_found; /* blocks from before the first event stay as they were */
	bool no_assumed; /* of the cache's emptying at captures */
	bool recorded;	 /* segments have their recorded addresses */
	bool limited;	 /* the options' limits alone refuse requests, not what refused them then */
	/* of the driver's pool: when the device gets to frees, and whether one stream has at once
	   what another freed */
	struct gm_pool_timing timing;
	bool shared;
	/* waits for streams, which decide when the driver's pool gives memory back */
	enum { GM_WAITS_AS_RECORDED, GM_WAITS_ALWAYS } waits;
};

struct gm_replayed_run {
	struct gm_model_figures figures;
	struct gm_model_change *changes; /* with `log`; from malloc */
	unsigned changes_count;
	uint32_t first_oom; /* number of the event; UINT32_MAX none */
	bool ended;	    /* at it: the recorded run was served there */
	unsigned misplaced; /* with `recorded`: blocks that are not where that run had them */
	unsigned served;    /* requests that the recorded run was refused */
	unsigned unsure;    /* refusals by a limit that is not known to refuse them here */
	unsigned captured;  /* requests of graphs, whose memory the driver's pool does not hold */
};

/* `options` with settings and limits; pools, placement and addresses are set here. */
struct gm_replayed_run gm_requests_replay(const struct gm_requests *requests,
					  const struct gm_model_options *options,
					  struct gm_replay_ways ways);

#endif
