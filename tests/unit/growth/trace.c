/*
 * See trace.h. Stands in for the store (a table of sites in memory) and for the parts of the
 * tracker that windows.c and sites.c call. A library of its own, all but trace_* hidden: the
 * tracker and the report each have an arena of the same name.
 */
#include "trace.h"
#include "account/counters.h"
#include "track/sites.h"
#include "track/windows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct gm_header *gm_file;
struct gm_track gm_track;
struct gm_arena gm_track_arena;

static struct {
	struct gm_header header __attribute__((aligned(64)));
	struct gm_site_record sites[TRACE_SITES] __attribute__((aligned(64))); /* gm_store_offset */
	uint32_t numbers[TRACE_SITES]; /* record + 1 of a site */
	struct gm_alloc_record *blocks;
	uint32_t *unused;
	uint32_t blocks_count, blocks_room, unused_count;
	uint64_t now_ns, random;
} trace;

/* ---- what sites.c and windows.c call ---- */

bool gm_store_ensure(enum gm_table_id table, uint32_t count)
{
	(void)table, (void)count;
	return true; /* gm_store_append says so where that is not right */
}

void gm_store_dropped(enum gm_table_id table)
{
	(void)table;
}

void *gm_store_append(enum gm_table_id table, uint32_t count, uint32_t *index)
{
	struct gm_site_record *site;

	if (table != GM_TABLE_SITES || count != 1 ||
	    trace.header.tables[table].count == TRACE_SITES)
		abort();
	*index = trace.header.tables[table].count;
	site = &trace.sites[*index];
	memset(site, 0, sizeof(*site));
	return site;
}

void gm_store_publish(enum gm_table_id table)
{
	trace.header.tables[table].count++;
}

void *gm_store_record(enum gm_table_id table, uint32_t index)
{
	return table == GM_TABLE_SITES && index < TRACE_SITES ? &trace.sites[index] : NULL;
}

/* ---- events ---- */

void trace_begin(uint64_t seed)
{
	gm_arena_reset(&gm_track_arena);
	gm_sites_reset();
	memset(&trace.header, 0, sizeof(trace.header));
	memset(trace.numbers, 0, sizeof(trace.numbers));
	trace.blocks_count = trace.unused_count = 0;
	trace.now_ns = 0;
	trace.random = seed;
	gm_file = &trace.header;
	gm_windows_start();
}

void trace_wait(uint64_t ns)
{
	trace.now_ns += ns;
}

static void enter(void)
{
	gm_track.now_ns = trace.now_ns;
}

static uint32_t site_number(unsigned site)
{
	struct gm_event event = {.stack = site, .kind = GM_KIND_DEVICE, .function = GM_NONE};

	if (!trace.numbers[site])
		trace.numbers[site] = gm_find_or_make_site(&event) + 1;
	return trace.numbers[site] - 1;
}

static uint32_t new_block(void)
{
	if (trace.unused_count)
		return trace.unused[--trace.unused_count];
	if (trace.blocks_count == trace.blocks_room) {
		trace.blocks_room = trace.blocks_room ? 2 * trace.blocks_room : 1024;
		trace.blocks = realloc(trace.blocks, trace.blocks_room * sizeof(*trace.blocks));
		trace.unused = realloc(trace.unused, trace.blocks_room * sizeof(*trace.unused));
		if (!trace.blocks || !trace.unused)
			abort();
	}
	return trace.blocks_count++;
}

uint32_t trace_alloc(unsigned site, uint64_t bytes)
{
	uint32_t number = new_block();
	struct gm_alloc_record *block = &trace.blocks[number];

	enter();
	gm_windows_advance();
	memset(block, 0, sizeof(*block));
	block->state = GM_STATE_LIVE;
	block->site = site_number(site);
	block->bytes = bytes;
	block->time_ns = trace.now_ns;
	block->serial = ++trace.header.serial;
	block->kind = GM_KIND_DEVICE;
	gm_site_catch_up(&trace.sites[block->site]);
	gm_site_add(&trace.sites[block->site], bytes, 1, block->serial, gm_track.now_ns, NULL);
	return number;
}

void trace_free(uint32_t number)
{
	struct gm_alloc_record *block = &trace.blocks[number];

	enter();
	gm_site_catch_up(&trace.sites[block->site]);
	gm_site_remove(&trace.sites[block->site], block->bytes, 1,
		       block->flags & GM_ALLOC_BEFORE_MARK, NULL);
	block->state = GM_STATE_EMPTY;
	trace.header.freed++;
	trace.unused[trace.unused_count++] = number;
}

void trace_mark(void)
{
	enter();
	trace.header.tables[GM_TABLE_MARKS].count++;
	if (!trace.header.first_mark_serial) { /* first_program_mark of track.c */
		for (uint32_t i = 0; i < trace.blocks_count; i++)
			if (trace.blocks[i].state == GM_STATE_LIVE) {
				trace.blocks[i].flags |= GM_ALLOC_BEFORE_MARK;
				gm_site_add_stray(&trace.sites[trace.blocks[i].site].figures,
						  trace.blocks[i].bytes, 1);
			}
		trace.header.first_mark_serial = trace.header.serial + 1;
	}
	gm_windows_open_at_mark();
}

/* ---- the end ---- */

uint32_t trace_site(unsigned site)
{
	return trace.numbers[site] - 1; /* 0 becomes GM_NONE */
}

struct trace_books trace_end(void)
{
	uint32_t sites = trace.header.tables[GM_TABLE_SITES].count;

	enter();
	trace.header.last_event_ns = trace.header.ended_ns = trace.now_ns;
	for (uint32_t i = 0; i < sites; i++)
		gm_site_catch_up(&trace.sites[i]);
	return (struct trace_books){&trace.header, trace.sites, trace.blocks, sites,
				    trace.blocks_count};
}

/* ---- chance: splitmix64 ---- */

static uint64_t next_random(void)
{
	uint64_t z = trace.random += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

uint64_t trace_random(uint64_t below)
{
	return below ? next_random() % below : 0;
}

double trace_uniform(void)
{
	return (double)(next_random() >> 11) / 9007199254740992.0;
}

bool trace_one_in(double n)
{
	return trace_uniform() * n < 1;
}

unsigned trace_poisson(double mean)
{
	double limit = exp(-mean), product = trace_uniform();
	unsigned number = 0;

	if (mean > 500) /* its normal approximation is as good there */
		return (unsigned)(mean + sqrt(mean) * sqrt(-2 * log(1 - trace_uniform())) *
						 cos(6.283185307179586 * trace_uniform()));
	while (product > limit) {
		number++;
		product *= trace_uniform();
	}
	return number;
}
