/*
 * The verdict of each site: released, cached, held or grow. Growth is judged over two clocks: the
 * windows that the shim kept (marks or time), and, where those cannot tell, the order of allocations:
 * the live records show how what survived is spread over the run, which neither the machine's speed
 * nor a slow start can blur.
 */
#include "report/judge.h"
#include "report/judge_growth.h"
#include <stdlib.h>
#include <string.h>

#define MAX_BINS     64
#define TURNOVERS    4		 /* a bounded cache has replaced its content by then */
#define IDLE_NS	     100000000ull /* pauses under this are the machine's, not the program's */

/* How a site's live bytes are spread over the order of all allocations. */
struct spread {
	uint64_t first_serial;
	uint64_t survivors;
	unsigned bins;		/* 0: too few survivors */
	uint64_t *bytes;	/* per bin */
};

/* Whether a survivor counts: with marks of the program, what came before the first does not. */
static bool counts(const struct gm_doc *doc, const struct gm_alloc_record *block)
{
	return block->site != GM_NONE && !(doc->header->first_mark_serial &&
					   (block->flags & GM_ALLOC_BEFORE_MARK));
}

static struct spread *find_spreads(struct gm_doc *doc, unsigned warmup)
{
	struct spread *spreads = gm_arena_alloc(&doc->arena, doc->sites_count + 1, sizeof(*spreads));
	unsigned least = warmup + GM_GROWTH_LEAST_WINDOWS;
	uint64_t end = doc->header->serial;

	for (unsigned i = 0; i < doc->blocks_count; i++) {
		const struct gm_alloc_record *block = &doc->blocks[i].record;
		struct spread *spread = counts(doc, block) ? &spreads[block->site] : NULL;

		if (!spread)
			continue;
		if (!spread->survivors++ || block->serial < spread->first_serial)
			spread->first_serial = block->serial;
		if (block->serial > end)
			end = block->serial;
	}
	for (unsigned i = 0; i < doc->sites_count; i++) {
		struct spread *spread = &spreads[i];

		if (spread->survivors < least || least + 2 > MAX_BINS)
			continue;
		spread->bins = spread->survivors < least + 2 ? least : least + 2;
		spread->bytes = gm_arena_alloc(&doc->arena, spread->bins, sizeof(uint64_t));
	}
	for (unsigned i = 0; i < doc->blocks_count; i++) {
		const struct gm_alloc_record *block = &doc->blocks[i].record;
		struct spread *spread = counts(doc, block) ? &spreads[block->site] : NULL;
		unsigned bin;
		double share;

		if (!spread || !spread->bins)
			continue;
		share = (double)(block->serial - spread->first_serial) /
			((double)(end - spread->first_serial) + 1);
		bin = (unsigned)(share * spread->bins);
		spread->bytes[bin < spread->bins ? bin : spread->bins - 1] += block->bytes;
	}
	return spreads;
}

/* The growth test over the spread, as if it were windows of live bytes. */
static struct gm_growth_result judge_spread(const struct spread *spread, unsigned warmup)
{
	struct gm_window windows[MAX_BINS];
	uint64_t sum = 0;

	for (unsigned i = 0; i < spread->bins; i++) {
		sum += spread->bytes[i];
		windows[i] = (struct gm_window){sum, sum, sum};
	}
	return gm_judge_growth(windows, spread->bins, warmup);
}

/* True if no stretch of the run left much less behind than the others. */
static bool even(const struct spread *spread, unsigned warmup)
{
	uint64_t sum = 0;

	for (unsigned i = warmup; i < spread->bins; i++)
		sum += spread->bytes[i];
	for (unsigned i = warmup; i < spread->bins; i++)
		if (spread->bytes[i] < sum / (3 * (spread->bins - warmup)))
			return false;
	return true;
}

