/*
 * The options of the command plan: rows of the option table (cli.h) and how their arguments are
 * read.
 */
#include "cli.h"
#include "base/size_text.h"
#include "report/plan/estimate.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BATCH "a batch, or several with commas between them, in the order of the files"

/* "7B", "350M", "1.5e9". */
static const char *params(struct gm_cli *cli, const char *text)
{
	static const char suffixes[] = "KMBT";
	const char *suffix;
	double number;
	char *end;

	errno = 0;
	number = strtod(text, &end);
	suffix = *end ? strchr(suffixes, *end >= 'a' ? *end - 'a' + 'A' : *end) : NULL;
	if (suffix) {
		number *= pow(1000, (double)(suffix - suffixes + 1));
		end++;
	}
	if (errno || end == text || *end || !(number >= 1) || number > 1e15)
		return "a number of parameters, like 7B or 350M";
	cli->plan.parameters = number;
	return NULL;
}

static int name_of(const char *const *names, int count, const char *text)
{
	for (int i = 0; i < count; i++)
		if (strcmp(names[i], text) == 0)
			return i;
	return -1;
}

static const char *precision(struct gm_cli *cli, const char *text)
{
	int number = name_of(gm_precision_names, GM_PRECISIONS, text);

	if (strcmp(text, "int4") == 0 || strcmp(text, "nf4") == 0)
		number = GM_4BIT;
	if (number < 0)
		return "fp32, fp16, bf16, fp8, int8 or 4bit";
	cli->plan.precision = (enum gm_precision)number;
	cli->plan.precision_given = true;
	return NULL;
}

static const char *optimizer(struct gm_cli *cli, const char *text)
{
	int number = name_of(gm_optimizer_names, GM_OPTIMIZERS, text);

	if (strcmp(text, "adamw") == 0)
		number = GM_ADAM;
	if (strcmp(text, "adamw8bit") == 0)
		number = GM_ADAM8;
	if (number < 0)
		return "adam, adamw, adam8bit, sgd, momentum, lion or none";
	cli->plan.optimizer = (enum gm_optimizer)number;
	cli->plan.optimizer_given = true;
	return NULL;
}

static const char *offload(struct gm_cli *cli, const char *text)
{
	static const char *const names[] = {"none", "optimizer", "paged", "params"};
	int number = name_of(names, 4, text);

	if (number < 0)
		return "none, optimizer, paged or params";
	cli->plan.offload = (enum gm_offload)number;
	return NULL;
}

static const char *checkpointing(struct gm_cli *cli, const char *text)
{
	static const char *const names[] = {"none", "selective", "full"};
	int number = name_of(names, 3, text);

	if (number < 0)
		return "none, selective or full";
	cli->plan.checkpointing = (enum gm_checkpointing)number;
	return NULL;
}

static const char *attention(struct gm_cli *cli, const char *text)
{
	static const char *const names[] = {"sdpa", "eager"};
	int number = strcmp(text, "flash") == 0 ? GM_ATTENTION_SDPA : name_of(names, 2, text);

	if (number < 0)
		return "sdpa, flash or eager";
	cli->plan.attention = (enum gm_attention)number;
	return NULL;
}

static const char *small(const char *text, uint64_t least, unsigned *number)
{
	uint64_t value;

	if (!gm_read_number(text, least, 100000000, &value))
		return least ? "a number from 1" : "a number from 0";
	*number = (unsigned)value;
	return NULL;
}

#define SMALL(name, member)                                                                        \
	static const char *name(struct gm_cli *cli, const char *text)                              \
	{                                                                                          \
		return small(text, 1, &cli->plan.member);                                          \
	}
SMALL(world, world_size)
SMALL(layers, layers)
SMALL(hidden, hidden)
SMALL(heads, heads)
SMALL(kv_heads, kv_heads)
SMALL(head_dim, head_dim)
SMALL(sequence, sequence)
SMALL(vocabulary, vocabulary)
SMALL(kv_bytes, kv_bytes)

static const char *zero(struct gm_cli *cli, const char *text)
{
	uint64_t stage;

	if (!gm_read_number(text, 0, 3, &stage))
		return "a stage: 0, 1, 2 or 3";
	cli->plan.zero = (unsigned)stage;
	return NULL;
}

static const char *margin(struct gm_cli *cli, const char *text)
{
	uint64_t percent;
	char digits[16];

	snprintf(digits, sizeof(digits), "%.*s", (int)strcspn(text, "%"), text);
	if (!gm_read_number(digits, 0, 90, &percent))
		return "a percentage from 0 to 90";
	cli->plan.margin_percent = (unsigned)percent;
	return NULL;
}

/* A share of the parameters: "1%", "0.5 %", "0.01". */
static const char *trainable(struct gm_cli *cli, const char *text)
{
	char *end;
	double share = strtod(text, &end);

	while (*end == ' ')
		end++;
	if (*end == '%') {
		share /= 100;
		end++;
	}
	if (end == text || *end || !(share > 0) || share > 1)
		return "a share of the parameters: 1% or 0.01";
	cli->plan.trainable_share = share;
	return NULL;
}

