/*
 * See progress.h. Time is read once in 64 steps; the line is drawn at most ten times a second.
 */
#include "report/support/progress.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static struct {
	unsigned steps;
	uint64_t began_ns, drawn_ns;
	bool drawn;
} state;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void gm_progress(const char *what, unsigned long done, unsigned long all)
{
	uint64_t now;

	if (state.steps++ % 64)
		return;
	now = now_ns();
	if (!state.began_ns)
		state.began_ns = now;
	if (now - state.began_ns < 1000000000u || now - state.drawn_ns < 100000000u ||
	    !isatty(STDERR_FILENO))
		return;
	state.drawn_ns = now;
	state.drawn = true;
	fprintf(stderr, "\r%s: %lu of %lu\033[K", what, done, all);
}

void gm_progress_end(void)
{
	if (state.drawn)
		fputs("\r\033[K", stderr);
	state.drawn = false;
	state.began_ns = 0;
}
