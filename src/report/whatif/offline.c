/*
 * The plan (offline.h). Time is the number of the event.
 */
#include "report/whatif/offline.h"
#include "account/sizes.h"
#include "report/support/memory.h"
#include <stdlib.h>
#include <string.h>

#define MOST_BLOCKS 20000u

struct life {
	uint64_t bytes, address;
	uint32_t from, until;
};

static struct life *lives_of(const struct gm_requests *requests)
{
	struct life *lives = gm_realloc(NULL, requests->blocks * sizeof(*lives) + 1);

	for (unsigned i = 0; i < requests->blocks; i++)
		lives[i] = (struct life){.until = UINT32_MAX};
	for (unsigned i = 0; i < requests->found_count; i++)
		if (requests->found[i].used)
			lives[requests->found_blocks[i]].bytes = requests->found[i].bytes;
	for (unsigned i = 0; i < requests->count; i++) {
		const struct gm_request *request = &requests->events[i];

		if (request->op == GM_REQUEST_ALLOC) {
			lives[request->block].bytes = gm_round_units(request->bytes);
			lives[request->block].from = i + 1;
		} else if (request->op == GM_REQUEST_FREE || request->op == GM_REQUEST_FREE_LATER) {
			lives[request->block].until = i + 1;
		}
	}
	return lives;
}

static uint64_t most_live(const struct gm_requests *requests, const struct life *lives)
{
	uint64_t live = 0, most;

	for (unsigned i = 0; i < requests->found_count; i++)
		live += requests->found[i].used ? requests->found[i].bytes : 0;
	most = live;
	for (unsigned i = 0; i < requests->count; i++) {
		const struct gm_request *request = &requests->events[i];

		if (request->op == GM_REQUEST_ALLOC)
			live += lives[request->block].bytes;
		else if (request->op == GM_REQUEST_FREE || request->op == GM_REQUEST_FREE_LATER)
			live -= lives[request->block].bytes;
		most = live > most ? live : most;
	}
	return most;
}

static int by_size(const void *a, const void *b)
{
	const struct life *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

/* The lowest address beside those that are placed, which are in order of address. */
static uint64_t lowest(const struct life *placed, unsigned count, const struct life *life)
{
	uint64_t address = 0;

	for (unsigned i = 0; i < count; i++) {
		const struct life *other = &placed[i];

		if (other->from >= life->until || other->until <= life->from ||
		    other->address + other->bytes <= address)
			continue;
		if (other->address >= address + life->bytes)
			break;
		address = other->address + other->bytes;
	}
	return address;
}

static uint64_t plan(struct life *lives, unsigned count)
{
	struct life *placed = gm_realloc(NULL, count * sizeof(*placed) + 1);
	uint64_t peak = 0;

	if (count)
		qsort(lives, count, sizeof(*lives), by_size);
	for (unsigned i = 0; i < count; i++) {
		struct life *life = &lives[i];
		unsigned low = 0, high = i;

		life->address = lowest(placed, i, life);
		while (low < high) {
			unsigned middle = (low + high) / 2;

			if (placed[middle].address < life->address)
				low = middle + 1;
			else
				high = middle;
		}
		memmove(&placed[low + 1], &placed[low], (i - low) * sizeof(*placed));
		placed[low] = *life;
		if (life->address + life->bytes > peak)
			peak = life->address + life->bytes;
	}
	free(placed);
	return peak;
}

uint64_t gm_offline_peak(const struct gm_requests *requests, uint64_t *bound)
{
	struct life *lives = lives_of(requests);
	uint64_t peak = UINT64_MAX;

	*bound = most_live(requests, lives);
	if (requests->blocks <= MOST_BLOCKS)
		peak = plan(lives, requests->blocks);
	free(lives);
	return peak;
}
