/*
 * The same working set for a number of events and for so many times as many: the file, the
 * tracker's private memory and what is resident may not differ. Marks are made in both up to their
 * limit and far beyond it. Arguments: the shorter run's events, a directory, how many times as many
 * (10).
 */
#include "drive.h"
#include "track/driver_allocs.h"
#include "track/marks.h"
#include "track/track.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIVE	 2000 /* allocations at any time */
#define PER_MARK 4    /* a million events make more marks than are kept */

/*
 * Resident pages are the kernel's affair, and it may take some back; the other figures are exact.
 */
#define SLACK_BYTES 65536

struct size {
	uint64_t file_bytes, own_bytes, resident_bytes, dropped;
};

static void run(uint64_t events)
{
	uint64_t i;

	for (i = 0; i < events / 2; i++) {
		uint64_t key = 0x1000 + i % LIVE * 64;
		struct gm_event event =
			drive_event(key, GM_KIND_DEVICE, GM_SPACE_POINTER, GM_LEVEL_DRIVER);

		if (i >= LIVE)
			gm_track_free_end(gm_track_free_begin(GM_SPACE_POINTER, key), &event);
		gm_track_alloc(&event);
		if (i % PER_MARK == 0)
			gm_track_mark("step", GM_MARK_PROGRAM);
	}
}

/*
 * By the page tables. The kernel's counter, which statm prints, leaves out up to 31 pages for each
 * processor from Linux 6.2 to 6.15 [percpu_counter_read_positive of mm_struct.rss_stat].
 */
static uint64_t resident_bytes(void)
{
	unsigned long kib = 0;
	FILE *file = fopen("/proc/self/smaps_rollup", "re");

	if (!file || fscanf(file, "%*[^\n] Rss: %lu", &kib) != 1)
		abort();
	fclose(file);
	return kib * 1024ull;
}

static int measure(const char *directory, uint64_t events, struct size *size)
{
	char path[4096];
	struct stat st;

	snprintf(path, sizeof(path), "%s/size-%d.gmt", directory, getpid());
	if (!drive_open(path, 64 << 20))
		return 2;
	run(events);
	size->resident_bytes = resident_bytes();
	gm_track_end(GM_END_EXIT, 0);
	size->own_bytes = gm_file->own_bytes;
	size->dropped = gm_file->dropped_records;
	if (gm_store_finish() || stat(path, &st))
		return 3;
	size->file_bytes = (uint64_t)st.st_size;
	unlink(path);
	return 0;
}

/* Measured in a process of its own, so that nothing is resident of the run before. */
static int measure_apart(const char *directory, uint64_t events, struct size *size)
{
	int ends[2], status = 0;
	pid_t child;

	if (pipe(ends) || (child = fork()) < 0)
		return 6;
	if (child == 0) {
		int error;

		prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* of which the longer run could get more */
		error = measure(directory, events, size);

		_exit(write(ends[1], size, sizeof(*size)) == sizeof(*size) ? error : 6);
	}
	close(ends[1]);
	if (read(ends[0], size, sizeof(*size)) != sizeof(*size) || waitpid(child, &status, 0) < 0)
		return 6;
	close(ends[0]);
	printf("%llu events: file %llu, own %llu, resident %llu, dropped %llu\n",
	       (unsigned long long)events, (unsigned long long)size->file_bytes,
	       (unsigned long long)size->own_bytes, (unsigned long long)size->resident_bytes,
	       (unsigned long long)size->dropped);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 6;
}

int main(int argc, char **argv)
{
	uint64_t events = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
	const char *directory = argc > 2 ? argv[2] : "/tmp";
	uint64_t times = argc > 3 ? strtoull(argv[3], NULL, 10) : 10;
	struct size few, many;
	int error;

	setvbuf(stdout, NULL, _IONBF, 0);
	error = measure_apart(directory, events, &few);
	if (!error)
		error = measure_apart(directory, events * times, &many);
	if (error)
		return error;
	if (few.dropped || many.dropped || !few.own_bytes || !few.file_bytes)
		return 4;
	return few.file_bytes == many.file_bytes && few.own_bytes == many.own_bytes &&
			       many.resident_bytes <= few.resident_bytes + SLACK_BYTES
		       ? 0
		       : 5;
}
