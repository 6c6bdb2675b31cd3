/*
 * The verdict of each site: released, cached, held or grow, as of the end of the work (layout.h).
 * Growth is judged by windows (marks or equal work, judged_windows.h), and, where those cannot
 * tell, by what survived, on the work clock: a position between two allocations is how many
 * allocations before it had been freed again by the end of the work, plus the program's marks. A
 * set-up stands still on this clock, however long it takes: nothing comes and goes while a model is
 * loaded. A loop moves it on with each step. Where nothing comes and goes in the loop either, the
 * launches between the allocations tell.
 */
#include "report/judge/verdict.h"
#include "report/judge/growth.h"
#include "report/judge/internal.h"
#include "report/judge/judged_windows.h"
#include "report/support/memory.h"
#include "report/support/sort.h"
#include "account/kinds.h"
#include <stdlib.h>
#include <string.h>

#define MOST_BINS	 16
#define TURNOVERS	 4  /* a bounded store has replaced its content by then */
#define SURVIVORS_A_STEP 16 /* more to each allocation that came and went are a set-up */
#define MARKS_OF_STEPS	 (GM_GROWTH_LEAST_WINDOWS + GM_WARMUP_WINDOWS) /* fewer are phases */

/*
 * The survivors, which are the allocations that are live at the end of the work, in order of their
 * serial numbers, and the marks of the program that count as work.
 */
struct order {
	struct gm_keyed *survivors; /* serial number, and number for gm_work_block */
	unsigned count;
	uint32_t *by_site;  /* of `survivors` those that count, each site's in order */
	uint32_t *starts;   /* the first of each site in by_site, and the end of the last one's */
	uint64_t *launched; /* launches before each of `survivors` and, last, in all: at least */
	uint64_t *marks;    /* serial numbers, ascending */
	unsigned marks_count;
	unsigned marks_made; /* also those that are not kept */
	uint64_t baseline;   /* serial number of the mark that ends the set-up; 0: none does */
	struct gm_judged_windows windows;
};

/* The spread of a site's leftovers over the work. */
struct spread {
	uint64_t survivors, bursts;	     /* bursts: stretches of them without work in between */
	uint64_t first_work, latest_work;    /* of the first survivor, and of the one met last */
	uint64_t widest_gap;		     /* the most work between two bursts */
	uint64_t widest_pause, pause;	     /* allocations between two, and after the last */
	uint64_t start, end;		     /* of the work that the site is judged in */
	uint64_t first_ns, last_ns;	     /* when the survivors were allocated */
	uint64_t first_bytes, last_bytes;    /* of the first survivor and of the one met last */
	unsigned rises, falls;		     /* of bytes from one survivor to the next */
	unsigned bins;			     /* 0: too few bursts */
	struct gm_survivors bin[MOST_BINS];  /* in equal stretches of the work */
	struct gm_survivors late[MOST_BINS]; /* of the work since the first survivor */
	struct gm_survivors windows[GM_WINDOWS]; /* in `judged` */
	const struct gm_judged_windows *judged;
	unsigned marks;		/* of the program, in the whole run */
	unsigned launch_bursts; /* stretches of survivors without a launch in between */
	uint64_t launches;	/* from the first survivor to the last */
	struct gm_survivors launch_bin[MOST_BINS]; /* from the first survivor to the end */
};

/* True if a survivor counts: allocations before a mark that ends the set-up do not. */
static bool counts(const struct order *order, const struct gm_alloc_record *block)
{
	return block->site != GM_NONE &&
	       !(order->baseline && (block->flags & GM_ALLOC_BEFORE_MARK));
}

static void survive(struct gm_survivors *survivors, uint64_t bytes)
{
	survivors->count++;
	survivors->bytes += bytes;
}

