/*
 * Categories and phases of a real run: the stacks of PyTorch 2.11's blocks on an H200 while
 * tests/gpu/first/train_torch.py trained, with their bytes at the peak and at the end
 * (torch-stacks.txt: "site PEAK LIVE", then frames "n|function|module" and "p|function|file",
 * innermost first). What they must add up to is computed here from the script's own parameters.
 */
#include "report/stacks/classify.h"
#include "report/stacks/rules.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define FRAMES 256
#define KINDS  8

struct sums {
	const char *name[KINDS];
	uint64_t peak[KINDS], live[KINDS];
	unsigned count;
};

static void add(struct sums *sums, const char *name, uint64_t peak, uint64_t live)
{
	unsigned i = 0;

	while (i < sums->count && strcmp(sums->name[i], name) != 0)
		i++;
	if (i == sums->count) {
		assert_in_range(i, 0, KINDS - 1);
		sums->name[sums->count++] = name;
	}
	sums->peak[i] += peak;
	sums->live[i] += live;
}

static uint64_t sum_of(const struct sums *sums, const uint64_t *values, const char *name)
{
	for (unsigned i = 0; i < sums->count; i++)
		if (strcmp(sums->name[i], name) == 0)
			return values[i];
	return 0;
}

static struct {
	struct gm_zone zone;
	struct sums categories, phases;
	unsigned sites;
} run;

static struct gm_frame frame_of(char *line)
{
	char *function = strchr(line, '|') + 1, *place = strrchr(line, '|') + 1;
	struct gm_frame frame = {.python = line[0] == 'p'};

	place[-1] = '\0';
	frame.function = *function ? gm_zone_strdup(&run.zone, function) : NULL;
	*(frame.python ? &frame.file : &frame.module) = gm_zone_strdup(&run.zone, place);
	gm_rules_apply(&frame);
	return frame;
}

static void finish_site(struct gm_stack *stack, uint64_t peak, uint64_t live)
{
	unsigned category = GM_NO_RULE;

	for (unsigned i = 0; i < stack->count; i++)
		if (gm_stack_frame(stack, i)->category_rule < category)
			category = gm_stack_frame(stack, i)->category_rule;
	add(&run.categories, gm_rule_name(category), peak, live);
	add(&run.phases, gm_phase_of(stack), peak, live);
	run.sites++;
	stack->count = 0;
}

static int read_run(void **state)
{
	static struct gm_frame_list lists[FRAMES];
	static struct gm_frame frames[FRAMES];
	static uint32_t numbers[FRAMES];
	struct gm_stack stack = {.frames = numbers, .lists = lists};
	unsigned long long peak = 0, live = 0;
	FILE *file = fopen(TORCH_STACKS, "re");
	char line[512];

	(void)state;
	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "site ", 5) == 0) {
			if (stack.count)
				finish_site(&stack, peak, live);
			if (sscanf(line, "site %llu %llu", &peak, &live) != 2)
				return -1;
		} else if (stack.count < FRAMES) {
			frames[stack.count] = frame_of(line);
			lists[stack.count].frames = &frames[stack.count];
			numbers[stack.count] = gm_frame_number(stack.count, 0);
			stack.count++;
		}
	}
	finish_site(&stack, peak, live);
	return fclose(file);
}

static int free_run(void **state)
{
	(void)state;
	gm_zone_free(&run.zone);
	return 0;
}

/* A block of PyTorch is a multiple of 512 bytes. */
static uint64_t block(uint64_t floats)
{
	return (floats * 4 + 511) / 512 * 512;
}

/* Linear(1024, 4096), Linear(4096, 4096), Linear(4096, 10): 80.19 MiB. */
static uint64_t parameters(void)
{
	return block(1024 * 4096) + block(4096) + block(4096 * 4096) + block(4096) +
	       block(4096 * 10) + block(10);
}

static void weights_gradients_and_state_to_the_byte(void **state)
{
	const struct sums *sums = &run.categories;

	(void)state;
	assert_int_equal(parameters(), 84083200);
	assert_int_equal(sum_of(sums, sums->peak, "weights"), parameters());
	assert_int_equal(sum_of(sums, sums->live, "weights"), parameters());
	assert_int_equal(sum_of(sums, sums->peak, "gradients"), parameters());
	/* Adam's two moments; its step's temporaries are workspace. */
	assert_int_equal(sum_of(sums, sums->peak, "optimizer state"), 2 * parameters());
	assert_int_equal(sum_of(sums, sums->live, "optimizer state"), 2 * parameters());
	/* The data, 512 x 1024 floats, and the targets, 512 long integers. */
	assert_in_range(sum_of(sums, sums->peak, "other"), 0, block(512 * 1024) + 4096 + 4096);
}

static void phases_without_python_frames(void **state)
{
	const struct sums *sums = &run.phases;

	(void)state;
	assert_int_equal(sum_of(sums, sums->peak, "loading"), parameters());
	/* Gradients are allocated on the autograd engine's thread. */
	assert_in_range(sum_of(sums, sums->peak, "backward"), parameters(), 2 * parameters());
	/* The moments and one temporary of their size. */
	assert_int_equal(sum_of(sums, sums->peak, "optimizer"), 3 * parameters());
}

/* Where a file is read without PyTorch's libraries, the engine's thread is known by its start. */
static void phases_without_symbols(void **state)
{
	static const struct {
		const char *modules[4], *phase;
	} cases[] = {
		{{"/t/libc10_cuda.so", "/t/libtorch_cpu.so", "/t/libtorch_python.so",
		  "/l/libstdc++.so.6"},
		 "backward"},
		{{"/t/libc10_cuda.so", "/t/libtorch_python.so", "/b/python3.12", "/l/libc.so.6"},
		 "other"},
		{{"/t/libc10_cuda.so", "/t/libtorch_cpu.so", "/b/serve", "/l/libc.so.6"}, "other"},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct gm_frame frames[4] = {{0}};
		const struct gm_frame_list list = {frames, 4};
		uint32_t numbers[4];
		struct gm_stack stack = {.frames = numbers, .lists = &list, .count = 4};

		for (unsigned k = 0; k < 4; k++) {
			frames[k].module = cases[i].modules[k];
			gm_rules_apply(&frames[k]);
			numbers[k] = gm_frame_number(0, k);
		}
		assert_string_equal(gm_phase_of(&stack), cases[i].phase);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(weights_gradients_and_state_to_the_byte),
		cmocka_unit_test(phases_without_python_frames),
		cmocka_unit_test(phases_without_symbols),
	};

	return cmocka_run_group_tests(tests, read_run, free_run);
}
