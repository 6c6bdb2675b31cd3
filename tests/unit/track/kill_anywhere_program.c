/*
 * What kill_anywhere.c goes through instruction by instruction: events of every way that blocks of
 * PyTorch's and driver calls take, once they go straight through (track/blocks.c, calls.c). Stops
 * itself before and after. Argument: the file.
 */
#include "drive.h"
#include "track/driver_allocs.h"
#include "track/in_use.h"
#include "track/marks.h"
#include "track/pools.h"
#include "track/torch_blocks.h"

#include <signal.h>
#include <unistd.h>

#define BLOCKS	   12u
#define WARM_STEPS 70000u /* more than the history's ring is long */
#define MIB	   (1ull << 20)

static uint64_t allocated;

static void give_by(uint32_t stack, unsigned i, uint64_t bytes)
{
	allocated += bytes;
	gm_track_block(0x7e0000000000 + i * 64 * MIB, bytes, (struct gm_where){0, 7},
		       (struct gm_origin){stack, GM_NONE}, (struct gm_torch_totals){allocated, 0});
}

static void give(unsigned i, uint64_t bytes)
{
	give_by(i % 4, i, bytes);
}

static void take(unsigned i, uint64_t bytes)
{
	allocated -= bytes;
	gm_track_block_free(0x7e0000000000 + i * 64 * MIB, (struct gm_where){0, 7},
			    (struct gm_torch_totals){allocated, 0});
}

static uint32_t pool;

static struct gm_event event_of(unsigned kind, uint64_t key)
{
	struct gm_event event = drive_event(key, kind, GM_SPACE_POINTER, GM_LEVEL_DRIVER);

	if (kind == GM_KIND_ASYNC) {
		event.owner = pool;
		event.stream = 3;
	}
	return event;
}

static void allocate(unsigned kind, uint64_t key, uint64_t bytes)
{
	struct gm_event event = event_of(kind, key);

	event.stack = 9 + kind;
	event.bytes = bytes;
	gm_track_alloc(&event);
}

static void release(unsigned kind, uint64_t key)
{
	struct gm_event event = event_of(kind, key);
	uint64_t latest = gm_track_free_begin(event.space, event.key);

	event.owner = GM_NONE;
	event.bytes = 0;
	gm_track_free_end(latest, &event);
}

/* The call is repeated soon, so it seems: blocks do not go straight through until it was. */
static void fail(uint64_t bytes)
{
	struct gm_event event = event_of(GM_KIND_DEVICE, 0);

	event.bytes = bytes;
	event.error = GM_ERROR_OUT_OF_MEMORY;
	gm_track_alloc_failed(&event);
}

static void warm_up(void)
{
	pool = gm_track_pool(0x100, 0, GM_POOL_EXPLICIT, GM_NONE);
	for (unsigned i = 0; i < BLOCKS; i++)
		give(i, 4096 + i * 512);
	gm_track_mark("warm", GM_MARK_PROGRAM);
	allocate(GM_KIND_DEVICE, 0x7f0000000000, 4 * MIB);
	allocate(GM_KIND_DEVICE, 0x7f0010000000, 4096);
	for (unsigned i = 0; i < WARM_STEPS; i += 4) {
		take(i % BLOCKS, 4096 + i % BLOCKS * 512);
		give(i % BLOCKS, 4096 + i % BLOCKS * 512);
		allocate(GM_KIND_ASYNC, 0x7f0030000000, 8192);
		release(GM_KIND_ASYNC, 0x7f0030000000);
		allocate(GM_KIND_DEVICE, 0x7f0020000000, 2048);
		release(GM_KIND_DEVICE, 0x7f0020000000);
	}
}

int main(int argc, char **argv)
{
	if (argc < 2 || !drive_open(argv[1], 16 * MIB))
		return 2;
	warm_up();
	raise(SIGSTOP);
	take(1, 4608);		/* from before the mark */
	give(1, 1024);
	take(1, 1024);
	give(1, 70000);		/* a new peak */
	allocate(GM_KIND_DEVICE, 0x7f0020000000,
		 3 * MIB); /* the books of blocks are brought up to date */
	take(2, 5120);
	allocate(GM_KIND_ASYNC, 0x7f0030000000, 8192);
	allocate(GM_KIND_ASYNC, 0x7f0040000000, 800000);
	release(GM_KIND_ASYNC, 0x7f0030000000);
	allocate(GM_KIND_ASYNC, 0x7f0030000000, 8192);
	release(GM_KIND_ASYNC, 0x7f0030000000);
	release(GM_KIND_DEVICE, 0x7f0020000000);
	allocate(GM_KIND_DEVICE, 0x7f0020000000, 1024);
	release(GM_KIND_DEVICE, 0x7f0020000000);
	give(2, 5120);
	gm_track_mark("more", GM_MARK_PROGRAM);
	take(3, 5632);
	give_by(40, 3, 7168);	/* a new site */
	allocated -= 7168;	/* a free that nobody told of */
	give_by(41, 3, 6144);
	fail(1024 * MIB);
	take(3, 6144);
	give(3, 5632);
	gm_track_reset_peak(0);
	raise(SIGSTOP);
	return 0;
}
