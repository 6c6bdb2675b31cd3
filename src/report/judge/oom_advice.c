/*
 * Advice about an out-of-memory event: by its verdict, by the holders of the memory and by the
 * phase, with the measured figures, and never a setting that the environment shows to be made
 * already. See internal.h.
 */
#include "report/judge/alloc_conf.h"
#include "report/judge/findings.h"
#include "report/judge/internal.h"
#include "report/judge/setting_advice.h"
#include "report/stacks/labels.h"
#include "report/stacks/stacks.h"
#include <string.h>

#define SHARE_PERCENT 5 /* categories under it are not worth advice */
#define KEPT_BYTES    (16ull << 20)

static uint64_t category_bytes(const struct gm_oom *oom, const char *category)
{
	for (unsigned i = 0; i < oom->categories_count; i++)
		if (strcmp(oom->categories[i].what, category) == 0)
			return oom->categories[i].bytes;
	return 0;
}

/* Bytes of a category, 0 if it is too small a share of what was held. */
static uint64_t worth(const struct gm_oom *oom, const char *category)
{
	uint64_t sum = 0, bytes = category_bytes(oom, category);

	for (unsigned i = 0; i < oom->categories_count; i++)
		sum += oom->categories[i].bytes;
	return bytes > sum / 100 * SHARE_PERCENT ? bytes : 0;
}

static void advise_torch_holes(struct gm_doc *doc, struct gm_oom *oom, uint64_t idle_bytes)
{
	const char *split = gm_torch_setting(doc, "max_split_size_mb");

	if (gm_torch_enabled(doc, "expandable_segments")) {
		gm_advise(doc, oom,
			  "expandable_segments is already set, yet %s of the reserve is "
			  "idle; free the blocks that pin it (gpumem-report fragmentation)",
			  gm_size(doc, idle_bytes));
		return;
	}
	if (gm_advise_settings(doc, &oom->advice, &oom->advice_count, oom->record.device, true))
		return;
	gm_advise(doc, oom,
		  "set %s=expandable_segments:True: %s of PyTorch's reserve is idle in holes that "
		  "are too small",
		  gm_torch_conf_name(doc), gm_size(doc, idle_bytes));
	if (!split)
		gm_advise(
			doc, oom,
			"or max_split_size_mb, so that large cached blocks are not split by small "
			"requests");
	else
		gm_advise(doc, oom, "max_split_size_mb:%s is already set and did not prevent it",
			  split);
	gm_advise_history(doc, &oom->advice, &oom->advice_count);
}

/* True if the device has memory of graphs. */
static bool graph_memory(const struct gm_doc *doc, int device)
{
	for (unsigned i = 0; i < doc->pools_count; i++)
		if (doc->pools[i].type == GM_POOL_GRAPH && doc->pools[i].device == device)
			return true;
	return false;
}

static void advise_fragmented(struct gm_doc *doc, struct gm_oom *oom)
{
	const struct gm_oom_record *record = &oom->record;
	uint64_t torch_idle = gm_oom_common_idle(record);

	if (torch_idle && !gm_torch_async_backend(doc))
		advise_torch_holes(doc, oom, torch_idle);
	else if (graph_memory(doc, record->device))
		gm_advise(
			doc, oom,
			"%s are kept for CUDA graphs that do not run: cudaDeviceGraphMemTrim gives "
			"them back, or free what is idle in pools (cudaMemPoolTrimTo)",
			gm_size(doc,
				gm_oom_idle(record->pool_reserved_bytes, record->pool_used_bytes)));
	else if (torch_idle || gm_oom_idle(record->pool_reserved_bytes, record->pool_used_bytes))
		gm_advise(
			doc, oom,
			"the memory is idle in a pool: trim it (cudaMemPoolTrimTo) or synchronize "
			"before the request");
	else
		gm_advise(doc, oom,
			  "%s are free, but not in one piece: ask for smaller pieces, or map "
			  "them into one range (cuMemCreate, cuMemMap)",
			  gm_size(doc, gm_oom_free_bytes(doc, record)));
}

