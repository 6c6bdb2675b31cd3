/*
 * Thinning a long history, see internal.h.
 */
#include "report/render/page/internal.h"
#include "report/support/memory.h"
#include <stdlib.h>
#include <string.h>

#define FIRST_WIDTH 64u /* changes in a stretch, before stretches are merged */
#define LEVELS	    (GM_SLOTS * GM_LEVELS)
#define PAIRS	    16u /* devices and levels that are watched: the first that appear */

/* A moment: right after a change. */
struct moment {
	uint64_t number, time_ns, total;
};

struct stretch {
	struct moment high[PAIRS], low[PAIRS];
	uint16_t seen; /* a bit for each pair that changed */
};

struct gm_page_thinning {
	struct stretch *stretches;
	unsigned count, room;
	uint64_t width;
	uint8_t pairs[LEVELS]; /* number of a pair and 1; 0: not seen */
	unsigned pairs_count;
	struct moment last;
};

struct gm_page_thinning *gm_page_thinning_new(void)
{
	struct gm_page_thinning *thinning = gm_realloc(NULL, sizeof(*thinning));

	*thinning = (struct gm_page_thinning){.width = FIRST_WIDTH};
	return thinning;
}

void gm_page_thinning_free(struct gm_page_thinning *thinning)
{
	free(thinning->stretches);
	free(thinning);
}

static struct stretch *stretch_of(struct gm_page_thinning *thinning, uint64_t number)
{
	unsigned at = (unsigned)(number / thinning->width);

	if (at >= thinning->room) {
		thinning->room = 2 * at + 64;
		thinning->stretches =
			gm_realloc(thinning->stretches, thinning->room * sizeof(struct stretch));
	}
	while (thinning->count <= at)
		thinning->stretches[thinning->count++].seen = 0;
	return &thinning->stretches[at];
}

/* The pair of a change's device and level; PAIRS where there are too many. */
static unsigned pair_of(struct gm_page_thinning *thinning, const struct gm_page_change *change)
{
	uint8_t *pair = &thinning->pairs[gm_slot(change->device) * GM_LEVELS + change->level];

	if (*pair == 0 && thinning->pairs_count < PAIRS)
		*pair = (uint8_t)++thinning->pairs_count;
	return *pair ? *pair - 1u : PAIRS;
}

void gm_page_thinning_note(struct gm_page_thinning *thinning, const struct gm_page_change *change,
			   uint64_t total)
{
	struct moment moment = {change->number, change->time_ns, total};
	struct stretch *stretch = stretch_of(thinning, change->number);
	unsigned pair = pair_of(thinning, change);

	thinning->last = moment;
	if (pair == PAIRS)
		return;
	if (!(stretch->seen >> pair & 1) || total >= stretch->high[pair].total)
		stretch->high[pair] = moment;
	if (!(stretch->seen >> pair & 1) || total < stretch->low[pair].total)
		stretch->low[pair] = moment;
	stretch->seen |= (uint16_t)(1u << pair);
}

static void merge_into(struct stretch *to, const struct stretch *from)
{
	for (unsigned i = 0; i < PAIRS; i++) {
		if (!(from->seen >> i & 1))
			continue;
		if (!(to->seen >> i & 1) || from->high[i].total >= to->high[i].total)
			to->high[i] = from->high[i];
		if (!(to->seen >> i & 1) || from->low[i].total < to->low[i].total)
			to->low[i] = from->low[i];
	}
	to->seen |= from->seen;
}

/* Makes one stretch of each two. */
static void widen(struct gm_page_thinning *thinning)
{
	for (unsigned i = 0; i < thinning->count; i++) {
		if (i % 2 == 0)
			thinning->stretches[i / 2] = thinning->stretches[i];
		else
			merge_into(&thinning->stretches[i / 2], &thinning->stretches[i]);
	}
	thinning->count = (thinning->count + 1) / 2;
	thinning->width *= 2;
}

static int compare_moments(const void *a, const void *b)
{
	const struct moment *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

/* The moments that are kept, in order; the last change is one. The caller frees the list. */
static struct moment *moments_of(const struct gm_page_thinning *thinning, unsigned *count)
{
	struct moment *list =
		gm_realloc(NULL, ((size_t)thinning->count * 2 * PAIRS + 1) * sizeof(struct moment));
	unsigned n = 0, kept = 0;

	for (unsigned i = 0; i < thinning->count; i++) {
		const struct stretch *stretch = &thinning->stretches[i];

		for (unsigned k = 0; k < PAIRS; k++) {
			if (!(stretch->seen >> k & 1))
				continue;
			list[n++] = stretch->high[k];
			list[n++] = stretch->low[k];
		}
	}
	list[n++] = thinning->last;
	qsort(list, n, sizeof(*list), compare_moments);
	for (unsigned i = 0; i < n; i++)
		if (kept == 0 || list[i].number != list[kept - 1].number)
			list[kept++] = list[i];
	*count = kept;
	return list;
}

/* Moves every change to the moment at which its effect is seen first. */
static void move(struct gm_page_changes *changes, const struct moment *moments)
{
	for (unsigned i = 0; i < changes->count; i++) {
		struct gm_page_change *change = &changes->list[i];

		while (moments->number < change->number)
			moments++;
		change->number = moments->number;
		change->time_ns = moments->time_ns;
	}
}

/* Leaves out what came and went between two moments. */
static void compact(struct gm_page_changes *changes)
{
	struct gm_page_change *list = changes->list;
	uint32_t *places = gm_realloc(NULL, (changes->count + 1) * sizeof(*places));
	unsigned kept = 0;

	memset(places, 0, (changes->count + 1) * sizeof(*places));
	for (unsigned i = 0; i < changes->count; i++)
		if (list[i].came != GM_NONE && list[list[i].came].number == list[i].number)
			places[i] = places[list[i].came] = GM_NONE;
	for (unsigned i = 0; i < changes->count; i++) {
		if (places[i] == GM_NONE)
			continue;
		if (list[i].came != GM_NONE)
			list[i].came = places[list[i].came];
		places[i] = kept;
		list[kept++] = list[i];
	}
	changes->count = kept;
	free(places);
}

bool gm_page_thin(struct gm_page_thinning *thinning, struct gm_page_changes *changes, unsigned most)
{
	changes->thinned = true;
	for (;;) {
		unsigned count;
		struct moment *moments = moments_of(thinning, &count);

		move(changes, moments);
		free(moments);
		compact(changes);
		if (changes->count <= most || thinning->count <= 1)
			return changes->count <= most;
		widen(thinning);
	}
}
