/*
 * Settings, what is varied for each, and what follows (whatif.h).
 */
#include "report/whatif/whatif.h"
#include "account/sizes.h"
#include "report/stacks/labels.h"
#include "report/stacks/stacks.h"
#include "report/support/progress.h"
#include "report/whatif/from_async.h"
#include "report/whatif/from_events.h"
#include "report/whatif/from_snapshot.h"
#include "report/whatif/offline.h"
#include "report/whatif/other_batch.h"
#include "report/whatif/play_requests.h"
#include "report/whatif/unmodelled.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_WAYS    40
#define MOST_SEEDS   6
#define LEAST_SEEDS  1
#define MANY_EVENTS  2000000u /* times settings: fewer placements are tried */
#define MOST_THREADS 8
#define WIDER_BYTES  (2 * GM_POOL_CHUNK_BYTES)
#define SAMPLED_SHARE 16 /* a peak between two samples of a pool is at most this part higher */

const char *const gm_whatif_list[] = {
	"default",
	"expandable_segments:True",
	"max_split_size_mb:21",
	"max_split_size_mb:32",
	"max_split_size_mb:64",
	"max_split_size_mb:128",
	"max_split_size_mb:256",
	"max_split_size_mb:512",
	"max_split_size_mb:1024",
	"roundup_power2_divisions:2",
	"roundup_power2_divisions:4",
	"roundup_power2_divisions:8",
	"roundup_power2_divisions:16",
	"roundup_power2_divisions:32",
	"roundup_power2_divisions:[64:8,128:4,256:2,>:1]",
	"roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
	"max_split_size_mb:128,max_non_split_rounding_mb:64",
	"max_split_size_mb:256,max_non_split_rounding_mb:128",
	"max_split_size_mb:128,roundup_power2_divisions:4",
	"max_split_size_mb:256,roundup_power2_divisions:8",
	"max_split_size_mb:512,roundup_power2_divisions:16",
	"expandable_segments:True,roundup_power2_divisions:4",
	"expandable_segments:True,roundup_power2_divisions:8",
	"expandable_segments:True,roundup_power2_divisions:16",
};

const unsigned gm_whatif_list_count = sizeof(gm_whatif_list) / sizeof(gm_whatif_list[0]);

/* The settings that are tried beside for a device with a memory fraction, which collect garbage. */
static const char *const with_fraction[] = {
	"garbage_collection_threshold:0.6",
	"garbage_collection_threshold:0.8",
	"max_split_size_mb:128,garbage_collection_threshold:0.8",
};

/* Those of a program that uses the driver's pool itself; the first is the driver's default. */
static const char *const pool_list[] = {
	"release_threshold:0",	    "release_threshold:64MiB", "release_threshold:256MiB",
	"release_threshold:1GiB",   "release_threshold:4GiB",  "release_threshold:16GiB",
	"release_threshold:max",
};

#define POOL_LIST_COUNT (sizeof(pool_list) / sizeof(pool_list[0]))

struct asking {
	struct gm_doc *doc;
	struct gm_requests requests;
	struct gm_model_options base;
	const struct gm_torch_rules *rules;
	struct gm_torch_settings recorded;
	uint64_t recorded_total_bytes; /* of the device that the run had; UINT64_MAX unknown */
	bool recorded_known, limited, quick;
	const char *scaled; /* reason why no row is exact, of another batch; NULL */
	bool no_assumed; /* captures did not empty the cache */
	struct gm_whatif *whatif;
	unsigned seeds; /* number of placements of each kind that are tried */
	char *error;
	size_t error_bytes;
};

static void note(struct asking *asking, const char *sentence)
{
	const char **place = gm_zone_push(&asking->doc->zone, &asking->whatif->notes,
					  &asking->whatif->notes_count, sizeof(*place));

	*place = sentence;
}

/* ---- the recorded run under its own setting ---- */

static unsigned next_taken(const struct gm_model_change *changes, unsigned count, unsigned at)
{
	while (at < count && changes[at].bytes < 0)
		at++;
	return at;
}

/* True if both take segments of the same sizes in the same order. */
static bool same_changes(const struct gm_requests *requests, const struct gm_replayed_run *run)
{
	unsigned a = 0, b = 0;

	for (;;) {
		a = next_taken(requests->changes, requests->changes_count, a);
		b = next_taken(run->changes, run->changes_count, b);
		if (a == requests->changes_count || b == run->changes_count)
			return a == requests->changes_count && b == run->changes_count;
		if (requests->changes[a++].bytes != run->changes[b++].bytes)
			return false;
	}
}

