/*
 * Generated event traces for the growth test: a virtual clock drives the tracker's own windows and
 * sites (src/track); judged.h has the report's verdict on them. One trace at a time, one thread.
 */
#ifndef TESTS_GROWTH_TRACE_H
#define TESTS_GROWTH_TRACE_H

#include "store/layout.h"
#include <stdbool.h>

#pragma GCC visibility push(default)

#define TRACE_SITES 64

/* Forgets the trace before; time is 0 and nothing is live. */
void trace_begin(uint64_t seed);

/* The clock moves on. */
void trace_wait(uint64_t ns);

/* A block of the site, by number from 0; and its end. */
uint32_t trace_alloc(unsigned site, uint64_t bytes);
void trace_free(uint32_t block);

/* A mark made by the program. */
void trace_mark(void);

/* What the file would hold were the run to end now. Valid until the next event. */
struct trace_books {
	const struct gm_header *header;
	const struct gm_site_record *sites;
	const struct gm_alloc_record *blocks; /* also ended ones: see `state` */
	uint32_t sites_count, blocks_count;
};
struct trace_books trace_end(void);

/* The record number of a site, GM_NONE if it never allocated. */
uint32_t trace_site(unsigned site);

/* Deterministic random numbers: [0, below), [0, 1), true in one of `n` cases, a Poisson number. */
uint64_t trace_random(uint64_t below);
double trace_uniform(void);
bool trace_one_in(double n);
unsigned trace_poisson(double mean);

#pragma GCC visibility pop

#endif
