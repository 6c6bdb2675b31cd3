/*
 * A file that is let go of and goes on in another one (gm_store_release, gm_store_move) while a
 * thread records, as around an attach: its directory lists each chunk that the thread was given,
 * once. Arguments: how often, a directory.
 */
#include "drive.h"
#include "track/driver_allocs.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CAP	   (256u << 20)
#define MOST_KEYS  200000u /* fewer than the file has room for */
#define EACH_MOVES 2000u   /* events between two moves at least, which fill a few chunks */

static uint64_t events; /* so far (atomic) */
static int stop;	/* (atomic) */

static void *record(void *unused)
{
	for (uint64_t i = 1; i <= MOST_KEYS && !__atomic_load_n(&stop, __ATOMIC_ACQUIRE); i++) {
		struct gm_event event =
			drive_event(i * 64, GM_KIND_DEVICE, GM_SPACE_POINTER, GM_LEVEL_DRIVER);

		gm_track_alloc(&event);
		__atomic_store_n(&events, i, __ATOMIC_RELEASE);
	}
	return unused;
}

/* Returns whether the chunks of each table have the numbers from 0 on, each once. */
static bool directory_is_right(void)
{
	const struct gm_directory_entry *directory =
		(const void *)((char *)gm_file + GM_HEADER_BYTES);
	static bool seen[GM_TABLES_NOW][CAP / GM_CHUNK_BYTES];
	uint32_t chunks[GM_TABLES_NOW] = {0};

	for (uint32_t i = 0; i < gm_file->chunk_count; i++) {
		if (directory[i].table >= GM_TABLES_NOW ||
		    directory[i].ordinal >= CAP / GM_CHUNK_BYTES ||
		    seen[directory[i].table][directory[i].ordinal])
			return false;
		seen[directory[i].table][directory[i].ordinal] = true;
		chunks[directory[i].table]++;
	}
	for (unsigned table = 0; table < GM_TABLES_NOW; table++)
		for (uint32_t ordinal = 0; ordinal < chunks[table]; ordinal++)
			if (!seen[table][ordinal])
				return false;
	return gm_file->tables[GM_TABLE_ALLOCS].count <=
	       chunks[GM_TABLE_ALLOCS] * (GM_CHUNK_BYTES / sizeof(struct gm_alloc_record));
}

int main(int argc, char **argv)
{
	unsigned long moves = argc > 1 ? strtoul(argv[1], NULL, 10) : 100;
	const char *directory = argc > 2 ? argv[2] : "/tmp";
	char path[2][4096];
	pthread_t recorder;
	uint64_t before = 0;

	for (int i = 0; i < 2; i++)
		snprintf(path[i], sizeof(path[i]), "%s/moved-%d-%d.gmt", directory, getpid(), i);
	if (!drive_open(path[0], CAP) || pthread_create(&recorder, NULL, record, NULL))
		return 2;
	for (unsigned long i = 1; i <= moves; i++) {
		while (__atomic_load_n(&events, __ATOMIC_ACQUIRE) < before + EACH_MOVES &&
		       events < MOST_KEYS)
			sched_yield();
		before = __atomic_load_n(&events, __ATOMIC_ACQUIRE);
		gm_store_release();
		unlink(path[(i - 1) % 2]);
		if (gm_store_move(path[i % 2]) != 0)
			return 3;
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(recorder, NULL);
	printf("%llu events, %u chunks, %llu records dropped\n", (unsigned long long)events,
	       gm_file->chunk_count, (unsigned long long)gm_file->dropped_records);
	unlink(path[moves % 2]);
	return gm_file->dropped_records ? 4 : directory_is_right() ? 0 : 5;
}
