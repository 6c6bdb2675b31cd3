/*
 * The clock of events (src/track/clock.h) stays within a microsecond of CLOCK_MONOTONIC: every reading
 * lies between two of the system's, give or take that. Long enough for the rate to be measured, again and
 * again, and for the counter to carry many milliseconds, by events that come at once or with gaps.
 */
#include "track/clock.h"

#include <stdio.h>
#include <stdlib.h>

#define SLACK_NS  1000u
#define LONG_NS	  300000000u
#define MOST_WAIT 100000u /* turns of a loop: up to some tens of microseconds */

static uint64_t state = 88172645463325252u;

static uint64_t draw(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % below;
}

static void wait(uint64_t turns)
{
	while (turns--)
		__asm__ volatile("");
}

int main(void)
{
	struct gm_clock clock = {0};
	uint64_t before, now, after, readings = 0, carried = 0, start = gm_monotonic_ns();

	gm_clock_start(start);
	do {
		wait(draw(4) ? draw(100) : draw(MOST_WAIT));
		before = gm_monotonic_ns();
		now = start + gm_clock_ns(&clock);
		after = gm_monotonic_ns();
		readings++;
		carried += now != start + clock.base_ns && clock.most_ticks;
		if (now + SLACK_NS < before || now > after + SLACK_NS) {
			printf("reading %llu: %llu, but the system's clock went from %llu to %llu\n",
			       (unsigned long long)readings, (unsigned long long)now,
			       (unsigned long long)before, (unsigned long long)after);
			return 1;
		}
	} while (after - start < LONG_NS);
	printf("%llu readings, %llu by the counter\n", (unsigned long long)readings, (unsigned long long)carried);
	return 0;
}
