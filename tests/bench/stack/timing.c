/* See timing.h. */
#include "timing.h"

#include "stack/cfi.h"
#include "stack/frame_pointers.h"
#include "stack/native.h"
#include "stack/stack.h"
#include "store_double.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCHES 21

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static const struct gm_unwinder *const unwinders[] = {&gm_unwinder_tables, &gm_unwinder_libunwind,
						      &gm_unwinder_libgcc,
						      &gm_unwinder_frame_pointers};
static const struct gm_unwinder *started;

int timing_start(const char *unwinder, unsigned depth)
{
	for (size_t i = 0; i < sizeof(unwinders) / sizeof(*unwinders); i++)
		if (!i || !strcmp(unwinders[i]->name, unwinder))
			started = unwinders[i];
	store_double_reset();
	gm_stack_reset();
	gm_stack_init(GM_STACKS_FULL, depth);
	gm_native_init(*unwinder ? unwinder : NULL);
	return !*unwinder || !strcmp(gm_stack_unwinder(), unwinder);
}

static __attribute__((noinline)) uint32_t once(enum timing what, struct gm_raw_stack *raw,
					       const struct gm_entry *entry)
{
	static unsigned changed;

	if (what == TIMING_WALK) {
		struct gm_walk walk = {.pc = raw->pc, .max = 64, .anew = true};

		started->walk(&walk);
		return walk.frames;
	}
	if (what == TIMING_HIT)
		return gm_stack_take(entry, 0, NULL);
	if (what == TIMING_COLD_CAPTURE)
		gm_cfi_forget();
	if (what != TIMING_INTERN)
		gm_stack_capture(raw, entry->pc, 0);
	if (what == TIMING_NEW) {
		raw->pc[0] = (uintptr_t)once + changed++ % 65536;
		raw->hash = 0;
	}
	return what == TIMING_NEW || what == TIMING_INTERN ? gm_stack_intern(raw, NULL) : 0;
}

double timing_ns(enum timing what, unsigned rounds, unsigned *natives, unsigned *pythons)
{
	const struct gm_entry entry = GM_ENTRY_HERE();
	double batch[BATCHES];
	struct gm_raw_stack raw;

	gm_stack_capture(&raw, entry.pc, 0);
	for (int i = 0; i < BATCHES; i++) {
		double begin = now_ns();

		for (unsigned k = 0; k < rounds; k++)
			once(what, &raw, &entry);
		batch[i] = (now_ns() - begin) / rounds;
	}
	qsort(batch, BATCHES, sizeof(*batch), by_value);
	*natives = raw.natives;
	*pythons = raw.pythons;
	return batch[BATCHES / 2];
}