static void advise_activations(struct gm_doc *doc, struct gm_oom *oom)
{
	uint64_t activations = worth(oom, "activations");
	bool backward = strcmp(oom->phase, "backward") == 0;

	if (activations)
		gm_advise(doc, oom,
			  "activations are %s: half the batch saves about %s%s; checkpointing or "
			  "shorter sequences also reduce them",
			  gm_size(doc, activations), gm_size(doc, activations / 2),
			  backward ? ", with accumulation over two steps the result is the same"
				   : "");
	else if (backward)
		gm_advise(doc, oom,
			  "activation checkpointing, or a smaller batch with accumulation");
	else if (strcmp(oom->phase, "forward") == 0)
		gm_advise(doc, oom,
			  "a smaller batch, activation checkpointing or shorter sequences");
}

static void advise_state(struct gm_doc *doc, struct gm_oom *oom)
{
	uint64_t state = worth(oom, "optimizer state"), gradients = worth(oom, "gradients");
	uint64_t weights = worth(oom, "weights");

	if (state)
		gm_advise(
			doc, oom,
			"the optimizer's state is %s: an 8-bit optimizer saves about %s, sharding "
			"over N ranks leaves 1/N, offloading all of it",
			gm_size(doc, state), gm_size(doc, state / 4 * 3));
	else if (strcmp(oom->phase, "optimizer") == 0)
		gm_advise(doc, oom, "an 8-bit or sharded optimizer, or offload its state");
	if (gradients && strcmp(oom->phase, "optimizer") != 0 &&
	    strcmp(oom->phase, "backward") != 0)
		gm_advise(doc, oom,
			  "gradients are %s and live while the model runs forward: "
			  "zero_grad(set_to_none=True) before it gives them back",
			  gm_size(doc, gradients));
	if (weights && weights >= state && weights >= worth(oom, "activations"))
		gm_advise(doc, oom,
			  "weights are %s: in half precision they take half of it if they are in "
			  "single precision now, sharding over N ranks leaves 1/N",
			  gm_size(doc, weights));
}

/* Calls that take memory of the device without allocating any by name. */
static void advise_unnamed(struct gm_doc *doc, struct gm_oom *oom)
{
	if (gm_makes_context(oom->api))
		gm_advise(doc, oom,
			  "a context takes some 500 MiB of the device: make one for each process "
			  "and device, and destroy those that are not used");
	else
		gm_advise(doc, oom,
			  "streams, modules, graphs and first launches take memory of the device "
			  "too: leave some of it free for them, or make them before the memory is "
			  "taken; the ledger shows what they hold");
}

/* True, with the advice, of a request that no state of the device could have served. */
static bool advise_impossible(struct gm_doc *doc, struct gm_oom *oom)
{
	uint64_t total = oom->record.total_bytes;

	if (!total || total == GM_NO_BYTES || oom->record.requested_bytes <= total)
		return false;
	gm_advise(doc, oom,
		  "%s is more than the whole device has (%s): check how the size is computed, or "
		  "divide the work",
		  gm_size(doc, oom->record.requested_bytes), gm_size(doc, total));
	return true;
}

static void advise_exhausted(struct gm_doc *doc, struct gm_oom *oom)
{
	const struct gm_oom_record *record = &oom->record;
	uint64_t need = record->driver_bytes ? record->driver_bytes : record->requested_bytes;
	uint64_t missing = gm_oom_idle(need, gm_oom_free_bytes(doc, record));

	if (advise_impossible(doc, oom))
		return;
	if (record->torch_private_idle_bytes >= missing && missing)
		gm_advise(
			doc, oom,
			"%s are idle in private pools (of CUDA graphs, or torch.cuda.MemPool), "
			"which other requests cannot use: capture graphs with one shared pool, or "
			"drop those that are not needed any more",
			gm_size(doc, record->torch_private_idle_bytes));
	if (strcmp(oom->phase, "optimizer") == 0) {
		advise_state(doc, oom);
		advise_activations(doc, oom);
	} else {
		advise_activations(doc, oom);
		advise_state(doc, oom);
	}
	if (!record->requested_bytes)
		advise_unnamed(doc, oom);
	else if (oom->top_count)
		gm_advise(doc, oom, "%s more is needed; the largest holder is %s with %s",
			  gm_size(doc, missing),
			  gm_stack_label(doc, doc->sites[oom->top[0].site].stack),
			  gm_size(doc, oom->top[0].bytes));
	else
		gm_advise(doc, oom,
			  "%s more is needed; gpumem-report sites --at peak shows who "
			  "holds the memory",
			  gm_size(doc, missing));
}

