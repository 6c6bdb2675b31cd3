/*
 * Programs whose memory grows, or whose peaks differ: leaks NAME [END]. Each models a mistake of
 * real programs and says which. The growing place is a function of its own, named in cases.py;
 * everything else in the program is bounded.
 */
#include "gpu.h"

#define STEPS 240

/* ---- results that are kept ---- */

/* A server appends each request's result to a list that nobody shortens. */
PLACE static void append_result(void)
{
	keep(device_memory(MIB));
}

static void list(void)
{
	for (volatile int i = 0; i < STEPS; i++) {
		clean_step(24 * MIB);
		append_result();
	}
}

/* The pointer to the previous step's buffer is overwritten. */
PLACE static void *replace_field(void)
{
	return device_memory(512 * KIB);
}

static void overwritten(void)
{
	static void *volatile field;

	for (volatile int i = 0; i < STEPS; i++) {
		field = replace_field();
		clean_step(24 * MIB);
	}
	cudaFree(field);
}

/* One step in nine fails; the early return on that path forgets the scratch memory. */
PLACE static int solve_system(int step)
{
	void *scratch = device_memory(3 * MIB);

	work(STEP_LAUNCHES);
	if (step % 9 == 4)
		return -1;
	MUST(cudaFree(scratch));
	return 0;
}

static void error_path(void)
{
	for (volatile int i = 0; i < 4 * STEPS; i++)
		solve_system(i);
}

/* The bug is reached only once the warm-up's data is over: clean for the first third, a leak after
 * it. */
static void from_a_third_on(void)
{
	for (volatile int i = 0; i < STEPS; i++) {
		clean_step(24 * MIB);
		if (i > STEPS / 3)
			append_result();
	}
}

/* A checkpoint is taken every 20 steps and its staging buffer stays. */
PLACE static void write_checkpoint(void)
{
	keep(device_memory(8 * MIB));
}

static void checkpoints(void)
{
	for (volatile int i = 0; i < 2 * STEPS; i++) {
		clean_step(24 * MIB);
		if (i % 20 == 19)
			write_checkpoint();
	}
}

/* Of each request's two session buffers the closing handler frees only one. */
PLACE static void *open_session(void)
{
	return device_memory(256 * KIB);
}

static void sessions(void)
{
	for (volatile int i = 0; i < 2 * STEPS; i++) {
		void *first = open_session();

		keep(open_session());
		clean_step(8 * MIB);
		MUST(cudaFree(first));
	}
}

/* A long run with large random working memory; every fifth step forgets 64 KiB. */
PLACE static void forget_descriptor(void)
{
	keep(device_memory(64 * KIB));
}

static void in_noise(void)
{
	for (volatile int i = 0; i < 2500; i++) {
		clean_step((1 + noise(400)) * MIB);
		if (i % 5 == 0)
			forget_descriptor();
	}
}

/* ---- peaks that differ ---- */

/* Pictures of any size up to 16 megapixels. */
static void pictures(int marks)
{
	void *volatile model = device_memory(64 * MIB);

	for (volatile int i = 0; i < 2 * STEPS; i++) {
		clean_step((1 + noise(192)) * MIB);
		if (marks)
			gpumemtrace_mark("picture");
	}
	cudaFree(model);
}

static void random_sizes(void)
{
	pictures(0);
}

static void random_sizes_marked(void)
{
	pictures(1);
}

/* ---- evaluation between epochs ---- */

/* Each evaluation keeps its logits for a report that is never written. */
PLACE static void evaluate_logits(void)
{
	for (volatile int i = 0; i < 6; i++) {
		clean_step(10 * MIB);
		keep(device_memory(MIB));
	}
}

static void evaluations(int marks)
{
	for (volatile int epoch = 0; epoch < 14; epoch++) {
		if (marks)
			gpumemtrace_mark("train");
		for (volatile int i = 0; i < 40; i++)
			clean_step(32 * MIB);
		if (marks)
			gpumemtrace_mark("evaluate");
		evaluate_logits();
	}
}