/*
 * Returns the least that the driver can have given the recorded run: with it the run's own requests
 * are served and refused as they were, whatever the driver had beyond.
 */
static uint64_t own_limit(const struct gm_requests *requests)
{
	if (!requests->retried && requests->most_limit_bytes == UINT64_MAX)
		return UINT64_MAX;
	return requests->least_limit_bytes > requests->reserved_peak_bytes
		       ? requests->least_limit_bytes
		       : requests->reserved_peak_bytes;
}

/* The recorded peak; or, of a pool that was asked now and then, a little more. */
static bool same_peak(const struct gm_requests *requests, const struct gm_replayed_run *run)
{
	uint64_t most = requests->reserved_peak_bytes, peak = run->figures.reserved_peak_bytes;

	return peak == most ||
	       (requests->peak_sampled && peak > most && peak - most <= most / SAMPLED_SHARE);
}

static bool reproduces(struct asking *asking, bool no_assumed, bool shared)
{
	struct gm_model_options options = asking->base;
	struct gm_replay_ways own = {
		.keep_found = true, .recorded = true, .no_assumed = no_assumed};
	const struct gm_requests *requests = &asking->requests;
	struct gm_replayed_run run;
	bool same;

	own.shared = shared;
	options.settings = asking->recorded;
	options.log = true;
	options.fraction = 0;
	options.total_bytes = asking->recorded_total_bytes;
	options.device_bytes = own_limit(requests);
	run = gm_requests_replay(requests, &options, own);
	same = !run.ended && (requests->driver_pool || same_changes(requests, &run)) &&
	       same_peak(requests, &run);
	free(run.changes);
	asking->whatif->misplaced = asking->recorded.expandable || requests->driver_pool
					    ? GM_NO_BYTES
					    : run.misplaced;
	return same;
}

/* Drops the assumption about captures if it contradicts what the run took from the driver. */
static void reproduce(struct asking *asking)
{
	bool assumed = !asking->requests.streams_unknown && reproduces(asking, false, false);

	asking->no_assumed = !assumed;
	asking->whatif->reproduced =
		assumed || reproduces(asking, true, false) ||
		(asking->requests.driver_pool && reproduces(asking, true, true));
}

/* ---- one setting ---- */

struct variation {
	struct gm_replay_ways ways;
	uint64_t device_bytes;
	bool done;
	struct gm_replayed_run run;
};

/* A setting, and what is run for it. */
struct question {
	const char *conf;
	struct gm_torch_settings settings;
	bool own; /* the recorded one */
	struct variation all[MOST_WAYS];
	unsigned count, placements_at; /* from there on only segments lie elsewhere */
};

struct job {
	struct question *question;
	struct variation *variation;
};

/* Replays that go on at the same time: the history is only read. */
struct running {
	struct asking *asking;
	struct job *jobs;
	unsigned count;
	atomic_uint next;
};

static bool run_next(struct running *running)
{
	unsigned number = atomic_fetch_add(&running->next, 1);
	struct gm_model_options options = running->asking->base;
	struct job *job;

	if (number >= running->count)
		return false;
	job = &running->jobs[number];
	options.settings = job->question->settings;
	options.device_bytes = job->variation->device_bytes;
	job->variation->run =
		gm_requests_replay(&running->asking->requests, &options, job->variation->ways);
	job->variation->done = true;
	return true;
}

static void *run_some(void *data)
{
	while (run_next(data))
		;
	return NULL;
}

