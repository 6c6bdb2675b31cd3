/*
 * error.*: frees that CUDA refused, and memory given up while others still use it. alloc.failed:
 * allocations that CUDA refused, and not for want of memory.
 */
#include "report/doc/cuda_errors.h"
#include "report/judge/findings.h"
#include "report/judge/internal.h"
#include "report/stacks/labels.h"
#include "report/support/format.h"
#include "account/kinds.h"

/* The table of the types of errors, one row each, in the order of enum gm_error_type. */
static const struct {
	const char *id, *title, *advice;
	enum gm_severity severity;
} errors[GM_ERROR_TYPES] = {
	{"error.double-free", "freed twice",
	 "set the pointer to NULL after the first free, or give it one owner", GM_ERROR},
	{"error.unknown-pointer", "free of a pointer that CUDA did not hand out",
	 "look where the pointer comes from: host memory, a freed object, an offset", GM_ERROR},
	{"error.interior-pointer", "free of a pointer into the middle of an allocation",
	 "free the address that the allocation returned", GM_ERROR},
	{"error.wrong-family", "freed by a call of another family",
	 "use the free that belongs to the allocation (cudaFree, cudaFreeHost, cudaFreeArray)",
	 GM_ERROR},
	{"error.free-failed", "a free failed and the memory stays allocated",
	 "look at the result of the free: the memory is still there", GM_ERROR},
	{"error.free-after-reset", "freed after the device was reset",
	 "free before cudaDeviceReset, or not at all: the reset released it", GM_WARNING},
	{"error.released-twice", "a handle was released twice",
	 "cuMemRelease once for each create, import or retain", GM_ERROR},
	{"error.freed-while-mapped", "an address range was freed while memory is mapped there",
	 "cuMemUnmap before cuMemAddressFree", GM_ERROR},
	{"error.freed-while-exported", "freed after a handle for other processes was taken",
	 "let the importing processes close their handles first", GM_NOTE},
};

/* "900, cudaErrorStreamCaptureUnsupported", as the layer of the call names it. */
static const char *error_text(struct gm_doc *doc, const struct gm_error *error)
{
	const char *name = gm_cuda_error_name(error->record.error, error->api);

	return gm_doc_printf(doc, "%d%s%s", error->record.error, name ? ", " : "",
			     name ? name : "");
}

/*
 * Libraries try what a device may lack, register what is registered, and free and allocate while a
 * process ends: such failures are notes.
 */
static enum gm_severity severity_of(const struct gm_doc *doc, const struct gm_error *failure)
{
	enum { UNLOADING = 4, NOT_PERMITTED = 800, NOT_SUPPORTED = 801 };
	uint32_t site = failure->record.victim_site;
	unsigned kind = site < doc->sites_count ? doc->sites[site].record.kind : GM_KIND_DEVICE;
	int error = failure->record.error;

	if (error == UNLOADING || error == NOT_SUPPORTED || !gm_kind_owned(kind) ||
	    (error == NOT_PERMITTED && kind == GM_KIND_VMM))
		return GM_NOTE;
	return GM_WARNING;
}

static void judge_failure(struct gm_doc *doc, const struct gm_error *failure)
{
	const struct gm_error_record *record = &failure->record;
	uint32_t site = record->victim_site < doc->sites_count ? record->victim_site : GM_NO_SITE;
	struct gm_finding *finding =
		gm_finding_new(doc, "alloc.failed", severity_of(doc, failure),
			       site == GM_NO_SITE ? GM_HOST : doc->sites[site].record.device,
			       record->bytes, site);

	finding->title = gm_doc_printf(doc, "%s failed with error %s, at %s",
				       failure->api ? failure->api : "an allocation",
				       error_text(doc, failure),
				       gm_stack_label(doc, failure->stack));
	finding->evidence = gm_doc_printf(doc, "%llu time%s, %s asked for in all",
					  (unsigned long long)record->count, gm_s(record->count),
					  gm_size(doc, record->bytes));
	gm_advise(doc, finding, "%s", gm_cuda_error_why(record->error));
}

void gm_judge_errors(struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->failures_count; i++)
		judge_failure(doc, &doc->failures[i]);
	for (unsigned i = 0; i < doc->errors_count; i++) {
		const struct gm_error *error = &doc->errors[i];
		unsigned type = error->record.type;
		uint32_t victim = error->record.victim_site;
		struct gm_finding *finding;

		finding = gm_finding_new(doc, errors[type].id, errors[type].severity, GM_HOST,
					 error->record.bytes,
					 victim < doc->sites_count ? victim : GM_NO_SITE);
		finding->title =
			gm_doc_printf(doc, "%s: %s at %s", error->api ? error->api : "a free",
				      errors[type].title, gm_stack_label(doc, error->stack));
		finding->evidence = gm_doc_printf(
			doc, "%llu time%s, error %s, latest pointer 0x%llx",
			(unsigned long long)error->record.count, gm_s(error->record.count),
			error_text(doc, error), (unsigned long long)error->record.pointer);
		if (error->first_free_stack)
			gm_advise(doc, finding,
				  type == GM_ERROR_FREE_AFTER_RESET ? "it was let go at %s"
								    : "first freed at %s",
				  gm_stack_label(doc, error->first_free_stack));
		if (victim < doc->sites_count)
			gm_advise(doc, finding, "the memory was allocated at %s",
				  gm_stack_label(doc, doc->sites[victim].stack));
		gm_advise(doc, finding, "%s", errors[type].advice);
	}
}
