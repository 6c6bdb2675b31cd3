/*
 * What a native stack costs: about 40 frames, by each unwinder, known and new. Prints a table;
 * asserts nothing.
 */
#include "timing.h"

#include <stdio.h>

#define BARRIER() __asm__ volatile("" ::: "memory")

static __attribute__((noinline)) double deep(unsigned depth, enum timing what, unsigned rounds,
					     unsigned *natives, unsigned *pythons)
{
	double ns = depth ? deep(depth - 1, what, rounds, natives, pythons)
			  : timing_ns(what, rounds, natives, pythons);

	BARRIER();
	return ns;
}

static void line(const char *unwinder, const char *name, enum timing what, unsigned rounds)
{
	unsigned natives, pythons;
	double ns;

	if (!timing_start(unwinder, 64)) {
		printf("%-15s  %-34s does not work here\n", unwinder, name);
		return;
	}
	ns = deep(35, what, rounds, &natives, &pythons);
	printf("%-15s  %-34s %3u frames %9.1f ns\n", unwinder, name, natives, ns);
}

int main(void)
{
	static const char *const unwinders[] = {"unwind tables", "libunwind", "libgcc",
						"frame pointers"};

	for (unsigned i = 0; i < 4; i++) {
		unsigned rounds = i < 2 ? 20000 : 1000;

		line(unwinders[i], "walk alone, without the cache", TIMING_WALK, rounds);
		line(unwinders[i], "capture", TIMING_CAPTURE, rounds);
		line(unwinders[i], "capture and intern, known", TIMING_HIT, rounds);
		line(unwinders[i], "capture and intern, new", TIMING_NEW, 1000);
	}
	line("unwind tables", "capture, no rule known", TIMING_COLD_CAPTURE, 100);
	line("unwind tables", "intern alone, known", TIMING_INTERN, 20000);
	return 0;
}
