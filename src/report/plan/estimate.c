/*
 * A plan by rules alone: bytes per parameter, per token and per sequence. docs/plan.md names the
 * source of each.
 */
#include "report/plan/estimate.h"
#include "report/plan/plan.h"
#include "report/support/format.h"
#include <math.h>
#include <string.h>

#define CONTEXT_BYTES	543162368.0 /* measured on an H200, docs/evidence/facts.md */
#define WORKSPACE_BYTES 104857600.0 /* cuBLAS's first call there */

const char *const gm_precision_names[GM_PRECISIONS] = {"fp32", "fp16", "bf16",
						       "fp8",  "int8", "4bit"};
const char *const gm_optimizer_names[GM_OPTIMIZERS] = {"adam",	   "adam8bit", "sgd",
						       "momentum", "lion",     "none"};

/* 4 bit: NF4 with its block constants quantized again takes 0.127 bit more (QLoRA). */
double gm_precision_bytes(enum gm_precision precision)
{
	static const double bytes[GM_PRECISIONS] = {4, 2, 2, 1, 1, (4 + 0.127) / 8};

	return bytes[precision];
}

double gm_compute_bytes(enum gm_precision precision)
{
	return precision == GM_FP32 ? 4 : 2;
}

double gm_optimizer_bytes(enum gm_optimizer optimizer, bool pure)
{
	double state = pure ? 2 : 4;

	switch (optimizer) {
	case GM_ADAM:
		return 2 * state;
	case GM_ADAM8:
		return 2 * (1 + 4.0 / 256); /* a scale for every 256 */
	case GM_MOMENTUM:
	case GM_LION:
		return state;
	default:
		return 0;
	}
}

/* Shapes of known models, for runs whose shape was not given: the nearest in size is taken. */
static const struct shape {
	double parameters;
	unsigned layers, hidden, heads, kv_heads, vocabulary;
} shapes[] = {
	{0.124e9, 12, 768, 12, 12, 50257},   {0.355e9, 24, 1024, 16, 16, 50257},
	{1.1e9, 22, 2048, 32, 4, 32000},     {1.5e9, 48, 1600, 25, 25, 50257},
	{3.2e9, 28, 3072, 24, 8, 128256},    {6.7e9, 32, 4096, 32, 32, 32000},
	{8.0e9, 32, 4096, 32, 8, 128256},    {13e9, 40, 5120, 40, 40, 32000},
	{34e9, 48, 8192, 64, 8, 32000},	     {70e9, 80, 8192, 64, 8, 128256},
	{405e9, 126, 16384, 128, 8, 128256},
};