/* Runs all jobs, on as many processors as there are. `first` is how many were run before. */
static void run_jobs(struct asking *asking, struct job *jobs, unsigned count, unsigned first,
		     unsigned all)
{
	struct running running = {.asking = asking, .jobs = jobs, .count = count};
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t threads[MOST_THREADS];
	unsigned started = 0, begun;

	while (started < MOST_THREADS && started + 1 < count && started + 1 < processors &&
	       pthread_create(&threads[started], NULL, run_some, &running) == 0)
		started++;
	while (run_next(&running)) {
		begun = atomic_load(&running.next);
		gm_progress("replaying settings", first + (begun < count ? begun : count), all);
	}
	for (unsigned i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
}

/* Placements decide nothing where no two free blocks were of one size. */
static unsigned needed(const struct question *question)
{
	return question->all[0].run.figures.ties ? question->count : question->placements_at;
}

/* Runs what is most likely of each setting, then the rest of what can make a difference. */
static void run_all(struct asking *asking, struct question *questions, unsigned count)
{
	struct job *jobs = gm_realloc(NULL, (size_t)count * MOST_WAYS * sizeof(*jobs));
	unsigned rest = 0, most = 0;

	for (unsigned i = 0; i < count; i++) {
		jobs[i] = (struct job){&questions[i], &questions[i].all[0]};
		most += questions[i].count;
	}
	run_jobs(asking, jobs, count, 0, most);
	for (unsigned i = 0; i < count; i++)
		for (unsigned k = 1; k < needed(&questions[i]); k++)
			jobs[rest++] = (struct job){&questions[i], &questions[i].all[k]};
	run_jobs(asking, jobs, rest, count, count + rest);
	free(jobs);
}

/*
 * The distances of the device when the driver's pool asks. The scales are those that covered what
 * PyTorch's programs were measured to reserve (docs/evidence/whatif.md).
 */
static const struct gm_pool_timing timings[] = {
	{GM_DEVICE_IDLE, 1, 0},	     {GM_DEVICE_LATE, 1, 0},	 {GM_DEVICE_BEHIND, 3, 0},
	{GM_DEVICE_BEHIND, 10, 0},   {GM_DEVICE_BEHIND, 30, 0},	 {GM_DEVICE_BEHIND, 100, 0},
	{GM_DEVICE_BEHIND, 400, 0},  {GM_DEVICE_BURSTS, 2, 0},	 {GM_DEVICE_BURSTS, 5, 0},
	{GM_DEVICE_BURSTS, 20, 0},
};

#define SEEDS	4
#define TIMINGS (SEEDS * sizeof(timings) / sizeof(timings[0]))

/*
 * The same for the driver's pool: which stream gets what another one has freed, and when PyTorch's
 * program waits for streams, where a threshold below all makes it matter.
 */
static void add_pool_variations(const struct asking *asking, struct question *question)
{
	const struct gm_requests *requests = &asking->requests;
	struct variation first = {.ways = {.limited = asking->limited,
					   .no_assumed = asking->no_assumed},
				  .device_bytes = question->own ? own_limit(requests)
								: asking->base.device_bytes};
	unsigned count = 0;

	for (; count < TIMINGS; count++) {
		struct gm_replay_ways *ways = &question->all[count].ways;

		question->all[count] = first;
		ways->timing = timings[count / SEEDS];
		ways->timing.seed = count;
		ways->shared = requests->pools_count > 1 && count % 2;
		ways->sizes = requests->uncertain_sizes && count % 4 > 1 ? GM_SIZES_LEAST
									   : GM_SIZES_AS_GIVEN;
		if (requests->pending && count % 3)
			ways->streams = count % 3 == 1 ? GM_STREAMS_AT_ONCE : GM_STREAMS_LATE;
		if (!requests->driver_pool && count % 2)
			ways->waits = GM_WAITS_ALWAYS;
	}
	question->placements_at = question->count = asking->quick ? 1 : count;
}

/* Lists the runs to make for a setting: the most likely one, then the other possible ones. */
static void add_variations(const struct asking *asking, struct question *question)
{
	struct variation *all = question->all;
	bool own = question->own, known = asking->requests.regions.known;
	const struct gm_requests *requests = &asking->requests;
	struct variation first = {.ways = {.keep_found = own,
					   .recorded = own,
					   .regions = !known,
					   .limited = asking->limited,
					   .no_assumed = asking->no_assumed},
				  .device_bytes =
					  own ? own_limit(requests) : asking->base.device_bytes};
	unsigned count = 0;

	if (asking->scaled && requests->uncertain_sizes) {
		all[count++] = first;
		all[0].ways.sizes = GM_SIZES_HALF; /* the recorded sizes are the most */
	}
	all[count++] = first;
	question->placements_at = question->count = count;
	if (asking->quick)
		return;
	for (unsigned streams = GM_STREAMS_AT_ONCE; requests->pending && streams <= GM_STREAMS_LATE;
	     streams++) {
		all[count] = first;
		all[count++].ways.streams = streams;
	}
	for (unsigned sizes = GM_SIZES_LEAST;
	     requests->uncertain_sizes && !own && sizes <= GM_SIZES_RANDOM; sizes++) {
		all[count] = first;
		all[count++].ways.sizes = sizes;
	}
	if (requests->uncertain_sizes && !own) {
		all[count] = all[count - 1];
		all[count++].ways.seed = 1;
	}
	if (requests->other_streams && !own) {
		all[count] = first;
		all[count++].ways.no_assumed = false;
	}
	if (requests->middle && !own) {
		all[count] = first;
		all[count++].ways.keep_found = true;
	}
	if (!own && !asking->limited && requests->least_limit_bytes < requests->most_limit_bytes &&
	    requests->retried && requests->least_limit_bytes) {
		all[count] = first;
		all[count++].device_bytes = requests->least_limit_bytes;
	}
	question->placements_at = count;
	first.ways.recorded = false; /* another run of the program has other addresses */
	for (unsigned usual = !known; usual < gm_usual_regions_count && usual <= asking->seeds;
	     usual++) {
		all[count] = first;
		all[count++].ways.regions = usual + 1;
	}
	for (unsigned placement = GM_PLACE_UPWARDS; placement <= GM_PLACE_DOWNWARDS; placement++) {
		all[count] = first;
		all[count++].ways.placement = placement;
	}
	for (unsigned seed = 0; seed < asking->seeds; seed++) {
		all[count] = first;
		all[count].ways.placement = GM_PLACE_SCATTERED;
		all[count++].ways.seed = seed;
	}
	question->count = count;
}

static bool same_settings(const struct gm_torch_settings *a, const struct gm_torch_settings *b)
{
	if (a->driver_pool || b->driver_pool)
		return a->driver_pool == b->driver_pool &&
		       a->release_threshold_bytes == b->release_threshold_bytes;
	return a->expandable == b->expandable && a->max_split_bytes == b->max_split_bytes &&
	       a->max_rounding_bytes == b->max_rounding_bytes &&
	       !(a->gc_threshold < b->gc_threshold) && !(a->gc_threshold > b->gc_threshold) &&
	       !(a->fraction < b->fraction) && !(a->fraction > b->fraction) &&
	       memcmp(a->roundup_divisions, b->roundup_divisions, sizeof(a->roundup_divisions)) ==
		       0;
}

static uint32_t site_of(const struct asking *asking, uint32_t number)
{
	const struct gm_request_origin *origin = &asking->requests.origins[number];
	const struct gm_stack *stack = gm_doc_stack(asking->doc, origin->stack);

	if (origin->site != GM_NONE && origin->site < asking->doc->sites_count)
		return origin->site;
	for (unsigned i = 0; stack && i < asking->doc->sites_count; i++)
		if (asking->doc->sites[i].stack == stack &&
		    asking->doc->sites[i].record.level == GM_LEVEL_TORCH)
			return i;
	return GM_NO_SITE;
}

/* The reason why the figures of the driver's pool are not certain; NULL. */
static const char *pool_reason(const struct asking *asking, const struct question *question)
{
	const struct gm_requests *requests = &asking->requests;
	const struct gm_replayed_run *run = &question->all[0].run;

	if (run->captured)
		return gm_zone_printf(&asking->doc->zone,
				      "%u blocks of captured graphs lie outside of the driver's "
				      "pool and are not counted",
				      run->captured);
	if (!requests->driver_pool && question->settings.release_threshold_bytes != UINT64_MAX)
		return "the driver's pool gives memory back when the program waits for a stream, "
		       "which is not recorded";
	if (requests->pending)
		return "memory that several streams used is freed on a stream of its own, and not "
		       "all of it is recorded as such";
	if (requests->pools_count > 1)
		return "which stream has what another one freed depends on time";
	if (!requests->driver_pool || run->figures.ties)
		return "what the driver's pool can use again depends on how far the device is "
		       "behind the program";
	return asking->quick ? "only the most likely course was replayed" : NULL;
}

/* The first of the reasons why the figures are not certain; NULL. */
static const char *reason(const struct asking *asking, const struct question *question,
			  const struct gm_whatif_row *row, bool varies)
{
	const struct gm_requests *requests = &asking->requests;
	const struct gm_replayed_run *run = &question->all[0].run;
	struct gm_zone *zone = &asking->doc->zone;
	bool own = question->own;

	if (requests->gap)
		return requests->gap;
	if (asking->scaled)
		return asking->scaled;
	if (!asking->whatif->reproduced)
		return requests->driver_pool
			       ? "what the run's own pool reserved depended on how far the device "
				 "was behind the program"
		       : requests->streams_unknown
			       ? "the recording does not name streams and pools, and those that "
				 "its segments suggest do not explain what the run took from the "
				 "driver"
			       : "the model does not take from the driver what the run took under "
				 "its own setting";
	if (run->served)
		return gm_zone_printf(zone,
				      "%u request%s that the run was refused would be served; what "
				      "the program would do then is not recorded",
				      run->served, run->served == 1 ? "" : "s");
	if (run->unsure)
		return "whether the limit that refused a request then would refuse it here is not "
		       "known";
	if (question->settings.driver_pool && !(requests->middle && !own))
		return pool_reason(asking, question);
	if (requests->middle && !own)
		return "the history begins in the middle of the run: how what was there before "
		       "would have been laid out is not known";
	if (requests->other_streams)
		return "the run used several streams: which frees waited for another stream, and "
		       "whether a graph was captured, is not recorded";
	if (requests->uncertain_sizes && !own)
		return gm_zone_printf(
			zone,
			"the sizes that were asked for are not recorded: %u blocks may "
			"hold up to 1 MiB more than that",
			requests->uncertain_sizes);
	if (requests->pending)
		return gm_zone_printf(zone,
				      "%u freed block%s waited for streams, which depends on time",
				      requests->pending, requests->pending == 1 ? "" : "s");
	if (requests->unclear && !own)
		return "the run may have called empty_cache() or have retried: without stacks it "
		       "cannot be told";
	if (requests->emptied && !own)
		return "the run calls empty_cache(): calls that gave nothing back then are not "
		       "recorded, and may give something back here";
	if (asking->quick)
		return "only the most likely course was replayed";
	if (own && (varies || row->reserved_low_bytes != row->reserved_high_bytes))
		return "the run itself reserved so much; another one may not, because it depends "
		       "on where the driver puts segments";
	if (varies || row->reserved_low_bytes != row->reserved_high_bytes)
		return requests->retried && asking->base.device_bytes != UINT64_MAX
			       ? "it depends on what the driver can give at most, and on where it "
				 "puts segments"
			       : "it depends on where the driver puts segments: free blocks of one "
				 "size are taken by address";
	return NULL;
}

static enum gm_whatif_fits fits(const struct asking *asking, const struct gm_whatif_row *row,
				const struct gm_replayed_run *run, bool ooms_vary)
{
	if (run->unsure || ooms_vary || run->captured)
		return GM_FITS_UNKNOWN;
	if (row->ooms)
		return GM_FITS_NOT;
	if (row->reserved_high_bytes > asking->base.device_bytes)
		return GM_FITS_UNKNOWN;
	if (asking->limited || asking->base.device_bytes != UINT64_MAX || run->served)
		return GM_FITS;
	return row->reserved_high_bytes <= asking->requests.reserved_peak_bytes ? GM_FITS
										: GM_FITS_UNKNOWN;
}

/*
 * The timings that are tried are some of those that are possible: up to two chunks more or less lie
 * beyond them now and then (docs/evidence/whatif.md).
 */
static void widen(struct gm_whatif_row *row)
{
	uint64_t least = gm_round_up(row->allocated_peak_bytes, GM_POOL_CHUNK_BYTES);

	row->reserved_high_bytes += WIDER_BYTES;
	row->reserved_low_bytes = row->reserved_low_bytes > least + WIDER_BYTES
					  ? row->reserved_low_bytes - WIDER_BYTES
					  : least;
}

static void add_row(struct asking *asking, const struct question *question)
{
	struct gm_whatif_row *row = gm_zone_push(&asking->doc->zone, &asking->whatif->rows,
						 &asking->whatif->rows_count, sizeof(*row));
	struct gm_replayed_run first = question->all[0].run;
	bool varies = false, ooms_vary = false;

	row->conf = question->conf;
	row->driver_pool = question->settings.driver_pool;
	row->reserved_low_bytes = row->reserved_high_bytes = first.figures.reserved_peak_bytes;
	for (unsigned i = 1; i < question->count; i++) {
		const struct gm_model_figures *figures = &question->all[i].run.figures;
		uint64_t peak = figures->reserved_peak_bytes;

		if (!question->all[i].done)
			continue;
		row->reserved_low_bytes =
			peak < row->reserved_low_bytes ? peak : row->reserved_low_bytes;
		row->reserved_high_bytes =
			peak > row->reserved_high_bytes ? peak : row->reserved_high_bytes;
		ooms_vary |= figures->ooms != first.figures.ooms;
		varies |= ooms_vary || figures->retries != first.figures.retries ||
			  figures->allocated_peak_bytes != first.figures.allocated_peak_bytes;
	}
	row->allocated_peak_bytes = first.figures.allocated_peak_bytes;
	row->reserved_peak_bytes = first.figures.reserved_peak_bytes;
	row->idle_at_peak_bytes =
		first.figures.reserved_peak_bytes - first.figures.allocated_at_peak_bytes;
	row->segments = first.figures.segments;
	row->retries = first.figures.retries;
	row->ooms = first.figures.ooms;
	row->oom_ns = GM_NO_BYTES;
	row->oom_site = GM_NO_SITE;
	if (first.first_oom != UINT32_MAX) {
		row->oom_ns = asking->requests.origins[first.first_oom].time_ns;
		row->oom_site = site_of(asking, first.first_oom);
	}
	row->why = reason(asking, question, row, varies);
	row->exact = !row->why;
	if (question->settings.driver_pool && !row->exact)
		widen(row);
	row->fits = fits(asking, row, &first, ooms_vary && !question->own);
	if (!row->why && first.ended)
		row->why = "the run would end there with an out-of-memory error";
}

/* ---- limits ---- */

/* Memory of the device that PyTorch does not manage, at its peak; 0 where it is not known. */
static uint64_t other_bytes(const struct asking *asking)
{
	const struct gm_doc *doc = asking->doc;
	const struct gm_level_record *level =
		gm_doc_level(doc, asking->whatif->device, GM_LEVEL_DRIVER);
	uint64_t others = 0;

	if (doc->imported_count)
		return 0;
	for (unsigned i = 0; i < doc->ledger_count; i++)
		if (doc->ledger[i].record.device == asking->whatif->device)
			others = doc->ledger[i].record.context_bytes +
				 doc->ledger[i].record.code_bytes;
	if (level && level->physical_peak_bytes > asking->requests.reserved_peak_bytes)
		others += level->physical_peak_bytes - asking->requests.reserved_peak_bytes;
	return others;
}

static void set_limits(struct asking *asking, const struct gm_whatif_options *options)
{
	const struct gm_device *device = gm_doc_device(asking->doc, asking->whatif->device);
	const struct gm_requests *requests = &asking->requests;
	uint64_t total = device ? gm_device_limit(device) : GM_NO_BYTES, others;

	asking->recorded_total_bytes = total == GM_NO_BYTES || !total ? UINT64_MAX : total;
	total = options->capacity_bytes ? options->capacity_bytes : total;
	others = asking->whatif->other_bytes = other_bytes(asking);
	asking->base.rules = asking->rules;
	asking->base.total_bytes = total == GM_NO_BYTES || !total ? UINT64_MAX : total;
	asking->base.device_bytes = UINT64_MAX;
	asking->base.fraction = options->fraction;
	asking->limited = options->capacity_bytes || options->fraction > 0;
	if (options->capacity_bytes)
		asking->base.device_bytes = total > others ? total - others : 0;
	else if (requests->most_limit_bytes != UINT64_MAX)
		asking->base.device_bytes = requests->most_limit_bytes > requests->least_limit_bytes
						    ? requests->most_limit_bytes
						    : requests->least_limit_bytes;
	else if (asking->base.total_bytes != UINT64_MAX)
		asking->base.device_bytes = total > others ? total - others : 0;
	if (asking->base.device_bytes < requests->reserved_peak_bytes && !asking->limited)
		asking->base.device_bytes = requests->reserved_peak_bytes;
}

/* ---- settings ---- */

static bool needs_total(const struct asking *asking, double fraction)
{
	return fraction > 0 && asking->base.total_bytes == UINT64_MAX;
}

static bool read_setting(struct asking *asking, const char *conf,
			 struct gm_torch_settings *settings)
{
	char why[256];

	if (!asking->requests.by_torch && strcmp(conf, "default") == 0)
		conf = pool_list[0];
	if (!gm_torch_settings_read(settings, conf, asking->rules, why, sizeof(why))) {
		snprintf(asking->error, asking->error_bytes, "\"%s\" cannot be used: %s", conf,
			 why);
		return false;
	}
	if (!asking->requests.by_torch && !settings->driver_pool) {
		snprintf(asking->error, asking->error_bytes,
			 "\"%s\" is a setting of PyTorch's allocator, which the run did not use; "
			 "its driver's pool has release_threshold:SIZE",
			 conf);
		return false;
	}
	if (needs_total(asking, settings->fraction)) {
		snprintf(
			asking->error, asking->error_bytes,
			"\"%s\" is a fraction of the device's memory, which the recording does not "
			"say: give --capacity",
			conf);
		return false;
	}
	return true;
}

/* ---- all settings ---- */

struct questions {
	struct question *list;
	unsigned count, room;
};

static void add_question(struct asking *asking, struct questions *questions, const char *conf,
			 const struct gm_torch_settings *settings)
{
	struct question *question;

	if (questions->count == questions->room) {
		questions->room = questions->room ? 2 * questions->room : 32;
		questions->list =
			gm_realloc(questions->list, questions->room * sizeof(*questions->list));
	}
	question = &questions->list[questions->count++];
	memset(question, 0, sizeof(*question));
	question->conf = conf;
	question->settings = *settings;
	question->own = !asking->limited && !asking->scaled && asking->recorded_known &&
			same_settings(settings, &asking->recorded);
	if (settings->driver_pool)
		add_pool_variations(asking, question);
	else
		add_variations(asking, question);
}

static bool add_questions(struct asking *asking, struct questions *questions,
			  const char *const *confs, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct gm_torch_settings settings;

		if (!read_setting(asking, confs[i], &settings))
			return false;
		add_question(asking, questions, confs[i], &settings);
	}
	return true;
}

