/*
 * Error rates of the growth test, the same numbers in every run: stationary traces that are called
 * growing, and leaks of 1 % of the churn per window that are not. Prints a table
 * (docs/leak-verdicts.md quotes it) and fails if either happens once. `study wide` also measures
 * memories that reach further back than the test is made for, without judging them.
 */
#include "families.h"
#include "judged.h"

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

int main(int argc, char **argv)
{
	bool verbose = argc > 1 && strcmp(argv[1], "verbose") == 0;
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
	wrong = measure(NO_LEAK, TRACES, 1000000, verbose);
	for (unsigned leak = LEAK_BY_CHANCE; leak < LEAKS; leak++)
		wrong += measure(leak, LEAK_TRACES / 3, 2000000 + 100000 * leak, verbose);
	return wrong != 0;
}
