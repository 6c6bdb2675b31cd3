/*
 * The gates: one row each in the table at the end, a function that fills the value, the limit and
 * the sites that broke it. A baseline is matched by what stacks read, without lines, so that moving
 * code does not make a new leak of an old one.
 */
#include "report/gate/gates.h"
#include "report/gate/compare.h"
#include "report/judge/leaks.h"
#include "report/history/since.h"
#include <stdlib.h>
#include <string.h>

#define GROW_MIN_BYTES (1ull << 20)

struct gm_gate_options gm_gate_defaults(void)
{
	return (struct gm_gate_options){
		.min_bytes = GM_NO_BYTES,
		.max_peak_bytes = GM_NO_BYTES,
		.max_fragmentation_percent = GM_NO_BYTES,
		.max_retries = GM_NO_BYTES,
		.max_growth_bytes = GM_NO_BYTES,
		.max_peak_growth_bytes = GM_NO_BYTES,
		.max_peak_growth_percent = GM_NO_BYTES,
	};
}

static void blame(struct gm_doc *doc, struct gm_gate *gate, uint32_t site)
{
	uint32_t *slot = gm_zone_push(&doc->zone, &gate->sites, &gate->sites_count, sizeof(*slot));

	*slot = site;
}

static void not_measured(struct gm_gate *gate, const char *why)
{
	gate->passed = false;
	gate->value = GM_NO_BYTES;
	gate->sites_count = 0;
	gate->unmeasured = why;
}

/* Returns the bytes that a site leaks by the gate's mode. */
static uint64_t leaked(const struct gm_site *site, enum gm_leak_gate mode, bool since)
{
	if (site->hidden || site->suppressed)
		return 0;
	if (mode == GM_LEAKS_EXIT && since)
		return site->since_bytes < site->exit_bytes ? site->since_bytes : site->exit_bytes;
	if (mode == GM_LEAKS_EXIT)
		return site->exit_bytes;
	return site->verdict == GM_GROW ? site->work_bytes : 0;
}

/* Returns the bytes that the baseline's sites leak that have this key. */
static uint64_t leaked_before(struct gm_doc *baseline, const char *key, enum gm_leak_gate mode)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; baseline && i < baseline->sites_count; i++)
		if (leaked(&baseline->sites[i], mode, false) &&
		    strcmp(gm_site_key(baseline, &baseline->sites[i]), key) == 0)
			bytes += leaked(&baseline->sites[i], mode, false);
	return bytes;
}

/* Puts the sites that hold most first. */
static int compare_culprits(const void *a, const void *b, void *sites)
{
	const struct gm_site *x = (struct gm_site *)sites + *(const uint32_t *)a;
	const struct gm_site *y = (struct gm_site *)sites + *(const uint32_t *)b;

	if (x->work_bytes != y->work_bytes)
		return x->work_bytes < y->work_bytes ? 1 : -1;
	return x < y ? -1 : x > y;
}

/* Returns the bytes that sites of the baseline leak whose keys are those of a leak's sites. */
static uint64_t grown_before(struct gm_doc *doc, struct gm_doc *baseline,
			     const struct gm_leak *leak)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; baseline && i < leak->sites_count; i++) {
		const char *key = gm_site_key(doc, &doc->sites[leak->sites[i]]);
		bool counted = false;

		for (unsigned k = 0; k < i && !counted; k++)
			counted = strcmp(gm_site_key(doc, &doc->sites[leak->sites[k]]), key) == 0;
		if (!counted)
			bytes += leaked_before(baseline, key, GM_LEAKS_GROW);
	}
	return bytes;
}

/* A leak counts as a whole, by however many places it is told. */
static void blame_growth(struct gm_doc *doc, struct gm_doc *baseline, struct gm_gate *gate)
{
	unsigned count;
	struct gm_leak *leaks = gm_find_leaks(doc, &count);

	for (unsigned i = 0; i < count; i++) {
		if (leaks[i].bytes < gate->limit ||
		    (baseline && leaks[i].bytes <= grown_before(doc, baseline, &leaks[i])))
			continue;
		gate->value += leaks[i].bytes;
		for (unsigned k = 0; k < leaks[i].sites_count; k++)
			blame(doc, gate, leaks[i].sites[k]);
	}
}

static void blame_left(struct gm_doc *doc, struct gm_doc *baseline, struct gm_gate *gate)
{
	for (unsigned i = 0; i < doc->sites_count; i++) {
		uint64_t bytes = leaked(&doc->sites[i], GM_LEAKS_EXIT, doc->since != NULL);

		/* the limit is a place's, which the sum of many does not tell */
		if (!bytes || bytes < gate->limit ||
		    (gate->limit && gm_site_is_overflow(&doc->sites[i])) ||
		    (baseline && bytes <= leaked_before(baseline, gm_site_key(doc, &doc->sites[i]),
							GM_LEAKS_EXIT)))
			continue;
		gate->value += bytes;
		blame(doc, gate, i);
	}
}

