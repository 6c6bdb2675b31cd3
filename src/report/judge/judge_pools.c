/*
 * pool.opaque: a framework holds memory in a pool that reports nothing of what is used inside it,
 * so that neither leaks nor fragmentation within can be told. XLA takes most of a device that way.
 * pool.pluggable: PyTorch takes its memory from an allocator that the program gave it.
 */
#include "report/judge/findings.h"
#include "report/judge/internal.h"
#include "report/stacks/labels.h"

#define LEAST_BYTES (64ull << 20)

static void judge_device(struct gm_doc *doc, const struct gm_level_record *level)
{
	uint32_t largest = GM_NO_SITE;
	struct gm_finding *finding;
	uint64_t bytes = 0;
	bool at_once;

	for (unsigned i = 0; i < doc->sites_count; i++) {
		const struct gm_site *site = &doc->sites[i];

		if (!site->opaque || site->hidden || site->record.level != GM_LEVEL_DRIVER ||
		    site->record.device != level->device)
			continue;
		bytes += site->record.live_bytes;
		if (largest == GM_NO_SITE ||
		    site->record.live_bytes > doc->sites[largest].record.live_bytes)
			largest = i;
	}
	if (bytes < LEAST_BYTES)
		return;
	at_once = doc->sites[largest].verdict == GM_HELD;
	finding = gm_finding_new(doc, "pool.opaque", GM_NOTE, level->device, bytes, largest);
	finding->title = gm_doc_printf(
		doc, "%s are a framework's pool; utilisation inside it is not visible",
		gm_size(doc, bytes));
	finding->evidence =
		gm_doc_printf(doc, "%s at %s", at_once ? "taken at once, by design," : "taken",
			      gm_stack_label(doc, doc->sites[largest].stack));
	gm_advise(doc, finding,
		  "for what is used inside, ask the framework: "
		  "jax.local_devices()[0].memory_stats(), "
		  "jax.profiler.save_device_memory_profile()%s",
		  at_once ? "; with XLA_PYTHON_CLIENT_ALLOCATOR=platform every buffer is an "
			    "allocation of its own and is seen here, at some cost in speed"
			  : "");
}

static void judge_pluggable(struct gm_doc *doc, const struct gm_torch_record *torch)
{
	struct gm_finding *finding = gm_finding_new(doc, "pool.pluggable", GM_NOTE, torch->device,
						    torch->reserved_bytes, GM_NO_SITE);

	finding->title = gm_doc_printf(doc, "PyTorch's blocks are not seen: the program gave it an "
					    "allocator of its own");
	finding->evidence = gm_doc_printf(
		doc,
		"that allocator holds %s of the driver's memory, %s at its peak; "
		"every call has its stack",
		gm_size(doc, torch->reserved_bytes), gm_size(doc, torch->reserved_peak_bytes));
	gm_advise(doc, finding,
		  "if it hands out parts of what it takes, let it tell its blocks: "
		  "gpumemtrace_pool_alloc and gpumemtrace_pool_free of gpumemtrace.h");
}

void gm_judge_pools(struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->pluggables_count && doc->at_ns == GM_NO_BYTES; i++)
		judge_pluggable(doc, &doc->pluggables[i]);
	for (unsigned i = 0; i < doc->levels_count; i++)
		if (doc->levels[i].level == GM_LEVEL_DRIVER && doc->levels[i].device >= 0)
			judge_device(doc, &doc->levels[i]);
}