static const struct shape *nearest_shape(double parameters)
{
	const struct shape *nearest = &shapes[0];

	for (size_t i = 1; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		if (fabs(log(shapes[i].parameters / parameters)) <
		    fabs(log(nearest->parameters / parameters)))
			nearest = &shapes[i];
	return nearest;
}

/* Fills what was not given of the model's shape, and says so. */
static void complete_shape(struct gm_zone *zone, struct gm_plan *plan,
			   struct gm_plan_options *options)
{
	const struct shape *shape = nearest_shape(options->parameters);
	bool assumed = !options->layers || !options->hidden;

	options->layers = options->layers ? options->layers : shape->layers;
	options->hidden = options->hidden ? options->hidden : shape->hidden;
	if (!options->heads)
		options->heads = assumed		  ? shape->heads
				 : options->hidden >= 128 ? options->hidden / 128
							  : 1;
	if (!options->kv_heads)
		options->kv_heads = assumed ? shape->kv_heads : options->heads;
	if (!options->head_dim)
		options->head_dim = options->hidden / options->heads;
	if (!options->vocabulary && assumed)
		options->vocabulary = shape->vocabulary;
	if (assumed)
		gm_plan_note(
			zone, plan,
			gm_zone_printf(zone,
				       "the shape was not given and is that of the nearest known "
				       "model: %u layers of %u, %u heads, %u for keys and values "
				       "(--layers, --hidden, --heads, --kv-heads)",
				       options->layers, options->hidden, options->heads,
				       options->kv_heads));
	if (!options->sequence) {
		options->sequence = GM_PLAN_SEQUENCE;
		gm_plan_note(zone, plan, "the sequence length was not given: 2048 (--seq)");
	}
}

static double share_of(const struct gm_plan_options *options, unsigned stage)
{
	return options->zero >= stage && options->world_size > 1 ? 1.0 / options->world_size : 1;
}

static const char *share_rule(struct gm_zone *zone, const struct gm_plan_options *options,
			      unsigned stage, const char *rule)
{
	return share_of(options, stage) < 1
		       ? gm_zone_printf(zone, "%s; ZeRO-%u: divided by %u ranks", rule,
					options->zero, options->world_size)
		       : rule;
}

static void add_weights(struct gm_zone *zone, struct gm_plan *plan,
			const struct gm_plan_options *options)
{
	double bytes = gm_precision_bytes(options->precision);
	const char *rule = gm_zone_printf(zone, "%g byte%s a parameter (%s)", bytes,
					  bytes > 1 || bytes < 1 ? "s" : "",
					  gm_precision_names[options->precision]);
	double weights = options->parameters * bytes * share_of(options, 3);

	if (options->offload == GM_OFFLOAD_PARAMETERS) {
		gm_plan_add(zone, plan, GM_PART_WEIGHTS, 0, 0, "offloaded to host memory");
		weights = 0;
	} else {
		gm_plan_add(zone, plan, GM_PART_WEIGHTS, weights, 0,
			    share_rule(zone, options, 3, rule));
	}
	if ((share_of(options, 3) < 1 || options->offload == GM_OFFLOAD_PARAMETERS) &&
	    options->layers)
		gm_plan_add(zone, plan, GM_PART_GATHERED,
			    2 * options->parameters * bytes / options->layers, 0,
			    "whole weights of the layer at work and of the next, which is fetched "
			    "ahead");
}

/* Gradients, states and master copies are there for what is trained. */
static void add_training(struct gm_zone *zone, struct gm_plan *plan,
			 const struct gm_plan_options *options)
{
	bool low = options->precision != GM_FP32, frozen = options->trainable_share > 0;
	double trained = options->parameters * (frozen ? options->trainable_share : 1);
	double compute = gm_compute_bytes(options->precision);
	double states = gm_optimizer_bytes(options->optimizer, options->pure);
	bool away = options->offload != GM_OFFLOAD_NONE;
	const char *of = frozen ? "a parameter of the adapters" : "a parameter";

	if (frozen)
		gm_plan_add(zone, plan, GM_PART_ADAPTERS, trained * compute, 0,
			    gm_zone_printf(zone, "%.3g %% of the parameters, %g bytes each",
					   100 * options->trainable_share, compute));
	gm_plan_add(zone, plan, GM_PART_GRADIENTS, trained * compute * share_of(options, 2), 0,
		    share_rule(zone, options, 2, gm_zone_printf(zone, "%g bytes %s", compute, of)));
	if (states > 0)
		gm_plan_add(
			zone, plan, GM_PART_OPTIMIZER,
			away ? 0 : trained * states * share_of(options, 1), 0,
			away ? options->offload == GM_OFFLOAD_PAGED
					? "paged: moved to host memory when the device is short"
					: "offloaded to host memory"
			     : share_rule(zone, options, 1,
					  gm_zone_printf(zone, "%.4g bytes %s (%s)", states, of,
							 gm_optimizer_names[options->optimizer])));
	if (low && !options->pure && options->optimizer != GM_NO_OPTIMIZER)
		gm_plan_add(zone, plan, GM_PART_MASTER,
			    away && options->offload != GM_OFFLOAD_PAGED
				    ? 0
				    : trained * 4 * share_of(options, 1),
			    0,
			    away && options->offload != GM_OFFLOAD_PAGED
				    ? "offloaded to host memory"
				    : share_rule(zone, options, 1,
						 gm_zone_printf(zone,
								"4 bytes %s: an fp32 copy, unless "
								"--pure",
								of)));
}

/* For one sequence: Korthikanti et al. count 34 sh + 5 as^2 bytes a layer at 16 bit. */
static void add_activations(struct gm_zone *zone, struct gm_plan *plan,
			    const struct gm_plan_options *options)
{
	double s = options->sequence, h = options->hidden, a = options->heads;
	double wide = gm_compute_bytes(options->precision) / 2;
	bool eager = options->attention == GM_ATTENTION_EAGER;
	double linear = 34 * s * h * wide, squares = eager ? 5 * a * s * s * wide : 0, bytes;
	const char *rule;

	switch (options->checkpointing) {
	case GM_CHECKPOINT_FULL:
		bytes = options->layers * 2 * s * h * wide + linear + squares;
		rule = "full checkpointing: 2sh bytes a layer, and one layer whole";
		break;
	case GM_CHECKPOINT_SELECTIVE:
		bytes = options->layers * linear;
		rule = "34sh bytes a layer: attention is computed again";
		break;
	default:
		bytes = options->layers * (linear + squares);
		rule = eager ? "34sh + 5as² bytes a layer at 16 bit"
			     : "34sh bytes a layer at 16 bit: SDPA and FlashAttention store no "
			       "scores (--attention eager does)";
		break;
	}
	gm_plan_add(zone, plan, GM_PART_ACTIVATIONS, 0, bytes,
		    gm_zone_printf(zone, "%s; s %u, h %u, %u layers, for each sequence", rule,
				   options->sequence, options->hidden, options->layers));
	if (options->vocabulary)
		gm_plan_add(zone, plan, GM_PART_LOGITS, 0, 4.0 * s * options->vocabulary,
			    gm_zone_printf(zone, "4sv bytes: fp32 logits of %u words",
					   options->vocabulary));
}

static void add_inference(struct gm_zone *zone, struct gm_plan *plan,
			  const struct gm_plan_options *options)
{
	double token = 2.0 * options->layers * options->kv_heads * options->head_dim *
		       options->kv_bytes;

	plan->kv_tokens = options->sequence;
	plan->kv_token_bytes = gm_whole_bytes(token);
	gm_plan_add(
		zone, plan, GM_PART_KV_CACHE, 0, token * options->sequence,
		gm_zone_printf(zone,
			       "2 (keys and values) x %u layers x %u heads x %u x %u bytes x %u "
			       "tokens, for each request",
			       options->layers, options->kv_heads, options->head_dim,
			       options->kv_bytes, options->sequence));
}

struct gm_plan *gm_plan_estimate(struct gm_zone *zone, const struct gm_plan_options *given)
{
	struct gm_plan *plan = gm_zone_alloc(zone, 1, sizeof(*plan));
	struct gm_plan_options options = *given;

	plan->parameters = options.parameters;
	plan->batch = options.batches_count ? options.batches[options.batches_count - 1] : 1;
	plan->limit_bytes = GM_NO_BYTES;
	options.kv_bytes = options.kv_bytes ? options.kv_bytes : 2;
	complete_shape(zone, plan, &options);
	gm_plan_add(zone, plan, GM_PART_CONTEXT, CONTEXT_BYTES, 0,
		    "as measured on an H200 (CUDA 13); from 0.3 to 0.6 GiB on others");
	add_weights(zone, plan, &options);
	if (options.inference) {
		add_inference(zone, plan, &options);
	} else {
		add_training(zone, plan, &options);
		add_activations(zone, plan, &options);
	}
	gm_plan_add(zone, plan, GM_PART_WORKSPACE, WORKSPACE_BYTES, 0,
		    "what the first cuBLAS call cost there");
	return plan;
}