/*
 * True if something is left of the places for which the file had no capacity and which share one
 * site.
 */
static bool left_in_overflow(const struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->sites_count; i++)
		if (gm_site_is_overflow(&doc->sites[i]) && doc->sites[i].record.live_count)
			return true;
	return false;
}

static bool gate_leaks(struct gm_doc *doc, const struct gm_gate_options *options,
		       struct gm_doc *baseline, struct gm_gate *gate)
{
	enum gm_leak_gate mode = options->leaks;
	uint64_t least = options->min_bytes;

	if (mode == GM_LEAKS_OFF)
		return false;
	if (mode == GM_LEAKS_DEFAULT)
		mode = doc->framework || (doc->header && doc->header->periods) ? GM_LEAKS_GROW
									   : GM_LEAKS_EXIT;
	if (least == GM_NO_BYTES)
		least = mode == GM_LEAKS_GROW ? GROW_MIN_BYTES : 0;
	gate->gate = "leaks";
	gate->unit = "bytes";
	gate->exit_code = 1;
	gate->limit = least;
	gate->value = 0;
	if (mode == GM_LEAKS_GROW)
		blame_growth(doc, baseline, gate);
	else
		blame_left(doc, baseline, gate);
	if (gate->sites_count)
		qsort_r(gate->sites, gate->sites_count, sizeof(*gate->sites), compare_culprits,
			doc->sites);
	gate->of_work = mode == GM_LEAKS_GROW;
	gate->note =
		mode == GM_LEAKS_GROW ? "memory that keeps growing" : "memory not freed at the end";
	gate->passed = gate->sites_count == 0;
	gate->by_totals = mode == GM_LEAKS_EXIT && !left_in_overflow(doc);
	if (mode == GM_LEAKS_EXIT && !doc->clean_exit)
		not_measured(gate, gm_exit_unknown(doc));
	return true;
}

/* Returns the bytes that all growing sites hold; with a gate, the sites are blamed. */
static uint64_t growth_of(struct gm_doc *doc, struct gm_gate *gate)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < doc->sites_count; i++) {
		uint64_t grown = leaked(&doc->sites[i], GM_LEAKS_GROW, false);

		bytes += grown;
		if (gate && grown)
			blame(doc, gate, i);
	}
	if (gate && gate->sites_count)
		qsort_r(gate->sites, gate->sites_count, sizeof(*gate->sites), compare_culprits,
			doc->sites);
	return bytes;
}

static bool gate_growth(struct gm_doc *doc, const struct gm_gate_options *options,
			struct gm_doc *baseline, struct gm_gate *gate)
{
	if (options->max_growth_bytes == GM_NO_BYTES)
		return false;
	gate->gate = "max-growth";
	gate->unit = "bytes";
	gate->exit_code = 5;
	gate->of_work = true;
	gate->limit = options->max_growth_bytes;
	gate->value = growth_of(doc, gate);
	gate->note = "memory that keeps growing, all sites together";
	gate->passed = gate->value <= gate->limit ||
		       (baseline && gate->value <= growth_of(baseline, NULL));
	if (gate->passed)
		gate->sites_count = 0;
	return true;
}

static bool gate_oom(struct gm_doc *doc, const struct gm_gate_options *options,
		     struct gm_doc *baseline, struct gm_gate *gate)
{
	uint64_t before = baseline ? baseline->ooms_count + baseline->ooms_lost : 0;

	if (options->allow_oom)
		return false;
	gate->gate = "no-oom";
	gate->unit = "";
	gate->exit_code = 4;
	gate->value = doc->ooms_count + doc->ooms_lost;
	gate->limit = before;
	gate->passed = gate->value <= before;
	gate->note = "out-of-memory events";
	return true;
}

static uint64_t highest_peak(const struct gm_doc *doc)
{
	uint64_t most = 0;

	for (unsigned i = 0; i < doc->levels_count; i++)
		if (doc->levels[i].level == GM_LEVEL_DRIVER && doc->levels[i].device >= 0 &&
		    doc->levels[i].peak_bytes > most)
			most = doc->levels[i].peak_bytes;
	return most;
}

