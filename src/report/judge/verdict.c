/*
 * The verdict of each site: released, cached, held or grow. Growth is judged over two clocks: the
 * windows that the shim kept (marks or time), and, where those cannot tell, the order of
 * allocations: the live records show how what survived is spread over the run, which neither the
 * machine's speed nor a slow start can blur.
 */
#include "report/judge/verdict.h"
#include "report/judge/growth.h"
#include <stdlib.h>
#include <string.h>

#define MOST_BINS 16
#define TURNOVERS 4	       /* a bounded store has replaced its content by then */
#define IDLE_NS	  300000000ull /* pauses under this are the machine's, not the program's */
#define QUIET_NS  2000000000ull /* a large framework's teardown is shorter */

/* How a site's live bytes are spread over the order of all allocations. */
struct spread {
	uint64_t survivors;
	unsigned bins;				 /* 0: too few survivors */
	struct gm_survivors bin[MOST_BINS];	 /* in equal stretches of the order */
	struct gm_survivors windows[GM_WINDOWS]; /* in the shim's windows */
};

/* Whether a survivor counts: with marks of the program, what came before the first does not. */
static bool counts(const struct gm_doc *doc, const struct gm_alloc_record *block)
{
	return block->site != GM_NONE &&
	       !(doc->header->first_mark_serial && (block->flags & GM_ALLOC_BEFORE_MARK));
}

/* The window in which something of that time lies. */
static unsigned window_at(const struct gm_header *header, uint64_t time_ns)
{
	unsigned i = header->window_current < GM_WINDOWS ? header->window_current : GM_WINDOWS - 1;

	while (i && header->window_start_ns[i] > time_ns)
		i--;
	return i;
}

static void survive(struct gm_survivors *survivors, uint64_t bytes)
{
	survivors->count++;
	survivors->bytes += bytes;
}

/* Where the order that a site is judged in begins: at its first allocation or the first mark. */
static uint64_t order_start(const struct gm_doc *doc, const struct gm_site_record *record)
{
	uint64_t mark = doc->header->first_mark_serial;

	return record->first_serial > mark ? record->first_serial : mark;
}

static void survive_in_order(struct spread *spread, uint64_t start, uint64_t end,
			     const struct gm_alloc_record *block)
{
	uint64_t serial = block->serial < end ? block->serial : end; /* beyond: damage */
	unsigned bin = 0;

	if (serial > start)
		bin = (unsigned)((double)(serial - start) / ((double)(end - start) + 1) * spread->bins);
	survive(&spread->bin[bin < spread->bins ? bin : spread->bins - 1], block->bytes);
}

static struct spread *find_spreads(struct gm_doc *doc, unsigned warmup)
{
	struct spread *spreads = gm_zone_alloc(&doc->zone, doc->sites_count + 1, sizeof(*spreads));
	uint64_t least = (uint64_t)warmup + GM_GROWTH_LEAST_WINDOWS;

	for (unsigned i = 0; i < doc->blocks_count; i++) {
		const struct gm_alloc_record *block = &doc->blocks[i].record;

		if (!counts(doc, block))
			continue;
		spreads[block->site].survivors++;
		survive(&spreads[block->site].windows[window_at(doc->header, block->time_ns)],
			block->bytes);
	}
	for (unsigned i = 0; i < doc->sites_count; i++)
		if (spreads[i].survivors >= least && least <= MOST_BINS)
			spreads[i].bins = spreads[i].survivors < MOST_BINS
						  ? (unsigned)spreads[i].survivors
						  : MOST_BINS;
	for (unsigned i = 0; i < doc->blocks_count; i++) {
		const struct gm_alloc_record *block = &doc->blocks[i].record;

		if (counts(doc, block) && spreads[block->site].bins)
			survive_in_order(&spreads[block->site],
					 order_start(doc, &doc->sites[block->site].record),
					 doc->header->serial, block);
	}
	return spreads;
}

/* When anything was last allocated: later there is only work without memory, and the teardown. */
static uint64_t last_allocation(const struct gm_doc *doc)
{
	uint64_t last = 0;
	unsigned i;

	for (i = 0; i < doc->sites_count; i++)
		if (doc->sites[i].record.last_ns > last)
			last = doc->sites[i].record.last_ns;
	return last;
}

/*
 * True if the site had stopped allocating for longer than it had been at it when the run ended: a
 * set-up, then work. Either others went on without it, or nothing was allocated any more; then the
 * teardown of a large framework, which takes a second, must not make a leak look finished.
 */
