/*
 * error.*: frees that CUDA refused, and memory given up while others still use it.
 */
#include "report/judge/findings.h"
#include "report/judge/internal.h"
#include "report/stacks/labels.h"
#include "report/support/format.h"

/* One row per type, in the order of enum gm_error_type. */
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

void gm_judge_errors(struct gm_doc *doc)
{
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
			doc, "%llu time%s, error %d, latest pointer 0x%llx",
			(unsigned long long)error->record.count, gm_s(error->record.count),
			error->record.error, (unsigned long long)error->record.pointer);
		if (error->first_free_stack)
			gm_advise(doc, finding, "first freed at %s",
				  gm_stack_label(doc, error->first_free_stack));
		if (victim < doc->sites_count)
			gm_advise(doc, finding, "the memory was allocated at %s",
				  gm_stack_label(doc, doc->sites[victim].stack));
		gm_advise(doc, finding, "%s", errors[type].advice);
	}
}
