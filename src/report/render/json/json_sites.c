/*
 * The parts of the JSON document that are about sites and stacks: sites, leaks, holes,
 * out-of-memory events, errors, findings and gates. Other parts name a site by its id.
 */
#include "report/render/json/json_sites.h"
#include "report/doc/cuda_errors.h"
#include "report/doc/enum_names.h"
#include "report/history/events.h"
#include "report/render/json/internal.h"
#include "report/render/json/json_bound.h"
#include <stdlib.h>
#include <string.h>

json_t *gm_json_site_id(const struct gm_doc *doc, uint32_t site)
{
	return doc && site < doc->sites_count ? json_string(doc->sites[site].id) : json_null();
}

static void put_number(struct gm_json_out *out, struct gm_frame_memo *memo)
{
	struct gm_json_frames *frames = out->frames;

	if (!memo->number) {
		if (frames->count == frames->room) {
			frames->room = frames->room ? 2 * frames->room : 1024;
			frames->texts =
				gm_realloc(frames->texts, frames->room * sizeof(*frames->texts));
		}
		frames->texts[frames->count++] = memo->rendered;
		memo->number = frames->count;
	}
	gm_json_put_integer(out, memo->number - 1);
}

/* A frame is part of many stacks: its text is made once. */
static void put_frame(struct gm_json_out *out, struct gm_doc *doc, const struct gm_frame *frame)
{
	struct gm_frame_memo *memo = frame->memo;

	if (memo && !memo->rendered) {
		json_t *object = gm_json_frame(frame);

		doc->release = free;
		memo->rendered = json_dumps(object, JSON_COMPACT);
		json_decref(object);
	}
	if (!memo || !memo->rendered)
		gm_json_put_value(out, gm_json_frame(frame));
	else if (out->frames)
		put_number(out, memo);
	else
		gm_json_put_text(out, memo->rendered);
}

static void put_stack(struct gm_json_out *out, struct gm_doc *doc, const struct gm_stack *stack)
{
	gm_json_put_text(out, "\"stack\": [");
	for (unsigned i = 0; stack && i < stack->count; i++) {
		if (i)
			gm_json_put(out, ",", 1);
		put_frame(out, doc, gm_stack_frame(stack, i));
	}
	gm_json_put_text(out, "]");
}

/* The starts of windows, which all sites have in common. */
struct starts {
	char text[GM_WINDOWS][24];
};

/* Writes bytes as gm_json_bytes has them. */
static void put_bytes(struct gm_json_out *out, const char *name, uint64_t bytes)
{
	gm_json_put_text(out, name);
	if (bytes == GM_NO_BYTES)
		gm_json_put(out, "null", 4);
	else
		gm_json_put_integer(out, bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes);
}

static void put_window(struct gm_json_out *out, const struct gm_window *window, const char *start,
		       bool first)
{
	gm_json_put_text(out, first ? "{\"start_s\":" : ",{\"start_s\":");
	gm_json_put_text(out, start);
	put_bytes(out, ",\"min_bytes\":", window->min_bytes);
	put_bytes(out, ",\"max_bytes\":", window->max_bytes);
	put_bytes(out, ",\"last_bytes\":", window->last_bytes);
	gm_json_put(out, "}", 1);
}

/* Windows from `first` on, `count` of them, as one. */
static struct gm_window merged(const struct gm_site *site, unsigned first, unsigned count)
{
	struct gm_window window = gm_site_window(site, first);

	for (unsigned i = first + 1; i < first + count; i++) {
		const struct gm_window next = gm_site_window(site, i);

		window.last_bytes = next.last_bytes;
		if (next.min_bytes < window.min_bytes)
			window.min_bytes = next.min_bytes;
		if (next.max_bytes > window.max_bytes)
			window.max_bytes = next.max_bytes;
	}
	return window;
}

