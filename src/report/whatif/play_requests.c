/*
 * Runs the model once (play_requests.h).
 */
#include "report/whatif/play_requests.h"
#include "account/torch_record.h"
#include "report/support/memory.h"
#include "report/whatif/play_pool.h"
#include <stdlib.h>
#include <string.h>

#define SLACK_UNIT 512ull

struct playing {
	const struct gm_requests *requests;
	struct gm_replay_ways ways;
	struct gm_model *model;
	uint32_t *blocks; /* the model's, by number in the history; of a pending one its free */
	struct gm_replayed_run run;
};

/* ---- the beginning ---- */

static void put_found(struct playing *playing)
{
	const struct gm_requests *requests = playing->requests;

	for (unsigned i = 0; i < requests->segments_count; i++) {
		const struct gm_found_segment *segment = &requests->segments[i];
		struct gm_model_found *found = gm_realloc(NULL, segment->count * sizeof(*found));

		memcpy(found, &requests->found[segment->first], segment->count * sizeof(*found));
		gm_model_add_segment(playing->model, segment->pool, segment->small,
				     segment->expandable, segment->address, segment->base, found,
				     segment->count);
		for (unsigned b = 0; b < segment->count; b++)
			if (found[b].used)
				playing->blocks[requests->found_blocks[segment->first + b]] =
					found[b].block;
		free(found);
	}
}

/*
 * Requests the memory that was live at the beginning, in order of address; false if a request is
 * refused.
 */
static bool request_found(struct playing *playing)
{
	const struct gm_requests *requests = playing->requests;

	for (unsigned i = 0; i < requests->segments_count; i++) {
		const struct gm_found_segment *segment = &requests->segments[i];

		for (unsigned b = segment->first; b < segment->first + segment->count; b++) {
			uint32_t *block = &playing->blocks[requests->found_blocks[b]];

			if (!requests->found[b].used)
				continue;
			*block = gm_model_alloc(playing->model, segment->pool,
						requests->found[b].bytes);
			if (*block == GM_NO_BLOCK)
				return false;
			if (requests->found[b].pending)
				*block = gm_model_free_requested(playing->model, *block);
		}
	}
	return true;
}

/* ---- events ---- */

static uint64_t bytes_of(const struct playing *playing, const struct gm_request *request)
{
	uint64_t slack = request->slack;

	if (playing->ways.sizes == GM_SIZES_AS_GIVEN)
		slack = 0;
	else if (playing->ways.sizes == GM_SIZES_HALF)
		slack /= 2;
	else if (playing->ways.sizes == GM_SIZES_RANDOM) /* one for each size, as programs repeat */
		slack = (request->bytes / SLACK_UNIT + playing->ways.seed) * 2654435761u %
			(slack + 1);
	return request->bytes - slack * SLACK_UNIT;
}

/* A request that the recorded run was refused. What is served is given back: who got an error did
 * not use it. */
static void refused(struct playing *playing, const struct gm_request *request, uint32_t number)
{
	const struct gm_refusal *refusal = &playing->requests->refusals[request->block];
	uint64_t bytes = bytes_of(playing, request), before = 0;
	uint32_t block;

	if (!playing->ways.limited)
		before = gm_model_set_limit(playing->model, refusal->least_bytes);
	block = gm_model_alloc(playing->model, request->pool, bytes);
	if (!playing->ways.limited)
		gm_model_set_limit(playing->model, before);
	if (block != GM_NO_BLOCK) {
		playing->run.served++;
		gm_model_free_block(playing->model, block);
		return;
	}
	if (playing->run.first_oom == UINT32_MAX)
		playing->run.first_oom = number;
	playing->run.unsure +=
		!playing->ways.limited &&
		gm_model_figures(playing->model)->reserved_bytes + gm_torch_segment_size(bytes) <=
			refusal->most_bytes &&
		refusal->most_bytes != refusal->least_bytes;
}

static bool misplaced(const struct playing *playing, uint32_t block, uint32_t number)
{
	return gm_model_block_address(playing->model, block) !=
	       playing->requests->origins[number].address;
}

static void play(struct playing *playing, const struct gm_request *request, uint32_t number)
{
	uint32_t *block = &playing->blocks[request->block];
	unsigned streams = playing->ways.streams;

	switch (request->op) {
	case GM_REQUEST_ALLOC:
		*block = gm_model_alloc(playing->model, request->pool, bytes_of(playing, request));
		if (*block != GM_NO_BLOCK) {
			if (playing->ways.recorded)
				playing->run.misplaced += misplaced(playing, *block, number);
			return;
		}
		if (playing->run.first_oom == UINT32_MAX)
			playing->run.first_oom = number;
		playing->run.ended = true;
		return;
	case GM_REQUEST_REFUSED:
		refused(playing, request, number);
		return;
	case GM_REQUEST_FREE:
		gm_model_free_block(playing->model, *block);
		return;
	case GM_REQUEST_FREE_LATER:
		if (streams == GM_STREAMS_AT_ONCE)
			gm_model_free_block(playing->model, *block);
		else
			*block = gm_model_free_requested(playing->model, *block);
		return;
	case GM_REQUEST_FREE_DONE:
		if (streams == GM_STREAMS_AS_RECORDED)
			gm_model_free_completed(playing->model, *block);
		return;
	case GM_REQUEST_EMPTY_ASSUMED:
		if (!playing->ways.no_assumed)
			gm_model_empty_cache(playing->model);
		return;
	case GM_REQUEST_WAIT:
	case GM_REQUEST_WAIT_ALL:
		return;
	default:
		gm_model_empty_cache(playing->model);
		return;
	}
}

struct gm_replayed_run gm_requests_replay(const struct gm_requests *requests,
					  const struct gm_model_options *given,
					  struct gm_replay_ways ways)
{
	struct gm_model_options options = *given;
	struct playing playing = {.requests = requests, .ways = ways};
	const struct gm_model_change *changes;

	if (given->settings.driver_pool)
		return gm_requests_replay_pool(requests, given, ways);
	options.pools = requests->pools;
	options.pools_count = requests->pools_count;
	options.placement = ways.placement;
	options.seed = ways.seed;
	options.regions = ways.regions ? &gm_usual_regions[ways.regions - 1] : NULL;
	options.recorded = ways.recorded ? requests->changes : NULL;
	options.recorded_count = ways.recorded ? requests->changes_count : 0;
	playing.run.first_oom = UINT32_MAX;
	playing.blocks = gm_realloc(NULL, requests->blocks * sizeof(*playing.blocks) + 1);
	playing.model = gm_model_new(&options);
	if (ways.keep_found) {
		put_found(&playing);
	} else if (!request_found(&playing)) {
		playing.run.first_oom = 0;
		playing.run.ended = true;
	}
	for (uint32_t i = 0; i < requests->count && !playing.run.ended; i++) {
		if (!ways.regions && i == requests->regions.above_at)
			gm_model_regions(playing.model, GM_REGIONS_ABOVE);
		if (!ways.regions && i == requests->regions.opened_at)
			gm_model_regions(playing.model, GM_REGIONS_OPENED);
		play(&playing, &requests->events[i], i);
	}
	playing.run.figures = *gm_model_figures(playing.model);
	changes = gm_model_changes(playing.model, &playing.run.changes_count);
	if (playing.run.changes_count) {
		size_t bytes = playing.run.changes_count * sizeof(*changes);

		playing.run.changes = memcpy(gm_realloc(NULL, bytes), changes, bytes);
	}
	gm_model_free(playing.model);
	free(playing.blocks);
	return playing.run;
}
