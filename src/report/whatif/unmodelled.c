/*
 * The allocators that are told by the frames of their calls (unmodelled.h).
 */
#include "report/whatif/unmodelled.h"
#include "report/stacks/labels.h"
#include <string.h>

/*
 * `part` is in the function, the file or the module of a frame that the rules call a cache.
 * The settings in the sentences are from the documentation of CuPy, RMM and JAX.
 */
static const struct allocator {
	const char *part, *name, *instead;
} allocators[] = {
	{"cupy", "CuPy's memory pool",
	 "cupy.get_default_memory_pool().set_limit() tries a limit; with "
	 "cupy.cuda.set_allocator(None) each array is a call of its own, and the peak is what no "
	 "pool undercuts"},
	{"rmm::", "RMM's pool or arena",
	 "rmm.statistics and rmm.enable_logging() tell what it hands out; with "
	 "rmm.mr.CudaMemoryResource each buffer is a call of its own, and the peak is what no pool "
	 "undercuts"},
	{"BFC", "a BFC allocator (JAX, TensorFlow, ONNX Runtime)",
	 "JAX's XLA_PYTHON_CLIENT_MEM_FRACTION tries a limit; with "
	 "XLA_PYTHON_CLIENT_ALLOCATOR=platform each buffer is a call of its own, and the peak is "
	 "what no pool undercuts"},
	{"xla", "XLA's BFC allocator (JAX)",
	 "XLA_PYTHON_CLIENT_MEM_FRACTION tries a limit; with "
	 "XLA_PYTHON_CLIENT_ALLOCATOR=platform each buffer is a call of its own, and the peak is "
	 "what no pool undercuts"},
	{"cub::", "CUB's caching allocator",
	 "its limits are arguments of cub::CachingDeviceAllocator"},
	{"", "an allocator of the program's own",
	 "gpumemtrace_pool_alloc and gpumemtrace_pool_free of gpumemtrace.h tell its blocks"},
};

#define ALLOCATORS (sizeof(allocators) / sizeof(allocators[0]))

static bool names(const struct gm_frame *frame, const char *part)
{
	return (frame->function && strstr(frame->function, part)) ||
	       (frame->file && strstr(frame->file, part)) ||
	       (frame->module && strstr(frame->module, part));
}

static unsigned allocator_of(const struct gm_stack *stack)
{
	for (unsigned i = 0; i < ALLOCATORS - 1; i++)
		for (unsigned k = 0; k < stack->count; k++) {
			const struct gm_frame *frame = gm_stack_frame(stack, k);

			if ((frame->caching || frame->opaque || frame->framework) &&
			    names(frame, allocators[i].part))
				return i;
		}
	return ALLOCATORS - 1;
}

/* Bytes of the device at the peak, by the way in which they were taken. */
struct taken {
	uint64_t by[ALLOCATORS], async_bytes, direct_bytes;
};

static struct taken taken_by(const struct gm_doc *doc, int device)
{
	struct taken taken = {0};

	for (unsigned i = 0; i < doc->sites_count; i++) {
		const struct gm_site *site = &doc->sites[i];
		uint64_t bytes = site->record.peak_bytes;

		if (site->record.level != GM_LEVEL_DRIVER || site->record.device < 0 ||
		    (device >= 0 && site->record.device != device))
			continue;
		if (site->record.kind == GM_KIND_ASYNC)
			taken.async_bytes += bytes;
		else if (site->caching && site->stack)
			taken.by[allocator_of(site->stack)] += bytes;
		else
			taken.direct_bytes += bytes;
	}
	return taken;
}

const char *gm_whatif_unmodelled(struct gm_doc *doc, int device)
{
	struct taken taken = taken_by(doc, device);
	unsigned most = 0;

	if (doc->torch)
		return NULL;
	for (unsigned i = 1; i < ALLOCATORS; i++)
		if (taken.by[i] > taken.by[most])
			most = i;
	if (taken.by[most] >= taken.async_bytes && taken.by[most] > 0)
		return gm_doc_printf(
			doc,
			"%s: the device's memory was taken by %s, and the file has what the "
			"allocator took from the driver, not what it handed out; whatif replays "
			"PyTorch's allocator only. %s",
			doc->path, allocators[most].name, allocators[most].instead);
	if (taken.async_bytes)
		return gm_doc_printf(
			doc,
			"%s: the device's memory was handed out by cudaMallocAsync; to replay it "
			"under other release thresholds, record its complete history with "
			"GPUMEMTRACE_EVENTS=all",
			doc->path);
	if (taken.direct_bytes)
		return gm_doc_printf(
			doc,
			"%s: the program took the device's memory from the driver, call by call, "
			"and no allocator of a framework was seen: there are no settings to replay",
			doc->path);
	return NULL;
}