/* The site that makes up most of the peak. */
static void blame_peak(struct gm_doc *doc, struct gm_gate *gate)
{
	uint32_t largest = GM_NO_SITE;

	for (unsigned i = 0; i < doc->sites_count; i++)
		if (!doc->sites[i].hidden && doc->sites[i].record.level == GM_LEVEL_DRIVER &&
		    doc->sites[i].record.bytes_at_peak &&
		    (largest == GM_NO_SITE ||
		     doc->sites[i].record.bytes_at_peak > doc->sites[largest].record.bytes_at_peak))
			largest = i;
	if (largest != GM_NO_SITE)
		blame(doc, gate, largest);
}

static bool gate_peak(struct gm_doc *doc, const struct gm_gate_options *options,
		      struct gm_doc *baseline, struct gm_gate *gate)
{
	if (options->max_peak_bytes == GM_NO_BYTES)
		return false;
	gate->gate = "max-peak";
	gate->unit = "bytes";
	gate->exit_code = 5;
	gate->limit = options->max_peak_bytes;
	gate->value = highest_peak(doc);
	gate->note = "highest peak of a device";
	gate->passed =
		gate->value <= gate->limit || (baseline && gate->value <= highest_peak(baseline));
	if (!gate->passed)
		blame_peak(doc, gate);
	return true;
}

/* The site whose part of the peak grew most since the baseline. */
static void blame_peak_growth(struct gm_doc *doc, struct gm_doc *baseline, struct gm_gate *gate)
{
	const struct gm_change *most = NULL;
	unsigned count;
	struct gm_change *changes = gm_compare_docs(baseline, doc, &count);

	gm_sort_changes(changes, count, GM_MEASURE_AT_PEAK);
	for (unsigned i = 0; i < count && !most; i++)
		if (changes[i].new_site && changes[i].new_site->record.level == GM_LEVEL_DRIVER &&
		    gm_change_differs(&changes[i], GM_MEASURE_AT_PEAK) &&
		    changes[i].after[GM_MEASURE_AT_PEAK] > changes[i].before[GM_MEASURE_AT_PEAK])
			most = &changes[i];
	if (most)
		blame(doc, gate, (uint32_t)(most->new_site - doc->sites));
}

/* A growth in percent, rounded up, so that it exceeds a limit exactly if the peak does. */
static uint64_t percent_more(uint64_t before, uint64_t more)
{
	return (uint64_t)(((unsigned __int128)more * 100 + before - 1) / before);
}

static bool gate_peak_growth(struct gm_doc *doc, const struct gm_gate_options *options,
			     struct gm_doc *baseline, struct gm_gate *gate)
{
	bool percent = options->max_peak_growth_percent != GM_NO_BYTES;
	uint64_t before, after;

	if (!baseline || (!percent && options->max_peak_growth_bytes == GM_NO_BYTES))
		return false;
	before = highest_peak(baseline);
	after = highest_peak(doc);
	gate->gate = "max-peak-growth";
	gate->unit = percent ? "%" : "bytes";
	gate->exit_code = 5;
	gate->limit = percent ? options->max_peak_growth_percent : options->max_peak_growth_bytes;
	gate->value = after > before ? after - before : 0;
	gate->note = gm_doc_printf(doc, "highest peak of a device %s, in the baseline %s",
				   gm_size(doc, after), gm_size(doc, before));
	if (before == GM_NO_BYTES || after == GM_NO_BYTES || (percent && !before && after)) {
		not_measured(gate, before ? "a peak is not known"
					  : "the baseline used no memory of a device");
		return true;
	}
	if (percent && gate->value)
		gate->value = percent_more(before, gate->value);
	gate->passed = gate->value <= gate->limit;
	if (!gate->passed)
		blame_peak_growth(doc, baseline, gate);
	return true;
}

/* The worst level's percentage, and the row it is of. */
static uint64_t worst_fragmentation(const struct gm_doc *doc, const struct gm_fragmentation **worst)
{
	uint64_t most = 0;

	*worst = NULL;
	for (unsigned i = 0; i < doc->fragmentation_count; i++) {
		const struct gm_fragmentation *row =
			doc->fragmentation[i].peak ? doc->fragmentation[i].peak
						   : gm_holes_at_work_end(&doc->fragmentation[i]);
		uint64_t percent;

		/* A program takes its own pool's memory in advance. */
		if (row->used_bytes >= row->reserved_bytes || strcmp(row->level, "custom") == 0)
			continue;
		percent = (uint64_t)(100.0 * (double)(row->reserved_bytes - row->used_bytes) /
					     (double)row->reserved_bytes +
				     0.999999);
		if (percent > most) {
			most = percent;
			*worst = row;
		}
	}
	return most;
}

