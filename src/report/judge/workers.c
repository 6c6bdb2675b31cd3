/*
 * Growth that the process's work clock does not show: of equal workers one keeps a block in each of
 * its steps. If the threads' steps do not interleave, what it keeps fills a short stretch of the
 * process's work, as a set-up does. Here such a site is judged by the thread's own work, and only
 * where other threads do the same work and most of them keep nothing: loaders that end when all is
 * loaded have either no peers, or peers that keep their part. See workers.h.
 */
#include "report/judge/workers.h"
#include "report/history/events.h"
#include "report/judge/growth.h"
#include "report/support/numbering.h"
#include <stdlib.h>

#define MOST_BINS	16
#define MOST_CANDIDATES 16 /* the history is looked through for each of them */
#define PEER_PART	4  /* of the worker's allocations: as many make a thread a peer */
#define LEAST_PEERS	2  /* of two threads neither is "most" */

/* A site whose survivors are to be judged by the work of one thread. */
struct candidate {
	uint32_t site, thread;
	uint64_t bytes;
};

static bool freed_nothing(const struct gm_site *site)
{
	return site->record.frees <= site->work_count - site->record.live_count;
}

static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x->site < y->site ? -1 : x->site > y->site;
}

/* Sites that hold enough blocks of the thread that allocated there first; the largest. */
static unsigned find_candidates(const struct gm_doc *doc, unsigned warmup,
				struct candidate *candidates)
{
	uint64_t *blocks = gm_realloc(NULL, ((size_t)doc->sites_count + 1) * sizeof(*blocks));
	unsigned count = 0;

	for (unsigned i = 0; i < doc->sites_count; i++)
		blocks[i] = 0;
	for (unsigned i = 0; i < gm_work_blocks(doc); i++) {
		const struct gm_alloc_record copy = gm_work_block(doc, i), *block = &copy;

		if (block->site == GM_NONE)
			continue;
		if (!blocks[block->site])
			candidates[block->site].thread = block->thread;
		blocks[block->site] += block->thread == candidates[block->site].thread;
	}
	for (unsigned i = 0; i < doc->sites_count; i++) {
		const struct gm_site *site = &doc->sites[i];

		if ((site->verdict != GM_HELD && site->verdict != GM_RELEASED) || site->one_pass)
			continue;
		if (blocks[i] >= GM_GROWTH_LEAST_WINDOWS + warmup && freed_nothing(site))
			candidates[count++] =
				(struct candidate){i, candidates[i].thread, site->work_bytes};
	}
	free(blocks);
	if (count)
		qsort(candidates, count, sizeof(*candidates), compare_candidates);
	return count < MOST_CANDIDATES ? count : MOST_CANDIDATES;
}

static uint32_t site_of(const struct gm_doc *doc, const struct gm_event_record *event)
{
	return event->site < doc->sites_count ? doc->sites[event->site].merged : GM_NONE;
}

/* The part that each thread has in a candidate's work, by the thread's number. */
struct threads {
	struct gm_numbering numbers;
	uint64_t *allocations; /* at the sites where the worker's memory comes and goes */
	bool *owners;	       /* of survivors of the candidate's site */
};

static unsigned number_of(struct threads *threads, uint32_t thread)
{
	bool added;
	unsigned number = gm_number_of(&threads->numbers, &thread, sizeof(thread), &added);

	if (added) {
		threads->allocations = gm_realloc(threads->allocations,
						  (number + 1) * sizeof(*threads->allocations));
		threads->owners =
			gm_realloc(threads->owners, (number + 1) * sizeof(*threads->owners));
		threads->allocations[number] = 0;
		threads->owners[number] = false;
	}
	return number;
}

/*
 * True if other threads do the worker's work, and at most half of all threads keep blocks at the
 * site.
 */
