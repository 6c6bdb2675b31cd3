/*
 * 64 threads on all families at once and on blocks of PyTorch's, recorded in full and sampled,
 * straight into track/, for a number of rounds each; then the books are held against each other.
 * Built plain, for ThreadSanitizer and for the address sanitizer. Arguments: rounds per thread, or
 * a time ("60s"); a directory.
 */
#include "drive.h"
#include "track/allocs.h"
#include "track/block_counts.h"
#include "track/driver_allocs.h"
#include "track/in_use.h"
#include "track/levels.h"
#include "track/marks.h"
#include "track/thread_id.h"
#include "track/torch_blocks.h"
#include "track/torch_memory.h"
#include "track/update.h"
#include "track/vmm.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define THREADS 64
#define KEPT	3 /* blocks each thread leaves behind */

static const struct family {
	uint8_t kind, space, level;
} families[] = {
	{GM_KIND_DEVICE, GM_SPACE_POINTER, GM_LEVEL_DRIVER},
	{GM_KIND_MANAGED, GM_SPACE_POINTER, GM_LEVEL_DRIVER},
	{GM_KIND_ASYNC, GM_SPACE_POINTER, GM_LEVEL_DRIVER},
	{GM_KIND_PINNED, GM_SPACE_POINTER, GM_LEVEL_DRIVER},
	{GM_KIND_ARRAY, GM_SPACE_ARRAY, GM_LEVEL_DRIVER},
	{GM_KIND_VMM, GM_SPACE_HANDLE, GM_LEVEL_DRIVER},
	{GM_KIND_REGISTERED, GM_SPACE_REGISTERED, GM_LEVEL_DRIVER},
	{GM_KIND_DEVICE, GM_SPACE_CUSTOM, GM_LEVEL_CUSTOM},
};

#define FAMILIES (sizeof(families) / sizeof(*families))

static struct gm_counted places;

static unsigned long rounds; /* 0: until `end` */
static time_t end;

static struct gm_event event_of(const struct family *family, uint64_t key)
{
	struct gm_event event = drive_event(key, family->kind, family->space, family->level);

	if (family->kind == GM_KIND_PINNED || family->kind == GM_KIND_REGISTERED)
		event.device = GM_HOST;
	event.bytes = 1000;
	return event;
}

static void release(const struct family *family, struct gm_event *event)
{
	if (family->space == GM_SPACE_HANDLE)
		gm_track_release(event);
	else
		gm_track_free_end(gm_track_free_begin(event->space, event->key), event);
}

/* PyTorch's allocator of a device: it tells of a block with its lock held. */
static struct allocator {
	pthread_mutex_t lock;
	struct gm_torch_totals totals;
} allocators[] = {{.lock = PTHREAD_MUTEX_INITIALIZER}, {.lock = PTHREAD_MUTEX_INITIALIZER},
		  {.lock = PTHREAD_MUTEX_INITIALIZER}};

#define ALLOCATORS (sizeof(allocators) / sizeof(*allocators))

static void give(uint64_t block, unsigned device, uint64_t bytes)
{
	struct allocator *allocator = &allocators[device];
	struct gm_where where = {(int)device, gm_calling_thread()};

	pthread_mutex_lock(&allocator->lock);
	gm_track_block_prefetch(block, (int)device, (uint32_t)bytes % 4);
	allocator->totals.allocated_bytes += bytes;
	gm_track_block(block, bytes, where, (struct gm_origin){(uint32_t)bytes % 4, GM_NONE},
		       allocator->totals);
	pthread_mutex_unlock(&allocator->lock);
}

static void take(uint64_t block, unsigned device, uint64_t bytes)
{
	struct allocator *allocator = &allocators[device];
	struct gm_where where = {(int)device, gm_calling_thread()};

	pthread_mutex_lock(&allocator->lock);
	allocator->totals.allocated_bytes -= bytes;
	gm_track_block_free(block, where, allocator->totals);
	pthread_mutex_unlock(&allocator->lock);
}

/*
 * Blocks alone for a while, so that they go straight through, and one that stays from round to
 * round.
 */
static void blocks(uint64_t base, unsigned long round)
{
	unsigned device = base / (1ull << 32) % ALLOCATORS;
	uint64_t bytes = 512 + round % 9;

	for (unsigned i = 0; i < 4; i++) {
		give(base + i * 4096, device, bytes + i);
		take(base + i * 4096, device, bytes + i);
	}
	if (round)
		take(base + 1 + (round - 1) % 2, device, 600);
	give(base + 1 + round % 2, device, 600);
	if (round % 16 == 0)
		gm_track_reset_peak((int)device);
	if (gm_track_in_use((int)device, true) < 600)
		abort();
}

/*
 * The same in a sampled recording, as PyTorch's hook does it: on devices of its own, so that the
 * lock is taken for the blocks of others meanwhile.
 */
#define SAMPLED ALLOCATORS /* the first of these devices */

static struct allocator sampled[] = {{.lock = PTHREAD_MUTEX_INITIALIZER},
				     {.lock = PTHREAD_MUTEX_INITIALIZER}};

static unsigned long counted; /* without the lock (atomic) */