static bool gate_fragmentation(struct gm_doc *doc, const struct gm_gate_options *options,
			       struct gm_doc *baseline, struct gm_gate *gate)
{
	const struct gm_fragmentation *worst, *before;

	if (options->max_fragmentation_percent == GM_NO_BYTES)
		return false;
	gate->gate = "max-fragmentation";
	gate->unit = "%";
	gate->exit_code = 5;
	gate->limit = options->max_fragmentation_percent;
	gate->value = worst_fragmentation(doc, &worst);
	gate->note =
		worst ? gm_doc_printf(doc, "reserved and not used at the %s level", worst->level)
		      : "reserved and not used";
	gate->passed = gate->value <= gate->limit ||
		       (baseline && gate->value <= worst_fragmentation(baseline, &before));
	for (unsigned i = 0; !gate->passed && i < worst->pinners_count; i++)
		blame(doc, gate, worst->pinners[i].site);
	return true;
}

static uint64_t retries_of(const struct gm_doc *doc)
{
	uint64_t attempts = 0;

	for (unsigned i = 0; i < doc->retries_count; i++)
		attempts += doc->retries[i].attempts;
	return attempts;
}

static bool gate_retries(struct gm_doc *doc, const struct gm_gate_options *options,
			 struct gm_doc *baseline, struct gm_gate *gate)
{
	if (options->max_retries == GM_NO_BYTES)
		return false;
	gate->gate = "max-retries";
	gate->unit = "";
	gate->exit_code = 5;
	gate->limit = options->max_retries;
	gate->value = retries_of(doc);
	gate->note = "repeated allocations";
	gate->passed =
		gate->value <= gate->limit || (baseline && gate->value <= retries_of(baseline));
	for (unsigned i = 0; !gate->passed && i < doc->sites_count; i++)
		if (doc->sites[i].record.retries)
			blame(doc, gate, i);
	return true;
}

/* Bad frees but the notes. */
static uint64_t errors_of(const struct gm_doc *doc)
{
	uint64_t count = 0;

	for (unsigned i = 0; i < doc->errors_count; i++)
		if (doc->errors[i].record.type != GM_ERROR_FREED_WHILE_EXPORTED)
			count += doc->errors[i].record.count;
	return count;
}

static bool gate_errors(struct gm_doc *doc, const struct gm_gate_options *options,
			struct gm_doc *baseline, struct gm_gate *gate)
{
	if (!options->no_errors)
		return false;
	gate->gate = "no-errors";
	gate->unit = "";
	gate->exit_code = 5;
	gate->limit = baseline ? errors_of(baseline) : 0;
	gate->value = errors_of(doc);
	gate->note = "bad frees";
	gate->passed = gate->value <= gate->limit;
	for (unsigned i = 0; !gate->passed && i < doc->errors_count; i++)
		if (doc->errors[i].record.victim_site < doc->sites_count)
			blame(doc, gate, doc->errors[i].record.victim_site);
	return true;
}

/*
 * In the order in which they are printed. Each returns false if it is not asked for. `tables` are
 * those that its figure is made of.
 */
static const struct {
	bool (*judge)(struct gm_doc *doc, const struct gm_gate_options *options,
		      struct gm_doc *baseline, struct gm_gate *gate);
	uint64_t tables;
} gates[] = {
	{gate_oom, 0}, /* the header counts them too */
	{gate_leaks, GM_PLACE_TABLES | 1ull << GM_TABLE_ALLOCS},
	{gate_growth, GM_PLACE_TABLES | 1ull << GM_TABLE_ALLOCS},
	{gate_peak, 1ull << GM_TABLE_LEVELS},
	{gate_peak_growth, 1ull << GM_TABLE_LEVELS},
	{gate_fragmentation,
	 1ull << GM_TABLE_LEVELS | 1ull << GM_TABLE_ALLOCS | 1ull << GM_TABLE_POOLS},
	{gate_retries, 1ull << GM_TABLE_RETRIES},
	{gate_errors, 1ull << GM_TABLE_ERRORS},
};

/*
 * Returns the reason why the process has nothing that gates measure, which is that no device was in
 * use; NULL if it has something.
 */
static const char *nothing_used(struct gm_doc *doc)
{
	if (doc->devices_count ||
	    doc->lacking & (1ull << GM_TABLE_DEVICES | 1ull << GM_TABLE_LEVELS))
		return NULL;
	for (unsigned i = 0; i < doc->levels_count; i++)
		if (doc->levels[i].allocations)
			return NULL;
	if (doc->only_device >= 0)
		return gm_doc_printf(doc, "device %d was not used", doc->only_device);
	return "no GPU was used: there is none, its driver is not there, or no call reached it";
}

