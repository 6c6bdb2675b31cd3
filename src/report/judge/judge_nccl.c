/*
 * The finding nccl.memory: what NCCL's communicators hold on a device.
 */
#include "report/judge/findings.h"
#include "report/judge/internal.h"
#include "report/stacks/nccl.h"
#include <string.h>

#define WORTH_BYTES (64ull << 20) /* one communicator takes hundreds of MiB */
#define NAMED_CALLS 3

struct call {
	const char *name;
	uint64_t bytes, live_bytes;
};

static void add_call(struct gm_doc *doc, struct call **calls, unsigned *count,
		     const struct gm_site *site)
{
	const char *name = gm_nccl_call(doc, site);
	struct call *call = NULL;

	for (unsigned i = 0; i < *count && !call; i++)
		if (strcmp((*calls)[i].name, name) == 0)
			call = &(*calls)[i];
	if (!call) {
		call = gm_zone_push(&doc->zone, calls, count, sizeof(*call));
		call->name = name;
	}
	call->bytes += site->record.bytes_at_peak;
	call->live_bytes += site->record.live_bytes;
}

/* "372.0 MiB by ncclCommInitRank at init (ddp.py:30); ...", the largest first. */
static const char *name_calls(struct gm_doc *doc, struct call *calls, unsigned count)
{
	const char *text = "";

	for (unsigned shown = 0; shown < count && shown < NAMED_CALLS; shown++) {
		struct call *most = &calls[shown];

		for (unsigned i = shown + 1; i < count; i++)
			if (calls[i].bytes > most->bytes) {
				struct call other = *most;

				*most = calls[i];
				calls[i] = other;
			}
		text = gm_doc_printf(doc, "%s%s%s by %s", text, shown ? "; " : "",
				     gm_size(doc, most->bytes), most->name);
	}
	if (count > NAMED_CALLS)
		text = gm_doc_printf(doc, "%s; %u other calls", text, count - NAMED_CALLS);
	return text;
}

static void judge(struct gm_doc *doc, int device)
{
	const struct gm_level_record *level = gm_doc_level(doc, device, GM_LEVEL_DRIVER);
	uint64_t peak = gm_nccl_bytes(doc, device, true);
	struct call *calls = NULL;
	struct gm_finding *finding;
	unsigned count = 0;

	if (peak < WORTH_BYTES || !level)
		return;
	for (unsigned i = 0; i < doc->sites_count; i++)
		if (doc->sites[i].record.device == device && doc->sites[i].record.bytes_at_peak &&
		    gm_nccl_owns(&doc->sites[i]))
			add_call(doc, &calls, &count, &doc->sites[i]);
	finding = gm_finding_new(doc, "nccl.memory", GM_NOTE, device, peak, GM_NO_SITE);
	finding->title = gm_doc_printf(doc, "NCCL holds %s of the peak", gm_size(doc, peak));
	finding->evidence = gm_doc_printf(
		doc, "%.1f %% of %s: %s", 100.0 * (double)peak / (double)level->peak_bytes,
		gm_size(doc, level->peak_bytes), name_calls(doc, calls, count));
	gm_advise(doc, finding,
		  "each communicator takes its own buffers: fewer process groups, or "
		  "NCCL_BUFFSIZE and NCCL_MAX_NCHANNELS, make it smaller");
}

void gm_judge_nccl(struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->devices_count; i++)
		judge(doc, doc->devices[i].index);
}
