/*
 * Findings about whole devices: utilization.low, imbalance, context.stray, neighbours.
 */
#include "report/judge.h"

#define LOW_PERCENT	  50
#define IMBALANCE_PERCENT 20
#define IMBALANCE_BYTES	  (256ull << 20)
#define STRAY_BYTES	  (16ull << 20)
#define NEIGHBOUR_PERCENT 5

static void judge_utilization(struct gm_doc *doc, const struct gm_level_record *level)
{
	uint64_t limit = gm_device_limit(gm_doc_device(doc, level->device));
	struct gm_finding *finding;

	if (limit == GM_NO_BYTES || !level->physical_peak_bytes ||
	    level->physical_peak_bytes >= limit / 100 * LOW_PERCENT)
		return;
	finding = gm_find(doc, "utilization.low", GM_NOTE, level->device,
			  limit - level->physical_peak_bytes, GM_NO_SITE);
	finding->title = gm_say(doc, "at most %s of %s are used",
				gm_size(doc, level->physical_peak_bytes), gm_size(doc, limit));
	finding->evidence = gm_say(doc, "%.1f %% at the peak",
				   100.0 * (double)level->physical_peak_bytes / (double)limit);
	gm_advise(doc, finding,
		  "%s are free at the peak: there is room for a larger batch, or a smaller "
		  "device would do",
		  gm_size(doc, limit - level->physical_peak_bytes));
}

static void judge_imbalance(struct gm_doc *doc)
{
	const struct gm_level_record *low = NULL, *high = NULL;
	struct gm_finding *finding;
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
	finding = gm_find(doc, "imbalance", GM_WARNING, high->device, difference, GM_NO_SITE);
	finding->title = gm_say(doc, "device %d reaches %s more than device %d", high->device,
				gm_size(doc, difference), low->device);
	finding->evidence = gm_say(doc, "peaks of %s and %s", gm_size(doc, high->peak_bytes),
				   gm_size(doc, low->peak_bytes));
	gm_advise(
		doc, finding,
		"gpumem-report sites --at peak --device %d shows who holds more there; "
		"DataParallel gathers on its first device, device_map=\"balanced\" spreads layers",
		high->device);
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

		if ((level && level->peak_bytes >= STRAY_BYTES) ||
		    device->record.context_bytes == GM_NO_BYTES || !device->record.context_bytes)
			continue;
		if (device->record.context_stack < doc->stacks_count)
			stack = &doc->stacks[device->record.context_stack];
		finding = gm_find(doc, "context.stray", GM_WARNING, device->index,
				  device->record.context_bytes, GM_NO_SITE);
		finding->title =
			gm_say(doc,
			       "a context on device %d holds %s and almost no memory of the "
			       "process",
			       device->index, gm_size(doc, device->record.context_bytes));
		finding->evidence = gm_say(doc, "made at %s; peak there %s", gm_place(doc, stack),
					   gm_size(doc, level ? level->peak_bytes : 0));
		gm_advise(doc, finding,
			  "set the device before the first CUDA call (torch.cuda.set_device, "
			  "cudaSetDevice) or hide others by CUDA_VISIBLE_DEVICES");
	}
}

/* Other processes, as far as an out-of-memory event or the ledger saw them. */
static void judge_neighbours(struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->ledger_count; i++) {
		const struct gm_ledger_record *record = &doc->ledger[i].record;
		uint64_t limit = gm_device_limit(gm_doc_device(doc, record->device)), others;
		struct gm_finding *finding;

		if (record->source != GM_LEDGER_NVML_PROCESS || limit == GM_NO_BYTES ||
		    record->device_used_bytes == GM_NO_BYTES ||
		    record->device_used_bytes < record->process_used_bytes)
			continue;
		others = record->device_used_bytes - record->process_used_bytes;
		if (others < limit / 100 * NEIGHBOUR_PERCENT)
			continue;
		finding = gm_find(doc, "neighbours", GM_NOTE, record->device, others, GM_NO_SITE);
		finding->title = gm_say(doc, "other processes and the driver hold %s of the device",
					gm_size(doc, others));
		finding->evidence = gm_say(doc, "the device uses %s, this process %s",
					   gm_size(doc, record->device_used_bytes),
					   gm_size(doc, record->process_used_bytes));
		gm_advise(doc, finding,
			  "nvidia-smi lists them; what is listed without a name may be a "
			  "process that ended badly");
	}
}

void gm_judge_devices(struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->levels_count; i++)
		if (doc->levels[i].level == GM_LEVEL_DRIVER && doc->levels[i].device >= 0 &&
		    doc->levels[i].allocations)
			judge_utilization(doc, &doc->levels[i]);
	judge_imbalance(doc);
	judge_strays(doc);
	judge_neighbours(doc);
}
