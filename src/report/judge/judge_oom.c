/*
 * Out-of-memory events: why it failed (`verdict`), and a finding for each. Facts and advice are
 * next door, see internal.h.
 */
#include "report/judge/findings.h"
#include "report/judge/internal.h"
#include "report/stacks/classify.h"
#include "report/stacks/labels.h"
#include <string.h>

/* a + b where figures may be unknown (then counted as nothing), without overflow. */
static uint64_t add(uint64_t a, uint64_t b)
{
	uint64_t sum;

	a = a == GM_NO_BYTES ? 0 : a;
	b = b == GM_NO_BYTES ? 0 : b;
	return __builtin_add_overflow(a, b, &sum) ? GM_NO_BYTES - 1 : sum;
}

static const char *verdict(const struct gm_doc *doc, const struct gm_oom_record *record)
{
	uint64_t unused = gm_oom_free_bytes(doc, record), need = record->requested_bytes;
	uint64_t torch_idle =
		gm_oom_idle(record->torch_reserved_bytes, record->torch_allocated_bytes);
	uint64_t pool_idle = gm_oom_idle(record->pool_reserved_bytes, record->pool_used_bytes);

	if (record->verdict == GM_OOM_HOST || record->device == GM_HOST)
		return "host";
	/* What GPUMEMTRACE_FAIL refuses, CUDA would have served; a pretended capacity is a device's. */
	if (record->verdict == GM_OOM_LIMIT || (record->injected && unused >= need))
		return "limit";
	if (gm_oom_idle(record->pending_free_bytes, 0) &&
	    add(unused, record->pending_free_bytes) >= need)
		return "pending-frees";
	if ((torch_idle || pool_idle || unused >= need) &&
	    add(add(unused, torch_idle), pool_idle) >= need)
		return "fragmented";
	if (gm_oom_idle(record->others_bytes, 0) && add(unused, record->others_bytes) >= need)
		return "other-processes";
	return "exhausted";
}

static const char *torch_reasons(struct gm_doc *doc, const struct gm_oom_record *record,
				 const char *text)
{
	uint64_t reserved = record->torch_reserved_bytes;
	uint64_t holes = gm_oom_idle(reserved, record->torch_allocated_bytes);

	if (reserved == GM_NO_BYTES)
		return text;
	text = gm_doc_printf(doc, "%s, PyTorch reserved %s of which %s are allocated", text,
		      gm_size(doc, reserved), gm_size(doc, record->torch_allocated_bytes));
	if (holes / 100 >= reserved / 10000)
		text = gm_doc_printf(doc, "%s (fragmentation %.0f %%)", text,
			      100.0 * (double)holes / (double)reserved);
	if (record->torch_largest_hole_bytes != GM_NO_BYTES)
		text = gm_doc_printf(doc, "%s, its largest hole is %s", text,
			      gm_size(doc, record->torch_largest_hole_bytes));
	return text;
}

static const char *reasons(struct gm_doc *doc, const struct gm_oom *oom)
{
	const struct gm_oom_record *record = &oom->record;
	const char *text = gm_doc_printf(doc, "asked for %s", gm_size(doc, record->requested_bytes));

	if (record->free_bytes != GM_NO_BYTES)
		text = gm_doc_printf(doc, "%s, %s of %s free", text, gm_size(doc, record->free_bytes),
			      gm_size(doc, record->total_bytes));
	text = gm_doc_printf(doc, "%s, %s tracked", text, gm_size(doc, record->tracked_bytes));
	text = torch_reasons(doc, record, text);
	if (gm_oom_idle(record->pending_free_bytes, 0))
		text = gm_doc_printf(doc, "%s, %s of frees pending", text,
			      gm_size(doc, record->pending_free_bytes));
	if (gm_oom_idle(record->others_bytes, 0))
		text = gm_doc_printf(doc, "%s, other processes %s", text, gm_oom_others(doc, oom));
	if (record->attempts > 1)
		text = gm_doc_printf(doc, "%s, tried %u times", text, record->attempts);
	return text;
}

static const char *title(struct gm_doc *doc, const struct gm_oom *oom)
{
	return gm_doc_printf(doc, "out of memory (%s): %s asked for %s at %s", oom->verdict,
		      oom->api ? oom->api : "the framework",
		      gm_size(doc, oom->record.requested_bytes), gm_stack_label(doc, oom->stack));
}

void gm_judge_ooms(struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->ooms_count; i++) {
		struct gm_oom *oom = &doc->ooms[i];
		struct gm_finding *finding;

		gm_oom_facts(doc, oom);
		oom->verdict = verdict(doc, &oom->record);
		oom->phase = gm_phase_of(oom->stack);
		finding = gm_finding_new(doc, "oom", GM_ERROR, oom->record.device,
				  oom->record.requested_bytes, GM_NO_SITE);
		finding->title = title(doc, oom);
		finding->evidence = reasons(doc, oom);
		gm_oom_advise(doc, finding, oom);
		oom->advice = finding->advice;
		oom->advice_count = finding->advice_count;
	}
	if (doc->ooms_lost && doc->ooms_count)
		gm_doc_warn(doc,
			    "%llu out-of-memory events were seen; the first %u and the latest are "
			    "described, %llu between them are only counted",
			    (unsigned long long)(doc->ooms_count + doc->ooms_lost), GM_OOMS_FIRST,
			    (unsigned long long)doc->ooms_lost);
}
