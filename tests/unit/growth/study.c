/*
 * Error rates of the growth test, the same numbers in every run: stationary traces that are called
 * growing, leaks of 1 % of the churn per window that are not, and what time alone can tell. Prints
 * a table (docs/evidence/leak-error-rates.md quotes it) and fails if one verdict is wrong. `study
 * verbose N` is the same from other seeds; `study wide` measures memories that reach further back
 * than the test is made for, without judging them.
 */
#include "families.h"
#include "judged.h"
#include "report/doc/enum_names.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRACES	    10000
#define LEAK_TRACES 10000

enum leak { NO_LEAK, LEAK_BY_CHANCE, LEAK_REGULAR, LEAK_PER_WINDOW, LEAKS };

static const char *const leak_names[] = {"none", "1 % of allocations by chance",
					 "every 100th allocation", "one block per window"};

struct run {
	const struct family *family;
	enum leak leak;
	bool marks;
	unsigned window_allocations;
	unsigned windows;    /* at the end: 8 to 15 */
	unsigned per_window; /* marks that a window at the end holds */
};

static struct run draw(const struct family *family, enum leak leak)
{
	struct run run = {.family = family, .leak = leak};
	/* Ten blocks a window: of fewer, chance alone can leave out a quarter of the run. */
	unsigned least = leak == LEAK_BY_CHANCE ? 1000 : 100;

	run.marks = trace_one_in(3);
	run.window_allocations = least + (unsigned)trace_random(1500);
	run.per_window = 1u << trace_random(5);
	run.windows = 8 + (unsigned)trace_random(8);
	return run;
}

static void lay_leak(const struct run *run, struct churn churn, uint64_t *owed_allocations,
		     uint64_t *owed_bytes)
{
	*owed_allocations += churn.allocations;
	*owed_bytes += churn.bytes;
	switch (run->leak) {
	case LEAK_BY_CHANCE:
		for (unsigned i = 0; i < churn.allocations; i++)
			if (trace_one_in(100))
				trace_alloc(0, churn.bytes / churn.allocations + 1);
		break;
	case LEAK_REGULAR:
		for (; *owed_allocations >= 100; *owed_allocations -= 100)
			trace_alloc(0, churn.bytes / churn.allocations + 1);
		break;
	case LEAK_PER_WINDOW:
		if (*owed_allocations < run->window_allocations)
			break;
		trace_alloc(0, *owed_bytes / 100 + 1);
		*owed_allocations = *owed_bytes = 0;
		break;
	default:
		break;
	}
}

static void play(const struct run *run)
{
	uint64_t total = (uint64_t)run->window_allocations * run->windows, done = 0, marked = 0;
	uint64_t owed_allocations = 0, owed_bytes = 0;
	uint64_t width = 50000ull * run->per_window;
	/* the run ends inside a window */
	uint64_t end = total - trace_random(run->window_allocations / 2);

	run->family->start(run->window_allocations);
	while (done < end) {
		struct churn churn = run->family->step();

		if (!churn.allocations)
			continue;
		done += churn.allocations;
		trace_wait(width * churn.allocations / run->window_allocations + 1);
		lay_leak(run, churn, &owed_allocations, &owed_bytes);
		while (run->marks && marked < done * run->per_window / run->window_allocations) {
			trace_mark();
			marked++;
		}
	}
}

/* Traces of `leak`; returns how many got the wrong verdict. */
static unsigned measure(enum leak leak, unsigned traces, uint64_t seed, bool verbose)
{
	unsigned wrong = 0, each[32] = {0}, count[32] = {0};

	for (unsigned i = 0; i < traces; i++) {
		unsigned family = i % families_count;
		struct run run;
		enum gm_verdict verdict;

		trace_begin(seed + i);
		run = draw(&families[family], leak);
		play(&run);
		verdict = trace_verdict(0);
		count[family]++;
		if ((verdict == GM_GROW) == (leak != NO_LEAK))
			continue;
		wrong++;
		each[family]++;
		if (verbose)
			printf("  seed %llu, %s, %u a window, %u windows%s: %s, %s\n",
			       (unsigned long long)(seed + i), families[family].name,
			       run.window_allocations, run.windows, run.marks ? " by marks" : "",
			       gm_verdict_name(verdict), trace_why());
	}
	printf("%-30s %6u traces, %4u wrong:", leak_names[leak], traces, wrong);
	for (unsigned i = 0; i < families_count; i++)
		printf(" %s %u/%u%s", families[i].name, each[i], count[i],
		       i + 1 < families_count ? "," : "\n");
	return wrong;
}

/*
 * What time tells where the order of allocations cannot: a site that frees nothing, then work
 * elsewhere, or none, or the end. Times are the program's, up to minutes.
 */
enum story {
	SET_THEN_WORK,	   /* a fixed set; then others allocate at least half as often */
	SET_THEN_SILENCE,  /* nothing allocates for longer than two seconds and than it took */
	LAZY_SET,	   /* something kept for each kind of step, when it first comes */
	LEAK_THEN_END,	   /* a leak to the last step, a teardown of up to two seconds */
	LEAK_THEN_IDLE,	   /* the same, idle for up to as long as it had run */
	STORIES
};

