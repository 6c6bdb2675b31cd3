/*
 * A run with another batch (other_batch.h).
 */
#include "report/whatif/other_batch.h"
#include <math.h>
#include <stdio.h>

#define UNIT 512.0 /* the allocator rounds to it, so a block's recorded size is a multiple */

/* Calls of empty_cache() are not the program's in every run: a retry makes them too. */
static bool counts(const struct gm_request *request)
{
	return request->op != GM_REQUEST_EMPTY_CACHE && request->op != GM_REQUEST_EMPTY_ASSUMED;
}

static unsigned next(const struct gm_requests *requests, unsigned at)
{
	while (at < requests->count && !counts(&requests->events[at]))
		at++;
	return at;
}

static bool asks(const struct gm_request *request)
{
	return request->op == GM_REQUEST_ALLOC || request->op == GM_REQUEST_REFUSED;
}

/* Returns after how many requests and frees the runs differ; UINT32_MAX if they do not. */
static uint32_t first_difference(const struct gm_requests *one, const struct gm_requests *other)
{
	unsigned a = next(one, 0), b = next(other, 0);
	uint32_t same = 0;

	for (; a < one->count && b < other->count; a = next(one, a + 1), b = next(other, b + 1)) {
		const struct gm_request *x = &one->events[a], *y = &other->events[b];

		if (x->op != y->op || x->block != y->block || x->pool != y->pool)
			return same;
		same++;
	}
	return a == one->count && b == other->count ? UINT32_MAX : same;
}

/*
 * The request on the line through two. Either may have asked for `slack` units less than is
 * recorded, so the result is the most that it can be, with the slack down to the least.
 */
static void move(struct gm_request *request, double batch, const struct gm_request *other,
		 double other_batch, double wanted)
{
	double weight = (wanted - batch) / (other_batch - batch), own = 1 - weight;
	double most = (double)request->bytes * own + (double)other->bytes * weight;
	double slack = request->slack * fabs(own) + other->slack * fabs(weight);

	most += UNIT * (own < 0 ? -own * request->slack : 0);
	most += UNIT * (weight < 0 ? -weight * other->slack : 0);
	most = most < UNIT ? UNIT : round(most / UNIT) * UNIT;
	request->bytes = (uint64_t)most;
	slack = ceil(slack) < most / UNIT ? ceil(slack) : most / UNIT - 1;
	request->slack = slack < UINT16_MAX ? (uint16_t)slack : UINT16_MAX;
}

bool gm_requests_other_batch(struct gm_requests *requests, double batch,
			     const struct gm_requests *other, double other_batch, double wanted,
			     char *error, size_t error_bytes)
{
	uint32_t difference = first_difference(requests, other);
	unsigned b = next(other, 0);

	if (requests->middle || other->middle) {
		snprintf(error, error_bytes,
			 "another batch needs histories that begin with the run");
		return false;
	}
	if (difference != UINT32_MAX) {
		snprintf(
			error, error_bytes,
			"the runs do not make the same requests: they differ after %u requests and "
			"frees; record the same number of steps with both batches",
			difference);
		return false;
	}
	for (unsigned a = next(requests, 0); a < requests->count; a = next(requests, a + 1)) {
		struct gm_request *request = &requests->events[a];

		if (asks(request) && request->bytes != other->events[b].bytes)
			move(request, batch, &other->events[b], other_batch, wanted);
		b = next(other, b + 1);
	}
	return true;
}