/* Sixteen of them for each site: written, not built. */
static void put_windows(struct gm_json_out *out, const struct gm_site *site,
			const struct starts *starts)
{
	unsigned current = site->record.window_current;
	unsigned count = current < GM_WINDOWS ? current + 1 : GM_WINDOWS;
	unsigned most = out->bound ? out->bound->most : count;
	unsigned step = most ? (count + most - 1) / most : 1;

	gm_json_put_text(out, ",\"windows\": [");
	for (unsigned i = 0; most && i < count; i += step) {
		struct gm_window window =
			merged(site, i, i + step < count ? step : count - i);

		put_window(out, &window, starts->text[i], !i);
	}
	gm_json_put_text(out, "]");
}

/* Writes a string as gm_json_string has it. */
static void put_string(struct gm_json_out *out, const char *name, const char *text)
{
	gm_json_put_text(out, name);
	if (!text || !gm_json_put_plain(out, text))
		gm_json_put_value(out, gm_json_string(text));
}

static void put_seconds(struct gm_json_out *out, const char *name, bool known, uint64_t ns)
{
	gm_json_put_text(out, name);
	gm_json_put_value(out, known ? gm_json_seconds(ns) : json_null());
}

static void put_flag(struct gm_json_out *out, const char *name, bool flag)
{
	gm_json_put_text(out, name);
	gm_json_put_text(out, flag ? "true" : "false");
}

/* All but stack and windows. */
static void put_figures(struct gm_json_out *out, const struct gm_site *site)
{
	const struct gm_site_figures *record = &site->record;
	bool used = record->allocations > 0;
	unsigned truncated = GM_STACK_TRUNCATED | GM_STACK_PYTHON_TRUNCATED;

	put_string(out, ",\"id\":", site->id);
	put_string(out, ",\"level\":", gm_level_name(record->level));
	put_string(out, ",\"kind\":", gm_kind_name(record->kind));
	gm_json_put_text(out, ",\"device\":");
	gm_json_put_value(out, gm_json_device(record->device));
	put_string(out, ",\"verdict\":", gm_verdict_name(site->verdict));
	put_bytes(out, ",\"live_bytes\":", record->live_bytes);
	put_bytes(out, ",\"live_count\":", record->live_count);
	put_bytes(out, ",\"peak_bytes\":", record->peak_bytes);
	put_bytes(out, ",\"bytes_at_peak\":", record->bytes_at_peak);
	put_bytes(out, ",\"allocated_bytes\":", record->allocated_bytes);
	put_bytes(out, ",\"allocations\":", record->allocations);
	put_bytes(out, ",\"frees\":", record->frees);
	put_seconds(out, ",\"first_s\":", used, record->first_ns);
	put_seconds(out, ",\"last_s\":", used, record->last_ns);
	put_string(out, ",\"library\":", site->library);
	put_string(out, ",\"category\":", site->category);
	put_string(out, ",\"phase\":", site->phase);
	put_flag(out, ",\"stack_truncated\":", site->stack && site->stack->flags & truncated);
	put_flag(out, ",\"overflow\":", gm_site_is_overflow(site));
	put_string(out, ",\"function\":", site->function);
	put_bytes(out, ",\"failures\":", record->failures);
	put_bytes(out, ",\"failed_frees\":", record->failed_frees);
	put_bytes(out, ",\"collected_bytes\":", record->collected_bytes);
	put_bytes(out, ",\"work_bytes\":", site->work_bytes);
	put_bytes(out, ",\"work_count\":", site->work_count);
	put_string(out, ",\"why\":", site->why);
}

/* The standard errors of a sampled recording's figures. */
static json_t *estimated(const struct gm_doc *doc, const struct gm_site *site)
{
	const struct gm_site_errors errors = gm_site_errors(doc, site);

	return json_pack("{s:o, s:o, s:o}", "live_error_bytes", gm_json_bytes(errors.live_bytes),
			 "at_peak_error_bytes", gm_json_bytes(errors.at_peak_bytes),
			 "allocated_error_bytes", gm_json_bytes(errors.allocated_bytes));
}

int *gm_json_site_numbers(struct gm_doc *doc)
{
	int *numbers = gm_zone_alloc(&doc->zone, doc->sites_count + 1, sizeof(*numbers));
	int count = 0;

	for (unsigned i = 0; i < doc->sites_count; i++)
		numbers[i] = gm_site_is_shown(&doc->sites[i]) ? count++ : -1;
	return numbers;
}

