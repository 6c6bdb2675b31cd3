/*
 * Out-of-memory events: why it failed (`verdict`), what to do, and a finding for each.
 */
#include "report/classify.h"
#include "report/judge.h"
#include <stdio.h>
#include <string.h>

#define MOST_PIDS 8

/* a + b where figures may be unknown (then counted as nothing), without overflow. */
static uint64_t add(uint64_t a, uint64_t b)
{
	uint64_t sum;

	a = a == GM_NO_BYTES ? 0 : a;
	b = b == GM_NO_BYTES ? 0 : b;
	return __builtin_add_overflow(a, b, &sum) ? GM_NO_BYTES - 1 : sum;
}

/* What `whole` holds beyond `part`; 0 if one of them is not known. */
static uint64_t idle(uint64_t whole, uint64_t part)
{
	return whole == GM_NO_BYTES || part == GM_NO_BYTES || part > whole ? 0 : whole - part;
}

/* The driver's free bytes, or an estimate where it could not be asked. */
static uint64_t free_bytes(const struct gm_doc *doc, const struct gm_oom_record *record)
{
	const struct gm_device *device = gm_doc_device(doc, record->device);
	uint64_t used;

	if (record->free_bytes != GM_NO_BYTES)
		return record->free_bytes;
	used = add(record->tracked_physical_bytes, device ? device->record.context_bytes : 0);
	return idle(gm_device_limit(device), used);
}

static const char *verdict(const struct gm_doc *doc, const struct gm_oom_record *record)
{
	uint64_t unused = free_bytes(doc, record), need = record->requested_bytes;
	uint64_t torch_idle = idle(record->torch_reserved_bytes, record->torch_allocated_bytes);
	uint64_t pool_idle = idle(record->pool_reserved_bytes, record->pool_used_bytes);

	if (record->verdict == GM_OOM_HOST || record->device == GM_HOST)
		return "host";
	if (record->verdict == GM_OOM_LIMIT)
		return "limit";
	if (idle(record->pending_free_bytes, 0) && add(unused, record->pending_free_bytes) >= need)
		return "pending-frees";
	if ((torch_idle || pool_idle || unused >= need) &&
	    add(add(unused, torch_idle), pool_idle) >= need)
		return "fragmented";
	if (idle(record->others_bytes, 0) && add(unused, record->others_bytes) >= need)
		return "other-processes";
	return "exhausted";
}

static void advise_oom(struct gm_doc *doc, struct gm_finding *finding, const char *text)
{
	gm_advise(doc, finding, "%s", text);
}

static bool is_set(const struct gm_doc *doc, const char *setting)
{
	return doc->allocator_settings && strstr(doc->allocator_settings, setting);
}

static void advise_fragmented(struct gm_doc *doc, struct gm_finding *finding,
			      const struct gm_oom_record *record)
{
	uint64_t torch_idle = idle(record->torch_reserved_bytes, record->torch_allocated_bytes);

	if (!torch_idle) {
		advise_oom(doc, finding,
			   "the memory is idle in a pool: trim it (cudaMemPoolTrimTo) or "
			   "synchronize before the request");
		return;
	}
	if (!is_set(doc, "expandable_segments:True"))
		gm_advise(doc, finding,
			  "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: %s of "
			  "PyTorch's reserve is idle in holes that are too small",
			  gm_size(doc, torch_idle));
	else
		gm_advise(doc, finding,
			  "expandable_segments is already set, yet %s of the reserve is "
			  "idle; free the blocks that pin it (gpumem-report fragmentation)",
			  gm_size(doc, torch_idle));
	if (!is_set(doc, "max_split_size_mb") && !is_set(doc, "expandable_segments:True"))
		advise_oom(doc, finding,
			   "or max_split_size_mb, so that large cached blocks are not "
			   "split by small requests");
}

static uint64_t category_bytes(const struct gm_doc *doc, const struct gm_oom *oom,
			       const char *category)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < oom->top_count; i++)
		if (strcmp(doc->sites[oom->top[i].site].category, category) == 0)
			bytes = add(bytes, oom->top[i].bytes);
	return bytes;
}

static void advise_exhausted(struct gm_doc *doc, struct gm_finding *finding,
			     const struct gm_oom *oom)
{
	uint64_t activations = category_bytes(doc, oom, "activations");
	uint64_t missing = idle(oom->record.requested_bytes, free_bytes(doc, &oom->record));

	if (activations)
		gm_advise(doc, finding,
			  "activations hold %s: half the batch saves about %s; "
			  "checkpointing or shorter sequences also reduce them",
			  gm_size(doc, activations), gm_size(doc, activations / 2));
	else if (strcmp(oom->phase, "forward") == 0)
		advise_oom(doc, finding,
			   "a smaller batch, activation checkpointing or shorter sequences");
	else if (strcmp(oom->phase, "backward") == 0)
		advise_oom(doc, finding,
			   "activation checkpointing, or a smaller batch with accumulation");
	if (strcmp(oom->phase, "optimizer") == 0)
		advise_oom(doc, finding, "an 8-bit or sharded optimizer, or offload its state");
	if (oom->top_count)
		gm_advise(doc, finding, "%s more is needed; the largest holder is %s with %s",
			  gm_size(doc, missing), gm_place(doc, doc->sites[oom->top[0].site].stack),
			  gm_size(doc, oom->top[0].bytes));
	else
		gm_advise(doc, finding,
			  "%s more is needed; gpumem-report sites --at peak shows who "
			  "holds the memory",
			  gm_size(doc, missing));
}