static const struct {
	const char *name;
	enum gm_verdict wanted;
} stories[STORIES] = {
	{"a fixed set, then work", GM_HELD},
	{"a fixed set, then silence", GM_HELD},
	{"a set that fills as needed", GM_HELD},
	{"a leak, then a teardown", GM_GROW},
	{"a leak, then as long idle", GM_GROW},
};

/* A step of work elsewhere: some blocks for its time. */
static void work_elsewhere(uint64_t ns)
{
	uint32_t blocks[4];
	unsigned count = 1 + (unsigned)trace_random(4);

	for (unsigned i = 0; i < count; i++)
		blocks[i] = trace_alloc(1 + i, 512 + trace_random(1 << 20));
	trace_wait(ns / 2 + trace_random(ns));
	while (count--)
		trace_free(blocks[count]);
}

static void lazy_set(uint64_t step_ns)
{
	bool seen[64] = {false};
	unsigned kinds = 8 + (unsigned)trace_random(56);
	/* all have come in `kinds * ln(kinds)` steps, give or take `kinds` */
	unsigned steps = (unsigned)((4 + 8 * trace_uniform()) * kinds * log(kinds));

	for (unsigned i = 0; i < steps; i++) {
		unsigned kind = (unsigned)trace_random(kinds);

		if (!seen[kind])
			trace_alloc(0, 512 + trace_random(1 << 20));
		seen[kind] = true;
		work_elsewhere(step_ns);
	}
}

/* Between 10 us and about 0.2 s, evenly over the orders of magnitude. */
static uint64_t draw_step_ns(void)
{
	return (uint64_t)(10000 * exp(10 * trace_uniform()));
}

static void tell(enum story story)
{
	uint64_t step_ns = draw_step_ns(), took = 0, silence = 2000000000;
	unsigned count = 10 + (unsigned)trace_random(500),
		 more = count / 2 + 1 + (unsigned)trace_random(1000);
	bool leak = story == LEAK_THEN_END || story == LEAK_THEN_IDLE;
	/* others allocate and free meanwhile: beside a leak always, or nothing tells it from a
	 * set-up */
	bool company = leak || (story != SET_THEN_SILENCE && trace_one_in(2));

	trace_wait(trace_random(3000000000)); /* the context's creation */
	if (story == LAZY_SET) {
		lazy_set(step_ns);
		return;
	}
	for (unsigned i = 0; i < count; i++) {
		trace_alloc(0, 512 + trace_random(1 << 20));
		if (company && (leak || trace_one_in(3)))
			work_elsewhere(step_ns);
		else
			trace_wait(step_ns / 2 + trace_random(step_ns));
		took += step_ns + step_ns / 2;
	}
	while (story == SET_THEN_WORK && more--)
		work_elsewhere(step_ns);
	if (story == SET_THEN_SILENCE)
		trace_wait((took > silence ? took : silence) + 1 + trace_random(silence));
	if (story == LEAK_THEN_END)
		trace_wait(trace_random(silence - 2 * step_ns)); /* the last step is idle, too */
	if (story == LEAK_THEN_IDLE)
		trace_wait(trace_random(took / 3)); /* `took` is its longest */
}

static unsigned measure_story(enum story story, unsigned traces, uint64_t seed, bool verbose)
{
	unsigned wrong = 0;

	for (unsigned i = 0; i < traces; i++) {
		enum gm_verdict verdict;

		trace_begin(seed + i);
		tell(story);
		verdict = trace_verdict(0);
		if ((verdict == GM_GROW) == (stories[story].wanted == GM_GROW))
			continue;
		wrong++;
		if (verbose)
			printf("  seed %llu: %s, %s\n", (unsigned long long)(seed + i),
			       gm_verdict_name(verdict), trace_why());
	}
	printf("%-30s %6u traces, %4u wrong\n", stories[story].name, traces, wrong);
	return wrong;
}

int main(int argc, char **argv)
{
	bool verbose = argc > 1 && strcmp(argv[1], "verbose") == 0;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) * 10000000 : 0;
	unsigned wrong;

	if (argc > 1 && strcmp(argv[1], "wide") == 0) {
		static const double reach[] = {1, 2, 4, 8, 16};

		for (unsigned i = 0; i < sizeof(reach) / sizeof(reach[0]); i++) {
			printf("memory reaches up to %g windows back\n", reach[i]);
			families_memory(reach[i]);
			measure(NO_LEAK, TRACES, 1000000, false);
			measure(LEAK_REGULAR, TRACES / 10, 2000000, false);
		}
		return 0;
	}
	wrong = measure(NO_LEAK, TRACES, seed + 1000000, verbose);
	for (unsigned leak = LEAK_BY_CHANCE; leak < LEAKS; leak++)
		wrong += measure(leak, LEAK_TRACES / 3, seed + 2000000 + 100000 * leak, verbose);
	for (unsigned story = 0; story < STORIES; story++)
		wrong += measure_story(story, TRACES / 5, seed + 3000000 + 100000 * story,
				       verbose);
	return wrong != 0;
}