static void put_site(struct gm_json_out *out, struct gm_doc *doc, const struct gm_site *site,
		     const struct starts *starts)
{
	gm_json_put_text(out, "{");
	put_stack(out, doc, site->stack);
	put_windows(out, site, starts);
	put_figures(out, site);
	if (doc->since) {
		put_bytes(out, ",\"since_bytes\":", site->since_bytes);
		put_bytes(out, ",\"since_count\":", site->since_count);
	}
	if (doc->header->sample_bytes) {
		gm_json_put_text(out, ",\"estimated\":");
		gm_json_put_value(out, estimated(doc, site));
	}
	gm_json_put_text(out, "}");
}

void gm_json_put_sites(struct gm_json_out *out, struct gm_doc *doc)
{
	const char *between = out->one_line ? "[" : "[\n";
	const bool *kept = out->bound ? gm_json_bounded_sites(out->bound, doc) : NULL;
	struct starts starts;

	for (unsigned i = 0; i < GM_WINDOWS; i++)
		snprintf(starts.text[i], sizeof(starts.text[i]), "%.9f",
			 (double)doc->header->window_start_ns[i] / 1e9);
	for (unsigned i = 0; i < doc->sites_count; i++) {
		if (!gm_site_is_shown(&doc->sites[i]) || (kept && !kept[i]))
			continue;
		gm_json_put_text(out, between);
		put_site(out, doc, &doc->sites[i], &starts);
		between = out->one_line ? "," : ",\n";
	}
	gm_json_put_text(out, *between == '[' ? "[]" : "]");
}

/* In the document's order; of a list that is bounded the first that `--sort` names. */
static json_t *sites_by_verdict(struct gm_doc *doc, enum gm_verdict verdict)
{
	unsigned count = doc->sites_count;
	const unsigned *ranked =
		doc->options.top_given ? gm_json_ranked_sites(doc, &count) : NULL;
	json_t *list = json_array();

	for (unsigned i = 0; i < count; i++) {
		const struct gm_site *site = &doc->sites[ranked ? ranked[i] : i];

		if (gm_site_is_shown(site) && !site->suppressed && site->verdict == verdict)
			json_array_append_new(list, json_string(site->id));
	}
	return list;
}

json_t *gm_json_leaks(struct gm_doc *doc)
{
	json_t *suppressed = json_array();

	for (unsigned i = 0; i < doc->suppressed_count; i++)
		json_array_append_new(suppressed,
				      json_pack("{s:o, s:o, s:o}", "pattern",
						gm_json_string(doc->suppressed[i].pattern), "bytes",
						gm_json_bytes(doc->suppressed[i].bytes), "count",
						gm_json_bytes(doc->suppressed[i].count)));
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "exit_bytes",
			 gm_json_bytes(doc->exit_bytes), "exit_count",
			 gm_json_bytes(doc->exit_count), "grow", sites_by_verdict(doc, GM_GROW),
			 "held", sites_by_verdict(doc, GM_HELD), "cached_bytes",
			 gm_json_bytes(doc->cached_bytes), "teardown_bytes",
			 gm_json_bytes(doc->teardown_bytes), "teardown_count",
			 gm_json_bytes(doc->teardown_count), "suppressed", suppressed,
			 "unused_suppressions",
			 gm_json_strings(doc->unused_suppressions, doc->unused_suppressions_count));
}

static json_t *pinned_by(struct gm_doc *doc, const struct gm_fragmentation *row)
{
	json_t *list = json_array();

	for (unsigned k = 0; k < row->pinners_count; k++)
		json_array_append_new(list,
				      json_pack("{s:o, s:o, s:o, s:o}", "site",
						gm_json_site_id(doc, row->pinners[k].site),
						"blocks",
						gm_json_bytes(row->pinners[k].blocks), "bytes",
						gm_json_bytes(row->pinners[k].bytes), "hole_bytes",
						gm_json_bytes(row->pinners[k].hole_bytes)));
	return list;
}

