/*
 * memory-pressure: allocation calls that had to be repeated. cache.thrash: memory that is given
 * back to the driver and taken again and again.
 */
#include "report/judge/findings.h"
#include "report/judge/internal.h"
#include "report/stacks/labels.h"
#include "report/stacks/stacks.h"
#include "report/support/format.h"

#define THRASH_TIMES  4 /* the reserve's peak was taken that many times over */
#define THRASH_ROUNDS 16
#define THRASH_BYTES  (256ull << 20)

static uint32_t retrying_site(const struct gm_doc *doc, int device)
{
	uint32_t most = GM_NO_SITE;

	for (unsigned i = 0; i < doc->sites_count; i++)
		if (doc->sites[i].record.retries && doc->sites[i].record.device == device &&
		    (most == GM_NO_SITE ||
		     doc->sites[i].record.retries > doc->sites[most].record.retries))
			most = i;
	return most;
}

static void judge_retries(struct gm_doc *doc, const struct gm_retry_record *retry)
{
	uint32_t site = retrying_site(doc, retry->device);
	char stall[GM_FORMAT_BYTES];
	struct gm_finding *finding;

	/* A request that no flush was made for, as one beyond a limit, is told as out of memory. */
	if (!retry->attempts || !(retry->recovered || retry->flushed_bytes || retry->stall_ns))
		return;
	finding = gm_finding_new(doc, "memory-pressure", GM_WARNING, retry->device,
				 retry->flushed_bytes, site);
	finding->title = gm_doc_printf(doc,
				       "%llu allocation%s found no memory at first and had to "
				       "be retried",
				       (unsigned long long)retry->attempts, gm_s(retry->attempts));
	finding->evidence = gm_doc_printf(
		doc,
		"%llu recovered, %llu failed for good; %s lost, %s given back to "
		"the driver meanwhile",
		(unsigned long long)retry->recovered, (unsigned long long)retry->exhausted,
		gm_format_time(stall, (double)retry->stall_ns / 1e9),
		gm_size(doc, retry->flushed_bytes));
	if (site != GM_NO_SITE)
		gm_advise(doc, finding, "most begin at %s",
			  gm_stack_label(doc, doc->sites[site].stack));
	gm_advise(doc, finding,
		  "the run uses all of the device: a slightly smaller batch avoids the flushes, "
		  "which take longer than the work that they make room for");
}

/*
 * True if PyTorch gives back and takes again too much over the whole run, by the shim's own
 * counters; files of older shims have the sums alone.
 */
static bool thrashes(const struct gm_torch_record *torch)
{
	if (torch->released_total_bytes == GM_NO_BYTES ||
	    torch->reserved_peak_bytes == GM_NO_BYTES || torch->released_total_bytes < THRASH_BYTES)
		return false;
	if (torch->released_total_bytes / THRASH_TIMES >= torch->reserved_peak_bytes)
		return !torch->releases || torch->rounds >= THRASH_TIMES - 1;
	/* A part of the reserve that goes back and forth all the time. */
	return torch->rounds >= THRASH_ROUNDS &&
	       torch->released_total_bytes >= torch->reserved_peak_bytes;
}

static void say_rounds(struct gm_doc *doc, struct gm_finding *finding,
		       const struct gm_torch_record *torch)
{
	const struct gm_stack *stack = gm_doc_stack(doc, torch->release_stack);
	char time[GM_FORMAT_BYTES];

	if (!torch->releases)
		return;
	finding->evidence = gm_doc_printf(
		doc, "%s; %llu segment%s in %llu round%s, within %s", finding->evidence,
		(unsigned long long)torch->releases, gm_s(torch->releases),
		(unsigned long long)torch->rounds, gm_s(torch->rounds),
		gm_format_time(time,
			       (double)(torch->last_release_ns - torch->first_release_ns) / 1e9));
	if (stack)
		gm_advise(doc, finding, "most is given back at %s", gm_stack_label(doc, stack));
}

static void judge_thrash(struct gm_doc *doc, const struct gm_torch_record *torch)
{
	struct gm_finding *finding;

	if (!thrashes(torch))
		return;
	finding = gm_finding_new(doc, "cache.thrash", GM_WARNING, torch->device,
				 torch->released_total_bytes, GM_NO_SITE);
	finding->title = gm_doc_printf(doc, "PyTorch gave back and took again %s",
				       gm_size(doc, torch->released_total_bytes));
	finding->evidence =
		gm_doc_printf(doc,
			      "%s were released to the driver over the run, the reserve never "
			      "exceeded %s",
			      gm_size(doc, torch->released_total_bytes),
			      gm_size(doc, torch->reserved_peak_bytes));
	say_rounds(doc, finding, torch);
	gm_advise(doc, finding,
		  "take torch.cuda.empty_cache() out of the loop; if layers are moved between "
		  "host and device, keep their device buffers");
}

void gm_judge_pressure(struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->retries_count; i++)
		judge_retries(doc, &doc->retries[i]);
	for (unsigned i = 0; i < doc->torches_count; i++)
		judge_thrash(doc, &doc->torches[i]);
}