static bool has_peers(const struct gm_doc *doc, const struct gm_history *history,
		      const struct candidate *candidate, unsigned *peers)
{
	enum { ALLOCATES = 1, FREES };
	unsigned char *works = gm_realloc(NULL, (size_t)doc->sites_count + 1);
	struct threads threads = {.allocations = NULL};
	unsigned worker, number, owners = 0;

	for (unsigned i = 0; i < doc->sites_count; i++)
		works[i] = 0;
	for (unsigned i = 0; i < history->count; i++) {
		const struct gm_event_record *event = &history->events[i];
		uint32_t site = site_of(doc, event);

		if (event->thread != candidate->thread || site == GM_NONE)
			continue;
		/*
		 * Memory that another thread made, as a forward pass for the backward one, is not
		 * the worker's work.
		 */
		if (event->op == GM_OP_ALLOC || event->op == GM_OP_FREE)
			works[site] |= event->op == GM_OP_ALLOC ? ALLOCATES : FREES;
	}
	worker = number_of(&threads, candidate->thread);
	for (unsigned i = 0; i < history->count; i++) {
		const struct gm_event_record *event = &history->events[i];
		uint32_t site = site_of(doc, event);

		if (event->op != GM_OP_ALLOC || site == GM_NONE ||
		    works[site] != (ALLOCATES | FREES))
			continue;
		number = number_of(&threads, event->thread);
		threads.allocations[number]++;
	}
	for (unsigned i = 0; i < gm_work_blocks(doc); i++) {
		if (gm_work_block_at(doc, i)->site != candidate->site)
			continue;
		number = number_of(&threads, gm_work_block(doc, i).thread);
		threads.owners[number] = true;
	}
	*peers = 0;
	for (unsigned i = 0; i < threads.numbers.count; i++) {
		owners += threads.owners[i];
		*peers += i != worker && threads.allocations[i] &&
			  threads.allocations[i] >= threads.allocations[worker] / PEER_PART;
	}
	gm_numbering_free(&threads.numbers);
	free(threads.allocations);
	free(threads.owners);
	free(works);
	return *peers >= LEAST_PEERS && 2 * owners <= *peers + 1;
}

/* Frees of the worker before each block that it kept, ascending, and before its last allocation. */
struct steps {
	uint64_t *frees;
	unsigned count, bursts;
	uint64_t end;
};

static struct steps steps_of(const struct gm_doc *doc, const struct gm_history *history,
			     const struct candidate *candidate)
{
	struct steps steps = {
		.frees = gm_realloc(NULL, ((size_t)history->count + 1) * sizeof(*steps.frees))};
	uint64_t frees = 0;

	for (unsigned i = 0; i < history->count; i++) {
		const struct gm_event_record *event = &history->events[i];

		if (event->thread != candidate->thread)
			continue;
		frees += event->op == GM_OP_FREE;
		if (event->op != GM_OP_ALLOC)
			continue;
		steps.end = frees;
		if (site_of(doc, event) != candidate->site)
			continue;
		steps.bursts += !steps.count || steps.frees[steps.count - 1] != frees;
		steps.frees[steps.count++] = frees;
	}
	return steps;
}

static bool kept_throughout(const struct steps *steps, unsigned warmup)
{
	struct gm_survivors bins[MOST_BINS] = {{0}};
	unsigned count = 3 * steps->bursts / 4;

	if (count < GM_GROWTH_LEAST_WINDOWS + warmup)
		return false;
	count = count < MOST_BINS ? count : MOST_BINS;
	for (unsigned i = 0; i < steps->count; i++)
		bins[steps->frees[i] * count / (steps->end + 1)].count++;
	return gm_judge_survivors(bins + warmup, count - warmup, true);
}

void gm_judge_workers(struct gm_doc *doc, unsigned warmup)
{
	struct candidate *candidates =
		gm_realloc(NULL, ((size_t)doc->sites_count + 1) * sizeof(*candidates));
	unsigned count = find_candidates(doc, warmup, candidates), peers;
	struct gm_history history = {0};

	if (count)
		history = gm_load_history(doc);
	for (unsigned i = 0; i < count && history.complete; i++) {
		struct gm_site *site = &doc->sites[candidates[i].site];
		struct steps steps;

		if (!has_peers(doc, &history, &candidates[i], &peers))
			continue;
		steps = steps_of(doc, &history, &candidates[i]);
		if (kept_throughout(&steps, warmup)) {
			site->verdict = GM_GROW;
			site->why = gm_doc_printf(doc,
						  "none of %llu allocations was freed while thread "
						  "%u worked; %u other threads "
						  "do the same work, and most keep nothing",
						  (unsigned long long)site->record.allocations,
						  candidates[i].thread, peers);
		}
		free(steps.frees);
	}
	free(candidates);
}