static json_t *at_peak(struct gm_doc *doc, const struct gm_fragmentation *peak)
{
	json_t *object;

	if (!peak)
		return json_null();
	object = gm_json_holes(peak);
	json_object_set_new(object, "time_s", gm_json_seconds(peak->time_ns));
	json_object_set_new(object, "pinned_by", pinned_by(doc, peak));
	return object;
}

json_t *gm_json_fragmentation(struct gm_doc *doc)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < doc->fragmentation_count; i++) {
		const struct gm_fragmentation *row = &doc->fragmentation[i];
		json_t *object = json_pack("{s:o, s:s}", "device", gm_json_device(row->device),
					   "level", row->level);

		json_object_update_new(object, gm_json_holes(row));
		json_object_set_new(object, "pinned_by", pinned_by(doc, row));
		json_object_set_new(object, "at_peak", at_peak(doc, row->peak));
		json_object_set_new(object, "at_work_end",
				    gm_json_holes(gm_holes_at_work_end(row)));
		json_array_append_new(list, object);
	}
	return list;
}

#define OUT_OF_MEMORY	  2 /* in both layers of CUDA */
#define MOST_FAILED_CALLS 1000u

/* Calls that failed for want of memory, the last ones that the ring of events has: when, where. */
static json_t *failed_calls(struct gm_doc *doc)
{
	struct gm_history history = gm_load_history(doc);
	json_t *list = json_array();
	unsigned first = history.count, found = 0;

	for (; first > 0 && found < MOST_FAILED_CALLS; first--)
		found += history.events[first - 1].op == GM_OP_ALLOC_FAILED;
	for (unsigned i = first; i < history.count; i++) {
		const struct gm_event_record *event = &history.events[i];

		if (event->op != GM_OP_ALLOC_FAILED || event->error != OUT_OF_MEMORY)
			continue;
		json_array_append_new(list,
				      json_pack("{s:o, s:o, s:o, s:o}", "time_s",
						gm_json_seconds(event->time_ns), "device",
						gm_json_device(event->device), "bytes",
						gm_json_bytes(event->bytes), "site",
						event->site < doc->sites_count
							? json_string(doc->sites[event->site].id)
							: json_null()));
	}
	return list;
}

json_t *gm_json_retries(struct gm_doc *doc)
{
	/* kept as sums over the run, which have no moment */
	uint64_t none = doc->at_ns == GM_NO_BYTES ? 0 : GM_NO_BYTES;
	uint64_t attempts = none, recovered = none, exhausted = none, stall = none, flushed = none;
	json_t *sites = json_array();

	for (unsigned i = 0; i < doc->retries_count; i++) {
		attempts += doc->retries[i].attempts;
		recovered += doc->retries[i].recovered;
		exhausted += doc->retries[i].exhausted;
		stall += doc->retries[i].stall_ns;
		flushed += doc->retries[i].flushed_bytes;
	}
	if (doc->imported_count) { /* a snapshot tells of OOMs, and not of what was tried before */
		attempts = recovered = stall = flushed = GM_NO_BYTES;
		exhausted = doc->header->oom_events;
	}
	for (unsigned i = 0; i < doc->sites_count; i++)
		if (doc->sites[i].record.retries && !doc->sites[i].hidden)
			json_array_append_new(sites, json_string(doc->sites[i].id));
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "attempts",
			 gm_json_bytes(attempts), "recovered", gm_json_bytes(recovered),
			 "exhausted", gm_json_bytes(exhausted), "ooms_not_kept",
			 gm_json_bytes(doc->ooms_lost), "stall_s", gm_json_seconds(stall),
			 "flushed_bytes", gm_json_bytes(flushed), "sites", sites, "failed",
			 failed_calls(doc));
}