static void advise_others(struct gm_doc *doc, struct gm_oom *oom)
{
	unsigned gone = 0;

	for (unsigned i = 0; i < oom->processes_count; i++)
		gone += oom->processes[i].gone;
	gm_advise(doc, oom,
		  "other processes hold memory of the device: %s; end them, or use another device",
		  gm_oom_others(doc, oom));
	if (gone)
		gm_advise(doc, oom,
			  "%u of them %s not running here: if no container owns them, their memory "
			  "comes back when the process that they left behind ends, or with a reset "
			  "of the device",
			  gone, gone == 1 ? "is" : "are");
}

/* Names the streams that have not reached their frees. */
static void advise_pending(struct gm_doc *doc, struct gm_oom *oom)
{
	gm_advise(doc, oom,
		  "%s are freed on streams that have not reached the free: "
		  "synchronize those streams before the request, or order them by events",
		  gm_size(doc, oom->record.pending_free_bytes));
	for (unsigned i = 0; i < GM_OOM_PENDING && oom->record.pending[i].bytes; i++) {
		const struct gm_oom_pending *pending = &oom->record.pending[i];

		gm_advise(doc, oom, "%s were freed on stream 0x%llx, last at %s",
			  gm_size(doc, pending->bytes), (unsigned long long)pending->stream,
			  gm_stack_label(doc, gm_doc_stack(doc, pending->stack)));
	}
}

static void advise_verdict(struct gm_doc *doc, struct gm_oom *oom)
{
	uint64_t mps_limit = gm_oom_mps_limit(doc, oom->record.device);

	if (strcmp(oom->verdict, "fragmented") == 0)
		advise_fragmented(doc, oom);
	else if (strcmp(oom->verdict, "exhausted") == 0)
		advise_exhausted(doc, oom);
	else if (strcmp(oom->verdict, "pending-frees") == 0)
		advise_pending(doc, oom);
	else if (strcmp(oom->verdict, "other-processes") == 0)
		advise_others(doc, oom);
	else if (strcmp(oom->verdict, "limit") == 0 && oom->record.injected)
		return; /* said below */
	else if (strcmp(oom->verdict, "limit") == 0 && oom->record.pool_max_bytes)
		gm_advise(doc, oom,
			  "the pool's maximum of %s refused it, not the device: %s of the pool are "
			  "in use; "
			  "make the pool with a larger maxSize, or use another pool",
			  gm_size(doc, oom->record.pool_max_bytes),
			  gm_size(doc, oom->record.pool_live_bytes));
	else if (strcmp(oom->verdict, "refused") == 0 && !oom->record.requested_bytes)
		gm_advise(doc, oom,
			  "the device had %s free; how much this call needs is not known: a launch "
			  "may need local memory for all threads of the device, a graph more than "
			  "1 KiB for each node",
			  gm_size(doc, gm_oom_free_bytes(doc, &oom->record)));
	else if (strcmp(oom->verdict, "limit") == 0 && mps_limit != GM_NO_BYTES)
		gm_advise(
			doc, oom,
			GM_MPS_LIMIT
			" limits this process to %s of device %d, and %s are tracked: raise it, or "
			"ask for less",
			gm_size(doc, mps_limit), oom->record.device,
			gm_size(doc, oom->record.tracked_bytes));
	else if (strcmp(oom->verdict, "refused") == 0)
		gm_advise(doc, oom,
			  "the device had %s free, enough for the request, and no limit is known "
			  "that "
			  "refused it: look for a limit of the allocator, of the container (MPS, "
			  "MIG) or of "
			  "the address space, and for another process that was quicker",
			  gm_size(doc, gm_oom_free_bytes(doc, &oom->record)));
	else if (strcmp(oom->verdict, "limit") == 0)
		gm_advise(doc, oom,
			  "a limit refused it, not the device: raise the memory fraction "
			  "(torch.cuda.set_per_process_memory_fraction) or the pool's limit");
	else
		gm_advise(doc, oom,
			  "pinned host memory is limited by the host's memory and by "
			  "RLIMIT_MEMLOCK: pin less, or reuse buffers");
}

