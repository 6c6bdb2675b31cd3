/*
 * The same calls, and blocks of PyTorch's between them, on two files: one keeps a history, so that
 * usual ones go straight through (track/calls.c, blocks.c), one keeps none, where all go the
 * general way. Every figure but times must be the same, what slabs hold is reckoned apart, and the
 * history's last events must be what was told. Argument: a directory.
 */
#include "drive.h"
#include "track/driver_allocs.h"
#include "track/functions.h"
#include "track/in_use.h"
#include "track/levels.h"
#include "track/marks.h"
#include "track/pools.h"
#include "track/sites.h"
#include "track/slabs.h"
#include "track/torch_blocks.h"
#include "track/torch_memory.h"
#include "track/track.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEPS	 300000u
#define SLOTS	 700u
#define FIRST	 0x7f0000000000
#define SPACING	 (700ull << 10) /* of addresses: small ones share slabs */
#define BLOCKS	 500u
#define ALONE	 140000u /* steps without blocks: what is in use goes by the calls */
#define LAST	 3000u /* events of the history that are looked at, all of usual calls */
#define MIB	 (1ull << 20)
#define RESERVED (64 * MIB)

static const struct family {
	uint8_t kind;
	int16_t device;
	uint64_t pool; /* its handle */
} families[] = {
	{GM_KIND_DEVICE, 0, 0},	   {GM_KIND_ASYNC, 0, 0x100},
	{GM_KIND_ASYNC, 1, 0x200}, {GM_KIND_DEVICE, 1, 0},
	{GM_KIND_ASYNC, 0, 0},	   {GM_KIND_ASYNC, 1, 0x300},
	{GM_KIND_MANAGED, 0, 0},   {GM_KIND_PINNED, GM_HOST, 0},
	{GM_KIND_DEVICE, 20, 0}, /* of it no books are held ready */
};
#define FAMILIES (sizeof(families) / sizeof(*families))

static uint32_t pools[FAMILIES];

static struct told {
	uint64_t key, bytes, stream;
	enum gm_event_op op;
	int16_t device;
	uint8_t kind;
} told[LAST];

static unsigned tells;

static uint64_t bytes_of[SLOTS]; /* 0: nothing lives there */

static const int8_t block_devices[] = {0, 1, 0, 70}; /* of the last no books are held ready */
static uint64_t block_bytes[BLOCKS];

static unsigned straight; /* of the last steps, those in which blocks went straight through */

static uint64_t state;
static uint64_t sum; /* of figures that come and go */

static unsigned pick(unsigned below)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(state >> 33) % below;
}

static void add(uint64_t figure)
{
	sum = (sum ^ figure) * 0x9e3779b97f4a7c15ull;
}

static struct gm_event event_of(unsigned slot)
{
	const struct family *family = &families[slot % FAMILIES];
	static const uint64_t sizes[] = {512, 1000, 70000, MIB, 3 * MIB, 40 * MIB};

	return (struct gm_event){
		.key = FIRST + slot * SPACING, .bytes = sizes[pick(6)], .stream = 1 + pick(3),
		.stack = pick(24), .caller_module = GM_NONE, .owner = pools[slot % FAMILIES],
		.function = gm_track_function(slot % 4, "cudaMalloc", GM_LAYER_RUNTIME),
		.kind = family->kind, .device = family->device, .space = GM_SPACE_POINTER,
		.level = GM_LEVEL_DRIVER,
	};
}

static void tell(enum gm_event_op op, const struct gm_event *event, uint64_t bytes)
{
	told[tells++ % LAST] =
		(struct told){event->key, bytes, event->stream, op, event->device, event->kind};
}

static void allocate(unsigned slot, bool odd)
{
	struct gm_event event = event_of(slot);

	if (odd && pick(50) == 0) {
		event.error = 2;
		gm_track_alloc_failed(&event);
		event.error = 0;
	}
	if (odd && event.kind == GM_KIND_DEVICE && pick(8) == 0)
		event.flags = GM_ALLOC_TORCH; /* a segment */
	gm_track_alloc(&event);
	tell(GM_OP_ALLOC, &event, event.bytes);
	bytes_of[slot] = event.bytes;
}

