/*
 * Plans: what a run needs as parts that are fixed and parts that follow the batch, from what was
 * measured, from rules alone, or both; and what follows from it: which GPUs it fits, the largest
 * batch, the accumulation that keeps an effective batch, what other ways to train would change.
 * docs/plan.md has every rule with its source.
 */
#ifndef GM_REPORT_PLAN_PLAN_H
#define GM_REPORT_PLAN_PLAN_H

#include "report/job/job.h"

enum gm_precision { GM_FP32, GM_FP16, GM_BF16, GM_FP8, GM_INT8, GM_4BIT, GM_PRECISIONS };
enum gm_optimizer {
	GM_ADAM,
	GM_ADAM8,
	GM_SGD,
	GM_MOMENTUM,
	GM_LION,
	GM_NO_OPTIMIZER,
	GM_OPTIMIZERS
};
enum gm_offload { GM_OFFLOAD_NONE, GM_OFFLOAD_OPTIMIZER, GM_OFFLOAD_PAGED, GM_OFFLOAD_PARAMETERS };
enum gm_attention { GM_ATTENTION_SDPA, GM_ATTENTION_EAGER };
enum gm_checkpointing { GM_CHECKPOINT_NONE, GM_CHECKPOINT_SELECTIVE, GM_CHECKPOINT_FULL };

/* The options of a plan. Numbers are 0 where they were not given. */
struct gm_plan_options {
	double parameters;
	enum gm_precision precision;
	bool precision_given, pure; /* pure: no fp32 master weights */
	enum gm_optimizer optimizer;
	bool optimizer_given;
	unsigned zero, world_size;
	enum gm_offload offload;
	enum gm_checkpointing checkpointing;
	enum gm_attention attention; /* eager: the scores of all pairs of tokens are stored */
	double trainable_share; /* LoRA: of the parameters, in adapters beside frozen weights */
	bool inference;
	unsigned layers, hidden, heads, kv_heads, head_dim, sequence, vocabulary;
	unsigned kv_bytes;    /* of a number in the KV cache */
	uint64_t batches[16]; /* of the files, in their order */
	unsigned batches_count;
	uint64_t target_batch; /* the effective batch to keep */
	uint64_t capacity_bytes;
	const char *gpu;
	unsigned margin_percent;
};

#define GM_PLAN_SEQUENCE 2048u /* tokens, where they were not given */

/*
 * The bytes that are held for a purpose: `fixed_bytes`, and `per_batch_bytes` for each of the
 * batch.
 */
struct gm_plan_part {
	const char *what;
	double fixed_bytes, per_batch_bytes;
	const char *rule;
};

/* The parts' names; variants and the comparison with an estimate go by them. */
#define GM_PART_CONTEXT	    "context"
#define GM_PART_WEIGHTS	    "weights"
#define GM_PART_GRADIENTS   "gradients"
#define GM_PART_OPTIMIZER   "optimizer state"
#define GM_PART_MASTER	    "master weights"
#define GM_PART_ACTIVATIONS "activations"
#define GM_PART_LOGITS	    "logits"
#define GM_PART_KV_CACHE    "KV cache"
#define GM_PART_WORKSPACE   "workspace"
#define GM_PART_ADAPTERS    "adapters"
#define GM_PART_GATHERED    "gathered layer"

/* The plan with one thing changed. */
struct gm_plan_variant {
	const char *what, *rule;
	uint64_t total_bytes; /* at the plan's batch */
	uint64_t max_batch;   /* as safe_batch; GM_NO_BYTES: not known, or without limit */
};

struct gm_plan_fit {
	const char *gpu;
	uint64_t total_bytes, max_batch; /* the batch with fragmentation and margin */
	bool fits;
	double margin_percent; /* of the GPU that is left; negative: that much is missing */
};

struct gm_plan {
	bool measured;	   /* from a run; else from rules */
	double parameters; /* 0: not known */
	uint64_t batch;	   /* the rows are those of this batch */
	struct gm_plan_part *parts;
	unsigned parts_count;
	double fragmentation; /* measured: reserved and not used, as a share of what is used */
	uint64_t fixed_bytes, per_batch_bytes, total_bytes;
	double fit_error; /* of more than two runs: the largest deviation from the line, in bytes */
	double rounding_bytes; /* by which the next larger need may be rounded up further */
	unsigned runs;
	const char *device_name;		      /* of the device of `limit_bytes`; NULL */
	uint64_t limit_bytes;			      /* GM_NO_BYTES: not known */
	uint64_t max_batch, safe_batch, accumulation; /* GM_NO_BYTES: not known */
	uint64_t target_batch;
	unsigned margin_percent;
	struct gm_plan_fit *fits;
	unsigned fits_count;
	unsigned kv_tokens;	 /* of a request, in its key/value cache; 0: no inference */
	uint64_t kv_token_bytes; /* of that cache, for each token */
	struct gm_plan_variant *variants;
	unsigned variants_count;
	const char **notes; /* sentences: what was assumed */
	unsigned notes_count;
	struct gm_plan *estimate; /* beside a measured plan; NULL */
};

struct gm_gpu {
	const char *name;
	double gib; /* as CUDA reports it */
};

extern const struct gm_gpu gm_gpus[];
extern const unsigned gm_gpus_count;

/* The GPU of a name or the start of one, whatever its case; NULL. */
const struct gm_gpu *gm_gpu_find(const char *name);

/* Adds a part, and its rule as printf. */
void gm_plan_add(struct gm_zone *zone, struct gm_plan *plan, const char *what, double fixed_bytes,
		 double per_batch_bytes, const char *rule);
void gm_plan_note(struct gm_zone *zone, struct gm_plan *plan, const char *sentence);

/* Sums, limits, fits, largest batches, accumulation: once the parts are there. */
void gm_plan_finish(struct gm_zone *zone, struct gm_plan *plan,
		    const struct gm_plan_options *options);

/* The largest batch whose need stays within `limit`; GM_NO_BYTES if none bounds it. */
uint64_t gm_plan_largest(double fixed, double per_batch, double limit);

/* Returns the largest batch with the plan's fragmentation, and its margin of `limit` left over. */
uint64_t gm_plan_largest_safe(const struct gm_plan *plan, double fixed, double per_batch,
			      double limit);

/* Bytes of a part at the plan's batch. */
double gm_part_bytes(const struct gm_plan *plan, const struct gm_plan_part *part);

#endif
