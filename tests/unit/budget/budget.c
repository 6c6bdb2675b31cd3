/*
 * The same working set for one and for ten times as many events: file and private memory may not
 * differ. Arguments: the shorter run's events, a directory.
 */
#include "drive.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIVE	 2000	/* allocations at any time */
#define PER_MARK 100

struct size {
	uint64_t file_bytes, own_bytes, dropped;
};

static void run(uint64_t events)
{
	uint64_t i;

	for (i = 0; i < events / 2; i++) {
		uint64_t key = 0x1000 + i % LIVE * 64;
		struct gm_event event = drive_event(key, GM_KIND_DEVICE, GM_SPACE_POINTER, GM_LEVEL_DRIVER);

		if (i >= LIVE)
			gm_track_free_end(gm_track_free_begin(GM_SPACE_POINTER, key), &event);
		gm_track_alloc(&event);
		if (i % PER_MARK == 0 && i < 1000000)
			gm_track_mark("step", GM_MARK_PROGRAM);
	}
}

static int measure(const char *directory, uint64_t events, struct size *size)
{
	char path[4096];
	struct stat st;

	snprintf(path, sizeof(path), "%s/budget-%d-%llu.gmt", directory, getpid(),
		 (unsigned long long)events);
	if (!drive_open(path, 64 << 20))
		return 2;
	run(events);
	gm_track_end(GM_END_EXIT, 0);
	size->own_bytes = gm_file->own_bytes;
	size->dropped = gm_file->dropped_records;
	if (gm_store_finish() || stat(path, &st))
		return 3;
	size->file_bytes = (uint64_t)st.st_size;
	unlink(path);
	gm_store_forget();
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t events = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
	const char *directory = argc > 2 ? argv[2] : "/tmp";
	struct size one, ten;
	int error = measure(directory, events, &one);

	if (!error)
		error = measure(directory, events * 10, &ten);
	if (error)
		return error;
	printf("%llu events: file %llu, own %llu, dropped %llu\n%llu events: file %llu, own %llu, dropped %llu\n",
	       (unsigned long long)events, (unsigned long long)one.file_bytes,
	       (unsigned long long)one.own_bytes, (unsigned long long)one.dropped,
	       (unsigned long long)events * 10, (unsigned long long)ten.file_bytes,
	       (unsigned long long)ten.own_bytes, (unsigned long long)ten.dropped);
	if (one.dropped || ten.dropped || !one.own_bytes || !one.file_bytes)
		return 4;
	/* marks are kept up to a number that the longer run gets nearer to: their records alone differ */
	return ten.own_bytes == one.own_bytes && ten.file_bytes <= one.file_bytes + (4 << 20) ? 0 : 5;
}
