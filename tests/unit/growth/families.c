/* See families.h. */
#include "families.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LIVE 65536u
#define ENDS	 65536u /* steps ahead that a block's end can be known */

static struct {
	double memory_windows;
	uint64_t unit;	 /* sizes are about this */
	unsigned sizes;	 /* 0 constant, 1 uniform, 2 over three orders of magnitude */
	unsigned length; /* of a memory, in allocations */
	uint64_t steps, period;
	double shape, level;
	uint32_t live[MAX_LIVE];
	unsigned live_count, target;
	/* ends by step: heads of lists through `next` */
	uint32_t ends[ENDS], next[MAX_LIVE * 4];
} f = {.memory_windows = 0.5};

void families_memory(double windows)
{
	f.memory_windows = windows;
}

static uint64_t size(void)
{
	if (f.sizes == 0)
		return f.unit;
	if (f.sizes == 1)
		return f.unit / 2 + trace_random(f.unit) + 1;
	return (uint64_t)((double)f.unit * exp(6.9 * trace_uniform())) / 32 + 1;
}

static void common(unsigned window_allocations)
{
	double memory = f.memory_windows * window_allocations;

	memset(f.ends, 0xff, sizeof(f.ends));
	f.unit = 512u << trace_random(14);
	f.sizes = (unsigned)trace_random(3);
	f.length = 1 + (unsigned)trace_random((uint64_t)(memory < 1 ? 1 : memory));
	f.steps = 0;
	f.live_count = 0;
}

static struct churn take(struct churn churn)
{
	uint64_t bytes = size();

	f.live[f.live_count++] = trace_alloc(0, bytes);
	return (struct churn){churn.allocations + 1, churn.bytes + bytes};
}

static void drop(unsigned i)
{
	trace_free(f.live[i]);
	f.live[i] = f.live[--f.live_count];
}

/* ---- blocks of random life: births and deaths in balance ---- */

static void start_lives(unsigned window_allocations)
{
	common(window_allocations);
	f.length = f.length / 3 + 1; /* forgotten to 5 % in `memory` */
}

static struct churn step_lives(void)
{
	struct churn churn = take((struct churn){0});
	unsigned deaths = trace_poisson((double)f.live_count / f.length);

	while (deaths-- && f.live_count)
		drop((unsigned)trace_random(f.live_count));
	return churn;
}

/* ---- a training step: takes some, frees all ---- */

static void start_loop(unsigned window_allocations)
{
	common(window_allocations);
	f.length = f.length < 50 ? f.length : 50;
}

static struct churn step_loop(void)
{
	struct churn churn = {0};
	unsigned count = 1 + (unsigned)trace_random(f.length);

	while (count--)
		churn = take(churn);
	while (f.live_count)
		drop(f.live_count - 1);
	return churn;
}

/* ---- a sawtooth: piles up to a random height, then everything goes ---- */

static void start_sawtooth(unsigned window_allocations)
{
	common(window_allocations);
	f.target = 1 + (unsigned)trace_random(f.length);
}

static struct churn step_sawtooth(void)
{
	struct churn churn = take((struct churn){0});

	if (f.live_count >= f.target) {
		while (f.live_count)
			drop(f.live_count - 1);
		f.target = 1 + (unsigned)trace_random(f.length);
	}
	return churn;
}

/* ---- one buffer, replaced by one of another size, the new before the old ---- */

static struct churn step_buffer(void)
{
	struct churn churn = take((struct churn){0});

	if (f.live_count > 1)
		drop(0);
	return churn;
}

/* ---- a ring of fixed length ---- */

static struct churn step_ring(void)
{
	struct churn churn = {0};
	unsigned slot = (unsigned)(f.steps++ % f.length);

	if (f.live_count == f.length) {
		trace_free(f.live[slot]);
		churn.bytes = size();
		churn.allocations = 1;
		f.live[slot] = trace_alloc(0, churn.bytes);
		return churn;
	}
	return take(churn);
}

/* ---- a full cache that replaces entries at random ---- */

static void start_cache(unsigned window_allocations)
{
	common(window_allocations);
	f.length = f.length / 3 + 1;
	while (f.live_count < f.length)
		take((struct churn){0});
}

static struct churn step_cache(void)
{
	drop((unsigned)trace_random(f.live_count));
	return take((struct churn){0});
}

/* ---- lives with a heavy tail ---- */

static void start_tail(unsigned window_allocations)
{
	common(window_allocations);
	f.shape = 2.5 + 2 * trace_uniform();
	f.length = f.length / 8 + 1;
}

static struct churn step_tail(void)
{
	double life = f.length * pow(1 - trace_uniform(), -1 / f.shape);
	uint64_t end = f.steps + (life > ENDS - 1 ? ENDS - 1 : (uint64_t)life);
	uint32_t *head = &f.ends[f.steps % ENDS];
	struct churn churn = {1, size()};
	uint32_t block = trace_alloc(0, churn.bytes);

	f.next[block] = f.ends[end % ENDS];
	f.ends[end % ENDS] = block;
	while (*head != UINT32_MAX) {
		uint32_t gone = *head;

		*head = f.next[gone];
		trace_free(gone);
	}
	f.steps++;
	return churn;
}

/* ---- a load that swells and ebbs ---- */

static void start_tide(unsigned window_allocations)
{
	start_lives(window_allocations);
	f.period = 2 + trace_random((uint64_t)(4 * f.memory_windows * window_allocations) + 1);
	f.level = f.length;
}

static struct churn step_tide(void)
{
	double phase = 6.283185307179586 * (double)(f.steps++ % f.period) / (double)f.period;

	f.length = (unsigned)(f.level * (1 + 0.8 * sin(phase))) + 1;
	return step_lives();
}

/* ---- now and then a burst ---- */

static struct churn step_burst(void)
{
	struct churn churn = step_lives();

	if (trace_one_in(97))
		for (unsigned i = 0; i < 40 && f.live_count < MAX_LIVE; i++)
			churn = take(churn);
	return churn;
}

/* ---- memory held since the start, and lives above it ---- */

static void start_base(unsigned window_allocations)
{
	unsigned held = 1 + (unsigned)trace_random(200);

	start_lives(window_allocations);
	while (held--)
		trace_alloc(0, size());
}

const struct family families[] = {
	{"lives", start_lives, step_lives},
	{"loop", start_loop, step_loop},
	{"sawtooth", start_sawtooth, step_sawtooth},
	{"buffer", common, step_buffer},
	{"ring", common, step_ring},
	{"cache", start_cache, step_cache},
	{"heavy tail", start_tail, step_tail},
	{"tide", start_tide, step_tide},
	{"bursts", start_lives, step_burst},
	{"base and lives", start_base, step_lives},
};
const unsigned families_count = sizeof(families) / sizeof(families[0]);
