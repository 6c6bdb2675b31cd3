/*
 * Runs the model of the driver's pool once (play_pool.h).
 */
#include "report/whatif/play_pool.h"
#include "report/support/memory.h"
#include "report/whatif/driver_pool.h"
#include <stdlib.h>

#define SLACK_UNIT 512ull

struct playing {
	const struct gm_requests *requests;
	struct gm_replay_ways ways;
	struct gm_pool_model *model;
	uint32_t *blocks; /* the model's, by number in the history */
	struct gm_replayed_run run;
};

/*
 * PyTorch frees memory that other streams used on a stream of its own, which waits for them. The
 * history tells it of those blocks alone for which its own allocator had to wait: with
 * GM_STREAMS_LATE it is taken of all.
 */
#define UNIFYING_STREAM (GM_ALL_STREAMS - 1)

static uint64_t bytes_of(const struct playing *playing, const struct gm_request *request)
{
	uint64_t slack = request->slack;

	return request->bytes - (playing->ways.sizes == GM_SIZES_LEAST ? slack * SLACK_UNIT : 0);
}

static uint32_t stream_of(const struct playing *playing, const struct gm_request *request)
{
	return playing->ways.shared ? 0 : request->pool;
}

/* The memory of a captured graph is its own, and no part of the pool. */
static bool captured(const struct playing *playing, const struct gm_request *request)
{
	return playing->requests->pools[request->pool].pool != 0;
}

static bool request_found(struct playing *playing)
{
	const struct gm_requests *requests = playing->requests;

	for (unsigned i = 0; i < requests->segments_count; i++) {
		const struct gm_found_segment *segment = &requests->segments[i];

		for (unsigned b = segment->first; b < segment->first + segment->count; b++) {
			uint32_t *block = &playing->blocks[requests->found_blocks[b]];

			if (!requests->found[b].used || requests->pools[segment->pool].pool)
				continue;
			*block = gm_pool_model_alloc(playing->model,
						     playing->ways.shared ? 0 : segment->pool,
						     requests->found[b].bytes);
			if (*block == GM_NO_BLOCK)
				return false;
		}
	}
	return true;
}

static void end_at(struct playing *playing, uint32_t number)
{
	playing->run.first_oom = number;
	playing->run.ended = true;
}

static void refused(struct playing *playing, const struct gm_request *request, uint32_t number)
{
	const struct gm_refusal *refusal = &playing->requests->refusals[request->block];
	uint64_t before = 0;
	uint32_t block;

	if (!playing->ways.limited)
		before = gm_pool_model_set_limit(playing->model, refusal->least_bytes);
	block = gm_pool_model_alloc(playing->model, stream_of(playing, request),
				    bytes_of(playing, request));
	if (!playing->ways.limited)
		gm_pool_model_set_limit(playing->model, before);
	if (block != GM_NO_BLOCK) {
		playing->run.served++;
		gm_pool_model_free_block(playing->model, block, stream_of(playing, request));
	} else if (playing->run.first_oom == UINT32_MAX) {
		playing->run.first_oom = number;
	}
}

static void play(struct playing *playing, const struct gm_request *request, uint32_t number)
{
	uint32_t *block = &playing->blocks[request->block];
	struct gm_pool_model *model = playing->model;
	bool later = playing->ways.streams == GM_STREAMS_LATE ||
		     (request->op == GM_REQUEST_FREE_LATER &&
		      playing->ways.streams != GM_STREAMS_AT_ONCE);

	switch (request->op) {
	case GM_REQUEST_ALLOC:
		if (captured(playing, request)) {
			playing->run.captured++;
			*block = GM_NO_BLOCK;
			return;
		}
		*block = gm_pool_model_alloc(model, stream_of(playing, request),
					     bytes_of(playing, request));
		if (*block == GM_NO_BLOCK)
			end_at(playing, number);
		return;
	case GM_REQUEST_REFUSED:
		refused(playing, request, number);
		return;
	case GM_REQUEST_FREE:
	case GM_REQUEST_FREE_LATER:
		if (*block != GM_NO_BLOCK)
			gm_pool_model_free_block(model, *block,
						 later && !playing->requests->driver_pool
							 ? UNIFYING_STREAM
						 : playing->requests->driver_pool
							 ? stream_of(playing, request)
							 : gm_pool_model_stream(model, *block));
		return;
	case GM_REQUEST_FREE_DONE:
		if (playing->ways.streams == GM_STREAMS_AS_RECORDED)
			gm_pool_model_wait(model, UNIFYING_STREAM);
		return;
	case GM_REQUEST_WAIT:
		gm_pool_model_wait(model, stream_of(playing, request));
		return;
	case GM_REQUEST_WAIT_ALL:
		gm_pool_model_wait(model, GM_ALL_STREAMS);
		return;
	case GM_REQUEST_TRIM:
		gm_pool_model_trim(model, request->bytes);
		return;
	case GM_REQUEST_EMPTY_ASSUMED:
		if (playing->ways.no_assumed)
			return;
		/* fall through */
	default:
		gm_pool_model_wait(model, GM_ALL_STREAMS);
		gm_pool_model_trim(model, 0);
		return;
	}
}

/* Waits are not recorded of every run: with `waits` there is one behind every event. */
static void play_on(struct playing *playing, uint32_t number)
{
	play(playing, &playing->requests->events[number], number);
	if (playing->ways.waits == GM_WAITS_ALWAYS)
		gm_pool_model_wait(playing->model, GM_ALL_STREAMS);
}

struct gm_replayed_run gm_requests_replay_pool(const struct gm_requests *requests,
					       const struct gm_model_options *options,
					       struct gm_replay_ways ways)
{
	struct playing playing = {.requests = requests, .ways = ways};

	playing.run.first_oom = UINT32_MAX;
	playing.blocks = gm_realloc(NULL, requests->blocks * sizeof(*playing.blocks) + 1);
	for (uint32_t i = 0; i < requests->blocks; i++)
		playing.blocks[i] = GM_NO_BLOCK;
	playing.model = gm_pool_model_new(&(struct gm_pool_options){
		.release_threshold_bytes = options->settings.release_threshold_bytes,
		.device_bytes = options->device_bytes,
		.timing = ways.timing});
	if (!request_found(&playing))
		end_at(&playing, 0);
	for (uint32_t i = 0; i < requests->count && !playing.run.ended; i++)
		play_on(&playing, i);
	playing.run.figures = *gm_pool_model_figures(playing.model);
	gm_pool_model_free(playing.model);
	free(playing.blocks);
	return playing.run;
}
