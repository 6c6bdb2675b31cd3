/*
 * garbage.cycles: a fair part of a peak was memory that only reference cycles kept, until CPython's
 * garbage collector freed it.
 */
#include "report/judge/findings.h"
#include "report/judge/internal.h"
#include "report/stacks/labels.h"
#include "report/support/format.h"

#define LEAST_BYTES (16ull << 20)
#define LEAST_SHARE 10 /* one part in so many of the peak */

/* The memory that the collector freed at sites of one level and device. */
struct garbage {
	uint64_t bytes, count;
	uint32_t site; /* that with most bytes; GM_NO_SITE: none */
};

/*
 * Sites that grow are left out: they have a finding of their own, and not only cycles keep their
 * memory.
 */
static struct garbage sum_garbage(const struct gm_doc *doc, const struct gm_level_record *level)
{
	struct garbage sum = {.site = GM_NO_SITE};

	for (unsigned i = 0; i < doc->sites_count; i++) {
		const struct gm_site_figures *record = &doc->sites[i].record;

		if (!record->collected_bytes || record->device != level->device ||
		    record->level != level->level || doc->sites[i].hidden ||
		    doc->sites[i].verdict == GM_GROW)
			continue;
		sum.bytes += record->collected_bytes;
		sum.count += record->collected_count;
		if (sum.site == GM_NO_SITE ||
		    record->collected_bytes > doc->sites[sum.site].record.collected_bytes)
			sum.site = i;
	}
	return sum;
}

static void judge_level(struct gm_doc *doc, const struct gm_level_record *level)
{
	struct garbage sum = sum_garbage(doc, level);
	uint64_t bytes = sum.bytes < level->collected_of_peak_bytes
				 ? sum.bytes
				 : level->collected_of_peak_bytes;
	struct gm_finding *finding;
	const char *place;

	if (bytes < LEAST_BYTES || bytes < level->peak_bytes / LEAST_SHARE)
		return;
	place = gm_stack_label(doc, doc->sites[sum.site].stack);
	finding = gm_finding_new(doc, "garbage.cycles", GM_WARNING, level->device, bytes, sum.site);
	finding->title =
		gm_doc_printf(doc, "up to %s of the peak was later freed by the garbage collector",
			      gm_size(doc, bytes));
	finding->evidence = gm_doc_printf(
		doc,
		"the peak was %s; over the run Python's garbage collector freed %llu "
		"allocation%s of %s together, most of them from %s",
		gm_size(doc, level->peak_bytes), (unsigned long long)sum.count, gm_s(sum.count),
		gm_size(doc, sum.bytes), place);
	gm_advise(doc, finding,
		  "objects that refer to each other keep this memory until the collector runs: "
		  "break the cycle at %s (a weak reference, or None in place of one that leads "
		  "back)",
		  place);
	gm_advise(doc, finding,
		  "until then call gc.collect() between steps, or let the collector run more "
		  "often (gc.set_threshold; gc.freeze() after start-up makes it cheap)");
}

/* Blocks where PyTorch's are seen, else the driver's memory. */
void gm_judge_garbage(struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->levels_count; i++) {
		const struct gm_level_record *level = &doc->levels[i];
		bool blocks = gm_doc_level(doc, level->device, GM_LEVEL_TORCH) != NULL;

		if (level->device >= 0 && doc->at_ns == GM_NO_BYTES &&
		    level->level == (blocks ? GM_LEVEL_TORCH : GM_LEVEL_DRIVER))
			judge_level(doc, level);
	}
}
