/*
 * Computes the change that another way to train or run would bring, from a plan's parts: for a
 * measured plan from the measurements, for an estimate by the same rules.
 */
#include "report/plan/vary.h"
#include "report/plan/estimate.h"
#include "report/plan/plan.h"
#include "report/support/format.h"
#include <math.h>
#include <string.h>

#define DEFAULT_WORLD 8
#define LORA_SHARE    0.01
#define FULL_REMAINS  (2.0 / 34) /* of a layer's activations: its input */

/* By what each part is multiplied; the rest stays. */
struct factors {
	double weights, gradients, optimizer, master, activations, logits;
};

static double factor_of(const struct factors *factors, const char *what)
{
	if (strcmp(what, GM_PART_WEIGHTS) == 0)
		return factors->weights;
	if (strcmp(what, GM_PART_GRADIENTS) == 0)
		return factors->gradients;
	if (strcmp(what, GM_PART_OPTIMIZER) == 0)
		return factors->optimizer;
	if (strcmp(what, GM_PART_MASTER) == 0)
		return factors->master;
	if (strcmp(what, GM_PART_LOGITS) == 0)
		return factors->logits;
	return strcmp(what, GM_PART_ACTIVATIONS) == 0 ? factors->activations : 1;
}

static void add_variant(struct gm_zone *zone, struct gm_plan *plan, const char *what,
			const char *rule, double fixed, double per_batch, double total)
{
	struct gm_plan_variant *variant;

	if (llround(total) == (long long)plan->total_bytes)
		return; /* nothing of it is there */
	variant = gm_zone_push(zone, &plan->variants, &plan->variants_count, sizeof(*variant));
	variant->what = what;
	variant->rule = rule;
	variant->total_bytes = gm_whole_bytes(total);
	variant->max_batch = plan->limit_bytes == GM_NO_BYTES
				     ? GM_NO_BYTES
				     : gm_plan_largest_safe(plan, fixed, per_batch,
							    (double)plan->limit_bytes);
}

static void add(struct gm_zone *zone, struct gm_plan *plan, const char *what,
		struct factors factors, const char *rule)
{
	double fixed = 0, per_batch = 0, total = 0;

	for (unsigned i = 0; i < plan->parts_count; i++) {
		double factor = factor_of(&factors, plan->parts[i].what);

		fixed += plan->parts[i].fixed_bytes * factor;
		per_batch += plan->parts[i].per_batch_bytes * factor;
		total += gm_part_bytes(plan, &plan->parts[i]) * factor;
	}
	add_variant(zone, plan, what, rule, fixed, per_batch, total);
}

/* Adds the same model planned by rules with other options. */
static void add_planned(struct gm_zone *zone, struct gm_plan *plan, const char *what,
			const struct gm_plan_options *options, const char *rule)
{
	const struct gm_plan *other = gm_plan_estimate(zone, options);
	double fixed = 0, per_batch = 0, total = 0;

	for (unsigned i = 0; i < other->parts_count; i++) {
		fixed += other->parts[i].fixed_bytes;
		per_batch += other->parts[i].per_batch_bytes;
		total += gm_part_bytes(other, &other->parts[i]);
	}
	add_variant(zone, plan, what, rule, fixed, per_batch, total);
}

/* Nothing is trained or kept for a backward pass, and requests have a key/value cache. */
static void vary_inference(struct gm_zone *zone, struct gm_plan *plan,
			   const struct gm_plan_options *options)
{
	struct gm_plan_options other = *options;

	if (plan->measured) {
		add(zone, plan, "inference with 8-bit weights",
		    (struct factors){1 / gm_precision_bytes(options->precision), 0, 0, 0, 0, 0},
		    "1 byte a parameter, no training; without a key/value cache, which follows "
		    "the model's shape (--params, --inference)");
		return;
	}
	other.inference = true;
	other.precision = GM_INT8;
	add_planned(zone, plan, "inference with 8-bit weights", &other,
		    "1 byte a parameter, no training; a key/value cache for each request");
}

