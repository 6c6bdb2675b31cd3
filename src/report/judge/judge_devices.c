/*
 * Findings about whole devices: utilization.low, imbalance, context.stray, neighbours.
 */
#include "report/judge/findings.h"
#include "report/judge/internal.h"
#include "report/stacks/labels.h"
#include <string.h>

#define LOW_PERCENT	  50
#define IMBALANCE_PERCENT 20
#define IMBALANCE_BYTES	  (256ull << 20)
#define STRAY_BYTES	  (16ull << 20)
#define STRAY_PERCENT	  5
#define NEIGHBOUR_PERCENT 5

static void judge_utilization(struct gm_doc *doc, const struct gm_level_record *level)
{
	uint64_t limit = gm_device_limit(gm_doc_device(doc, level->device));
	struct gm_finding *finding;

	if (limit == GM_NO_BYTES || !level->physical_peak_bytes ||
	    level->physical_peak_bytes >= limit / 100 * LOW_PERCENT)
		return;
	finding = gm_finding_new(doc, "utilization.low", GM_NOTE, level->device,
				 limit - level->physical_peak_bytes, GM_NO_SITE);
	finding->title =
		gm_doc_printf(doc, "the peak was %s of %s",
			      gm_size(doc, level->physical_peak_bytes), gm_size(doc, limit));
	finding->evidence =
		gm_doc_printf(doc, "%.1f %% at the physical peak, in pages of the driver",
			      100.0 * (double)level->physical_peak_bytes / (double)limit);
	gm_advise(doc, finding,
		  "%s are free at the peak: there is room for a larger batch, or a smaller "
		  "device would do",
		  gm_size(doc, limit - level->physical_peak_bytes));
}

static uint64_t category_at_peak(const struct gm_doc *doc, int device, const char *category)
{
	unsigned level = doc->torch ? GM_LEVEL_TORCH : GM_LEVEL_DRIVER;

	for (unsigned i = 0; i < doc->categories_count; i++)
		if (doc->categories[i].device == device && doc->categories[i].level == level &&
		    strcmp(doc->categories[i].category, category) == 0)
			return doc->categories[i].bytes_at_peak;
	return 0;
}

/* "activations 8.00 GiB against 2.00 GiB": the category that differs most; NULL if none does. */
static const char *differing_category(struct gm_doc *doc, int high, int low)
{
	unsigned level = doc->torch ? GM_LEVEL_TORCH : GM_LEVEL_DRIVER;
	const struct gm_category *most = NULL;
	uint64_t difference = 0;

	for (unsigned i = 0; i < doc->categories_count; i++) {
		const struct gm_category *category = &doc->categories[i];
		uint64_t other;

		if (category->device != high || category->level != level)
			continue;
		other = category_at_peak(doc, low, category->category);
		if (category->bytes_at_peak > other &&
		    category->bytes_at_peak - other > difference) {
			difference = category->bytes_at_peak - other;
			most = category;
		}
	}
	return most ? gm_doc_printf(doc, "%s %s against %s", most->category,
				    gm_size(doc, most->bytes_at_peak),
				    gm_size(doc, most->bytes_at_peak - difference))
		    : NULL;
}

static void judge_imbalance(struct gm_doc *doc)
{
	const struct gm_level_record *low = NULL, *high = NULL;
	struct gm_finding *finding;
	const char *category;
	uint64_t difference;

	for (unsigned i = 0; i < doc->levels_count; i++) {
		const struct gm_level_record *level = &doc->levels[i];

		if (level->level != GM_LEVEL_DRIVER || level->device < 0 || !level->allocations)
			continue;
		low = !low || level->peak_bytes < low->peak_bytes ? level : low;
		high = !high || level->peak_bytes > high->peak_bytes ? level : high;
	}
	difference = high ? high->peak_bytes - low->peak_bytes : 0;
	if (difference < IMBALANCE_BYTES || difference < high->peak_bytes / 100 * IMBALANCE_PERCENT)
		return;
	finding =
		gm_finding_new(doc, "imbalance", GM_WARNING, high->device, difference, GM_NO_SITE);
	finding->title = gm_doc_printf(doc, "device %d reaches %s more than device %d",
				       high->device, gm_size(doc, difference), low->device);
	category = differing_category(doc, high->device, low->device);
	finding->evidence =
		gm_doc_printf(doc, "peaks of %s and %s%s%s", gm_size(doc, high->peak_bytes),
			      gm_size(doc, low->peak_bytes), category ? "; most of it in " : "",
			      category ? category : "");
	gm_advise(
		doc, finding,
		"gpumem-report sites --at peak --device %d shows who holds more there; "
		"DataParallel gathers on its first device, device_map=\"balanced\" spreads layers",
		high->device);
}

/*
 * True if a peak is next to nothing beside what the process had: a small program's few bytes are
 * all that it has.
 */
static bool almost_none(const struct gm_doc *doc, uint64_t peak_bytes)
{
	uint64_t all = 0;

	for (unsigned i = 0; i < doc->levels_count; i++)
		if (doc->levels[i].level == GM_LEVEL_DRIVER && doc->levels[i].device >= 0)
			all += doc->levels[i].peak_bytes;
	return peak_bytes < STRAY_BYTES && peak_bytes <= all / 100 * STRAY_PERCENT;
}