json_t *gm_json_errors(struct gm_doc *doc)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < doc->errors_count; i++) {
		const struct gm_error *error = &doc->errors[i];
		char pointer[24];

		snprintf(pointer, sizeof(pointer), "0x%llx",
			 (unsigned long long)error->record.pointer);
		json_array_append_new(
			list, json_pack("{s:s, s:o, s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:o}",
					"type", error->type, "api", gm_json_string(error->api),
					"pointer", pointer, "error", error->record.error, "count",
					gm_json_bytes(error->record.count), "bytes",
					gm_json_bytes(error->record.bytes), "stack",
					gm_json_stack(error->stack), "first_free_stack",
					gm_json_stack(error->first_free_stack), "victim_site",
					gm_json_site_id(doc, error->record.victim_site), "time_s",
					gm_json_seconds(error->record.time_ns)));
	}
	return list;
}

json_t *gm_json_failures(struct gm_doc *doc)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < doc->failures_count; i++) {
		const struct gm_error *failure = &doc->failures[i];
		const struct gm_error_record *record = &failure->record;

		json_array_append_new(
			list, json_pack("{s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "api",
					gm_json_string(failure->api), "error", record->error,
					"error_name",
					gm_json_string(gm_cuda_error_name(record->error,
									  failure->api)),
					"count", gm_json_bytes(record->count), "bytes",
					gm_json_bytes(record->bytes), "site",
					gm_json_site_id(doc, record->victim_site), "stack",
					gm_json_stack(failure->stack), "time_s",
					gm_json_seconds(record->time_ns)));
	}
	return list;
}

json_t *gm_json_phases(struct gm_doc *doc)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < doc->phases_count; i++)
		json_array_append_new(
			list,
			json_pack("{s:s, s:o, s:n, s:o, s:o}", "phase", doc->phases[i].phase,
				  "device", gm_json_device(doc->phases[i].device), "entered",
				  "peak_bytes", gm_json_bytes(doc->phases[i].peak_bytes),
				  "retained_bytes", gm_json_bytes(doc->phases[i].retained_bytes)));
	return list;
}

json_t *gm_json_categories(struct gm_doc *doc)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < doc->categories_count; i++)
		json_array_append_new(
			list,
			json_pack("{s:s, s:o, s:s, s:o, s:o}", "category",
				  doc->categories[i].category, "device",
				  gm_json_device(doc->categories[i].device), "level",
				  gm_level_name(doc->categories[i].level), "current_bytes",
				  gm_json_bytes(doc->categories[i].current_bytes), "bytes_at_peak",
				  gm_json_bytes(doc->categories[i].bytes_at_peak)));
	return list;
}

json_t *gm_json_finding_list(const struct gm_doc *doc, const struct gm_finding *findings,
			     unsigned count)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < count; i++)
		json_array_append_new(
			list,
			json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "id", findings[i].id,
				  "severity", gm_severity_name(findings[i].severity), "title",
				  gm_json_string(findings[i].title), "device",
				  gm_json_device(findings[i].device), "bytes",
				  gm_json_bytes(findings[i].bytes), "site",
				  gm_json_site_id(doc, findings[i].site), "evidence",
				  gm_json_string(findings[i].evidence), "advice",
				  gm_json_strings(findings[i].advice, findings[i].advice_count)));
	return list;
}

json_t *gm_json_findings(struct gm_doc *doc)
{
	return gm_json_finding_list(doc, doc->findings, doc->findings_count);
}

json_t *gm_json_gate_list(const struct gm_doc *doc, const struct gm_gate *gates, unsigned count)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < count; i++) {
		json_t *sites = json_array(), *gate;

		for (unsigned k = 0; k < gates[i].sites_count; k++)
			json_array_append_new(sites, gm_json_site_id(doc, gates[i].sites[k]));
		gate = json_pack("{s:s, s:o, s:o, s:o, s:o}", "gate", gates[i].gate, "passed",
				 gates[i].unmeasured ? json_null()
						     : json_boolean(gates[i].passed),
				 "limit", gm_json_bytes(gates[i].limit), "value",
				 gm_json_bytes(gates[i].value), "sites", sites);
		if (gates[i].unmeasured)
			json_object_set_new(gate, "not_measured",
					    gm_json_string(gates[i].unmeasured));
		json_array_append_new(list, gate);
	}
	return list;
}

json_t *gm_json_gates(struct gm_doc *doc)
{
	return gm_json_gate_list(doc, doc->gates, doc->gates_count);
}