static void evaluation(void)
{
	evaluations(0);
}

static void evaluation_marked(void)
{
	evaluations(1);
}

/* Memory rises only where an epoch ends, which is where the program sets its marks. */
PLACE static void archive_epoch(void)
{
	keep(device_memory(6 * MIB));
}

static void at_marks(void)
{
	for (volatile int epoch = 0; epoch < 24; epoch++) {
		for (volatile int i = 0; i < 12; i++)
			clean_step(32 * MIB);
		archive_epoch();
		gpumemtrace_mark("epoch");
	}
}

/* Few marks, which name phases: they divide the run into no steps. */
PLACE static void keep_results(void)
{
	keep(device_memory(2 * MIB));
}

static void results_of_phase(int steps)
{
	for (volatile int i = 0; i < steps; i++) {
		clean_step(32 * MIB);
		keep_results();
	}
}

static void mark_at_end(void)
{
	results_of_phase(200);
	gpumemtrace_mark("done");
}

static void phase_marks(void)
{
	clean_step(64 * MIB);
	gpumemtrace_mark("loaded");
	results_of_phase(120);
	gpumemtrace_mark("trained");
	results_of_phase(80);
	gpumemtrace_mark("evaluated");
}

/* Training leaves something behind from its first step; a validation follows it. */
PLACE static void remember_loss(void)
{
	keep(device_memory(3 * MIB));
}

static void last_validation(void)
{
	for (volatile int step = 0; step < 200; step++) {
		for (volatile int layer = 0; layer < 4; layer++)
			clean_step(32 * MIB);
		remember_loss();
	}
	for (volatile int batch = 0; batch < 80; batch++)
		clean_step(24 * MIB);
}

/* Every second result is given back. */
PLACE static void keep_half(int step)
{
	void *result = device_memory(2 * MIB);

	if (step % 2)
		keep(result);
	else
		cudaFree(result);
}

static void half_marked(void)
{
	for (volatile int i = 0; i < 200; i++) {
		clean_step(32 * MIB);
		keep_half(i);
		if (i % 70 == 60)
			gpumemtrace_mark("phase");
	}
}

/* ---- one buffer, again and again larger ---- */

PLACE static void *enlarge(void *old, size_t bytes)
{
	void *larger = device_memory(bytes);

	work(STEP_LAUNCHES);
	if (old)
		MUST(cudaFree(old));
	return larger;
}

/* A log on the device is made one record longer at each step by allocating it anew. */
static void longer(void)
{
	void *log = NULL;

	for (volatile int i = 1; i <= STEPS; i++) {
		log = enlarge(log, (size_t)i * MIB);
		clean_step(16 * MIB);
	}
	keep(log);
}

/* The old buffer goes before its successor is taken, every `period` steps. */
PLACE static void *renew(void *old, size_t bytes)
{
	MUST(cudaFree(old));
	return device_memory(bytes);
}

static void renewed(int period, size_t bytes)
{
	void *log = NULL;

	for (volatile int i = 0; i < STEPS; i++) {
		if (i % period == 0)
			log = renew(log, (size_t)(i / period + 1) * bytes);
		clean_step(16 * MIB);
		clean_step(8 * MIB);
	}
	keep(log);
}

static void renewed_each_step(void)
{
	renewed(1, 256 * KIB);
}

static void renewed_rarely(void)
{
	renewed(STEPS / 12, 4 * MIB);
}

PLACE static void *renew_even(void *old, size_t bytes)
{
	return renew(old, bytes);
}

PLACE static void *renew_odd(void *old, size_t bytes)
{
	void *larger = renew(old, bytes);

	clean_step(4 * MIB);
	return larger;
}

