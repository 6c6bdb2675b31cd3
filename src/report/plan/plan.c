/*
 * Figures that follow from a plan's parts, see plan.h: sums, fits, largest batches.
 */
#include "report/plan/plan.h"
#include "report/support/format.h"
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define GIB (1024.0 * 1024 * 1024)

/*
 * Total memory as CUDA reports it (cudaDeviceProp.totalGlobalMem), rounded down; drivers differ by
 * up to one percent. docs/plan.md says where the figures are from.
 */
const struct gm_gpu gm_gpus[] = {
	{"B200", 178.35},     {"H200", 139.80},		{"H100 80GB", 79.10},
	{"A100 80GB", 79.14}, {"A100 40GB", 39.38},	{"L40S", 44.40},
	{"RTX A6000", 47.40}, {"A10", 22.06},		{"L4", 22.03},
	{"V100 32GB", 31.73}, {"V100 16GB", 15.77},	{"T4", 14.56},
	{"RTX 5090", 31.36},  {"RTX 4090", 23.52},	{"RTX 3090", 23.68},
	{"RTX 4080", 15.69},  {"RTX 3060 12GB", 11.75},
};

const unsigned gm_gpus_count = sizeof(gm_gpus) / sizeof(gm_gpus[0]);

/* Letters and digits alone: "a100-80gb" is "A100 80GB". */
static const char *skip(const char *text)
{
	while (*text && !isalnum((unsigned char)*text))
		text++;
	return text;
}

static bool begins(const char *name, const char *with)
{
	for (with = skip(with); *with; with = skip(with + 1)) {
		name = skip(name);
		if (tolower((unsigned char)*name) != tolower((unsigned char)*with))
			return false;
		name++;
	}
	return true;
}

const struct gm_gpu *gm_gpu_find(const char *name)
{
	for (unsigned i = 0; i < gm_gpus_count; i++) /* "L4" is not the start of "L40S" */
		if (begins(gm_gpus[i].name, name) && begins(name, gm_gpus[i].name))
			return &gm_gpus[i];
	for (unsigned i = 0; i < gm_gpus_count; i++)
		if (*skip(name) &&
		    (begins(gm_gpus[i].name, name) || (strncmp(gm_gpus[i].name, "RTX ", 4) == 0 &&
						       begins(gm_gpus[i].name + 4, name))))
			return &gm_gpus[i];
	return NULL;
}

void gm_plan_add(struct gm_zone *zone, struct gm_plan *plan, const char *what, double fixed_bytes,
		 double per_batch_bytes, const char *rule)
{
	struct gm_plan_part *part =
		gm_zone_push(zone, &plan->parts, &plan->parts_count, sizeof(*part));

	*part = (struct gm_plan_part){what, fixed_bytes, per_batch_bytes, rule};
}

void gm_plan_note(struct gm_zone *zone, struct gm_plan *plan, const char *sentence)
{
	const char **slot = gm_zone_push(zone, &plan->notes, &plan->notes_count, sizeof(*slot));

	*slot = sentence;
}

double gm_part_bytes(const struct gm_plan *plan, const struct gm_plan_part *part)
{
	double bytes = part->fixed_bytes + part->per_batch_bytes * (double)plan->batch;

	return bytes > 0 ? bytes : 0;
}

uint64_t gm_plan_largest(double fixed, double per_batch, double limit)
{
	double batch;

	if (per_batch <= 0)
		return fixed <= limit ? GM_NO_BYTES : 0;
	batch = floor((limit - fixed) / per_batch);
	return batch < 0 ? 0 : batch > 1e15 ? GM_NO_BYTES : (uint64_t)batch;
}

static void sum(struct gm_plan *plan)
{
	double per_batch = 0;
	uint64_t total = 0;

	for (unsigned i = 0; i < plan->parts_count; i++) {
		per_batch += plan->parts[i].per_batch_bytes;
		if (__builtin_add_overflow(
			    total, gm_whole_bytes(gm_part_bytes(plan, &plan->parts[i])), &total))
			total = GM_NO_BYTES;
	}
	/* Rows are whole bytes, so their sum is the total; what rounding leaves is fixed. */
	plan->total_bytes = total;
	plan->per_batch_bytes = per_batch > 0 ? gm_whole_bytes(per_batch) : 0;
	if (plan->per_batch_bytes > total / plan->batch)
		plan->per_batch_bytes = total / plan->batch; /* nothing is fixed */
	plan->fixed_bytes = total - plan->per_batch_bytes * plan->batch;
}

static void find_limit(struct gm_plan *plan, const struct gm_plan_options *options)
{
	const struct gm_gpu *gpu = options->gpu ? gm_gpu_find(options->gpu) : NULL;

	if (gpu) {
		plan->limit_bytes = gm_whole_bytes(gpu->gib * GIB);
		plan->device_name = gpu->name;
	}
	if (options->capacity_bytes) {
		plan->limit_bytes = options->capacity_bytes;
		plan->device_name = gpu ? gpu->name : "the capacity given";
	}
}

uint64_t gm_plan_largest_safe(const struct gm_plan *plan, double fixed, double per_batch,
			      double limit)
{
	double held = 1 + plan->fragmentation, within = limit * (100 - plan->margin_percent) / 100;

	if (within > limit - plan->rounding_bytes)
		within = limit - plan->rounding_bytes;
	return gm_plan_largest(fixed * held, per_batch * held, within);
}

static uint64_t safe_batch(const struct gm_plan *plan, double limit)
{
	return gm_plan_largest_safe(plan, (double)plan->fixed_bytes, (double)plan->per_batch_bytes,
				    limit);
}

static void add_fits(struct gm_zone *zone, struct gm_plan *plan)
{
	double need = (double)plan->total_bytes * (1 + plan->fragmentation);

	plan->fits = gm_zone_alloc(zone, gm_gpus_count, sizeof(*plan->fits));
	for (unsigned i = 0; i < gm_gpus_count; i++) {
		double total = gm_gpus[i].gib * GIB;

		plan->fits[plan->fits_count++] = (struct gm_plan_fit){
			.gpu = gm_gpus[i].name,
			.total_bytes = gm_whole_bytes(total),
			.margin_percent = 100 * (total - need) / total,
			.fits = need <= total * (100 - plan->margin_percent) / 100,
			.max_batch = safe_batch(plan, total),
		};
	}
}

void gm_plan_finish(struct gm_zone *zone, struct gm_plan *plan,
		    const struct gm_plan_options *options)
{
	uint64_t micro;

	plan->margin_percent = options->margin_percent;
	plan->max_batch = plan->safe_batch = plan->accumulation = GM_NO_BYTES;
	sum(plan);
	find_limit(plan, options);
	add_fits(zone, plan);
	if (plan->limit_bytes != GM_NO_BYTES) {
		plan->max_batch =
			gm_plan_largest((double)plan->fixed_bytes, (double)plan->per_batch_bytes,
					(double)plan->limit_bytes - plan->rounding_bytes);
		plan->safe_batch = safe_batch(plan, (double)plan->limit_bytes);
	}
	plan->target_batch = options->target_batch ? options->target_batch : plan->batch;
	micro = plan->max_batch;
	if (micro == GM_NO_BYTES || micro > plan->target_batch)
		micro = plan->target_batch;
	if (plan->limit_bytes != GM_NO_BYTES && micro)
		plan->accumulation = (plan->target_batch + micro - 1) / micro;
}
