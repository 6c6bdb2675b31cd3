/*
 * Programs in which nothing is wrong: healthy NAME [END]. Each models an ordinary way of using
 * memory that looks like growth, or like instability, to a careless judge, and says which.
 */
#include "gpu.h"

#define STEPS 240

PLACE static void load_weights(unsigned tensors, size_t bytes, unsigned launches)
{
	for (volatile unsigned i = 0; i < tensors; i++) {
		keep(device_memory(bytes));
		if (launches)
			work(launches);
	}
}

static void train(int steps)
{
	for (volatile int i = 0; i < steps; i++)
		clean_step(64 * MIB);
}

/* A fixed set of buffers is made, used for the whole run and left to the process's end. */
static void fixed_set(void)
{
	load_weights(24, 8 * MIB, 0);
	train(STEPS);
}

/* A smoke test: the model is loaded and one step is made. */
static void one_step(void)
{
	load_weights(120, 2 * MIB, 0);
	train(1);
}

/* 400 tensors are loaded one by one from one line, and the program ends right after it. */
static void load_only(void)
{
	load_weights(400, MIB, 0);
}

/* The same with conversion kernels between the tensors: loading takes half of the run. */
static void slow_load(void)
{
	load_weights(STEPS, MIB, STEP_LAUNCHES);
	train(STEPS);
}

/* Work is done, and then results are allocated in a loop right before the program ends. */
PLACE static void collect_results(void)
{
	for (volatile int i = 0; i < 60; i++)
		keep(device_memory(2 * MIB));
}

static void results_at_the_end(void)
{
	load_weights(10, 8 * MIB, 0);
	train(STEPS);
	collect_results();
}

/* Buffers for 48 shapes are made when a shape first comes; shapes come at random, and all have come
 * soon. */
PLACE static void use_shape(unsigned shape)
{
	static void *cache[48];

	if (!cache[shape])
		keep(cache[shape] = device_memory((1 + shape) * 256 * KIB));
	work(STEP_LAUNCHES);
}

static void shapes(void)
{
	for (volatile int i = 0; i < 5 * STEPS; i++)
		use_shape(noise(48));
}

/* Experts of a mixture come to the device when a token first needs them; a few are rare. */
PLACE static void use_expert(unsigned expert)
{
	static void *experts[64];

	if (!experts[expert])
		keep(experts[expert] = device_memory(4 * MIB));
	clean_step(6 * MIB);
}

static void experts(void)
{
	for (volatile int i = 0; i < 6 * STEPS; i++)
		use_expert(noise(4) ? noise(64) / 2 : noise(64));
}

/* A cache with a limit: it is full after a fifth of the run and evicts its oldest entry from then
 * on. */
PLACE static void cache_insert(void)
{
	static void *cache[48];
	static unsigned next;

	if (cache[next])
		MUST(cudaFree(cache[next]));
	cache[next] = device_memory(2 * MIB);
	next = (next + 1) % 48;
	work(STEP_LAUNCHES);
}

static void bounded_cache(void)
{
	train(10);
	for (volatile int i = 0; i < STEPS; i++)
		cache_insert();
}

/* A ring of 16 slots from the first step on. */
static void ring(void)
{
	void *slots[16] = {0};

	for (volatile int i = 0; i < 2 * STEPS; i++) {
		unsigned slot = (unsigned)i % 16;

		if (slots[slot])
			MUST(cudaFree(slots[slot]));
		slots[slot] = device_memory(4 * MIB);
		work(STEP_LAUNCHES);
	}
	for (unsigned i = 0; i < 16; i++)
		keep(slots[i]);
}

/* The next batch is loaded while this one is worked on. */
static void double_buffer(void)
{
	void *current = device_memory(48 * MIB);

	for (volatile int i = 0; i < STEPS; i++) {
		void *next = device_memory(48 * MIB);

		work(STEP_LAUNCHES);
		MUST(cudaFree(current));
		current = next;
	}
	keep(current);
}