/* Two places take turns, and each frees what the other one made before it allocates. */
static void renewed_in_turn(void)
{
	void *log = NULL;

	for (volatile int i = 1; i <= STEPS; i++) {
		log = i % 2 ? renew_odd(log, (size_t)i * 512 * KIB)
			    : renew_even(log, (size_t)i * 512 * KIB);
		clean_step(16 * MIB);
	}
	keep(log);
}

/* An error at a random instant forgets its request: two dozen in all. */
PLACE static void forget_request(void)
{
	keep(device_memory(1536 * KIB));
}

static void random_instants(unsigned one_in, unsigned skip)
{
	while (skip--) /* another sequence */
		noise(2);
	for (volatile int i = 0; i < 5 * STEPS; i++) {
		clean_step(16 * MIB);
		if (noise(one_in) == 0)
			forget_request();
	}
}

static void random_errors(void)
{
	random_instants(50, 0);
}

static void random_errors_again(void)
{
	random_instants(50, 7919);
}

static void random_errors_fewer(void)
{
	random_instants(80, 0);
}

/* The requests leak; in the end the server is measured for a while by clean ones. */
static void then_measured(void)
{
	for (volatile int i = 0; i < 20; i++) /* a warm-up */
		clean_step(32 * MIB);
	for (volatile int i = 0; i < STEPS; i++) {
		clean_step(16 * MIB);
		forget_request();
	}
	for (volatile int i = 0; i < STEPS / 10; i++)
		clean_step(16 * MIB);
}

/* In the first request ways to compute are tried, with scratch memory that no later one takes. */
static void after_a_trial(void)
{
	append_result();
	for (volatile int i = 0; i < STEPS; i++)
		clean_step(4 * MIB);
	for (volatile int i = 0; i < STEPS / 2; i++) {
		clean_step(16 * MIB);
		append_result();
	}
}

/* Nothing comes and goes: each request keeps its result, and kernels work on it. */
static void without_scratch(void)
{
	for (volatile int i = 0; i < STEPS; i++) {
		append_result();
		work(3);
	}
}

PLACE static void *enlarge_even(void *old, size_t bytes)
{
	return enlarge(old, bytes);
}

PLACE static void *enlarge_odd(void *old, size_t bytes)
{
	void *larger = enlarge(old, bytes);

	clean_step(4 * MIB);
	return larger;
}

/* The same by a double buffer: two places in the code take turns. */
static void alternate(int marks)
{
	void *log = NULL;

	for (volatile int i = 1; i <= STEPS; i++) {
		log = i % 2 ? enlarge_odd(log, (size_t)i * MIB)
			    : enlarge_even(log, (size_t)i * MIB);
		clean_step(16 * MIB);
		if (marks && i % 100 == 60)
			gpumemtrace_mark("phase");
	}
	keep(log);
}

static void alternating(void)
{
	alternate(0);
}

static void alternating_marked(void)
{
	alternate(1);
}

/* Records are appended without end; the buffer doubles whenever it is full. */
PLACE static void *append_record(void *buffer, size_t *capacity, size_t bytes)
{
	if (bytes <= *capacity)
		return buffer;
	*capacity *= 2;
	return enlarge(buffer, *capacity);
}

static void doubling(void)
{
	size_t capacity = 4 * MIB;
	void *buffer = enlarge(NULL, capacity);

	for (volatile int i = 1; i <= 1100; i++) {
		buffer = append_record(buffer, &capacity, (size_t)i * MIB);
		clean_step(16 * MIB);
	}
	keep(buffer);
}

/* ---- many places ---- */

#define HANDLER(n)                                                                                 \
	PLACE static void handle_##n(void)                                                         \
	{                                                                                          \
		clean_step((n + 1) * MIB);                                                         \
		keep(device_memory(8 * KIB));                                                      \
	}
#define HANDLERS(each)                                                                             \
	each(0) each(1) each(2) each(3) each(4) each(5) each(6) each(7) each(8) each(9) each(10)   \
		each(11) each(12) each(13) each(14) each(15) each(16) each(17) each(18) each(19)   \
			each(20) each(21) each(22) each(23) each(24) each(25) each(26) each(27)    \
				each(28) each(29)