static void vary_precision(struct gm_zone *zone, struct gm_plan *plan,
			   const struct gm_plan_options *options)
{
	double now = gm_precision_bytes(options->precision);

	if (options->precision == GM_FP32) {
		add(zone, plan, "bf16, no master copy", (struct factors){0.5, 0.5, 0.5, 1, 0.5, 1},
		    "2 bytes instead of 4 for weights, gradients, states and activations");
		add(zone, plan, "autocast to bf16", (struct factors){1, 1, 1, 1, 0.5, 1},
		    "weights and states stay fp32, activations take 2 bytes instead of 4");
	} else if (options->precision == GM_FP16 || options->precision == GM_BF16) {
		add(zone, plan, "fp32", (struct factors){2, 2, 1, 0, 2, 1},
		    "4 bytes instead of 2; the master copy is the weights");
	}
	if (now > 1)
		vary_inference(zone, plan, options);
}

static void vary_sharding(struct gm_zone *zone, struct gm_plan *plan,
			  const struct gm_plan_options *options)
{
	unsigned ranks = options->world_size > 1 ? options->world_size : DEFAULT_WORLD;
	double one = 1.0 / ranks;

	if (options->zero)
		return;
	add(zone, plan, gm_zone_printf(zone, "ZeRO-1 on %u ranks", ranks),
	    (struct factors){1, 1, one, one, 1, 1}, "optimizer state divided by the ranks");
	add(zone, plan, gm_zone_printf(zone, "ZeRO-2 on %u ranks", ranks),
	    (struct factors){1, one, one, one, 1, 1}, "gradients too");
	add(zone, plan, gm_zone_printf(zone, "ZeRO-3 on %u ranks", ranks),
	    (struct factors){one, one, one, one, 1, 1},
	    "weights too; the layer at work is gathered whole (not counted here)");
}

/* By rules the part of eager attention follows the square; of a run that is not known. */
static void vary_sequence(struct gm_zone *zone, struct gm_plan *plan,
			  const struct gm_plan_options *options)
{
	struct gm_plan_options other = *options;
	const char *what = "half the sequence length",
		   *rule = "activations and logits follow the tokens; scores of eager attention "
			   "their square";

	if (plan->measured) {
		add(zone, plan, what, (struct factors){1, 1, 1, 1, 0.5, 0.5}, rule);
		return;
	}
	other.sequence = (options->sequence ? options->sequence : GM_PLAN_SEQUENCE) / 2;
	if (other.sequence)
		add_planned(zone, plan, what, &other, rule);
}

void gm_plan_vary(struct gm_zone *zone, struct gm_plan *plan, const struct gm_plan_options *options)
{
	double now = gm_precision_bytes(options->precision);

	if (plan->measured && !options->precision_given)
		gm_plan_note(
			zone, plan,
			"the precision of the run was not given: fp32 is assumed where another "
			"is compared with it (--precision)");
	if (options->inference) {
		add(zone, plan, "4-bit weights",
		    (struct factors){gm_precision_bytes(GM_4BIT) / now, 1, 1, 1, 1, 1},
		    "0.516 bytes a parameter (NF4)");
		return;
	}
	vary_precision(zone, plan, options);
	if (options->checkpointing == GM_CHECKPOINT_NONE)
		add(zone, plan, "full checkpointing", (struct factors){1, 1, 1, 1, FULL_REMAINS, 1},
		    "2 of 34 bytes of each layer's activations are kept; one layer is whole while "
		    "it "
		    "is computed again (not counted here)");
	if (options->optimizer == GM_ADAM) {
		double states = gm_optimizer_bytes(GM_ADAM, options->pure);

		add(zone, plan, "8-bit Adam",
		    (struct factors){1, 1, gm_optimizer_bytes(GM_ADAM8, false) / states, 1, 1, 1},
		    "2.03 bytes of states instead of 8 (4 without fp32)");
	}
	vary_sharding(zone, plan, options);
	add(zone, plan, "optimizer in host memory (CPU offload)",
	    (struct factors){1, 1, 0, 0, 1, 1},
	    "states and master copy leave the device; gradients travel each step");
	add(zone, plan, "paged optimizer", (struct factors){1, 1, 0, 1, 1, 1},
	    "states move to host memory when the device is short: this is the least");
	if (options->trainable_share <= 0)
		add(zone, plan, "4-bit weights with LoRA, 1 % trainable",
		    (struct factors){gm_precision_bytes(GM_4BIT) / now, LORA_SHARE, LORA_SHARE,
				     LORA_SHARE, 1, 1},
		    "QLoRA: 0.516 bytes a parameter; gradients and states of the adapters only");
	vary_sequence(zone, plan, options);
}