/* Results gather for 40 steps and are written out together. */
static void sawtooth(void)
{
	void *batch[40];

	for (volatile int round = 0; round < 12; round++) {
		for (volatile int i = 0; i < 40; i++) {
			batch[i] = device_memory(2 * MIB);
			work(STEP_LAUNCHES);
		}
		for (volatile int i = 0; i < 40; i++)
			MUST(cudaFree(batch[i]));
	}
}

/* Requests arrive faster than they are served for a while; then the queue drains, and the last half
 * is quiet. */
static void queue(void)
{
	void *waiting[160];
	unsigned head = 0, tail = 0;

	while (tail < 160) {
		for (int i = 0; i < 2 && tail < 160; i++)
			waiting[tail++] = device_memory(MIB);
		clean_step(8 * MIB);
		MUST(cudaFree(waiting[head++]));
	}
	while (head < tail) {
		clean_step(8 * MIB);
		MUST(cudaFree(waiting[head++]));
	}
	for (volatile int i = 0; i < STEPS; i++)
		clean_step(8 * MIB);
}

/* Requests pile up for two thirds of the run, and are all served before it ends. */
PLACE static void *enqueue(void)
{
	return device_memory(MIB);
}

static void late_queue(void)
{
	void *waiting[200];

	for (volatile int i = 0; i < 200; i++) {
		waiting[i] = enqueue();
		clean_step(8 * MIB);
	}
	for (volatile int i = 0; i < 200; i++) {
		work(STEP_LAUNCHES / 2);
		MUST(cudaFree(waiting[i]));
	}
}

/* The arena grows to the program's working set in the first tenth, and all steps live in it. */
PLACE static void grow_arena(void)
{
	keep(device_memory(32 * MIB));
}

static void plateau(void)
{
	for (volatile int i = 0; i < 2 * STEPS; i++) {
		if (i < 2 * STEPS / 10 && i % 3 == 0)
			grow_arena();
		clean_step(16 * MIB);
	}
}

/* Pre-training at a short length, then the long one: two levels, each constant. */
PLACE static void second_phase(void)
{
	load_weights(12, 8 * MIB, 0);
	for (volatile int i = 0; i < STEPS; i++)
		clean_step(128 * MIB);
}

static void two_phases(void)
{
	load_weights(12, 8 * MIB, 0);
	train(STEPS);
	second_phase();
}

/* In the third step the convolution's algorithms are tried with large workspaces, once. */
PLACE static void search_algorithm(void)
{
	for (volatile unsigned i = 1; i <= 8; i++)
		clean_step(i * 64 * MIB);
}

static void algorithm_search(void)
{
	load_weights(8, 8 * MIB, 0);
	for (volatile int i = 0; i < STEPS; i++) {
		clean_step(40 * MIB);
		if (i == 2)
			search_algorithm();
	}
}

/* The optimizer's state comes with the first step. */
PLACE static void make_moments(unsigned tensors)
{
	for (volatile unsigned i = 0; i < 2 * tensors; i++)
		keep(device_memory(4 * MIB));
}

static void first_step(void)
{
	load_weights(40, 4 * MIB, 0);
	for (volatile int i = 0; i < STEPS; i++) {
		clean_step(100 * MIB);
		if (i == 0)
			make_moments(40);
	}
}

/* Training and evaluation take turns; each has its own peak, always the same. */
static void epochs(void)
{
	load_weights(16, 8 * MIB, 0);
	for (volatile int epoch = 0; epoch < 12; epoch++) {
		for (volatile int i = 0; i < 30; i++)
			clean_step(160 * MIB);
		for (volatile int i = 0; i < 10; i++)
			clean_step(40 * MIB);
	}
}

/* The same with marks. */
static void epochs_marked(void)
{
	load_weights(16, 8 * MIB, 0);
	for (volatile int epoch = 0; epoch < 12; epoch++) {
		gpumemtrace_mark("train");
		for (volatile int i = 0; i < 30; i++)
			clean_step(160 * MIB);
		gpumemtrace_mark("evaluate");
		for (volatile int i = 0; i < 10; i++)
			clean_step(40 * MIB);
	}
}