HANDLERS(HANDLER)
#define NAME_OF(n) handle_##n,

/* Each of thirty message handlers forgets its reply; no one of them comes to much. */
PLACE static void dispatch(unsigned message)
{
	static void (*const handlers[])(void) = {HANDLERS(NAME_OF)};

	handlers[message]();
}

static void handlers(void)
{
	for (volatile int i = 0; i < 8 * STEPS; i++)
		dispatch(noise(30));
}

/* The loop's body was copied eight times by the compiler: one line, eight return addresses. */
PLACE static void unrolled_batch(void)
{
#pragma GCC unroll 8
	for (int i = 0; i < 8; i++) {
		void *memory = NULL;

		MUST(cudaMalloc(&memory, 128 * KIB));
		keep(memory);
	}
}

static void unrolled(void)
{
	for (volatile int i = 0; i < STEPS; i++) {
		clean_step(8 * MIB);
		unrolled_batch();
	}
}

/* A tree is walked to a depth that differs from request to request; each leaf keeps a node. */
PLACE static int walk_tree(unsigned depth)
{
	if (depth)
		return walk_tree(depth - 1) + 1;
	keep(device_memory(256 * KIB));
	return 0;
}

static void recursion(void)
{
	for (volatile int i = 0; i < 2 * STEPS; i++) {
		clean_step(8 * MIB);
		walk_tree(noise(24));
	}
}

/* ---- more than one device, and a full one ---- */

PLACE static void mirror_to_second(void)
{
	MUST(cudaSetDevice(1));
	keep(device_memory(MIB));
	MUST(cudaSetDevice(0));
}

/* Work runs on both devices; what is mirrored to the second one stays there. */
static void second_device(void)
{
	for (volatile int i = 0; i < STEPS; i++) {
		void *there;

		MUST(cudaSetDevice(1));
		there = device_memory(24 * MIB);
		MUST(cudaSetDevice(0));
		clean_step(24 * MIB);
		mirror_to_second();
		MUST(cudaFree(there));
	}
}

PLACE static int try_append(void)
{
	void *memory;
	int error = cudaMalloc(&memory, 24 * MIB);

	if (!error)
		keep(memory);
	return error;
}

/* The list of results fills the device; the run ends with the error. */
static void until_full(void)
{
	void *weights = device_memory(600 * MIB);

	do
		clean_step(16 * MIB);
	while (!try_append());
	cudaFree(weights);
}

static const struct behaviour behaviours[] = {
	{"list", list},
	{"overwritten", overwritten},
	{"error-path", error_path},
	{"from-a-third-on", from_a_third_on},
	{"checkpoints", checkpoints},
	{"sessions", sessions},
	{"in-noise", in_noise},
	{"random-sizes", random_sizes},
	{"random-sizes-marked", random_sizes_marked},
	{"evaluation", evaluation},
	{"evaluation-marked", evaluation_marked},
	{"at-marks", at_marks},
	{"mark-at-end", mark_at_end},
	{"phase-marks", phase_marks},
	{"half-marked", half_marked},
	{"last-validation", last_validation},
	{"longer", longer},
	{"renewed-each-step", renewed_each_step},
	{"renewed-rarely", renewed_rarely},
	{"renewed-in-turn", renewed_in_turn},
	{"random-errors", random_errors},
	{"random-errors-again", random_errors_again},
	{"random-errors-fewer", random_errors_fewer},
	{"then-measured", then_measured},
	{"after-a-trial", after_a_trial},
	{"without-scratch", without_scratch},
	{"alternating", alternating},
	{"alternating-marked", alternating_marked},
	{"doubling", doubling},
	{"handlers", handlers},
	{"unrolled", unrolled},
	{"recursion", recursion},
	{"second-device", second_device},
	{"until-full", until_full},
};

BEHAVIOURS(behaviours)