/* The run's own setting first, then the list. */
static bool add_search(struct asking *asking, struct questions *questions)
{
	bool listed = !asking->recorded_known, torch = asking->requests.by_torch;
	const char *const *list = torch ? gm_whatif_list : pool_list;
	unsigned count = torch ? gm_whatif_list_count : POOL_LIST_COUNT;

	for (unsigned i = 0; i < count && !listed; i++) {
		struct gm_torch_settings settings;

		listed = read_setting(asking, list[i], &settings) &&
			 same_settings(&settings, &asking->recorded);
	}
	if (!listed)
		add_question(asking, questions, asking->whatif->recorded_conf, &asking->recorded);
	if (!add_questions(asking, questions, list, count))
		return false;
	return !(asking->base.fraction > 0) ||
	       add_questions(asking, questions, with_fraction,
			     sizeof(with_fraction) / sizeof(with_fraction[0]));
}

static bool answer(struct asking *asking, const struct gm_whatif_options *options)
{
	struct questions questions = {0};
	bool known = options->confs_count ? add_questions(asking, &questions, options->confs,
							  options->confs_count)
					  : add_search(asking, &questions);

	if (known)
		run_all(asking, questions.list, questions.count);
	for (unsigned i = 0; known && i < questions.count; i++)
		add_row(asking, &questions.list[i]);
	free(questions.list);
	return known;
}

