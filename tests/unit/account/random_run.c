/*
 * A run of random allocations of all kinds, straight into the tracker, with a complete history;
 * beside it a model that adds up what it did in the plainest way. For test_agreement.c. Arguments:
 * the output file, a seed, how many steps, whether there are pools (0 or 1), a file for the model's
 * sums.
 */
#include "../track/drive.h"
#include "store/journal.h"
#include "track/devices.h"
#include "track/driver_allocs.h"
#include "track/marks.h"
#include "track/pools.h"
#include "track/thread_id.h"
#include "track/torch_blocks.h"
#include "track/vmm.h"

#include <stdio.h>
#include <stdlib.h>

#define KIB	(1ull << 10)
#define MIB	(1ull << 20)
#define SLOTS	48u
#define DEVICES 2

static const struct family {
	uint8_t kind, space, level;
	bool host, torch, pool;
} families[] = {
	{GM_KIND_DEVICE, GM_SPACE_POINTER, GM_LEVEL_DRIVER, false, false, false},
	{GM_KIND_DEVICE, GM_SPACE_POINTER, GM_LEVEL_DRIVER, false, true, false}, /* segments */
	{GM_KIND_MANAGED, GM_SPACE_POINTER, GM_LEVEL_DRIVER, false, false, false},
	{GM_KIND_ARRAY, GM_SPACE_ARRAY, GM_LEVEL_DRIVER, false, false, false},
	{GM_KIND_ASYNC, GM_SPACE_POINTER, GM_LEVEL_DRIVER, false, false, true},
	{GM_KIND_PINNED, GM_SPACE_POINTER, GM_LEVEL_DRIVER, true, false, false},
	{GM_KIND_REGISTERED, GM_SPACE_REGISTERED, GM_LEVEL_DRIVER, true, false, false},
	{GM_KIND_IMPORTED, GM_SPACE_POINTER, GM_LEVEL_DRIVER, false, false, false},
	{GM_KIND_VMM, GM_SPACE_HANDLE, GM_LEVEL_DRIVER, false, false, false},
	{GM_KIND_VMM, GM_SPACE_HANDLE, GM_LEVEL_DRIVER, true, false,
	 false}, /* cuMemCreate on the host */
	{GM_KIND_DEVICE, GM_SPACE_CUSTOM, GM_LEVEL_CUSTOM, false, false, false},
	{GM_KIND_DEVICE, GM_SPACE_TORCH, GM_LEVEL_TORCH, false, false, false},
};
#define FAMILIES (sizeof(families) / sizeof(*families))

/* What is at a key: nothing while `live` is false. */
static struct slot {
	bool live;
	uint64_t bytes;
	int device;
	uint64_t mapped_bytes; /* of a handle: under one address, 0 */
	bool released;	       /* the handle, while it is mapped */
	bool torch;	       /* the mapping is PyTorch's */
} slots[FAMILIES][SLOTS];

/* The model: sums over all that was done, by device (0 the host) and kind, and by device and level.
 */
static struct sums {
	uint64_t current_bytes, current_count, allocated_bytes, allocations, frees, peak_bytes,
		failures;
} usage[DEVICES + 1][GM_KINDS], levels[DEVICES + 1][GM_LEVELS];

static struct {
	uint64_t reserved_bytes, reserved_peak_bytes, mapped_bytes, created_bytes, handles;
} virtual_sums[DEVICES];

static uint64_t reserved_addresses[DEVICES];
static bool reservations[DEVICES][SLOTS];
static struct gm_torch_totals totals[DEVICES];
static uint32_t pools[DEVICES];
static uint64_t state;

static unsigned pick(unsigned below)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(state >> 33) % below;
}

static void come(struct sums *sums, uint64_t bytes)
{
	sums->current_bytes += bytes;
	sums->current_count++;
	sums->allocated_bytes += bytes;
	sums->allocations++;
	if (sums->current_bytes > sums->peak_bytes)
		sums->peak_bytes = sums->current_bytes;
}

static void go(struct sums *sums, uint64_t bytes)
{
	sums->current_bytes -= bytes;
	sums->current_count--;
	sums->frees++;
}

/* Registered and imported memory is not the process's own: it has usage, and no part in the level.
 */
static bool counts_in_level(const struct family *family)
{
	return family->kind != GM_KIND_REGISTERED && family->kind != GM_KIND_IMPORTED;
}

static void model(const struct family *family, const struct slot *slot, bool comes)
{
	unsigned device = family->host ? 0 : (unsigned)slot->device + 1;
	void (*step)(struct sums *, uint64_t) = comes ? come : go;

	if (family->level == GM_LEVEL_DRIVER)
		step(&usage[device][family->kind], slot->bytes);
	if (counts_in_level(family))
		step(&levels[device][family->level], slot->bytes);
}