/* A context costs half a gigabyte; one on a device without memory of the process is a mistake. */
static void judge_strays(struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->devices_count && doc->devices_count > 1; i++) {
		const struct gm_device *device = &doc->devices[i];
		const struct gm_level_record *level =
			gm_doc_level(doc, device->index, GM_LEVEL_DRIVER);
		const struct gm_stack *stack = NULL;
		struct gm_finding *finding;

		if ((level && !almost_none(doc, level->peak_bytes)) ||
		    device->record.context_bytes == GM_NO_BYTES || !device->record.context_bytes)
			continue;
		if (device->record.context_stack < doc->stacks_count)
			stack = &doc->stacks[device->record.context_stack];
		finding = gm_finding_new(doc, "context.stray", GM_WARNING, device->index,
					 device->record.context_bytes, GM_NO_SITE);
		finding->title =
			gm_doc_printf(doc,
				      "a context on device %d holds %s and almost no memory of the "
				      "process",
				      device->index, gm_size(doc, device->record.context_bytes));
		finding->evidence =
			gm_doc_printf(doc, "made at %s; peak there %s", gm_stack_label(doc, stack),
				      gm_size(doc, level ? level->peak_bytes : 0));
		gm_advise(doc, finding,
			  "set the device before the first CUDA call (torch.cuda.set_device, "
			  "cudaSetDevice) or hide others by CUDA_VISIBLE_DEVICES");
	}
}

/* The latest out-of-memory event of a device that listed other processes; NULL. */
static const struct gm_oom *oom_with_processes(const struct gm_doc *doc, int device)
{
	const struct gm_oom *latest = NULL;

	for (unsigned i = 0; i < doc->ooms_count; i++)
		if (doc->ooms[i].record.device == device && doc->ooms[i].processes_count &&
		    (!latest || doc->ooms[i].record.time_ns > latest->record.time_ns))
			latest = &doc->ooms[i];
	return latest;
}

/*
 * Bytes of others on a device: by the ledger's latest sample, by what was used before the first
 * context, or as an out-of-memory event saw them, whichever is most.
 */
static uint64_t others_of(const struct gm_doc *doc, const struct gm_device *device)
{
	uint64_t total = device->record.total_bytes, before = device->record.free_before_bytes;
	uint64_t most = before != GM_NO_BYTES && before < total ? total - before : 0;

	for (unsigned i = 0; i < doc->ledger_count; i++) {
		const struct gm_ledger_record *record = &doc->ledger[i].record;

		if (record->device == device->index && record->source == GM_LEDGER_NVML_PROCESS &&
		    record->device_used_bytes != GM_NO_BYTES &&
		    record->device_used_bytes > record->process_used_bytes &&
		    record->device_used_bytes - record->process_used_bytes > most)
			most = record->device_used_bytes - record->process_used_bytes;
	}
	for (unsigned i = 0; i < doc->ooms_count; i++)
		if (doc->ooms[i].record.device == device->index &&
		    doc->ooms[i].record.others_bytes != GM_NO_BYTES &&
		    doc->ooms[i].record.others_bytes > most)
			most = doc->ooms[i].record.others_bytes;
	return most;
}

static void judge_neighbours(struct gm_doc *doc, const struct gm_device *device)
{
	const struct gm_oom *oom = oom_with_processes(doc, device->index);
	uint64_t total = device->record.total_bytes, others = others_of(doc, device);
	struct gm_finding *finding;
	unsigned gone = 0;

	if (!total || others < total / 100 * NEIGHBOUR_PERCENT)
		return;
	for (unsigned i = 0; oom && i < oom->processes_count; i++)
		gone += oom->processes[i].gone;
	finding = gm_finding_new(doc, "neighbours", GM_NOTE, device->index, others, GM_NO_SITE);
	finding->title = gm_doc_printf(doc, "other processes and the driver hold %s of the device",
				       gm_size(doc, others));
	finding->evidence =
		oom ? gm_doc_printf(doc, "at the out-of-memory event: %s", gm_oom_others(doc, oom))
		    : gm_doc_printf(doc, "%.0f %% of %s", 100.0 * (double)others / (double)total,
				    gm_size(doc, total));
	if (gone)
		gm_advise(doc, finding,
			  "%u of them %s no process on this machine: it ended badly and its "
			  "memory is still held, or it runs in another container",
			  gone, gone == 1 ? "is" : "are");
	else
		gm_advise(doc, finding,
			  "nvidia-smi lists them; what is listed without a name may be a "
			  "process that ended badly");
}

void gm_judge_devices(struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->levels_count; i++)
		if (doc->levels[i].level == GM_LEVEL_DRIVER && doc->levels[i].device >= 0 &&
		    doc->levels[i].allocations)
			judge_utilization(doc, &doc->levels[i]);
	judge_imbalance(doc);
	judge_strays(doc);
	for (unsigned i = 0; i < doc->devices_count; i++)
		judge_neighbours(doc, &doc->devices[i]);
}