/*
 * A setting that fits is better than one that does not; then the one that reserves less, or that
 * gets further.
 */
static bool better(const struct gm_whatif_row *row, const struct gm_whatif_row *than)
{
	bool fits = row->fits != GM_FITS_NOT, others_fit = than->fits != GM_FITS_NOT;

	if (fits != others_fit)
		return fits;
	return fits ? row->reserved_high_bytes < than->reserved_high_bytes
		    : row->oom_ns > than->oom_ns;
}

static void find_best(struct gm_whatif *whatif)
{
	for (unsigned i = 1; i < whatif->rows_count; i++)
		if (better(&whatif->rows[i], &whatif->rows[whatif->best]))
			whatif->best = i;
}

/* ---- all ---- */

static bool load(struct asking *asking, struct gm_doc *doc, struct gm_requests *requests,
		 const struct gm_whatif_options *options)
{
	const char *unmodelled;
	bool loaded;

	if (doc->pluggables_count) {
		snprintf(
			asking->error, asking->error_bytes,
			"%s: the program gave PyTorch an allocator of its own, whose rules are not "
			"known",
			doc->path);
		return false;
	}
	if (doc->imported_count)
		loaded = gm_requests_from_snapshot(requests, &doc->zone, doc->path,
						   options->device, doc->at_ns);
	else
		loaded = gm_requests_from_events(requests, doc, options->device);
	if (loaded && requests->count)
		return true;
	gm_requests_free(requests);
	if (!doc->imported_count && gm_requests_from_async(requests, doc, options->device) &&
	    requests->count)
		return true;
	unmodelled = gm_whatif_unmodelled(doc, options->device);
	if (unmodelled)
		snprintf(asking->error, asking->error_bytes, "%s", unmodelled);
	else
		snprintf(asking->error, asking->error_bytes,
			 doc->imported_count
				 ? "%s has no history of the allocator that can be followed; "
				   "record it with torch.cuda.memory._record_memory_history(), "
				   "then _dump_snapshot()"
				 : "%s has no complete history of PyTorch's blocks; record it with "
				   "GPUMEMTRACE_EVENTS=all",
			 doc->path);
	return false;
}