/* Weights come through a staging buffer each; the program says when they are there, and serves. */
static void load_and_mark(void)
{
	for (volatile int i = 0; i < 40; i++) {
		void *staging = device_memory(8 * MIB);

		keep(device_memory(8 * MIB));
		cudaFree(staging);
	}
	gpumemtrace_mark("loaded");
}

static void loaded_mark(void)
{
	load_and_mark();
	train(200);
}

static void short_use_after_mark(void)
{
	load_and_mark();
	train(4);
}

/* A loop that keeps nothing, and one mark at its end. */
static void end_mark(void)
{
	load_weights(16, 8 * MIB, 0);
	train(200);
	gpumemtrace_mark("done");
}

/* Weights are pruned away while the program runs. */
static void shrinking(void)
{
	load_weights(160, 2 * MIB, 0);
	for (volatile int i = 0; i < STEPS; i++) {
		clean_step(16 * MIB);
		if (kept.count > 20)
			MUST(cudaFree(kept.memory[--kept.count]));
	}
}

/* The final checkpoint takes one large buffer right before the end. */
static void last_checkpoint(void)
{
	load_weights(20, 8 * MIB, 0);
	train(STEPS);
	keep(device_memory(320 * MIB));
}

/* Both devices do the same. */
static void both_devices(void)
{
	for (int device = 0; device < 2; device++) {
		MUST(cudaSetDevice(device));
		load_weights(10, 8 * MIB, 0);
	}
	for (volatile int i = 0; i < STEPS; i++) {
		void *first, *second;

		MUST(cudaSetDevice(0));
		first = device_memory(24 * MIB);
		MUST(cudaSetDevice(1));
		second = device_memory(24 * MIB);
		MUST(cudaSetDevice(0));
		work(STEP_LAUNCHES);
		MUST(cudaFree(first));
		MUST(cudaFree(second));
	}
}

/* Tensors are filled by a kernel each, and the program ends right after that. */
static void filled_and_over(void)
{
	load_weights(200, MIB, 1);
}

/* Tensors are made by three kernels each, and the steps that follow allocate nothing. */
static void made_by_kernels(void)
{
	load_weights(100, MIB, 3);
	for (volatile int i = 0; i < STEPS; i++)
		work(STEP_LAUNCHES);
}

/* Warm-up, then tens of thousands of launches without an allocation. */
static void launches_only(void)
{
	load_weights(32, 4 * MIB, 0);
	for (volatile int i = 0; i < 8 * STEPS; i++)
		work(STEP_LAUNCHES);
}

/* Four models are evaluated one after the other; each is freed before the next is loaded. */
static void models_in_turn(void)
{
	for (volatile int model = 0; model < 4; model++) {
		load_weights(30, 6 * MIB, 0);
		train(STEPS / 4);
		release_kept();
	}
}

/* An ensemble: twenty models are loaded one after the other, each makes a forward pass, then all
 * serve. */
static void ensemble(void)
{
	for (volatile int model = 0; model < 20; model++) {
		load_weights(5, 4 * MIB, 0);
		clean_step(32 * MIB);
	}
	train(STEPS);
}

/* Each tensor is read in full precision, converted, and what was read goes. */
PLACE static void convert_weights(unsigned tensors, size_t bytes)
{
	for (volatile unsigned i = 0; i < tensors; i++) {
		void *read = device_memory(2 * bytes);

		keep(device_memory(bytes));
		work(1);
		MUST(cudaFree(read));
	}
}

static void converted_and_tried(void)
{
	convert_weights(200, 2 * MIB);
	train(20);
}

/* A search index is built item by item, each with scratch memory, and asked a few questions. */
PLACE static void insert_item(void)
{
	void *scratch = device_memory(4 * MIB);

	work(1);
	keep(device_memory(MIB));
	MUST(cudaFree(scratch));
}

static void index_and_questions(void)
{
	for (volatile int i = 0; i < 400; i++)
		insert_item();
	train(40);
}

/* After the training an evaluation gathers its predictions, with working memory between them. */
static void last_evaluation(void)
{
	load_weights(24, 2 * MIB, 0);
	train(2 * STEPS);
	for (volatile int i = 0; i < 40; i++) {
		clean_step(32 * MIB);
		keep(device_memory(MIB));
	}
}

