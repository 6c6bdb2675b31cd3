/*
 * 64 threads on all families at once, straight into track/, for a number of rounds each; then the books
 * are held against each other. Built plain, for ThreadSanitizer and for the address sanitizer.
 * Arguments: rounds per thread, or a time ("60s"); a directory.
 */
#include "drive.h"

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
	snprintf(path, sizeof(path), "%s/storm-%d.gmt", argc > 2 ? argv[2] : "/tmp", getpid());
	if (!drive_open(path, 64 << 20))
		return 2;
	unlink(path);
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
	return live == (uint64_t)THREADS * KEPT * 1000 && gm_file->dropped_records == 0 ? 0 : 5;
}