static void release(unsigned slot, bool odd)
{
	struct gm_event event = event_of(slot);
	uint64_t latest = gm_track_free_begin(event.space, event.key);
	bool again = odd && pick(40) == 0;

	tell(GM_OP_FREE, &event, bytes_of[slot]);
	if (again)
		allocate(slot, false); /* another thread got the address at once */
	event.bytes = 0;
	event.device = GM_HOST; /* a free does not say where */
	if (odd && pick(30) == 0)
		event.kind = event.kind == GM_KIND_ASYNC ? GM_KIND_DEVICE : GM_KIND_ASYNC;
	event.error = odd && !again && pick(60) == 0;
	gm_track_free_end(latest, &event);
	if (!event.error && !again)
		bytes_of[slot] = 0;
}

/* Now and then PyTorch counts otherwise than we do, more or less. */
static uint64_t odd_bytes(uint64_t bytes, bool odd)
{
	if (!odd || pick(200))
		return bytes;
	return bytes > 2 * MIB && pick(2) ? bytes - 2 * MIB : bytes + MIB;
}

/* What PyTorch counts once this block came (or, less than 0 bytes, went). */
static struct gm_torch_totals totals(int device, int64_t bytes, bool odd)
{
	const struct gm_torch_record *torch = gm_known_torch(device);
	unsigned slot = gm_slot(device);
	uint64_t allocated = torch ? torch->allocated_bytes : 0;

	if (slot < 64 && gm_track.cached_blocks >> slot & 1) /* the level alone is up to date */
		allocated =
			gm_totals.levels[slot][GM_LEVEL_TORCH]->current_bytes + torch->beyond_bytes;
	return (struct gm_torch_totals){odd_bytes(allocated + (uint64_t)bytes, odd),
					odd_bytes(torch ? torch->reserved_bytes : 0, odd)};
}

static void give(unsigned slot, struct gm_where where, uint64_t bytes, bool odd)
{
	const struct gm_event event = {.key = 0x7e0000000000 + slot * 64 * MIB,
				       .device = (int16_t)where.device,
				       .kind = GM_KIND_DEVICE};
	struct gm_origin origin = {pick(200) ? pick(40) : GM_NONE, GM_NONE};

	tell(GM_OP_ALLOC, &event, bytes);
	gm_track_block_prefetch(event.key, where.device, origin.stack);
	gm_track_block(event.key, bytes, where, origin, totals(where.device, (int64_t)bytes, odd));
	block_bytes[slot] = bytes;
}

static void take(unsigned slot, struct gm_where where, bool odd)
{
	const struct gm_event event = {.key = 0x7e0000000000 + slot * 64 * MIB,
				       .device = (int16_t)where.device,
				       .kind = GM_KIND_DEVICE};

	tell(GM_OP_FREE, &event, block_bytes[slot]);
	gm_track_block_free(event.key, where,
			    totals(where.device, -(int64_t)block_bytes[slot], odd));
	block_bytes[slot] = 0;
}

static void block(unsigned slot, bool odd)
{
	static const uint64_t sizes[] = {512, 1024, 70144, MIB, 20 * MIB};
	struct gm_where where = {block_devices[slot % 4], 7};
	uint64_t bytes = sizes[pick(5)];

	if (pick(16) == 0)
		gm_track_reset_peak(where.device);
	if (block_bytes[slot] && !(odd && pick(100) == 0)) {
		take(slot, where, odd);
		return;
	}
	give(slot, where, bytes, odd);
	if (pick(8) == 0) {
		take(slot, where, odd);
		if (pick(2)) /* a peak is reached again */
			give(slot, where, bytes, odd);
	}
	add(gm_track_in_use(where.device, true));
	add(gm_peak_of(where.device, GM_HOLES_TORCH)->cursor.left);
}

static void now_and_then(unsigned step)
{
	const struct gm_pool_figures figures = {RESERVED, 0, RESERVED, 0, GM_NO_BYTES};
	uint32_t pool = pools[pick(FAMILIES)];

	if (step % 97 == 0)
		gm_track_pools_waited(1 + pick(3), pick(4) == 0);
	if (step % 61 == 0 && pool != GM_NONE)
		gm_track_pool_sampled(pool, &figures, gm_track_pool_changes(pool));
	if (step % 40000 == 0 && step > STEPS / 3) /* when usual calls are no longer new */
		gm_track_mark("step", GM_MARK_PROGRAM);
	if (step == STEPS / 3)
		gm_track_pool_destroyed(0x300); /* lives on until its memory is freed */
	if (step == STEPS / 2)
		gm_track_reset_peak(0);
}

