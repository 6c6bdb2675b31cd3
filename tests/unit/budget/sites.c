/*
 * Stacks' sites are asked for ahead, without the lock, while another thread's new stacks make the table of
 * them grow: whatever was there a moment ago can still be read.
 * Argument: a directory.
 */
#include "drive.h"
#include "track/torch.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define READERS	    3
#define FIRST_STACK 1024u
#define LAST_STACK  (1u << 23)

static bool done;

static void *read_ahead(void *data)
{
	uint32_t stack = (uint32_t)(uintptr_t)data;

	while (!__atomic_load_n(&done, __ATOMIC_RELAXED))
		gm_track_site_prefetch(stack);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t reader[READERS];
	struct gm_event event = drive_event(0, GM_KIND_DEVICE, GM_SPACE_POINTER, GM_LEVEL_DRIVER);
	char path[4096];
	uintptr_t i;

	snprintf(path, sizeof(path), "%s/sites-%d.gpumem", argc > 1 ? argv[1] : ".", (int)getpid());
	if (!drive_open(path, 64 << 20))
		return 2;
	unlink(path);
	for (i = 0; i < READERS; i++)
		pthread_create(&reader[i], NULL, read_ahead, (void *)(i * (FIRST_STACK - 1) / READERS));
	for (event.stack = FIRST_STACK; event.stack <= LAST_STACK; event.stack *= 2) {
		event.key = event.stack;
		gm_track_alloc(&event);
	}
	__atomic_store_n(&done, true, __ATOMIC_RELAXED);
	for (i = 0; i < READERS; i++)
		pthread_join(reader[i], NULL);
	if (gm_file->tables[GM_TABLE_SITES].count == 14)
		return 0;
	printf("%u sites, 14 expected\n", (unsigned)gm_file->tables[GM_TABLE_SITES].count);
	return 1;
}
