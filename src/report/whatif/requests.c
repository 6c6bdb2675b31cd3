/*
 * Building a history for the model (requests.h).
 */
#include "report/whatif/requests.h"
#include "report/support/memory.h"
#include <stdlib.h>

/* Room for one more element. */
static void *grown(void *array, unsigned count, unsigned *room, size_t size)
{
	if (count < *room)
		return array;
	*room = *room ? 2 * *room : 64;
	return gm_realloc(array, *room * size);
}

unsigned gm_requests_pool(struct gm_requests *requests, uint32_t pool, uint64_t stream)
{
	for (unsigned i = 0; i < requests->pools_count; i++)
		if (requests->pools[i].pool == pool && requests->pools[i].stream == stream)
			return i;
	if (requests->pools_count == GM_MOST_POOLS) {
		requests->gap = "the run used more than 4096 streams, which are not told apart";
		return GM_MOST_POOLS - 1;
	}
	requests->pools = grown(requests->pools, requests->pools_count, &requests->pools_room,
				sizeof(*requests->pools));
	requests->pools[requests->pools_count] = (struct gm_model_pool){pool, stream};
	return requests->pools_count++;
}

void gm_requests_add(struct gm_requests *requests, struct gm_request request,
		     struct gm_request_origin origin)
{
	unsigned room = requests->events_room;

	requests->events =
		grown(requests->events, requests->count, &room, sizeof(*requests->events));
	requests->origins = grown(requests->origins, requests->count, &requests->events_room,
				  sizeof(*requests->origins));
	requests->emptied += request.op == GM_REQUEST_EMPTY_CACHE;
	requests->events[requests->count] = request;
	requests->origins[requests->count++] = origin;
}

void gm_requests_enter_pool(struct gm_requests *requests, unsigned pool,
			    struct gm_request_origin origin)
{
	uint32_t number = requests->pools[pool].pool;

	if (number && number % 2 == 0 && number != requests->last_pool)
		gm_requests_add(requests, (struct gm_request){.op = GM_REQUEST_EMPTY_ASSUMED},
				origin);
	requests->last_pool = number;
}

static bool continues(const struct gm_requests *requests, uint64_t address, int64_t bytes)
{
	const struct gm_model_change *last = &requests->changes[requests->changes_count - 1];

	return bytes > 0 && last->bytes > 0 && last->address + (uint64_t)last->bytes == address &&
	       requests->changed_at == requests->count;
}

void gm_requests_change(struct gm_requests *requests, uint64_t address, int64_t bytes)
{
	bool more = requests->changes_count && continues(requests, address, bytes);

	requests->changes = grown(requests->changes, requests->changes_count,
				  &requests->changes_room, sizeof(*requests->changes));
	if (more)
		requests->changes[requests->changes_count - 1].bytes += bytes;
	else
		requests->changes[requests->changes_count++] =
			(struct gm_model_change){address, bytes};
	if (bytes > 0)
		gm_regions_learn(&requests->regions, address, (uint64_t)bytes, requests->count);
	requests->changed_at = requests->count;
	requests->reserved_bytes += (uint64_t)bytes;
	if (bytes > 0 && requests->reserved_bytes > requests->reserved_peak_bytes)
		requests->reserved_peak_bytes = requests->reserved_bytes;
}

static void bound_limit(struct gm_requests *requests, uint64_t least, uint64_t most)
{
	if (least > requests->least_limit_bytes)
		requests->least_limit_bytes = least;
	if (most < requests->most_limit_bytes)
		requests->most_limit_bytes = most;
}

void gm_requests_refuse(struct gm_requests *requests, unsigned pool, uint64_t bytes,
			uint64_t taken_bytes, uint64_t free_bytes, struct gm_request_origin origin)
{
	uint64_t reserved = requests->reserved_bytes;
	struct gm_refusal refusal = {reserved, reserved + taken_bytes - 1};

	if (free_bytes < taken_bytes) {
		refusal.least_bytes = refusal.most_bytes = reserved + free_bytes;
		bound_limit(requests, refusal.least_bytes, refusal.most_bytes);
	}
	requests->refusals = grown(requests->refusals, requests->refusals_count,
				   &requests->refusals_room, sizeof(*requests->refusals));
	requests->refusals[requests->refusals_count] = refusal;
	gm_requests_add(requests,
			(struct gm_request){.op = GM_REQUEST_REFUSED,
					    .bytes = bytes,
					    .pool = (uint16_t)pool,
					    .block = requests->refusals_count++},
			origin);
}

void gm_requests_retried(struct gm_requests *requests, uint64_t reserved_before_bytes,
			 uint64_t taken_bytes)
{
	requests->retried = true;
	bound_limit(requests, requests->reserved_bytes + taken_bytes,
		    reserved_before_bytes + taken_bytes - 1);
}

void gm_requests_free(struct gm_requests *requests)
{
	free(requests->events);
	free(requests->origins);
	free(requests->pools);
	free(requests->segments);
	free(requests->found);
	free(requests->found_blocks);
	free(requests->refusals);
	free(requests->changes);
}