/*
 * A limit that is exceeded by what is known is exceeded. One that is kept by it was not measured if
 * more is missing, or if there was nothing to measure.
 */
static void finish_gate(struct gm_doc *doc, const struct gm_gate_options *options,
			struct gm_gate *gate, uint64_t tables)
{
	const char *why = gm_sampled(doc);

	if (why && tables & (1ull << GM_TABLE_SITES | 1ull << GM_TABLE_ALLOCS)) {
		not_measured(gate, why);
		gate->sites_count = 0;
		gate->excused = options->allow_unmeasured;
		return;
	}
	if (gate->by_totals && !(doc->lacking & tables))
		tables = 1ull << GM_TABLE_LEVELS;
	why = gate->passed ? gm_books_gap(doc, tables) : NULL;

	if (gate->passed && !why) {
		why = nothing_used(doc);
		gate->absent = why != NULL;
	}
	if (why)
		not_measured(gate, why);
	gate->excused = gate->unmeasured && options->allow_unmeasured;
}

void gm_run_gates(struct gm_doc *doc, const struct gm_gate_options *options,
		  struct gm_doc *baseline)
{
	for (size_t i = 0; i < sizeof(gates) / sizeof(gates[0]); i++) {
		struct gm_gate gate = {0}, *slot;

		if (!gates[i].judge(doc, options, baseline, &gate))
			continue;
		finish_gate(doc, options, &gate, gates[i].tables);
		slot = gm_zone_push(&doc->zone, &doc->gates, &doc->gates_count, sizeof(*slot));
		*slot = gate;
	}
	if (options->per_mark) {
		unsigned first = doc->gates_count;

		gm_since_gate_marks(doc, options->min_bytes == GM_NO_BYTES ? 1 : options->min_bytes,
				    options->warmup, doc->framework);
		for (unsigned i = first; i < doc->gates_count; i++)
			finish_gate(doc, options, &doc->gates[i],
				    1ull << GM_TABLE_SITES | 1ull << GM_TABLE_ALLOCS);
	}
}

/*
 * Returns the weight of a result among the results of the same gate for different files: the
 * heaviest says most about all files.
 */
static int weight(const struct gm_gate *gate)
{
	return gm_gate_failed(gate) ? 3 : gate->passed ? 1 : gate->absent ? 0 : 2;
}

/* Adds the result of another file to that of the files before it. */
static void add_result(struct gm_gate *all, const struct gm_gate *gate)
{
	uint64_t most = all->value;

	if (most == GM_NO_BYTES || (gate->value != GM_NO_BYTES && gate->value > most))
		most = gate->value;
	if (weight(gate) > weight(all)) {
		*all = *gate;
		all->sites_count = 0;
	}
	if (!all->unmeasured)
		all->value = most;
}

void gm_gather_gates(struct gm_job *job)
{
	for (unsigned i = 0; i < job->count; i++)
		for (unsigned k = 0; k < job->docs[i]->gates_count; k++) {
			const struct gm_gate *gate = &job->docs[i]->gates[k];
			struct gm_gate *all = NULL;

			for (unsigned g = 0; g < job->gates_count && !all; g++)
				if (strcmp(job->gates[g].gate, gate->gate) == 0)
					all = &job->gates[g];
			if (all) {
				add_result(all, gate);
				continue;
			}
			all = gm_zone_push(&job->zone, &job->gates, &job->gates_count,
					   sizeof(*all));
			*all = *gate;
			all->sites_count = 0;
		}
}

void gm_gates_without_file(struct gm_job *job, const struct gm_gate_options *options,
			   struct gm_doc *baseline, const char *why)
{
	struct gm_doc nothing = {.clean_exit = true, .only_device = -1};

	for (size_t i = 0; i < sizeof(gates) / sizeof(gates[0]); i++) {
		struct gm_gate gate = {0}, *slot;

		if (!gates[i].judge(&nothing, options, baseline, &gate))
			continue;
		not_measured(&gate, why);
		gate.excused = options->allow_unmeasured;
		slot = gm_zone_push(&job->zone, &job->gates, &job->gates_count, sizeof(*slot));
		*slot = gate;
	}
}

int gm_gates_exit(const struct gm_gate *list, unsigned count)
{
	static const int ranks[] = {4, 1, 5};

	for (size_t r = 0; r < sizeof(ranks) / sizeof(ranks[0]); r++)
		for (unsigned i = 0; i < count; i++)
			if (gm_gate_failed(&list[i]) && list[i].exit_code == ranks[r])
				return ranks[r];
	for (unsigned i = 0; i < count; i++)
		if (list[i].unmeasured && !list[i].excused)
			return 3;
	return 0;
}