static void look(void)
{
	add(gm_track_in_use(0, true));
	add(gm_track_in_use(1, true));
	add(gm_track_physical_bytes(0));
	for (uint32_t i = 0; i < gm_file->tables[GM_TABLE_POOLS].count; i++) {
		const struct gm_pool_record *pool = gm_store_record(GM_TABLE_POOLS, i);

		add(pool->pending_free_bytes);
		add(pool->used_bytes);
	}
}

/*
 * What slabs hold, by what lives: which device a slab counts for is not told by addresses that
 * devices share.
 */
static bool slabs_are_right(void)
{
	uint64_t held = gm_slab_sums(0).reserved_bytes + gm_slab_sums(1).reserved_bytes +
			gm_slab_sums(20).reserved_bytes;
	uint64_t last = 0, expected = 0;

	for (unsigned slot = 0; slot < SLOTS; slot++) {
		uint64_t slab = (FIRST + slot * SPACING) / (2 * MIB);

		if (families[slot % FAMILIES].kind != GM_KIND_DEVICE || !bytes_of[slot] ||
		    bytes_of[slot] > MIB)
			continue;
		expected += slab != last ? 2 * MIB : 0;
		last = slab;
	}
	return held == expected;
}

static bool run(void)
{
	unsigned step, slot;

	for (slot = 0; slot < FAMILIES; slot++)
		pools[slot] = families[slot].pool
				      ? gm_track_pool(families[slot].pool, families[slot].device,
						      GM_POOL_EXPLICIT, GM_NONE)
				      : GM_NONE;
	for (step = 0; step < STEPS; step++) {
		bool odd = step + LAST < STEPS; /* the last ones are all usual but for sites */

		slot = pick(SLOTS);
		if (bytes_of[slot] && !(odd && pick(100) == 0))
			release(slot, odd);
		else
			allocate(slot, odd);
		for (unsigned blocks = step < ALONE ? 0 : pick(12); blocks; blocks--)
			block(pick(BLOCKS), odd);
		straight += !odd && gm_track.cached_blocks;
		now_and_then(step);
		look();
		if (step % 64 == 0)
			gm_track_reset_peak(1);
		if (step % 16 == 0 && !slabs_are_right())
			return false;
	}
	return true;
}

/* ---- what is compared ---- */

static void dump_sites(FILE *out)
{
	for (uint32_t i = 0; i < gm_file->tables[GM_TABLE_SITES].count; i++) {
		struct gm_site_record site =
			*(struct gm_site_record *)gm_store_record(GM_TABLE_SITES, i);

		site.first_ns = site.last_ns = 0;
		site.windows[0] =
			(struct gm_window){0}; /* before the first mark windows go by time */
		memset(&site.windows[site.window_current + 1], 0,
		       (GM_WINDOWS - 1u - site.window_current) * sizeof(*site.windows));
		fwrite(&site, sizeof(site), 1, out);
	}
}

static void dump_allocs(FILE *out)
{
	for (uint32_t i = 0; i < gm_file->tables[GM_TABLE_ALLOCS].count; i++) {
		struct gm_alloc_record alloc =
			*(struct gm_alloc_record *)gm_store_record(GM_TABLE_ALLOCS, i);

		if (alloc.state == GM_STATE_EMPTY)
			continue;
		alloc.time_ns = 0;
		alloc.thread = 0;
		fwrite(&alloc, sizeof(alloc), 1, out);
	}
}

static void dump_levels(FILE *out)
{
	for (uint32_t i = 0; i < gm_file->tables[GM_TABLE_LEVELS].count; i++) {
		struct gm_level_record level =
			*(struct gm_level_record *)gm_store_record(GM_TABLE_LEVELS, i);

		level.peak_at_ns = 0;
		fwrite(&level, sizeof(level), 1, out);
	}
	for (uint32_t i = 0; i < gm_file->tables[GM_TABLE_USAGE].count; i++)
		fwrite(gm_store_record(GM_TABLE_USAGE, i), sizeof(struct gm_usage_record), 1, out);
}

static void dump_pools(FILE *out)
{
	for (uint32_t i = 0; i < gm_file->tables[GM_TABLE_POOLS].count; i++) {
		struct gm_pool_record pool =
			*(struct gm_pool_record *)gm_store_record(GM_TABLE_POOLS, i);

		pool.sampled_ns = 0;
		fwrite(&pool, sizeof(pool), 1, out);
	}
	for (uint32_t i = 0; i < gm_file->tables[GM_TABLE_PEAKS].count; i++) {
		struct gm_peak_record peak =
			*(struct gm_peak_record *)gm_store_record(GM_TABLE_PEAKS, i);

		peak.time_ns = 0;
		fwrite(&peak, sizeof(peak), 1, out);
	}
}