static const char *batch(struct gm_cli *cli, const char *text)
{
	struct gm_plan_options *plan = &cli->plan;

	for (const char *at = text; *at;) {
		size_t length = strcspn(at, ",");
		char number[24] = "";

		if (length >= sizeof(number) ||
		    plan->batches_count == sizeof(plan->batches) / sizeof(plan->batches[0]))
			return BATCH;
		memcpy(number, at, length);
		if (!gm_read_number(number, 1, 1000000000000, &plan->batches[plan->batches_count]))
			return BATCH;
		plan->batches_count++;
		at += length;
		at += *at == ',';
	}
	return plan->batches_count ? NULL : BATCH;
}

static const char *target_batch(struct gm_cli *cli, const char *text)
{
	return gm_read_number(text, 1, 1000000000000, &cli->plan.target_batch) ? NULL
									       : "a batch, from 1";
}

static const char *capacity(struct gm_cli *cli, const char *text)
{
	return gm_parse_size(text, &cli->plan.capacity_bytes) && cli->plan.capacity_bytes
		       ? NULL
		       : "a size, like 24GiB";
}

static const char *gpu(struct gm_cli *cli, const char *text)
{
	static char names[512];

	cli->plan.gpu = text;
	if (gm_gpu_find(text))
		return NULL;
	names[0] = '\0';
	for (unsigned i = 0; i < gm_gpus_count; i++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
			 i ? ", " : "", gm_gpus[i].name);
	return names;
}

static const char *inference(struct gm_cli *cli, const char *text)
{
	(void)text;
	cli->plan.inference = true;
	return NULL;
}

static const char *search(struct gm_cli *cli, const char *text)
{
	(void)text;
	cli->plan_search = true;
	return NULL;
}

static const char *pure(struct gm_cli *cli, const char *text)
{
	(void)text;
	cli->plan.pure = true;
	return NULL;
}

const struct gm_option gm_plan_option_rows[] = {
	{"--batch", "N,...", GM_PLAN | GM_WHATIF, false, batch,
	 "the batch of each file, or of the estimate; of two files the slope is measured"},
	{"--target-batch", "N", GM_PLAN, false, target_batch,
	 "the effective batch to keep by accumulation (the batch of the run)"},
	{"--target-batch", "N", GM_WHATIF, false, target_batch,
	 "replay a run with this batch, from two files that --batch has the batches of"},
	{"--capacity", "SIZE", GM_PLAN, false, capacity,
	 "the memory to plan for (the run's device)"},
	{"--gpu", "NAME", GM_PLAN, false, gpu, "the same by a GPU's name"},
	{"--margin", "PERCENT", GM_PLAN, false, margin, "to leave free on a GPU that fits (15)"},
	{"--search", NULL, GM_PLAN, false, search,
	 "run -- PROGRAM ARG... with {} as the batch, to find the largest that fits --capacity"},
	{"--params", "N", GM_PLAN, false, params, "parameters of the model, like 7B: an estimate"},
	{"--precision", "P", GM_PLAN, false, precision,
	 "of the weights: fp32, fp16, bf16, fp8, int8 or 4bit (fp32)"},
	{"--pure", NULL, GM_PLAN, false, pure, "no fp32 master weights, states in 16 bit"},
	{"--optimizer", "O", GM_PLAN, false, optimizer,
	 "adam, adamw, adam8bit, sgd, momentum, lion or none (adam)"},
	{"--zero", "STAGE", GM_PLAN, false, zero, "ZeRO or FSDP: 1, 2 or 3"},
	{"--world", "N", GM_PLAN, false, world, "ranks that share (the run's world size)"},
	{"--offload", "WHAT", GM_PLAN, false, offload, "to the host: optimizer, paged or params"},
	{"--trainable", "SHARE", GM_PLAN, false, trainable,
	 "LoRA: adapters of so many of the parameters, the rest is frozen"},
	{"--checkpointing", "MODE", GM_PLAN, false, checkpointing,
	 "none, selective or full (none)"},
	{"--attention", "KIND", GM_PLAN, false, attention,
	 "sdpa, flash (neither stores scores) or eager, which does (sdpa)"},
	{"--inference", NULL, GM_PLAN, false, inference,
	 "weights and KV cache instead of training"},
	{"--seq", "N", GM_PLAN, false, sequence, "tokens of a sequence (2048)"},
	{"--layers", "N", GM_PLAN, false, layers, "layers (those of a known model of that size)"},
	{"--hidden", "N", GM_PLAN, false, hidden, "width"},
	{"--heads", "N", GM_PLAN, false, heads, "attention heads"},
	{"--kv-heads", "N", GM_PLAN, false, kv_heads, "heads of keys and values"},
	{"--head-dim", "N", GM_PLAN, false, head_dim, "width of a head (width / heads)"},
	{"--kv-bytes", "N", GM_PLAN, false, kv_bytes, "bytes of a number in the KV cache (2)"},
	{"--vocab", "N", GM_PLAN, false, vocabulary, "words, for the logits"},
};

const unsigned gm_plan_option_rows_count =
	sizeof(gm_plan_option_rows) / sizeof(gm_plan_option_rows[0]);