/* "pid 4711 with 2.0 GiB, ..." from the lines "PID BYTES" or "PID BYTES gone" that the shim wrote.
 */
static const char *others(struct gm_doc *doc, const struct gm_oom_record *record)
{
	const char *line = gm_reader_string(doc->reader, record->other_pids_string);
	const char *text = gm_size(doc, record->others_bytes);
	unsigned listed = 0;

	while (line && *line && listed < MOST_PIDS) {
		unsigned long long pid, bytes;
		char gone[8] = "";

		if (sscanf(line, "%llu %llu%*1[ ]%7[a-z]", &pid, &bytes, gone) < 2)
			break;
		text = gm_say(doc, "%s%spid %llu with %s%s", text, listed++ ? ", " : " (", pid,
			      gm_size(doc, bytes),
			      strcmp(gone, "gone") ? "" : ", ended badly or in another container");
		line = strchr(line, '\n');
		line += line != NULL;
	}
	return listed ? gm_say(doc, "%s)", text) : text;
}

static void advise_by_verdict(struct gm_doc *doc, struct gm_finding *finding,
			      const struct gm_oom *oom)
{
	const struct gm_oom_record *record = &oom->record;

	if (strcmp(oom->verdict, "fragmented") == 0)
		advise_fragmented(doc, finding, record);
	else if (strcmp(oom->verdict, "exhausted") == 0)
		advise_exhausted(doc, finding, oom);
	else if (strcmp(oom->verdict, "pending-frees") == 0)
		gm_advise(doc, finding,
			  "%s are freed on streams that have not reached the free: "
			  "synchronize those streams before the request, or order them by events",
			  gm_size(doc, record->pending_free_bytes));
	else if (strcmp(oom->verdict, "other-processes") == 0)
		gm_advise(doc, finding,
			  "other processes hold memory of the device: %s; end them, or use another "
			  "device",
			  others(doc, record));
	else if (strcmp(oom->verdict, "limit") == 0)
		advise_oom(doc, finding,
			   "a limit refused it, not the device: raise the memory fraction or "
			   "the pool's limit");
	else
		advise_oom(doc, finding,
			   "pinned host memory is limited by the host's memory and by "
			   "RLIMIT_MEMLOCK: pin less, or reuse buffers");
	if (record->injected)
		advise_oom(doc, finding,
			   "this failure was made by GPUMEMTRACE_FAIL or "
			   "GPUMEMTRACE_CAPACITY");
}

static const char *reasons(struct gm_doc *doc, const struct gm_oom *oom)
{
	const struct gm_oom_record *record = &oom->record;
	const char *text = gm_say(doc, "asked for %s", gm_size(doc, record->requested_bytes));

	if (record->free_bytes != GM_NO_BYTES)
		text = gm_say(doc, "%s, %s of %s free", text, gm_size(doc, record->free_bytes),
			      gm_size(doc, record->total_bytes));
	text = gm_say(doc, "%s, %s tracked", text, gm_size(doc, record->tracked_bytes));
	if (record->torch_reserved_bytes != GM_NO_BYTES)
		text = gm_say(doc, "%s, PyTorch reserved %s of which %s are allocated", text,
			      gm_size(doc, record->torch_reserved_bytes),
			      gm_size(doc, record->torch_allocated_bytes));
	if (record->torch_largest_hole_bytes != GM_NO_BYTES)
		text = gm_say(doc, "%s, its largest hole is %s", text,
			      gm_size(doc, record->torch_largest_hole_bytes));
	if (idle(record->pending_free_bytes, 0))
		text = gm_say(doc, "%s, %s of frees pending", text,
			      gm_size(doc, record->pending_free_bytes));
	if (idle(record->others_bytes, 0))
		text = gm_say(doc, "%s, other processes %s", text, others(doc, record));
	if (record->attempts > 1)
		text = gm_say(doc, "%s, tried %u times", text, record->attempts);
	return text;
}

void gm_judge_ooms(struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->ooms_count; i++) {
		struct gm_oom *oom = &doc->ooms[i];
		struct gm_finding *finding;

		oom->verdict = verdict(doc, &oom->record);
		oom->phase = gm_phase_of(oom->stack);
		finding = gm_find(doc, "oom", GM_ERROR, oom->record.device,
				  oom->record.requested_bytes, GM_NO_SITE);
		finding->title = gm_say(doc, "out of memory (%s): %s asked for %s at %s",
					oom->verdict, oom->api ? oom->api : "the framework",
					gm_size(doc, oom->record.requested_bytes),
					gm_place(doc, oom->stack));
		finding->evidence = reasons(doc, oom);
		advise_by_verdict(doc, finding, oom);
		oom->advice = finding->advice;
		oom->advice_count = finding->advice_count;
	}
	if (doc->header->oom_events > doc->ooms_count && doc->ooms_count)
		gm_doc_warn(doc, "%llu out-of-memory events were seen, the first %u are described",
			    (unsigned long long)doc->header->oom_events, doc->ooms_count);
}
