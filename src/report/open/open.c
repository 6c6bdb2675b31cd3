/*
 * From a path to a judged document, see open.h.
 */
#include "report/open/open.h"
#include "report/history/fine_timeline.h"
#include "report/history/moment.h"
#include "report/history/since.h"
#include "report/holders/stored_holders.h"
#include "report/holes/fragmentation.h"
#include "report/judge/judge.h"
#include "report/judge/suppress.h"
#include "report/judge/verdict.h"
#include "report/judge/workers.h"
#include "report/load/files.h"
#include "report/load/load.h"
#include "report/load/load_captures.h"
#include "report/load/load_ledger.h"
#include "report/load/load_ranges.h"
#include "report/load/load_sites.h"
#include "report/load/merge_sites.h"
#include "report/stacks/classify.h"
#include "report/symbols/symbolize.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* A site of which nothing had happened yet at the moment of --at. */
static bool unborn(const struct gm_doc *doc, const struct gm_site_figures *site)
{
	return doc->at_ns != GM_NO_BYTES && !site->allocations && !site->failures;
}

/* leaks and sites --min-bytes */
static bool too_small(const struct gm_site *site, const struct gm_options *options)
{
	uint64_t live = site->work_bytes > site->record.live_bytes ? site->work_bytes
								   : site->record.live_bytes;

	return (options->min_is_peak ? site->record.peak_bytes : live) < options->min_site_bytes;
}