static bool read_recorded(struct asking *asking)
{
	const char *conf = asking->requests.conf;
	char why[256];

	asking->whatif->recorded_conf = conf && !*conf ? "default" : conf;
	asking->recorded = gm_torch_settings_default();
	asking->recorded_known = !conf || gm_torch_settings_read(&asking->recorded, conf,
								 asking->rules, why, sizeof(why));
	if (asking->recorded.expandable || asking->requests.middle)
		asking->requests.regions = (struct gm_recorded_regions){.above_at = UINT32_MAX,
									.opened_at = UINT32_MAX};
	if (asking->recorded_known)
		return true;
	snprintf(asking->error, asking->error_bytes,
		 "the run was made with %s, which cannot be replayed: %s", conf, why);
	return false;
}

/* The recorded requests become those of another batch. */
static bool scale(struct asking *asking, const struct gm_whatif_options *options)
{
	struct gm_requests other = {0};
	bool scaled = load(asking, options->other, &other, options) &&
		      gm_requests_other_batch(&asking->requests, options->batch, &other,
					      options->other_batch, options->target_batch,
					      asking->error, asking->error_bytes);

	gm_requests_free(&other);
	asking->whatif->target_batch = options->target_batch;
	asking->scaled = gm_zone_printf(&asking->doc->zone,
					"sizes for the batch %.0f lie on lines through those of "
					"the batches %.0f and %.0f",
					options->target_batch, options->batch,
					options->other_batch);
	return scaled;
}

