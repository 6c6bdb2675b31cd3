/*
 * pool.opaque: a framework holds memory in a pool that reports nothing of what is used inside it,
 * so that neither leaks nor fragmentation within can be told. XLA takes most of a device that way.
 * pool.pluggable: PyTorch takes its memory from an allocator that the program gave it.
 */
#include "report/judge/findings.h"
#include "report/judge/internal.h"
#include "report/stacks/labels.h"
#include <string.h>

#define LEAST_BYTES (64ull << 20)

/*
 * True for driver memory that a framework's allocator divides, and does not say how. PyTorch's says
 * it, or takes each tensor by itself, and so does who takes memory from the driver's pool.
 */
static bool hides(const struct gm_site *site)
{
	return site->record.level == GM_LEVEL_DRIVER && !site->hidden && !gm_gives_back(site) &&
	       (site->opaque || (site->caching && !site->from_c10 && !site->divided &&
				 site->record.kind != GM_KIND_ASYNC));
}

/* The advice names the framework's own figures, and its setting that records each array. */
static const char *ask_framework(const struct gm_site *site)
{
	if (site->library && strstr(site->library, "cupy"))
		return "for what is used inside, ask CuPy: "
		       "cupy.get_default_memory_pool().used_bytes(); after "
		       "cupy.cuda.set_allocator(None) every array is an allocation of its own and "
		       "is seen here, at some cost in speed";
	return "for what is used inside, ask the framework: "
	       "jax.local_devices()[0].memory_stats(), "
	       "jax.profiler.save_device_memory_profile(); with "
	       "XLA_PYTHON_CLIENT_ALLOCATOR=platform every buffer is an allocation of its own and "
	       "is seen here, at some cost in speed";
}

static void judge_device(struct gm_doc *doc, const struct gm_level_record *level)
{
	uint32_t largest = GM_NO_SITE;
	struct gm_finding *finding;
	uint64_t bytes = 0;

	for (unsigned i = 0; i < doc->sites_count; i++) {
		const struct gm_site *site = &doc->sites[i];

		if (!hides(site) || site->record.device != level->device)
			continue;
		bytes += site->work_bytes;
		if (largest == GM_NO_SITE || site->work_bytes > doc->sites[largest].work_bytes)
			largest = i;
	}
	if (bytes < LEAST_BYTES)
		return;
	finding = gm_finding_new(doc, "pool.opaque", GM_NOTE, level->device, bytes, largest);
	finding->title = gm_doc_printf(
		doc, "%s are a framework's pool; utilisation inside it is not visible",
		gm_size(doc, bytes));
	finding->evidence = gm_doc_printf(
		doc, "%s at %s; a leak of arrays, and an out-of-memory error inside the pool, are "
		     "not seen",
		doc->sites[largest].verdict == GM_HELD ? "taken at once, by design," : "taken",
		gm_stack_label(doc, doc->sites[largest].stack));
	gm_advise(doc, finding, "%s", ask_framework(&doc->sites[largest]));
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