/* --device, --kind and --level: what does not match leaves the lists. */
static void filter(struct gm_doc *doc, const struct gm_options *options)
{
	int device = options->device;
	unsigned n;

	doc->only_device = device;
	for (unsigned i = 0; i < doc->sites_count; i++) {
		struct gm_site_figures *site = &doc->sites[i].record;

		doc->sites[i].hidden = unborn(doc, site) || too_small(&doc->sites[i], options) ||
				       (device >= 0 && site->device != device) ||
				       (options->kind >= 0 && site->kind != options->kind) ||
				       (options->level >= 0 && site->level != options->level);
	}
#define KEEP(array, condition)                                                                     \
	do {                                                                                       \
		n = 0;                                                                             \
		for (unsigned i = 0; i < doc->array##_count; i++)                                  \
			if (condition)                                                             \
				doc->array[n++] = doc->array[i];                                   \
		doc->array##_count = n;                                                            \
	} while (0)
	if (options->kind >= 0)
		KEEP(usage, doc->usage[i].kind == options->kind);
	if (options->level >= 0)
		KEEP(categories, (int)doc->categories[i].level == options->level);
	if (device < 0)
		return;
	KEEP(devices, doc->devices[i].index == device);
	KEEP(levels, doc->levels[i].device == device);
	KEEP(usage, doc->usage[i].device == device);
	KEEP(pools, doc->pools[i].device == device);
	KEEP(vmm, doc->vmm[i].device == device);
	KEEP(torches, doc->torches[i].device == device);
	KEEP(pluggables, doc->pluggables[i].device == device);
	KEEP(fragmentation, doc->fragmentation[i].device == device);
	KEEP(retries, doc->retries[i].device == device);
	KEEP(ooms, doc->ooms[i].record.device == device);
	KEEP(implicit, doc->implicit[i].device == device);
	KEEP(ledger, doc->ledger[i].record.device == device);
	KEEP(phases, doc->phases[i].device == device);
	KEEP(categories, doc->categories[i].device == device);
	KEEP(timeline, doc->timeline[i].device == device);
#undef KEEP
}

/*
 * Warns with one line per reason and the first names: a PyTorch process can have forty such
 * libraries.
 */
static void warn_missing(struct gm_doc *doc)
{
	static const char *const reasons[GM_MISSING_REASONS] = {
		"not on this machine", "here of another build than the one that ran (build id)",
		"no object files here"};
	const char *paths[4];

	for (unsigned reason = 0; reason < GM_MISSING_REASONS; reason++) {
		unsigned count = gm_symbols_missing(doc->symbols, (enum gm_missing)reason, paths,
						    ARRAY_SIZE(paths));
		char *names = gm_zone_strdup(&doc->zone, "");

		for (unsigned i = 0; i < count && i < ARRAY_SIZE(paths); i++) {
			const char *slash = strrchr(paths[i], '/');

			names = gm_zone_printf(&doc->zone, "%s%s%s", names, i ? ", " : "",
					       slash ? slash + 1 : paths[i]);
		}
		if (count)
			gm_doc_warn(doc, "%u %s %s %s; functions there have no names: %s%s", count,
				    count == 1 ? "library" : "libraries", count == 1 ? "is" : "are",
				    reasons[reason], names,
				    count > ARRAY_SIZE(paths) ? ", ..." : "");
	}
}

static void begin_symbols(struct gm_doc *doc, const struct gm_options *options)
{
	if (!options->symbols)
		return;
	doc->shared_symbols = options->shared_symbols != NULL;
	doc->symbols = doc->shared_symbols ? options->shared_symbols
					   : gm_symbols_new(&doc->zone, options->symbol_cache);
	gm_symbols_begin(doc->symbols);
}

/* Loads the contents of the files, at the moment and for the stretch that the options ask for. */
static bool load(struct gm_doc *doc, const struct gm_options *options, char *error,
		 size_t error_bytes)
{
	gm_load(doc);
	if (options->needs_blocks && gm_sampled(doc)) {
		snprintf(error, error_bytes, "%s: %s: %s needs every block", doc->path,
			 gm_sampled(doc), options->needs_blocks);
		return false;
	}
	if (!gm_moment_apply(doc, options, error, error_bytes))
		return false;
	if (options->fine_timeline)
		gm_timeline_refine(doc);
	gm_finish_sites(doc);
	gm_load_work(doc);
	gm_merge_sites(doc);
	if (!gm_since_apply(doc, options, error, error_bytes))
		return false;
	gm_classify(doc);
	gm_load_fragmentation(doc);
	gm_load_ranges(doc, options->device);
	if (doc->at_ns == GM_NO_BYTES) {
		gm_load_captures(doc);
		gm_load_ledger(doc);
	}
	return true;
}

static void judge(struct gm_doc *doc, const struct gm_options *options,
		  struct gm_suppressions *suppressions)
{
	gm_judge_sites(doc, options->warmup);
	gm_judge_workers(doc, options->warmup);
	if (suppressions)
		gm_suppress(doc, suppressions);
	if (!options->no_shipped_suppressions)
		gm_suppress(doc, gm_suppressions_shipped(&doc->zone));
	filter(doc, options);
	if (doc->at_ns == GM_NO_BYTES)
		gm_load_holders(doc); /* hidden sites have none, and findings name them */
	gm_judge(doc);
	gm_moment_finish(doc);
}

/* False with a sentence in `error`. */
static bool fill(struct gm_doc *doc, const char *path, const struct gm_options *options,
		 char *error, size_t error_bytes)
{
	struct gm_suppressions *suppressions = NULL;

	if (!gm_open_files(doc, path, error, error_bytes))
		return false;
	begin_symbols(doc, options);
	for (unsigned i = 0; i < options->suppressions_count; i++) {
		suppressions = gm_suppressions_read(&doc->zone, suppressions,
						    options->suppressions[i], error, error_bytes);
		if (!suppressions)
			return false;
	}
	if (!load(doc, options, error, error_bytes))
		return false;
	judge(doc, options, suppressions);
	gm_reader_release_settled(doc->reader);
	if (doc->symbols)
		warn_missing(doc);
	return true;
}

struct gm_doc *gm_doc_open(const char *path, const struct gm_options *options, char *error,
			   size_t error_bytes)
{
	struct gm_doc *doc = gm_realloc(NULL, sizeof(*doc));

	memset(doc, 0, sizeof(*doc));
	doc->options = *options;
	doc->at_ns = GM_NO_BYTES;
	doc->only_device = -1;
	if (fill(doc, path, options, error, error_bytes))
		return doc;
	gm_doc_close(doc);
	return NULL;
}

static void release_frames(struct gm_doc *doc)
{
	for (unsigned i = 0; doc->release && i < doc->frames_count; i++)
		for (unsigned k = 0; k < doc->frames[i].count; k++)
			if (doc->frames[i].frames[k].memo->rendered)
				doc->release(doc->frames[i].frames[k].memo->rendered);
}

void gm_doc_close(struct gm_doc *doc)
{
	if (!doc)
		return;
	release_frames(doc);
	if (!doc->shared_symbols)
		gm_symbols_free(doc->symbols);
	gm_close_files(doc);
	gm_zone_free(&doc->zone);
	free(doc);
}