static void change(uint64_t block, unsigned which, int64_t bytes, bool sample)
{
	struct allocator *allocator = &sampled[which];
	struct gm_where where = {(int)(SAMPLED + which), gm_calling_thread(), 0};
	struct gm_torch_record *torch;

	pthread_mutex_lock(&allocator->lock);
	allocator->totals.allocated_bytes += (uint64_t)bytes;
	torch = gm_counted_torch(gm_counted_device(where.device));
	if (torch && !gm_look_is_due(torch) &&
	    (bytes < 0 ? !gm_may_be_sampled(block) : !sample) &&
	    gm_count_block(torch, bytes, allocator->totals))
		__atomic_add_fetch(&counted, 1, __ATOMIC_RELAXED);
	else if (bytes < 0)
		gm_track_sampled_block_free(block, (uint64_t)-bytes, where, allocator->totals);
	else if (sample)
		gm_track_sampled_block(block, (uint64_t)bytes, where,
				       (struct gm_origin){(uint32_t)bytes % 4, GM_NONE, 0},
				       allocator->totals);
	else
		gm_track_unsampled_block((uint64_t)bytes, where, allocator->totals);
	pthread_mutex_unlock(&allocator->lock);
}

static void sampled_blocks(uint64_t base, unsigned long round)
{
	unsigned which = base / (1ull << 32) % 2;
	int64_t bytes = 512 + (int64_t)(round % 9);

	base += 64 * 4096; /* other addresses than those of blocks() */
	for (uint64_t i = 1; i < 5; i++)
		change(base + i * 4096, which, bytes, i == round % 8);
	for (uint64_t i = 1; i < 5; i++)
		change(base + i * 4096, which, -bytes, false);
	if (round % 2 == 0)
		change(base, which, 600, round % 16 == 0);
	else
		change(base, which, -600, false);
}

/* Nothing is left but the totals of what came and went, and nothing is live of what was sampled. */
static bool samples_are_right(void)
{
	for (unsigned which = 0; which < 2; which++) {
		int device = (int)(SAMPLED + which);
		const struct gm_torch_record *torch = gm_known_torch(device);
		uint64_t live = sampled[which].totals.allocated_bytes;

		if (!torch || torch->mismatches || torch->contended ||
		    torch->allocated_bytes != live ||
		    gm_in_use_blocks(device) != live ||
		    (torch->allocations - torch->frees) * 600 != live)
			return false;
	}
	return counted > 0;
}

/* What the books say of blocks is what PyTorch counts, of every one. */
static bool blocks_are_right(void)
{
	gm_update_begin();
	gm_update_end();
	for (unsigned device = 0; device < ALLOCATORS; device++) {
		const struct gm_torch_record *torch = gm_known_torch((int)device);
		const struct gm_level_record *level = gm_totals.levels[device + 1][GM_LEVEL_TORCH];

		if (!torch || torch->mismatches || torch->by_level ||
		    torch->allocated_bytes != allocators[device].totals.allocated_bytes ||
		    !gm_torch_follows(torch, level) ||
		    level->current_bytes != torch->allocated_bytes ||
		    level->current_count * 600 != torch->allocated_bytes)
			return false;
	}
	return true;
}

static void *work(void *argument)
{
	uint64_t base = ((uint64_t)(uintptr_t)argument + 1) << 32;
	unsigned long i;

	for (i = 0; rounds ? i < rounds : i % 64 || time(NULL) < end; i++) {
		const struct family *family = &families[i % FAMILIES];
		struct gm_event event = event_of(family, base + i % 512 * 4096);
		struct gm_alloc_record copy;

		gm_track_alloc(&event);
		if (!gm_track_find(event.space, event.key, &copy) || copy.bytes != 1000)
			abort();
		if (i % 16 == 0)
			gm_track_alloc_failed(&event);
		if (i % 64 == 0)
			gm_track_mark("round", GM_MARK_PROGRAM);
		release(family, &event);
		event.error = 1;
		if (i % 32 == 0)
			release(family, &event); /* twice: refused */
		blocks(base, i);
		sampled_blocks(base, i);
	}
	for (i = 0; i < KEPT; i++) {
		struct gm_event event = event_of(&families[0], base + (1000 + i) * 4096);

		gm_track_alloc(&event);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	char path[4096];
	uint64_t live = 0;
	uint32_t i;

	rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
	if (argc > 1 && strchr(argv[1], 's')) {
		end = time(NULL) + (time_t)rounds;
		rounds = 0;
	}
	snprintf(path, sizeof(path), "%s/threads-%d.gmt", argc > 2 ? argv[2] : "/tmp", getpid());
	if (!drive_open(path, 64 << 20))
		return 2;
	unlink(path);
	gm_track_count_blocks(&places);
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i))
			return 3;
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < gm_file->tables[GM_TABLE_USAGE].count; i++) {
		const struct gm_usage_record *usage = gm_store_record(GM_TABLE_USAGE, i);

		live += usage->current_bytes;
		if (usage->allocations - usage->frees != usage->current_count)
			return 4;
	}
	printf("%u threads: %llu events, live %llu\n", THREADS,
	       (unsigned long long)gm_file->events, (unsigned long long)live);
	if (!blocks_are_right())
		return 6;
	if (!samples_are_right())
		return 7;
	return live == (uint64_t)THREADS * KEPT * 1000 && gm_file->dropped_records == 0 ? 0 : 5;
}
