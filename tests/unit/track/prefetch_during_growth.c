/*
 * What is fetched ahead of a block's event is looked up without the lock, in an array that other
 * threads' new stacks make grow: nothing that a thread may still look at is unmapped. Argument: a
 * directory.
 */
#include "drive.h"
#include "track/allocs.h"
#include "track/driver_allocs.h"
#include "track/torch_blocks.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define THREADS	   3
#define LAST_STACK (1u << 21) /* the array is mapped anew eight times on the way */

static bool done;

static void *look(void *unused)
{
	uint32_t stack = 0;

	while (!__atomic_load_n(&done, __ATOMIC_RELAXED))
		gm_track_block_prefetch(0x1000, 0, stack++ % 4096);
	return unused;
}

static void allocate(uint32_t stack)
{
	struct gm_event event =
		drive_event(0x1000 + stack, GM_KIND_DEVICE, GM_SPACE_POINTER, GM_LEVEL_DRIVER);

	event.stack = stack;
	gm_track_alloc(&event);
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	struct gm_alloc_record last;
	uint32_t stack, i;
	char path[4096];

	if (argc < 2)
		return 2;
	snprintf(path, sizeof(path), "%s/prefetch.gmt", argv[1]);
	if (!drive_open(path, 64ull << 20))
		return 2;
	allocate(0);
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, look, NULL))
			return 2;
	for (stack = 4096; stack <= LAST_STACK; stack *= 2)
		allocate(stack);
	__atomic_store_n(&done, true, __ATOMIC_RELAXED);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return !gm_track_find(GM_SPACE_POINTER, 0x1000 + LAST_STACK, &last) || unlink(path);
}