static uint64_t key_of(unsigned family, unsigned number, int device)
{
	return (family + 1ull) << 40 | (uint64_t)device << 38 | number * 700 * KIB;
}

static struct gm_event event_of(unsigned number_of_family, unsigned number, int device)
{
	static const uint64_t sizes[] = {1, 512, 5000, MIB, MIB + 1, 2 * MIB, 20 * MIB};
	const struct family *family = &families[number_of_family];
	struct gm_event event = drive_event(key_of(number_of_family, number, device), family->kind,
					    family->space, family->level);

	event.bytes = family->torch || family->kind == GM_KIND_VMM ? 2 * MIB * (1 + pick(10))
								   : sizes[pick(7)];
	event.device = (int16_t)(family->host ? GM_HOST : device);
	event.flags = family->torch ? GM_ALLOC_TORCH : 0;
	event.owner = family->pool ? pools[device] : GM_NONE;
	event.stack = pick(5);
	return event;
}

/* ---- PyTorch's blocks, and what it reserves ---- */

static void reserve(int device, int64_t bytes)
{
	totals[device].reserved_bytes += (uint64_t)bytes;
	virtual_sums[device].reserved_bytes += (uint64_t)bytes;
	if (virtual_sums[device].reserved_bytes > virtual_sums[device].reserved_peak_bytes)
		virtual_sums[device].reserved_peak_bytes = virtual_sums[device].reserved_bytes;
}

static void toggle_block(const struct family *family, struct slot *slot, uint64_t key,
			 uint64_t bytes)
{
	struct gm_where where = {slot->device, gm_calling_thread(), 0};
	struct gm_torch_totals *of = &totals[slot->device];

	if (slot->live) {
		of->allocated_bytes -= slot->bytes;
		gm_track_block_free(key, where, *of);
		model(family, slot, false);
	} else {
		slot->bytes = bytes;
		of->allocated_bytes += bytes;
		gm_track_block(key, bytes, where, (struct gm_origin){pick(5), GM_NONE}, *of);
		model(family, slot, true);
	}
	slot->live = !slot->live;
}

/* ---- virtual memory ---- */

static void handle_gone(const struct family *family, struct slot *slot)
{
	if (slot->mapped_bytes || !slot->released)
		return;
	if (!family->host) {
		virtual_sums[slot->device].created_bytes -= slot->bytes;
		virtual_sums[slot->device].handles--;
	}
	model(family, slot, false);
	*slot = (struct slot){0};
}

/* Creates a handle, or does something to the one that is there. */
static void toggle_handle(unsigned number_of_family, struct slot *slot, struct gm_event *event)
{
	const struct family *family = &families[number_of_family];
	struct gm_event mapping = *event;

	mapping.space = GM_SPACE_MAPPING;
	mapping.kind = GM_KIND_NONE;
	mapping.key |= 1ull << 47;
	if (!slot->live) {
		gm_track_alloc(event);
		slot->live = true;
		slot->bytes = event->bytes;
		model(family, slot, true);
		if (!family->host) {
			virtual_sums[slot->device].created_bytes += slot->bytes;
			virtual_sums[slot->device].handles++;
		}
	} else if (slot->mapped_bytes && (slot->released || pick(2))) {
		mapping.bytes = slot->mapped_bytes;
		gm_track_unmap(&mapping);
		virtual_sums[slot->device].mapped_bytes -= slot->mapped_bytes;
		if (slot->torch)
			reserve(slot->device, -(int64_t)slot->mapped_bytes);
		slot->mapped_bytes = 0;
		handle_gone(family, slot);
	} else if (!slot->mapped_bytes && !family->host && pick(2)) {
		slot->torch = pick(2);
		mapping.flags = slot->torch ? GM_ALLOC_TORCH : 0;
		mapping.bytes = slot->mapped_bytes = slot->bytes;
		gm_track_map(&mapping, event->key, 0);
		virtual_sums[slot->device].mapped_bytes += slot->bytes;
		if (slot->torch)
			reserve(slot->device, (int64_t)slot->bytes);
	} else {
		gm_track_release(event);
		slot->released = true;
		handle_gone(family, slot);
	}
}

static void toggle_reservation(int device, unsigned number)
{
	struct gm_event event = drive_event(1ull << 46 | (uint64_t)device << 38 | number * 64 * MIB,
					    GM_KIND_NONE, GM_SPACE_RESERVATION, GM_LEVEL_DRIVER);

	event.bytes = 32 * MIB;
	event.device = (int16_t)device;
	if (reservations[device][number])
		gm_track_unreserve(&event);
	else
		gm_track_reserve(&event);
	reserved_addresses[device] += reservations[device][number] ? -event.bytes : event.bytes;
	reservations[device][number] = !reservations[device][number];
}

/* ---- everything else ---- */