static bool stopped(const struct gm_doc *doc, const struct gm_site_record *record)
{
	uint64_t last = doc->last_allocation_ns;
	uint64_t end = doc->header->ended_ns ? doc->header->ended_ns : doc->header->last_event_ns;
	uint64_t without_it = last > record->last_ns ? last - record->last_ns : 0;
	uint64_t idle = end > record->last_ns ? end - record->last_ns : 0;

	if (without_it > IDLE_NS && without_it > (last - record->first_ns) / 2)
		return true;
	return idle > QUIET_NS && idle > record->last_ns - record->first_ns;
}

/*
 * The windows that can be judged: the open one is left out where enough remain, since it is shorter
 * than the others and the program's clean-up at its end lies in it.
 */
static struct gm_growth_result judge_windows(const struct gm_site_record *record,
					     const struct spread *spread, unsigned warmup)
{
	struct gm_growth_result result =
		gm_judge_growth(record->windows, spread->windows, record->window_current, warmup);

	if (result.growth == GM_GROWTH_TOO_FEW)
		result = gm_judge_growth(record->windows, spread->windows,
					 record->window_current + 1, warmup);
	/* What rose must still be there. */
	if (result.growth == GM_GROWTH_RISES &&
	    record->live_bytes < result.first_bytes + (result.last_bytes - result.first_bytes) / 2)
		result.growth = GM_GROWTH_NONE;
	return result;
}

/*
 * Whether the site left blocks behind all along. Only for sites that freed nothing, whose every
 * block is one that was left, and those whose working memory was replaced often enough to be told
 * apart.
 */
static bool leaves_behind(struct gm_doc *doc, struct gm_site *site, const struct spread *spread,
			  unsigned warmup)
{
	const struct gm_site_record *record = &site->record;
	bool all = record->frees == 0;

	if (!spread->bins || (!all && record->allocated_bytes / TURNOVERS < record->live_bytes) ||
	    !gm_judge_survivors(spread->bin + warmup, spread->bins - warmup, all) ||
	    (all && stopped(doc, record)))
		return false;
	site->why =
		all ? gm_doc_printf(doc, "none of %llu allocations was freed, and they go on to the end",
			     (unsigned long long)record->allocations)
		    : gm_doc_printf(doc, "%llu of %llu allocations are still live, from the whole run",
			     (unsigned long long)record->live_count,
			     (unsigned long long)record->allocations);
	return true;
}

static bool grows(struct gm_doc *doc, struct gm_site *site, const struct spread *spread,
		  unsigned warmup)
{
	const struct gm_site_record *record = &site->record;
	struct gm_growth_result windows = judge_windows(record, spread, warmup);
	bool marks = doc->header->window_marks && windows.growth != GM_GROWTH_TOO_FEW;

	/* Marks tell when a site allocates, which the order of allocations does not. */
	if ((marks ? record->frees && (windows.rose || windows.left_behind) : true) &&
	    leaves_behind(doc, site, spread, warmup))
		return true;
	if (!marks && record->frees == 0) { /* the order of its allocations has told it all */
		site->why = spread->bins ? "never freed, and not growing at the end"
					 : "not enough windows to judge growth";
		return false;
	}
	if (windows.growth == GM_GROWTH_RISES) {
		site->why =
			gm_doc_printf(doc, "the floor rose in %u of %u steps between %s, from %s to %s",
			       windows.rises, windows.windows - 1,
			       doc->header->window_marks ? "marks" : "windows",
			       gm_size(doc, windows.first_bytes), gm_size(doc, windows.last_bytes));
		return true;
	}
	site->why = windows.growth == GM_GROWTH_TOO_FEW ? "not enough windows to judge growth"
							: "live bytes stay bounded";
	return false;
}

/* One allocation of most of the device: a pool's preallocation. */
static bool preallocated(const struct gm_doc *doc, const struct gm_site_record *record)
{
	uint64_t limit = gm_device_limit(gm_doc_device(doc, record->device));

	return record->live_count == 1 && limit != GM_NO_BYTES && record->live_bytes > limit / 2;
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
		site->why = site->torch_segments ? "PyTorch's allocator divides it into blocks"
						 : "a pool divides it into blocks";
	} else if (grows(doc, site, spread, warmup)) {
		site->verdict = GM_GROW;
	} else if (record->level == GM_LEVEL_DRIVER && site->opaque && preallocated(doc, record)) {
		site->verdict = GM_HELD;
		site->why =
			"a pool takes it at once by design; utilisation inside it is not visible";
	} else if (record->level == GM_LEVEL_DRIVER && site->opaque) {
		site->verdict = GM_CACHED;
		site->why = "a framework's allocator keeps it for reuse; utilisation inside it is "
			    "not visible";
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

	doc->last_allocation_ns = last_allocation(doc);
	for (unsigned i = 0; i < doc->sites_count; i++)
		judge_site(doc, &doc->sites[i], &spreads[i], warmup);
}
