/*
 * Timing of captures, in the library that both benchmarks of stacks load (benchmark.c for native
 * stacks, python.py for Python ones).
 */
#ifndef TIMING_H
#define TIMING_H

enum timing {
	TIMING_CAPTURE,	     /* gm_stack_capture */
	TIMING_HIT,	     /* and gm_stack_intern of a stack it knows */
	TIMING_NEW,	     /* and gm_stack_intern of a stack with a frame it has not seen */
	TIMING_COLD_CAPTURE, /* gm_stack_capture with nothing learnt yet */
	TIMING_INTERN,	     /* gm_stack_intern alone, a hit */
	TIMING_WALK,	     /* the unwinder alone, without what guards it and without the cache */
};

/* Median nanoseconds of one, over 21 batches of `rounds`. Frames and Python frames of the last. */
double timing_ns(enum timing what, unsigned rounds, unsigned *natives, unsigned *pythons);

/* Starts over with this unwinder; 0 if it does not work here. */
int timing_start(const char *unwinder, unsigned depth);

#endif