static void fail(const struct family *family, struct gm_event event)
{
	unsigned device = family->host ? 0 : (unsigned)event.device + 1;

	event.error = 1;
	gm_track_alloc_failed(&event);
	if (family->level == GM_LEVEL_DRIVER)
		usage[device][family->kind].failures++;
	levels[device][family->level].failures++;
}

static void toggle(const struct family *family, struct slot *slot, struct gm_event *event)
{
	/* Its free was not seen: the next allocation ends it. Imported memory would be opened
	 * again. */
	bool missed = slot->live && family->kind != GM_KIND_IMPORTED && pick(20) == 0;

	if (slot->live && !missed && pick(30) == 0) { /* refused first */
		event->error = 1;
		gm_track_free_end(gm_track_free_begin(event->space, event->key), event);
		event->error = 0;
	}
	if (slot->live && !missed)
		gm_track_free_end(gm_track_free_begin(event->space, event->key), event);
	if (slot->live) {
		model(family, slot, false);
		if (family->torch)
			reserve(slot->device, -(int64_t)slot->bytes);
	}
	if (slot->live && !missed) {
		slot->live = false;
		return;
	}
	gm_track_alloc(event);
	slot->live = true;
	slot->bytes = event->bytes;
	model(family, slot, true);
	if (family->torch)
		reserve(slot->device, (int64_t)slot->bytes);
}

static void step(void)
{
	unsigned family = pick(FAMILIES), number = pick(SLOTS);
	struct slot *slot = &slots[family][number];
	struct gm_event event;

	if (!slot->live)
		slot->device = (int)pick(DEVICES);
	event = event_of(family, number, slot->device);
	if (pick(40) == 0)
		toggle_reservation(slot->device, number);
	if (pick(200) == 0)
		gm_track_mark("step", pick(3) ? GM_MARK_PROGRAM : GM_MARK_SIGNAL);
	if (pick(50) == 0 && families[family].level == GM_LEVEL_DRIVER)
		fail(&families[family], event);
	if (families[family].level == GM_LEVEL_TORCH)
		toggle_block(&families[family], slot, event.key, event.bytes);
	else if (families[family].kind == GM_KIND_VMM)
		toggle_handle(family, slot, &event);
	else
		toggle(&families[family], slot, &event);
}

static void print_sums(FILE *out, const char *what, int device, unsigned number,
		       const struct sums *sums)
{
	if (sums->allocations || sums->failures)
		fprintf(out, "%s %d %u %llu %llu %llu %llu %llu %llu %llu\n", what, device, number,
			(unsigned long long)sums->current_bytes,
			(unsigned long long)sums->current_count,
			(unsigned long long)sums->allocated_bytes,
			(unsigned long long)sums->allocations, (unsigned long long)sums->frees,
			(unsigned long long)sums->peak_bytes, (unsigned long long)sums->failures);
}

static bool print_model(const char *path)
{
	FILE *out = fopen(path, "we");

	if (!out)
		return false;
	for (int device = GM_HOST; device < DEVICES; device++) {
		for (unsigned kind = 0; kind < GM_KINDS; kind++)
			print_sums(out, "usage", device, kind, &usage[device + 1][kind]);
		for (unsigned level = 0; level < GM_LEVELS; level++)
			print_sums(out, "level", device, level, &levels[device + 1][level]);
	}
	for (int device = 0; device < DEVICES; device++)
		fprintf(out, "device %d %llu %llu %llu %llu %llu %llu %llu\n", device,
			(unsigned long long)virtual_sums[device].reserved_bytes,
			(unsigned long long)virtual_sums[device].reserved_peak_bytes,
			(unsigned long long)totals[device].allocated_bytes,
			(unsigned long long)virtual_sums[device].created_bytes,
			(unsigned long long)virtual_sums[device].mapped_bytes,
			(unsigned long long)reserved_addresses[device],
			(unsigned long long)virtual_sums[device].handles);
	return fclose(out) == 0;
}

int main(int argc, char **argv)
{
	unsigned long steps;

	if (argc < 6 || !drive_open(argv[1], 64 * MIB) ||
	    gm_journal_open(gm_file, gm_store_output_path(), 64 * MIB))
		return 2;
	state = strtoull(argv[2], NULL, 10);
	steps = strtoul(argv[3], NULL, 10);
	for (int device = 0; device < DEVICES; device++) {
		gm_track_device(device, "made", (const uint8_t[16]){(uint8_t)(device + 1)},
				16ull << 30);
		pools[device] = atoi(argv[4]) ? gm_track_pool(0x100 + (uint64_t)device, device,
							      GM_POOL_EXPLICIT, GM_NONE)
					      : GM_NONE;
	}
	while (steps--)
		step();
	gm_track_end(GM_END_EXIT, 0);
	return gm_store_finish() || !print_model(argv[5]) ? 4 : 0;
}
