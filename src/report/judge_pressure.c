/*
 * memory-pressure: allocation calls that had to be repeated. cache.thrash: memory that is given
 * back to the driver and taken again and again.
 */
#include "report/judge.h"
#include "report/format.h"
#include "report/history.h"
#include "report/load.h"

#define THRASH_TIMES 4 /* the reserve's peak was taken that many times over */
#define THRASH_BYTES (256ull << 20)

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

	if (!retry->attempts)
		return;
	finding = gm_find(doc, "memory-pressure", GM_WARNING, retry->device, retry->flushed_bytes,
			  site);
	finding->title = gm_say(doc, "%llu allocation%s had to be repeated for want of memory",
				(unsigned long long)retry->attempts, gm_s(retry->attempts));
	finding->evidence =
		gm_say(doc,
		       "%llu recovered, %llu gave up, %s lost, %s given back to the "
		       "driver meanwhile",
		       (unsigned long long)retry->recovered, (unsigned long long)retry->exhausted,
		       gm_format_time(stall, (double)retry->stall_ns / 1e9),
		       gm_size(doc, retry->flushed_bytes));
	if (site != GM_NO_SITE)
		gm_advise(doc, finding, "most begin at %s", gm_place(doc, doc->sites[site].stack));
	gm_advise(doc, finding,
		  "the run works at the edge of the device: a slightly smaller batch avoids "
		  "the flushes, and they are slower than the work they make room for");
}

/* Segments given back, as far as the ring of events reaches, and who gave back most. */
struct releases {
	uint64_t bytes, count, first_ns, last_ns;
	const struct gm_stack *stack; /* of the largest */
};

static struct releases find_releases(struct gm_doc *doc, int device)
{
	struct gm_history history = gm_load_history(doc);
	struct releases found = {0};
	uint64_t largest = 0;

	for (unsigned i = 0; i < history.count; i++) {
		const struct gm_event_record *event = &history.events[i];

		if (event->op != GM_OP_FREE || event->device != device ||
		    event->level != GM_LEVEL_DRIVER || event->site >= doc->sites_count ||
		    !(doc->sites[event->site].record.flags & GM_SITE_TORCH ||
		      doc->sites[event->site].caching))
			continue;
		if (!found.count++)
			found.first_ns = event->time_ns;
		found.last_ns = event->time_ns;
		found.bytes += event->bytes;
		if (event->bytes > largest && event->stack != GM_NONE) {
			largest = event->bytes;
			found.stack = gm_doc_stack(doc, event->stack);
		}
	}
	return found;
}

static void say_releases(struct gm_doc *doc, struct gm_finding *finding, int device)
{
	struct releases found = find_releases(doc, device);
	char time[GM_FORMAT_BYTES];

	if (found.count > 1 && found.last_ns > found.first_ns)
		finding->evidence = gm_say(
			doc, "%s; the last %llu segments, %s, within %s", finding->evidence,
			(unsigned long long)found.count, gm_size(doc, found.bytes),
			gm_format_time(time, (double)(found.last_ns - found.first_ns) / 1e9));
	if (found.stack)
		gm_advise(doc, finding, "they are given back at %s", gm_place(doc, found.stack));
}

static void judge_thrash(struct gm_doc *doc, const struct gm_torch_record *torch)
{
	struct gm_finding *finding;

	if (torch->released_total_bytes == GM_NO_BYTES ||
	    torch->reserved_peak_bytes == GM_NO_BYTES ||
	    torch->released_total_bytes < THRASH_BYTES ||
	    torch->released_total_bytes / THRASH_TIMES < torch->reserved_peak_bytes)
		return;
	finding = gm_find(doc, "cache.thrash", GM_WARNING, torch->device,
			  torch->released_total_bytes, GM_NO_SITE);
	finding->title = gm_say(doc, "PyTorch gave back and took again %s",
				gm_size(doc, torch->released_total_bytes));
	finding->evidence = gm_say(doc,
				   "%s were released to the driver over the run, the reserve never "
				   "exceeded %s",
				   gm_size(doc, torch->released_total_bytes),
				   gm_size(doc, torch->reserved_peak_bytes));
	say_releases(doc, finding, torch->device);
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