/* Libraries answer with an error of their own. */
static const char *library_error(const char *library)
{
	static const struct {
		const char *library, *error;
	} errors[] = {
		{"libcublas", "CUBLAS_STATUS_ALLOC_FAILED or CUBLAS_STATUS_NOT_INITIALIZED"},
		{"libcudnn", "CUDNN_STATUS_ALLOC_FAILED or CUDNN_STATUS_INTERNAL_ERROR"},
		{"libcufft", "CUFFT_ALLOC_FAILED"},
		{"libcusolver", "CUSOLVER_STATUS_ALLOC_FAILED"},
		{"libcusparse", "CUSPARSE_STATUS_ALLOC_FAILED"},
		{"libcurand", "CURAND_STATUS_ALLOCATION_FAILED"},
		{"libnccl", "ncclUnhandledCudaError"},
	};

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (strncmp(library, errors[i].library, strlen(errors[i].library)) == 0)
			return errors[i].error;
	return "an error of its own";
}

/* The label, and the function that called: the line itself is often in a helper of all callers. */
static const char *with_caller(struct gm_doc *doc, const struct gm_stack *stack)
{
	unsigned index = gm_stack_label_index(stack);
	const struct gm_frame *caller = stack ? gm_stack_next_own(stack, &index) : NULL;
	const char *label = gm_stack_label(doc, stack);

	return caller && caller->function && !strstr(label, caller->function)
		       ? gm_doc_printf(doc, "%s from %s", label, caller->function)
		       : label;
}

/* Whatever the error is called: without the leak there would have been room for longer. */
static void advise_leak(struct gm_doc *doc, struct gm_oom *oom)
{
	uint64_t bytes;
	uint32_t leak = gm_oom_leak(doc, oom, &bytes);

	if (leak != GM_NO_SITE)
		gm_advise(doc, oom,
			  "first mend the leak at %s: it kept growing and held %s of the %s in use "
			  "then",
			  with_caller(doc, doc->sites[leak].stack), gm_size(doc, bytes),
			  gm_size(doc, oom->record.tracked_bytes));
}

void gm_oom_advise(struct gm_doc *doc, struct gm_oom *oom)
{
	if (strcmp(oom->verdict, "exhausted") == 0 || strcmp(oom->verdict, "fragmented") == 0 ||
	    strcmp(oom->verdict, "host") == 0 ||
	    (strcmp(oom->verdict, "limit") == 0 && !oom->record.injected))
		advise_leak(doc, oom);
	if (oom->library)
		gm_advise(doc, oom,
			  "%s asked for it: the program sees %s and no out-of-memory error; leave "
			  "room for the library, or create its handle before memory is taken",
			  oom->library, library_error(oom->library));
	advise_verdict(doc, oom);
	if (oom->changes_count)
		gm_advise(doc, oom, "since the mark \"%s\" most was added by %s: %s", oom->mark,
			  gm_stack_label(doc, doc->sites[oom->changes[0].site].stack),
			  gm_size(doc, oom->changes[0].bytes));
	if (oom->kept_bytes >= KEPT_BYTES)
		gm_advise(
			doc, oom,
			"%s of activations from before it are still live, most from %s: an "
			"exception's traceback may keep them; leave the except block before trying "
			"again",
			gm_size(doc, oom->kept_bytes),
			gm_stack_label(doc, doc->sites[oom->kept_site].stack));
	if (oom->record.injected)
		gm_advise(doc, oom, "this failure was made by %s",
			  strcmp(oom->verdict, "limit") == 0 ? "GPUMEMTRACE_FAIL"
							     : "GPUMEMTRACE_CAPACITY");
}