/* Returns how many marks have at most this serial number; the marks ascend. */
static unsigned rank_of_mark(const struct order *order, uint64_t serial)
{
	unsigned low = 0, high = order->marks_count;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (order->marks[middle] <= serial)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Returns the number of survivors before that serial number. */
static unsigned rank_of(const struct order *order, uint64_t serial)
{
	unsigned low = 0, high = order->count;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (order->survivors[middle].key < serial)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The work clock right before the allocation with that serial number, whose rank that is. */
static uint64_t work_before(const struct order *order, uint64_t serial, uint64_t survived)
{
	uint64_t before = serial ? serial - 1 : 0;

	return (before > survived ? before - survived : 0) + rank_of_mark(order, before);
}

static uint64_t work_at(const struct order *order, uint64_t serial)
{
	return work_before(order, serial, rank_of(order, serial));
}

static void order_marks(const struct gm_doc *doc, struct order *order)
{
	order->marks = gm_realloc(NULL, ((size_t)doc->marks_count + 1) * sizeof(*order->marks));
	for (unsigned i = 0; i < doc->marks_count; i++)
		if (gm_mark_by_program(doc->marks[i].record.source))
			order->marks[order->marks_count++] = doc->marks[i].record.serial;
}

#define SHORT_USE 20 /* a twentieth of the work follows */

/*
 * Returns the serial number of the mark that ends the set-up: the first one. The only mark of a
 * run, made at its end, does not turn the whole run into a set-up; 0 then.
 */
static uint64_t find_baseline(const struct gm_doc *doc, const struct order *order)
{
	uint64_t first = doc->header->first_mark_serial;
	uint64_t end = work_at(order, doc->header->serial + 1);

	if (order->marks_made >= MARKS_OF_STEPS)
		return first;
	return end - work_at(order, first) >= end / SHORT_USE + 1 ? first : 0;
}

/* Groups the survivors that count by their sites. */
static void order_by_site(const struct gm_doc *doc, struct order *order)
{
	uint32_t *next = gm_realloc(NULL, ((size_t)doc->sites_count + 2) * sizeof(*next));

	memset(next, 0, ((size_t)doc->sites_count + 2) * sizeof(*next));
	for (unsigned i = 0; i < order->count; i++) {
		const struct gm_alloc_record block = gm_work_block(doc, order->survivors[i].number);

		if (counts(order, &block))
			next[block.site + 2]++;
	}
	for (unsigned i = 2; i < doc->sites_count + 2; i++)
		next[i] += next[i - 1];
	order->by_site = gm_realloc(NULL, ((size_t)order->count + 1) * sizeof(*order->by_site));
	for (unsigned i = 0; i < order->count; i++) {
		const struct gm_alloc_record block = gm_work_block(doc, order->survivors[i].number);

		if (counts(order, &block))
			order->by_site[next[block.site + 1]++] = i;
	}
	order->starts = next;
}

/* The launches before an allocation that freed ones were made between are not known. */
static void order_launches(const struct gm_doc *doc, struct order *order)
{
	uint64_t launched = 0;

	order->launched = gm_realloc(NULL, ((size_t)order->count + 1) * sizeof(*order->launched));
	for (unsigned i = 0; i < order->count; i++) {
		unsigned bits = gm_work_block(doc, order->survivors[i].number).flags >>
				GM_ALLOC_LAUNCHES_SHIFT;

		launched += bits ? 1ull << (bits - 1) % 32 : 0;
		order->launched[i] = launched;
	}
	order->launched[order->count] = launched + doc->header->launched;
}

static struct order make_order(struct gm_doc *doc)
{
	struct order order = {
		.count = gm_work_blocks(doc),
		.marks_made = doc->header->window_marks ? doc->header->window_filled : 0,
	};

	order.marks_made = doc->header->window_marks ? doc->header->window_filled : 0;
	order_marks(doc, &order);
	order.survivors = gm_realloc(NULL, ((size_t)order.count + 1) * sizeof(*order.survivors));
	for (unsigned i = 0; i < order.count; i++)
		order.survivors[i] = (struct gm_keyed){gm_work_block_at(doc, i)->serial, i};
	gm_sort_keyed(order.survivors, order.count);
	order.baseline = find_baseline(doc, &order);
	order_launches(doc, &order);
	order.windows = gm_find_judged_windows(doc, order.marks_made < MARKS_OF_STEPS);
	order_by_site(doc, &order);
	return order;
}

static void free_order(struct order *order)
{
	free(order->survivors);
	free(order->by_site);
	free(order->starts);
	free(order->launched);
	free(order->marks);
}

/* The work clock right before a survivor; the serial numbers of a damaged file may be equal. */
static uint64_t work_of(const struct order *order, uint32_t survivor)
{
	uint64_t serial = order->survivors[survivor].key;

	if (survivor && order->survivors[survivor - 1].key == serial)
		return work_at(order, serial);
	return work_before(order, serial, survivor);
}

/*
 * Returns the beginning of the work in which a site is judged: its first allocation or the end of
 * the set-up.
 */
static uint64_t work_start(const struct order *order, const struct gm_site_figures *record)
{
	return work_at(order, record->first_serial > order->baseline ? record->first_serial
								     : order->baseline);
}

/* The one of `bins` equal stretches of the work from `start` to the end that `work` lies in. */
static unsigned stretch_of(uint64_t work, uint64_t start, uint64_t end, unsigned bins)
{
	unsigned bin = 0;

	work = work < end ? work : end; /* beyond: damage */
	if (work > start)
		bin = (unsigned)((double)(work - start) / ((double)(end - start) + 1) * bins);
	return bin < bins ? bin : bins - 1;
}

static void survive_in_order(struct spread *spread, uint64_t work, uint64_t bytes)
{
	survive(&spread->bin[stretch_of(work, spread->start, spread->end, spread->bins)], bytes);
	survive(&spread->late[stretch_of(work, spread->first_work, spread->end, MOST_BINS)], bytes);
}

/* In how many bins a site's survivors are judged; 0: too few of them are apart. */
static unsigned bins_for(const struct spread *spread, unsigned warmup)
{
	uint64_t work = spread->end > spread->start ? spread->end - spread->start : 0;
	uint64_t least = (uint64_t)warmup + GM_GROWTH_LEAST_WINDOWS;
	unsigned bins;

	if (spread->bursts < least || least > MOST_BINS ||
	    work < spread->survivors / SURVIVORS_A_STEP)
		return 0;
	if (spread->bursts >= MOST_BINS + MOST_BINS / 3)
		return MOST_BINS;
	/* fewer than bursts: steps that work more or less than others leave none empty by chance */
	bins = (unsigned)(3 * spread->bursts / 4);
	return bins > least ? bins : (unsigned)least;
}

/*
 * Returns the end of the work in which a site is judged. The devices of an imported snapshot were
 * replayed one after the other: there the work ends before the first allocation of the next device.
 */
static uint64_t work_end(const struct gm_doc *doc, const struct order *order,
			 const struct gm_site_figures *record)
{
	uint64_t end = doc->header->serial + 1;

	for (unsigned i = 0; doc->imported && i < doc->sites_count; i++)
		if (doc->sites[i].record.device > record->device &&
		    doc->sites[i].record.first_serial < end)
			end = doc->sites[i].record.first_serial;
	return work_at(order, end);
}

/* The spread over the launches of the run. */
static void spread_over_launches(const struct gm_doc *doc, const struct order *order,
				 const uint32_t *entries, unsigned count, struct spread *spread)
{
	uint64_t first = count ? order->launched[entries[0]] : 0, before = first;

	spread->launch_bursts = count > 0;
	for (unsigned i = 0; i < count; i++) {
		uint64_t launched = order->launched[entries[i]];

		spread->launch_bursts += launched > before;
		before = launched;
		survive(&spread->launch_bin[stretch_of(launched, first,
						       order->launched[order->count], MOST_BINS)],
			gm_work_block(doc, order->survivors[entries[i]].number).bytes);
	}
	spread->launches = before - first;
}

#define FEW_EARLY 16 /* one in so many survivors may be of a trial */
#define TRIAL	  4  /* and a quarter of the work lie between it and the others */

/*
 * Returns how many of the first survivors were made in a trial: a first step, after which kernels
 * are compiled or ways to compute are tried, with temporary memory that no later step takes. The
 * site is judged from the next one on.
 */
static unsigned of_trial(const struct order *order, const struct spread *spread,
			 const uint32_t *entries, unsigned count)
{
	uint64_t least = (spread->end - spread->start) / TRIAL + 1;
	unsigned early = 0;

	for (unsigned i = 1; i <= count / FEW_EARLY && spread->end > spread->start; i++)
		if (work_of(order, entries[i]) >= work_of(order, entries[i - 1]) + least)
			early = i;
	return early;
}

/*
 * The spread of a site whose survivors are `count` entries of by_site. `freed`: it also freed some.
 */
static struct spread find_spread(const struct gm_doc *doc, const struct order *order,
				 const struct gm_site_figures *record, const uint32_t *entries,
				 unsigned count, bool freed, unsigned warmup)
{
	struct spread spread = {
		.survivors = count, .judged = &order->windows, .marks = order->marks_made};
	uint64_t serial = 0;
	unsigned early;

	for (unsigned i = 0; i < count; i++) {
		const struct gm_block *block =
			gm_work_block_at(doc, order->survivors[entries[i]].number);
		uint64_t work = work_of(order, entries[i]);

		if (!i) {
			spread.first_ns = block->time_ns;
			spread.first_work = work;
			spread.first_bytes = block->bytes;
		}
		spread.rises += i && block->bytes > spread.last_bytes;
		spread.falls += i && block->bytes < spread.last_bytes;
		spread.last_bytes = block->bytes;
		if (!i || work > spread.latest_work)
			spread.bursts++;
		if (i && work > spread.latest_work + spread.widest_gap)
			spread.widest_gap = work - spread.latest_work;
		if (i && block->serial > serial + spread.widest_pause)
			spread.widest_pause = block->serial - serial;
		serial = block->serial;
		spread.pause = doc->header->serial > serial ? doc->header->serial - serial : 0;
		spread.latest_work = work;
		spread.last_ns = block->time_ns;
		survive(&spread.windows[gm_window_at(&order->windows, block->time_ns)],
			block->bytes);
	}
	spread_over_launches(doc, order, entries, count, &spread);
	spread.start = work_start(order, record);
	spread.end = work_end(doc, order, record);
	early = freed ? 0 : of_trial(order, &spread, entries, count);
	if (early)
		spread.start = work_of(order, entries[early]);
	if (spread.bursts < GM_GROWTH_LEAST_WINDOWS)
		return spread;
	spread.bins = bins_for(&spread, warmup);
	for (unsigned i = early; spread.bins && i < count; i++)
		survive_in_order(&spread, work_of(order, entries[i]),
				 gm_work_block_at(doc, order->survivors[entries[i]].number)->bytes);
	return spread;
}

/*
 * The windows that can be judged: the open one is left out where enough remain, since it is shorter
 * than the others.
 */
static struct gm_growth_result judge_windows(const struct gm_doc *doc, const struct gm_site *site,
					     const struct spread *spread, unsigned warmup)
{
	struct gm_window windows[GM_WINDOWS];
	unsigned open = gm_windows_of(spread->judged, doc, site, windows);
	struct gm_growth_result result = gm_judge_growth(windows, spread->windows, open, warmup);

	if (result.growth == GM_GROWTH_TOO_FEW)
		result = gm_judge_growth(windows, spread->windows, open + 1, warmup);
	/* Bytes that rose must still be there. */
	if (result.growth == GM_GROWTH_RISES &&
	    site->work_bytes < result.first_bytes + (result.last_bytes - result.first_bytes) / 2)
		result.growth = GM_GROWTH_NONE;
	return result;
}

/* Frees before the end of the work. */
static uint64_t work_frees(const struct gm_site *site)
{
	uint64_t after = site->work_count - site->record.live_count;

	return site->record.frees > after ? site->record.frees - after : 0;
}

bool gm_gives_back(const struct gm_site *site)
{
	return work_frees(site) > site->record.allocations / 2;
}

/*
 * True if a site allocated or freed in one of its windows, as far as the bytes that it held there
 * tell.
 */
static bool active_in(const struct gm_doc *doc, const struct gm_judged_windows *judged,
		      const struct gm_site *site, unsigned window)
{
	const struct gm_window at = gm_recorded_window(judged, doc, site, window);

	return at.min_bytes != at.max_bytes ||
	       (window &&
		at.last_bytes != gm_recorded_window(judged, doc, site, window - 1).last_bytes);
}

/*
 * True if the site was active in most windows between two times. A site that was active before and
 * after them, and not between, is an optimizer's around a pass.
 */
static bool active_between(const struct gm_doc *doc, const struct gm_judged_windows *judged,
			   const struct gm_site *site, uint64_t from_ns, uint64_t to_ns)
{
	unsigned first = gm_window_at(judged, from_ns), last = gm_window_at(judged, to_ns);
	unsigned active = 0;

	for (unsigned i = first; i <= last; i++)
		active += active_in(doc, judged, site, i);
	return 2 * active > last - first + 1;
}

#define MOST_OF_A_LAYER 32 /* a layer of one pass does not allocate more often at one place */

/*
 * True if other work of the program recurred while the site's survivors came. Within one pass of a
 * model, one backward pass, one step of an optimizer, or while a model is loaded, layer after layer
 * keeps its part, and the temporary memory of each layer comes and goes: that repeats, but the
 * program's steps do not. In a loop of steps something outside the pass is allocated again and
 * again, too, or the passes give back what they took much more often than something stays.
 */
static bool steps_recur(const struct gm_doc *doc, const struct gm_site *site,
			const struct spread *spread)
{
	uint64_t life_ns = spread->last_ns - spread->first_ns;

	if (strcmp(site->phase, "other") == 0)
		return true;
	for (unsigned i = 0; i < doc->sites_count; i++) {
		const struct gm_site *other = &doc->sites[i];

		if (strcmp(other->phase, site->phase) == 0 &&
		    other->record.device == site->record.device &&
		    work_frees(other) / MOST_OF_A_LAYER > spread->bursts)
			return true;
		if (other->record.allocations >= GM_GROWTH_LEAST_WINDOWS + GM_WARMUP_WINDOWS &&
		    strcmp(other->phase, site->phase) != 0 &&
		    other->record.first_ns <= spread->first_ns + life_ns / 2 &&
		    other->record.last_ns >= spread->first_ns + life_ns / 4 * 3 &&
		    active_between(doc, spread->judged, other, spread->first_ns + life_ns / 4,
				   spread->first_ns + life_ns / 4 * 3))
			return true;
	}
	return false;
}

/*
 * True if all work of the process came before the first or after the last of the site's survivors,
 * by the shim's windows: those are equal numbers of frees. A set-up whose temporary memory is given
 * back all at once, when it is made, has work between its allocations only by the serial numbers of
 * what was freed later.
 */
static bool at_one_moment(const struct spread *spread)
{
	uint64_t most = 0;

	for (unsigned i = 0; i < GM_WINDOWS; i++)
		most = spread->windows[i].count > most ? spread->windows[i].count : most;
	return !spread->judged->marks && spread->judged->open && 10 * most > 9 * spread->survivors;
}

/*
 * True for a set of which a part was freed at once, after which nothing was allocated: the shim's
 * windows are one, as each is opened by an allocation after a free.
 */
static bool was_thinned(const struct gm_doc *doc, const struct spread *spread)
{
	return !spread->judged->marks && !spread->judged->open && doc->header->freed;
}

#define STOPPED	    3	/* times the widest gap between its survivors: it has stopped */
#define MANY_BURSTS 20	/* of fewer the gaps differ too much to tell */
#define CONVERSION  2	/* temporary blocks for each that stays; a training step has more */
#define LAST_PIECE  8	/* an eighth of the work or less is one last piece, */
#define LAST_STEPS  256 /* unless it retains something in more steps than these */
#define SHRINKS	    4	/* so often blocks get smaller; the first is so many times the last */

/*
 * True if memory that came and went while the site's survivors came goes on to do so long after the
 * last of them: the loop goes on, and the site has what it needs.
 */
static bool loop_goes_on(const struct gm_doc *doc, const struct gm_site *site,
			 const struct spread *spread)
{
	uint64_t life_ns = spread->last_ns - spread->first_ns, end_ns = spread->last_ns;

	for (unsigned i = 0; i < doc->sites_count; i++)
		if (doc->sites[i].record.last_ns > end_ns)
			end_ns = doc->sites[i].record.last_ns;
	for (unsigned i = 0; i < doc->sites_count; i++) {
		const struct gm_site *other = &doc->sites[i];

		if (other != site && work_frees(other) >= spread->bursts / 2 &&
		    other->record.first_ns <= spread->first_ns + life_ns / 2 &&
		    other->record.last_ns > end_ns - (end_ns - spread->last_ns) / 2)
			return true;
	}
	return false;
}

/*
 * True for a set that was made in one piece of work, of which the run does not show that it is made
 * again and again: by loading, or before anything else came and went, or in a loop that goes on
 * without it, and then used for a while; or at the very end, as the results of a last evaluation.
 * Buffers that are made from the largest down, as for captures of CUDA graphs by size of the batch,
 * are such a set, too: they have reached the smallest.
 */
static bool made_once(const struct gm_doc *doc, const struct gm_site *site,
		      const struct spread *spread)
{
	uint64_t some = STOPPED * (spread->widest_gap + 1);
	uint64_t rest = spread->end - spread->latest_work;

	if (spread->judged->marks)
		return false;
	if (!spread->rises && spread->falls >= SHRINKS &&
	    spread->first_bytes / SHRINKS >= spread->last_bytes)
		return true;
	if (strcmp(site->phase, "loading") == 0 &&
	    spread->pause > STOPPED * (spread->widest_pause + 1))
		return true;
	if (spread->bursts >= MANY_BURSTS && rest > some && rest >= spread->end / SHORT_USE &&
	    ((spread->start <= some && spread->widest_gap <= CONVERSION) ||
	     loop_goes_on(doc, site, spread)))
		return true;
	return spread->end - spread->start < spread->end / LAST_PIECE &&
	       spread->bursts <= LAST_STEPS;
}

/*
 * True if the site left blocks behind all along. Only for sites that freed nothing, whose every
 * block was left, and sites whose working memory was replaced often enough to be told apart.
 */
static bool leaves_behind(struct gm_doc *doc, struct gm_site *site, const struct spread *spread,
			  unsigned warmup)
{
	const struct gm_site_figures *record = &site->record;
	bool all = work_frees(site) == 0;

	if (!spread->bins || (!all && was_thinned(doc, spread)) ||
	    (all && (at_one_moment(spread) || made_once(doc, site, spread))) ||
	    (!all && record->allocated_bytes / TURNOVERS < site->work_bytes) ||
	    !gm_judge_survivors(spread->bin + warmup, spread->bins - warmup, all) || site->one_pass)
		return false;
	if (!all)
		site->why = gm_doc_printf(
			doc, "%llu of %llu allocations are still live, from the whole run",
			(unsigned long long)site->work_count,
			(unsigned long long)record->allocations);
	else
		site->why = gm_doc_printf(
			doc, "none of the %llu allocations was freed%s; it was still allocating %s",
			(unsigned long long)record->allocations,
			record->frees ? " before the program ended" : "",
			record->frees ? "then" : "when the run ended");
	return true;
}

#define LAUNCHES_A_STEP 2 /* a tensor that is filled when it is made takes one */

/*
 * True if the site left blocks behind in a loop in which nothing comes and goes, so that the work
 * clock stands still: between the blocks kernels were launched, to the end of the run.
 */
static bool left_between_launches(const struct gm_site *site, const struct spread *spread,
				  unsigned warmup)
{
	return work_frees(site) == 0 && site->record.level == GM_LEVEL_DRIVER &&
	       !spread->judged->marks && spread->end - spread->start < GM_GROWTH_LEAST_WINDOWS &&
	       spread->launch_bursts >= MANY_BURSTS &&
	       spread->launches / LAUNCHES_A_STEP >= spread->launch_bursts - 1 &&
	       warmup < MOST_BINS &&
	       gm_judge_survivors(spread->launch_bin + warmup, MOST_BINS - warmup, true) &&
	       strcmp(site->phase, "loading") != 0 && !site->one_pass;
}

#define FEW_REPLACEMENTS 6 /* of a buffer whose size is multiplied each time */

/*
 * A buffer that is appended to is replaced by one of a multiple of its size, each time after twice
 * as long: its replacements are few, all of them together are little more than the last one, and
 * the last one lies in the later half of the work.
 */
static bool grows_by_factors(const struct gm_judged_windows *judged,
			     const struct gm_site_figures *record, const struct gm_window *windows,
			     unsigned open)
{
	if (record->allocations < FEW_REPLACEMENTS ||
	    record->max_alloc_bytes / 8 < record->min_alloc_bytes ||
	    record->allocated_bytes / 3 > record->max_alloc_bytes)
		return false;
	for (unsigned i = 1; i <= open; i++)
		if (windows[i].last_bytes < windows[i - 1].last_bytes)
			return false;
	return open && 5 * gm_window_at(judged, record->last_ns) >= 2 * open;
}

/*
 * A buffer that is freed before its larger successor is taken has no floor: what is held at the
 * windows' ends tells, or, with `most`, the most that each window held. Of a loop's working memory,
 * taken and freed many times in a window, that is chance.
 */
static bool larger_by_windows(const struct gm_doc *doc, const struct gm_site *site,
			      const struct spread *spread, unsigned warmup, bool most)
{
	struct gm_window windows[GM_WINDOWS];
	unsigned open, first = 0;

	if (site->work_count != 1 || !work_frees(site) ||
	    site->work_bytes != site->record.max_alloc_bytes || !site->stack)
		return false; /* without a stack it is not one buffer's place */
	open = gm_windows_of(spread->judged, doc, site, windows);
	for (unsigned i = 0; i < GM_WINDOWS; i++) {
		windows[i].last_bytes = most ? windows[i].max_bytes : windows[i].last_bytes;
		windows[i].min_bytes = windows[i].max_bytes = windows[i].last_bytes;
	}
	while (first < open && !windows[first].last_bytes)
		first++;
	first = first > warmup ? first : warmup;
	for (unsigned i = 0; i < open; i++)
		if (windows[i].last_bytes > site->work_bytes)
			return false;
	if (grows_by_factors(spread->judged, &site->record, windows, open))
		return true;
	/* The open window may be over before the next replacement. */
	return open > first && (gm_growth_steady(windows + first, open - first) ||
				gm_growth_steady(windows + first, open - first + 1));
}

/*
 * A window that ends between a free and the successor's allocation holds nothing at its end. The
 * most that each window held tells as well, if the history shows that the place is never empty
 * longer.
 */
static bool replaced_by_larger(struct gm_doc *doc, const struct gm_site *site,
			       const struct spread *spread, unsigned warmup)
{
	uint32_t number = (uint32_t)(site - doc->sites);

	return larger_by_windows(doc, site, spread, warmup, false) ||
	       (larger_by_windows(doc, site, spread, warmup, true) &&
		gm_replaced_at_once(doc, &number, 1));
}

/*
 * A place that gave its memory back and does not any more: since some moment blocks have stayed in
 * every stretch of the work, as many in each, and it holds twice what it ever had before, which it
 * had replaced twice. A store that gathers for a while and is emptied had as much before, as had
 * one whose blocks live long.
 */
static bool broke(const struct gm_doc *doc, const struct gm_site *site, const struct spread *spread)
{
	uint64_t mean = spread->survivors / MOST_BINS, most = 0;
	unsigned since = gm_window_at(spread->judged, spread->first_ns);

	if (!work_frees(site) || spread->bursts < 2 * MOST_BINS || !since ||
	    (spread->end - spread->first_work) * 4 < spread->end - spread->start)
		return false;
	for (unsigned i = 0; i < MOST_BINS; i++)
		if (spread->late[i].count < mean / 2 || spread->late[i].count > 2 * mean + 1)
			return false;
	for (unsigned i = 0; i < since; i++) {
		uint64_t held = gm_recorded_window(spread->judged, doc, site, i).max_bytes;

		most = held > most ? held : most;
	}
	return site->work_bytes / 2 >= most &&
	       (site->record.allocated_bytes - site->work_bytes) / 2 >= most;
}

/* True if some of what the site left has no record, for which the file had no capacity. */
static bool lacks_survivors(const struct gm_doc *doc, const struct gm_site *site,
			    const struct spread *spread)
{
	return doc->header->dropped_tables & 1ull << GM_TABLE_ALLOCS &&
	       !doc->header->first_mark_serial && spread->survivors < site->work_count;
}

#define TOO_SHORT "the run was too short to judge growth"

/* The reason where the windows are too few to tell growth: a few marks leave few windows. */
static const char *too_few_windows(struct gm_doc *doc, const struct spread *spread)
{
	if (!spread->judged->marks || spread->marks >= MARKS_OF_STEPS)
		return TOO_SHORT;
	return gm_doc_printf(doc, "%u mark%s too few to judge growth by: make none, or %u and more",
			     spread->marks, spread->marks == 1 ? " is" : "s are", MARKS_OF_STEPS);
}

/* The reason where a site that never freed has too few bursts to tell growth. */
static const char *too_few_bursts(struct gm_doc *doc, const struct spread *spread)
{
	if (!spread->bursts || spread->end - spread->start < GM_GROWTH_LEAST_WINDOWS)
		return TOO_SHORT;
	if (spread->bursts == 1)
		return spread->survivors == 1 ? "allocated once, and kept"
					      : "allocated at one moment, and kept";
	return gm_doc_printf(doc, "allocated at %llu moments, too few to judge growth",
			     (unsigned long long)spread->bursts);
}

static bool grows(struct gm_doc *doc, struct gm_site *site, const struct spread *spread,
		  unsigned warmup)
{
	struct gm_growth_result windows = judge_windows(doc, site, spread, warmup);
	bool marks = spread->judged->marks && windows.growth != GM_GROWTH_TOO_FEW;

	if (lacks_survivors(doc, site, spread)) {
		site->why = "not all of its live allocations are in the file, so its growth is not "
			    "judged";
		return false;
	}
	/* Marks tell when a site allocates, which the order of allocations does not. */
	if ((marks ? work_frees(site) && (windows.rose || windows.left_behind) : true) &&
	    leaves_behind(doc, site, spread, warmup))
		return true;
	if (left_between_launches(site, spread, warmup)) {
		site->why = gm_doc_printf(doc,
					  "none of the %llu allocations was freed, and kernels ran "
					  "between them to the end",
					  (unsigned long long)site->record.allocations);
		return true;
	}
	if (!marks && work_frees(site) == 0) { /* the order of its allocations has told it all */
		site->why = spread->bins ? "never freed, and not growing at the end"
					 : too_few_bursts(doc, spread);
		return false;
	}
	if (replaced_by_larger(doc, site, spread, warmup)) {
		site->why = gm_doc_printf(
			doc, "its buffer was replaced by a larger one again and again, up to %s",
			gm_size(doc, site->work_bytes));
		return true;
	}
	if (windows.growth == GM_GROWTH_RISES && gm_replaces_since_full(doc, site)) {
		site->why = "it was filled, and has replaced its blocks since";
		return false;
	}
	if (windows.growth == GM_GROWTH_RISES && !site->one_pass) {
		site->why = gm_doc_printf(
			doc, "baseline usage rose in %u of %u steps between %s, from %s to %s",
			windows.rises, windows.windows - 1,
			spread->judged->marks ? "marks" : "windows",
			gm_size(doc, windows.first_bytes), gm_size(doc, windows.last_bytes));
		return true;
	}
	if (!site->one_pass && broke(doc, site, spread)) {
		site->why = gm_doc_printf(doc,
					  "%llu of %llu allocations are still live: it gave memory "
					  "back at first, and does not any more",
					  (unsigned long long)site->work_count,
					  (unsigned long long)site->record.allocations);
		return true;
	}
	site->why = windows.growth == GM_GROWTH_TOO_FEW ? too_few_windows(doc, spread)
							: "live bytes stay bounded";
	return false;
}

/* True for one allocation of most of the device: a pool's preallocation. */
static bool preallocated(const struct gm_doc *doc, const struct gm_site_figures *record)
{
	uint64_t limit = gm_device_limit(gm_doc_device(doc, record->device));

	return record->live_count == 1 && limit != GM_NO_BYTES && record->live_bytes > limit / 2;
}

static void judge_site(struct gm_doc *doc, struct gm_site *site, const struct spread *spread,
		       unsigned warmup)
{
	const struct gm_site_figures *record = &site->record;

	site->one_pass = !steps_recur(doc, site, spread);
	if (site->work_count == 0 && site->work_bytes == 0) {
		site->verdict = GM_RELEASED;
		site->why = "nothing is live";
	} else if (record->level == GM_LEVEL_DRIVER && site->divided) {
		site->verdict = GM_CACHED;
		site->why = site->torch_segments ? "PyTorch's allocator divides it into blocks"
						 : "a pool divides it into blocks";
	} else if (gm_site_is_overflow(site)) {
		site->verdict = GM_HELD;
		site->why = "the sum of many places, whose growth cannot be judged";
	} else if (grows(doc, site, spread, warmup)) {
		site->verdict = GM_GROW;
	} else if (record->live_count == 0 && record->live_bytes == 0) {
		site->verdict = GM_RELEASED;
		site->why = "nothing is live";
	} else if (record->level == GM_LEVEL_DRIVER && site->opaque && preallocated(doc, record)) {
		site->verdict = GM_HELD;
		site->why =
			"a pool takes it at once by design; utilisation inside it is not visible";
	} else if (record->level == GM_LEVEL_DRIVER && site->opaque && !gm_gives_back(site)) {
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
	struct order order = make_order(doc);

	for (unsigned i = 0; i < doc->sites_count; i++) {
		struct spread spread = find_spread(doc, &order, &doc->sites[i].record,
						   order.by_site + order.starts[i],
						   order.starts[i + 1] - order.starts[i],
						   work_frees(&doc->sites[i]) > 0, warmup);

		judge_site(doc, &doc->sites[i], &spread, warmup);
	}
	gm_judge_callers(doc, &order.windows, warmup);
	free_order(&order);
}