static void dump_torch(FILE *out)
{
	for (uint32_t i = 0; i < gm_file->tables[GM_TABLE_TORCH].count; i++) {
		struct gm_torch_record torch =
			*(struct gm_torch_record *)gm_store_record(GM_TABLE_TORCH, i);

		torch.first_release_ns = torch.last_release_ns = torch.beyond_bytes = 0;
		fwrite(&torch, sizeof(torch), 1, out);
	}
	for (uint32_t i = 0; i < gm_file->tables[GM_TABLE_PEAK_BLOCKS].count; i++)
		fwrite(gm_store_record(GM_TABLE_PEAK_BLOCKS, i),
		       sizeof(struct gm_peak_block_record), 1, out);
}

/* What the series say last, and whether the history's last events are those that were told. */
static void dump_rest(FILE *out)
{
	for (int device = -1; device < 2; device++)
		fprintf(out, "%llu %llu\n", (unsigned long long)gm_track_in_use(device, false),
			(unsigned long long)gm_track_in_use(device, true));
	for (uint32_t i = 0; i < gm_file->tables[GM_TABLE_TIMELINE].count; i++) {
		const struct gm_timeline_record *series = gm_store_record(GM_TABLE_TIMELINE, i);

		fprintf(out, "%d %d %llu\n", series->device, series->series,
			(unsigned long long)series->last_bytes[series->points - 1]);
	}
	fprintf(out, "%llx\n", (unsigned long long)sum);
	fprintf(out, "%llu %llu %llu\n", (unsigned long long)gm_file->events,
		(unsigned long long)gm_file->serial, (unsigned long long)gm_file->unknown_frees);
}

static int check_history(void)
{
	for (uint32_t i = 0; i < LAST; i++) {
		uint64_t number = (gm_file->event_head - LAST + i) % gm_file->event_capacity;
		const struct gm_event_record *event =
			gm_store_record(GM_TABLE_EVENTS, (uint32_t)number);
		const struct told *call = &told[(tells + i) % LAST];

		if (event->op != call->op || event->key != call->key ||
		    event->bytes != call->bytes || event->stream != call->stream ||
		    event->device != call->device || event->kind != call->kind) {
			fprintf(stderr, "event %u from the end: %u of %llx, %llu bytes\n", LAST - i,
				event->op, (unsigned long long)event->key,
				(unsigned long long)event->bytes);
			return 4;
		}
	}
	return 0;
}

static int go(const char *path, bool history)
{
	char file[4096];
	FILE *out = fopen(path, "we");

	snprintf(file, sizeof(file), "%s.gmt", path);
	if (!out || gm_store_create(file, 64 << 20) != 0)
		return 2;
	unlink(file);
	gm_track_start(history);
	if (!run()) {
		fprintf(stderr, "what slabs hold is not what lives in them\n");
		return 8;
	}
	gm_settle_blocks();
	dump_sites(out);
	dump_allocs(out);
	dump_levels(out);
	dump_pools(out);
	dump_torch(out);
	dump_rest(out);
	if (fclose(out))
		return 3;
	if (history && straight < LAST / 4) {
		fprintf(stderr, "blocks went straight through in %u of the last %u steps\n",
			straight, LAST);
		return 9;
	}
	return history ? check_history() : 0;
}

static int same(FILE *a, FILE *b)
{
	long at = 0;
	int x, y;

	do {
		x = getc(a);
		y = getc(b);
		at++;
	} while (x == y && x != EOF);
	if (x != y)
		fprintf(stderr, "the two ways differ at byte %ld of what they were to say\n", at);
	return x == y && at > 100000;
}

int main(int argc, char **argv)
{
	char paths[2][4096];
	FILE *files[2];
	int status;

	for (int way = 0; way < 2; way++) {
		snprintf(paths[way], sizeof(paths[way]), "%s/paths-%d-%d",
			 argc > 1 ? argv[1] : "/tmp", getpid(), way);
		if (!fork())
			_exit(go(paths[way], way == 0));
		if (wait(&status) < 0 || status)
			return 5;
		files[way] = fopen(paths[way], "re");
		unlink(paths[way]);
		if (!files[way])
			return 6;
	}
	return same(files[0], files[1]) ? 0 : 7;
}