static enum gm_whatif_fault ask(struct asking *asking, const struct gm_whatif_options *options)
{
	struct gm_whatif *whatif = asking->whatif;
	uint64_t settings;

	asking->quick = options->quick;
	asking->rules = gm_torch_rules(options->version ? options->version : GM_TORCH_LAST);
	if (!asking->rules) {
		snprintf(asking->error, asking->error_bytes,
			 "the rules of PyTorch %u.%u are not known; those of 2.6 to 2.12 are",
			 options->version / 100, options->version % 100);
		return GM_WHATIF_BAD_SETTING;
	}
	if (!load(asking, asking->doc, &asking->requests, options) || !read_recorded(asking))
		return GM_WHATIF_NO_HISTORY;
	whatif->device = asking->requests.device;
	whatif->version = options->version;
	whatif->complete = !asking->requests.middle && !asking->requests.gap;
	whatif->traced = !asking->requests.streams_unknown;
	whatif->recorded_reserved_peak_bytes = asking->requests.reserved_peak_bytes;
	whatif->events = asking->requests.count;
	set_limits(asking, options);
	if (needs_total(asking, options->fraction)) {
		snprintf(asking->error, asking->error_bytes,
			 "--fraction is of the device's memory, which the recording does not say: "
			 "give --capacity");
		return GM_WHATIF_BAD_SETTING;
	}
	reproduce(asking);
	if (options->target_batch > 0 && !scale(asking, options))
		return GM_WHATIF_NO_HISTORY;
	settings = options->confs_count ? options->confs_count : gm_whatif_list_count;
	asking->seeds = settings * asking->requests.count > MANY_EVENTS ? LEAST_SEEDS : MOST_SEEDS;
	if (!answer(asking, options))
		return GM_WHATIF_BAD_SETTING;
	whatif->plan_peak_bytes = gm_offline_peak(&asking->requests, &whatif->lower_bound_bytes);
	find_best(whatif);
	if (asking->requests.gap)
		note(asking, asking->requests.gap);
	for (unsigned i = 0; i < whatif->rows_count; i++)
		if (whatif->rows[i].driver_pool) {
			note(asking,
			     "The rules of the driver's pool are not public; they are those that "
			     "driver 580.159 showed on an H200.");
			break;
		}
	if (!options->version && asking->requests.by_torch)
		note(asking,
		     "The version of PyTorch is not recorded; the rules are those of 2.10 to "
		     "2.12, which differ from those of 2.6 to 2.9 only in rare settings "
		     "(--torch VERSION).");
	return GM_WHATIF_FINE;
}

struct gm_whatif *gm_whatif_make(struct gm_doc *doc, const struct gm_whatif_options *options,
				 enum gm_whatif_fault *fault, char *error, size_t error_bytes)
{
	struct asking asking = {.doc = doc,
				.whatif = gm_zone_alloc(&doc->zone, 1, sizeof(struct gm_whatif)),
				.error = error,
				.error_bytes = error_bytes};

	*fault = ask(&asking, options);
	gm_progress_end();
	gm_requests_free(&asking.requests);
	return *fault == GM_WHATIF_FINE ? asking.whatif : NULL;
}