/*
 * Groups of blocks are made at once, and all but one block of each group go together when the set
 * is whole.
 */
static void made_and_thinned(void)
{
	void *scratch[60];

	for (volatile int i = 0; i < 60; i++) {
		scratch[i] = device_memory(6 * MIB);
		keep(device_memory(2 * MIB));
	}
	for (volatile int i = 0; i < 60; i++)
		MUST(cudaFree(scratch[i]));
	train(2);
}

/* The batch grows in six stages, each with its workspace and its scratch memory; the last is long.
 */
static void larger_batches(void)
{
	for (volatile int stage = 1; stage <= 6; stage++) {
		void *workspace = device_memory((size_t)stage * 16 * MIB);

		for (volatile int i = 0; i < (stage == 6 ? 400 : 60); i++) {
			void *parts[4];

			for (volatile int k = 0; k < 4; k++)
				parts[k] = device_memory((size_t)stage * 4 * MIB);
			work(4);
			for (volatile int k = 0; k < 4; k++)
				MUST(cudaFree(parts[k]));
		}
		MUST(cudaFree(workspace));
	}
}

/* A cache without eviction has all of its entries after 85 of 100 steps. */
static void late_cache(void)
{
	for (volatile int i = 0; i < 4 * STEPS; i++) {
		clean_step(16 * MIB);
		if (i < 4 * STEPS * 85 / 100)
			keep(device_memory(768 * KIB));
	}
}

/* A replay memory is full after 70 of 100 steps, and then the oldest entry goes for each new one.
 */
static void late_ring(void)
{
	enum { SLOTS = 4 * STEPS * 70 / 100 };
	static void *slots[SLOTS];

	for (volatile int i = 0; i < 4 * STEPS; i++) {
		MUST(cudaFree(slots[i % SLOTS]));
		slots[i % SLOTS] = device_memory(640 * KIB);
		clean_step(16 * MIB);
	}
	for (volatile int i = 0; i < SLOTS; i++)
		keep(slots[i]);
}

/* A workspace is as large as the largest request so far, and goes before its successor comes. */
static void largest_so_far(void)
{
	size_t largest = 0;
	void *workspace = NULL;

	for (volatile int i = 0; i < 4 * STEPS; i++) {
		size_t bytes = (1 + noise(1000)) * 64 * KIB;

		if (bytes > largest) {
			MUST(cudaFree(workspace));
			workspace = device_memory(bytes);
			largest = bytes;
		}
		clean_step(4 * MIB);
	}
	MUST(cudaFree(workspace));
}

static const struct behaviour behaviours[] = {
	{"fixed-set", fixed_set},
	{"one-step", one_step},
	{"load-only", load_only},
	{"slow-load", slow_load},
	{"results-at-the-end", results_at_the_end},
	{"shapes", shapes},
	{"experts", experts},
	{"bounded-cache", bounded_cache},
	{"ring", ring},
	{"double-buffer", double_buffer},
	{"sawtooth", sawtooth},
	{"queue", queue},
	{"late-queue", late_queue},
	{"plateau", plateau},
	{"two-phases", two_phases},
	{"algorithm-search", algorithm_search},
	{"first-step", first_step},
	{"epochs", epochs},
	{"epochs-marked", epochs_marked},
	{"loaded-mark", loaded_mark},
	{"short-use-after-mark", short_use_after_mark},
	{"end-mark", end_mark},
	{"shrinking", shrinking},
	{"last-checkpoint", last_checkpoint},
	{"both-devices", both_devices},
	{"filled-and-over", filled_and_over},
	{"made-by-kernels", made_by_kernels},
	{"launches-only", launches_only},
	{"models-in-turn", models_in_turn},
	{"ensemble", ensemble},
	{"converted-and-tried", converted_and_tried},
	{"index-and-questions", index_and_questions},
	{"last-evaluation", last_evaluation},
	{"made-and-thinned", made_and_thinned},
	{"larger-batches", larger_batches},
	{"largest-so-far", largest_so_far},
	{"late-cache", late_cache},
	{"late-ring", late_ring},
};

BEHAVIOURS(behaviours)