/* True if the site had long stopped allocating when the run ended. */
static bool stopped(const struct gm_doc *doc, const struct gm_site_record *record)
{
	uint64_t end = doc->header->ended_ns ? doc->header->ended_ns : doc->header->last_event_ns;
	uint64_t idle = end > record->last_ns ? end - record->last_ns : 0;

	return idle > IDLE_NS && end > record->first_ns && idle > (end - record->first_ns) / 2;
}

/*
 * The windows that can be judged: the open one is left out where enough remain, since it is shorter
 * than the others and the program's clean-up at its end lies in it.
 */
static struct gm_growth_result judge_windows(const struct gm_site_record *record, unsigned warmup)
{
	struct gm_growth_result result = gm_judge_growth(record->windows, record->window_current,
							 warmup);

	if (result.growth == GM_GROWTH_TOO_FEW)
		result = gm_judge_growth(record->windows, record->window_current + 1, warmup);
	/* What rose must still be there. */
	if (result.growth == GM_GROWTH_RISES &&
	    record->live_bytes < result.first_bytes + (result.last_bytes - result.first_bytes) / 2)
		result.growth = GM_GROWTH_NONE;
	return result;
}

static bool grows(struct gm_doc *doc, struct gm_site *site, const struct spread *spread,
		  unsigned warmup)
{
	const struct gm_site_record *record = &site->record;
	struct gm_growth_result windows = judge_windows(record, warmup), order = {0};
	bool marks = doc->header->window_marks && windows.growth != GM_GROWTH_TOO_FEW;

	if (spread->bins)
		order = judge_spread(spread, warmup);
	if (!marks && record->frees == 0) {
		if (order.growth == GM_GROWTH_RISES && !stopped(doc, record)) {
			site->why = gm_say(doc, "none of %llu allocations was freed, and they go on "
					   "to the end", (unsigned long long)record->allocations);
			return true;
		}
		site->why = order.growth == GM_GROWTH_TOO_FEW ? "not enough windows to judge growth" :
			    "never freed, and not growing at the end";
		return false;
	}
	if (windows.growth == GM_GROWTH_RISES) {
		site->why = gm_say(doc, "the floor rose in %u of %u steps between %s, from %s to %s",
				   windows.rises, windows.windows - 1,
				   doc->header->window_marks ? "marks" : "windows",
				   gm_size(doc, windows.first_bytes), gm_size(doc, windows.last_bytes));
		return true;
	}
	if (!marks && order.growth == GM_GROWTH_RISES && even(spread, warmup) &&
	    record->allocated_bytes / TURNOVERS >= record->live_bytes) {
		site->why = gm_say(doc, "%llu of %llu allocations were never freed, evenly over the run",
				   (unsigned long long)spread->survivors,
				   (unsigned long long)record->allocations);
		return true;
	}
	site->why = windows.growth == GM_GROWTH_TOO_FEW ? "not enough windows to judge growth" :
							  "live bytes stay bounded";
	return false;
}

static void judge_site(struct gm_doc *doc, struct gm_site *site, const struct spread *spread,
		       unsigned warmup)
{
	const struct gm_site_record *record = &site->record;

	if (record->live_count == 0 && record->live_bytes == 0) {
		site->verdict = GM_RELEASED;
		site->why = "nothing is live";
	} else if (record->level == GM_LEVEL_DRIVER && site->divided) {
		site->verdict = GM_CACHED;
		site->why = site->torch_segments ? "PyTorch's allocator divides it into blocks" :
						   "a pool divides it into blocks";
	} else if (grows(doc, site, spread, warmup)) {
		site->verdict = GM_GROW;
	} else if (record->level == GM_LEVEL_DRIVER && site->caching) {
		site->verdict = GM_CACHED;
		site->why = "a framework's allocator keeps it for reuse";
	} else {
		site->verdict = GM_HELD;
	}
}

void gm_judge_sites(struct gm_doc *doc, unsigned warmup)
{
	struct spread *spreads = find_spreads(doc, warmup);

	for (unsigned i = 0; i < doc->sites_count; i++)
		judge_site(doc, &doc->sites[i], &spreads[i], warmup);
}
