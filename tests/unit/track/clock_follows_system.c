/*
 * The clock of events (src/track/clock.h) stays within a microsecond of CLOCK_MONOTONIC: every
 * reading lies between two of the system's, give or take that. Long enough for the rate to be
 * measured, again and again, and for the counter to carry many milliseconds, by events that come at
 * once or with gaps. Then events that each began before the one before was noted, as those of two
 * threads do: their times are when they began or, seldom, when they are asked for, and the system
 * is asked for few of them.
 */
#include "track/clock.h"

#include <stdio.h>
#include <stdlib.h>

#define SLACK_NS  1000u
#define LONG_NS	  300000000u
#define OVERLAPS  500000u
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

struct moment {
	uint64_t before, ticks, after;
};

static struct moment look(void)
{
	struct moment moment = {.before = gm_monotonic_ns(), .ticks = gm_clock_ticks()};

	moment.after = gm_monotonic_ns();
	return moment;
}

/* What began before another one was noted, for each of them. */
static int overlapping(struct gm_clock *clock, uint64_t start)
{
	struct moment begun = look(), next;
	uint64_t now, base, i, asked = 0;
	bool asks;

	for (i = 0; i < OVERLAPS; i++) {
		next = look();
		base = clock->base_ticks;
		now = start + gm_clock_ns_at(clock, begun.ticks);
		asks = clock->base_ticks != base || !clock->valid_ticks;
		asked += asks;
		if (now + SLACK_NS < begun.before ||
		    now > (asks ? gm_monotonic_ns() : begun.after) + SLACK_NS) {
			printf("overlapping %llu: %llu, but it began from %llu to %llu\n",
			       (unsigned long long)i, (unsigned long long)now,
			       (unsigned long long)begun.before, (unsigned long long)begun.after);
			return 2;
		}
		begun = next;
	}
	printf("%u that overlap, %llu times the system was asked\n", OVERLAPS,
	       (unsigned long long)asked);
	return gm_clock_counts && asked > OVERLAPS / 2 ? 3 : 0;
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
		carried += now != start + clock.base_ns && clock.valid_ticks;
		if (now + SLACK_NS < before || now > after + SLACK_NS) {
			printf("reading %llu: %llu, but the system's clock went from %llu to "
			       "%llu\n",
			       (unsigned long long)readings, (unsigned long long)now,
			       (unsigned long long)before, (unsigned long long)after);
			return 1;
		}
	} while (after - start < LONG_NS);
	printf("%llu readings, %llu by the counter\n", (unsigned long long)readings,
	       (unsigned long long)carried);
	return overlapping(&clock, start);
}
