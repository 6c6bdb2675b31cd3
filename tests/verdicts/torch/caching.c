/*
 * A stand-in for PyTorch's libc10_cuda.so: a small caching allocator with PyTorch's documented
 * rules (sizes in steps of 512 B; a small and a large pool; segments of 2 MiB, 20 MiB and multiples
 * of 2 MiB; best fit, split and merge; the cache is emptied before an error is given up to), the
 * calls that it makes of CUDA, and c10's hooks by their names. Expandable segments give back memory
 * only from their ends. One lock is held through every call, as in PyTorch.
 */
#include "caching.h"
#include "../../sim/torch/c10.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KIB		 (1ull << 10)
#define MIB		 (1ull << 20)
#define SMALL_BLOCK	 MIB
#define SMALL_SEGMENT	 (2 * MIB)
#define LARGE_SEGMENT	 (20 * MIB)
#define LARGE_BLOCK	 (10 * MIB) /* from here on a segment is as large as its block */
#define MOST_DEVICES	 8
#define MOST_POOLS	 4096
#define EXPANDABLE_VA	 (64ull << 30)
#define CUDA_OOM	 2
#define DEVICE_TYPE_CUDA 1

int cudaMalloc(void **pointer, size_t bytes);
int cudaFree(void *pointer);
int cudaMallocHost(void **pointer, size_t bytes);
int cudaGetLastError(void);
int cudaGetDevice(int *device);
int cudaSetDevice(int device);
int cudaMemGetInfo(size_t *free_bytes, size_t *total);
int cudaMemcpy(void *to, const void *from, size_t bytes, int direction);
int cudaDeviceSynchronize(void);
int cuModuleLoadData(void **module, const void *image);
int cuModuleGetFunction(void **function, void *module, const char *name);
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
		   unsigned bz, unsigned shared, void *stream, void **params, void **extra);

struct property { /* CUmemAllocationProp */
	int type, handle_types, location_type, location_id;
	void *win32;
	unsigned char flags[8];
};
struct access { /* CUmemAccessDesc */
	int location_type, location_id, flags;
};
int cuMemAddressReserve(uint64_t *address, size_t bytes, size_t align, uint64_t hint,
			unsigned long long flags);
int cuMemCreate(uint64_t *handle, size_t bytes, const struct property *, unsigned long long flags);
int cuMemMap(uint64_t address, size_t bytes, size_t offset, uint64_t handle,
	     unsigned long long flags);
int cuMemSetAccess(uint64_t address, size_t bytes, const struct access *, size_t count);
int cuMemUnmap(uint64_t address, size_t bytes);
int cuMemRelease(uint64_t handle);

struct segment {
	struct segment *next;
	struct block *first;
	uint64_t address, bytes; /* of an expandable one: what is mapped of it */
	uint64_t *handles;	 /* of an expandable one, else NULL */
	int device, stream, pool, frames;
	bool small;
};

struct block {
	struct block *previous, *next; /* in the segment */
	struct block *free_previous, *free_next;
	struct segment *segment;
	uint64_t address, bytes, requested;
	int frames;
	bool allocated, pending, on_other_stream;
};

static struct {
	pthread_mutex_t lock;
	struct segment *segments;
	struct block *free_blocks, *pending;
	struct {
		uint64_t allocated, reserved;
	} totals[MOST_DEVICES];
	double fraction[MOST_DEVICES];
	bool expandable, pool_released[MOST_POOLS];
	void *kernel, *input;
	struct pinned {
		struct pinned *next;
	} * pinned[40];
	/* history */
	struct standin_entry *entries;
	uint64_t count, room, clock_us;
	bool recording, virtual_clock;
	int frames;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- history ---- */

static uint64_t now_us(void)
{
	struct timespec now;

	if (all.virtual_clock)
		return all.clock_us += 3;
	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void record(enum standin_action action, const struct segment *where, uint64_t address,
		   uint64_t bytes, uint64_t device_free)
{
	struct standin_entry entry = {
		.address = address,
		.bytes = bytes,
		.device_free = device_free,
		.device = where->device,
		.stream = where->stream,
		.pool = where->pool,
		.frames = all.frames,
		.action = action,
	};

	if (standin_trace)
		standin_trace(&entry);
	if (!all.recording)
		return;
	if (all.count == all.room) {
		all.room = all.room ? 2 * all.room : 4096;
		all.entries = realloc(all.entries, all.room * sizeof(*all.entries));
	}
	entry.time_us = now_us();
	all.entries[all.count++] = entry;
}

/* ---- the hooks ---- */

static void report(uint64_t address, int64_t bytes, int index)
{
	struct c10_device device = {DEVICE_TYPE_CUDA, (int8_t)index};

	_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE((void *)(uintptr_t)address, bytes,
							      all.totals[index].allocated,
							      all.totals[index].reserved, device);
}

static void report_oom(uint64_t bytes, int index)
{
	struct c10_device device = {DEVICE_TYPE_CUDA, (int8_t)index};

	_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE(
		(int64_t)bytes, all.totals[index].allocated, all.totals[index].reserved, device);
}

/* ---- lists ---- */

static void push_free(struct block *block)
{
	block->free_previous = NULL;
	block->free_next = all.free_blocks;
	if (all.free_blocks)
		all.free_blocks->free_previous = block;
	all.free_blocks = block;
}

static void drop_free(struct block *block)
{
	if (block->free_previous)
		block->free_previous->free_next = block->free_next;
	else
		all.free_blocks = block->free_next;
	if (block->free_next)
		block->free_next->free_previous = block->free_previous;
}

static struct block *new_block(struct segment *segment, uint64_t address, uint64_t bytes)
{
	struct block *block = calloc(1, sizeof(*block));

	block->segment = segment;
	block->address = address;
	block->bytes = bytes;
	return block;
}

static void insert_after(struct block *block, struct block *previous)
{
	block->previous = previous;
	block->next = previous ? previous->next : NULL;
	if (block->next)
		block->next->previous = block;
	if (previous)
		previous->next = block;
	else
		block->segment->first = block;
}

static void remove_block(struct block *block)
{
	if (block->previous)
		block->previous->next = block->next;
	else
		block->segment->first = block->next;
	if (block->next)
		block->next->previous = block->previous;
	free(block);
}

static bool is_free(const struct block *block)
{
	return block && !block->allocated && !block->pending;
}

/* The block is free: it is joined with free neighbours and goes to the free list. */
static void become_free(struct block *block)
{
	struct block *previous = block->previous, *next = block->next;

	if (is_free(previous)) {
		drop_free(previous);
		block->address = previous->address;
		block->bytes += previous->bytes;
		remove_block(previous);
	}
	if (is_free(next)) {
		drop_free(next);
		block->bytes += next->bytes;
		remove_block(next);
	}
	push_free(block);
}

static void complete_free(struct block *block)
{
	block->pending = block->on_other_stream = false;
	record(STANDIN_FREE_COMPLETED, block->segment, block->address, block->requested, 0);
	become_free(block);
}

static void complete_pending(void)
{
	while (all.pending) {
		struct block *block = all.pending;

		all.pending = block->free_next;
		complete_free(block);
	}
}

/* ---- segments ---- */

/* Whether a memory fraction forbids so much more. */
static bool over_fraction(int device, uint64_t bytes)
{
	size_t unused, total;

	if (all.fraction[device] == 0)
		return false;
	cudaMemGetInfo(&unused, &total);
	return (double)(all.totals[device].reserved + bytes) > all.fraction[device] * (double)total;
}

static struct segment *new_segment(int device, int stream, int pool, bool small)
{
	struct segment *segment = calloc(1, sizeof(*segment));

	segment->device = device;
	segment->stream = stream;
	segment->pool = pool;
	segment->small = small;
	segment->frames = all.frames;
	return segment;
}

static struct block *take_segment(uint64_t bytes, struct segment *segment)
{
	struct block *block;
	void *memory = NULL;

	if (over_fraction(segment->device, bytes))
		return NULL;
	if (cudaMalloc(&memory, bytes)) {
		cudaGetLastError();
		return NULL;
	}
	segment->address = (uintptr_t)memory;
	segment->bytes = bytes;
	segment->next = all.segments;
	all.segments = segment;
	block = new_block(segment, segment->address, bytes);
	insert_after(block, NULL);
	push_free(block);
	all.totals[segment->device].reserved += bytes;
	record(STANDIN_SEGMENT_ALLOC, segment, segment->address, bytes, 0);
	return block;
}

static void free_segment(struct segment *segment)
{
	struct segment **slot = &all.segments;

	while (*slot != segment)
		slot = &(*slot)->next;
	*slot = segment->next;
	drop_free(segment->first);
	cudaFree((void *)(uintptr_t)segment->address);
	all.totals[segment->device].reserved -= segment->bytes;
	record(STANDIN_SEGMENT_FREE, segment, segment->address, segment->bytes, 0);
	free(segment->first);
	free(segment);
}

static uint64_t handle_bytes(const struct segment *segment)
{
	return segment->small ? SMALL_SEGMENT : LARGE_SEGMENT;
}

static struct segment *expandable_segment(int device, int stream, int pool, bool small)
{
	struct segment *segment;

	for (segment = all.segments; segment; segment = segment->next)
		if (segment->handles && segment->device == device && segment->stream == stream &&
		    segment->pool == pool && segment->small == small)
			return segment;
	segment = new_segment(device, stream, pool, small);
	if (cuMemAddressReserve(&segment->address, EXPANDABLE_VA, 0, 0, 0)) {
		free(segment);
		return NULL;
	}
	segment->handles = calloc(EXPANDABLE_VA / handle_bytes(segment), sizeof(*segment->handles));
	segment->next = all.segments;
	all.segments = segment;
	return segment;
}

/* Handles for `bytes` more at the segment's end; all of them or none. */
static bool map_handles(struct segment *segment, uint64_t bytes)
{
	struct property property = {.type = 1, .location_type = 1, .location_id = segment->device};
	struct access access = {1, segment->device, 3};
	uint64_t each = handle_bytes(segment), at = segment->bytes, end = at + bytes, made;

	if (over_fraction(segment->device, bytes))
		return false;
	for (made = at; made < end; made += each)
		if (cuMemCreate(&segment->handles[made / each], each, &property, 0))
			break;
	if (made < end) {
		while (made > at)
			cuMemRelease(segment->handles[(made -= each) / each]);
		return false;
	}
	for (; at < end; at += each)
		cuMemMap(segment->address + at, each, 0, segment->handles[at / each], 0);
	cuMemSetAccess(segment->address + end - bytes, bytes, &access, 1);
	return true;
}

/* A free block of `bytes` at the end of an expandable segment, which is made longer for it. */
static struct block *extend(uint64_t bytes, struct segment *segment)
{
	struct block *last = segment->first, *block;
	uint64_t each, more;

	while (last && last->next)
		last = last->next;
	each = handle_bytes(segment);
	more = bytes - (is_free(last) ? last->bytes : 0);
	more = (more + each - 1) / each * each;
	if (!map_handles(segment, more))
		return NULL;
	block = new_block(segment, segment->address + segment->bytes, more);
	insert_after(block, last);
	segment->bytes += more;
	all.totals[segment->device].reserved += more;
	record(STANDIN_SEGMENT_MAP, segment, block->address, more, 0);
	become_free(block);
	return block;
}

/* Unmaps what is free at the end of an expandable segment. */
static void shorten(struct segment *segment)
{
	struct block *last = segment->first;
	uint64_t each = handle_bytes(segment), keep;

	while (last && last->next)
		last = last->next;
	if (!is_free(last))
		return;
	keep = (last->address - segment->address + each - 1) / each * each;
	if (keep >= segment->bytes)
		return;
	all.totals[segment->device].reserved -= (segment->bytes - keep);
	record(STANDIN_SEGMENT_UNMAP, segment, segment->address + keep, segment->bytes - keep, 0);
	while (segment->bytes > keep) {
		segment->bytes -= each;
		cuMemUnmap(segment->address + segment->bytes, each);
		cuMemRelease(segment->handles[segment->bytes / each]);
	}
	last->bytes = segment->address + keep - last->address;
	if (!last->bytes) {
		drop_free(last);
		remove_block(last);
	}
}

/* Gives back what nobody uses: of the common pool, and of private pools whose graphs are gone. */
static void release_cached(void)
{
	struct segment *segment = all.segments;

	complete_pending();
	while (segment) {
		struct segment *next = segment->next;

		if (segment->pool && !all.pool_released[segment->pool])
			;
		else if (segment->handles)
			shorten(segment);
		else if (is_free(segment->first) && !segment->first->next)
			free_segment(segment);
		segment = next;
	}
}

/* ---- blocks ---- */

/* The size that a block can have: at an expandable segment's end it can grow, as in PyTorch. */
static uint64_t reach(const struct block *block)
{
	return block->segment->handles && !block->next ? block->bytes + EXPANDABLE_VA
						       : block->bytes;
}

static struct block *best_fit(uint64_t bytes, int device, int stream, int pool, bool small)
{
	struct block *best = NULL;

	for (struct block *block = all.free_blocks; block; block = block->free_next) {
		const struct segment *segment = block->segment;

		if (block->bytes < bytes || segment->device != device ||
		    segment->stream != stream || segment->pool != pool || segment->small != small)
			continue;
		if (!best || reach(block) < reach(best) ||
		    (reach(block) == reach(best) && block->address < best->address))
			best = block;
	}
	return best;
}

static uint64_t segment_bytes(uint64_t bytes)
{
	if (bytes <= SMALL_BLOCK)
		return SMALL_SEGMENT;
	if (bytes < LARGE_BLOCK)
		return LARGE_SEGMENT;
	return (bytes + SMALL_SEGMENT - 1) / SMALL_SEGMENT * SMALL_SEGMENT;
}

static struct block *grow_pool(uint64_t bytes, int device, int stream, int pool, bool small)
{
	struct segment *segment;
	struct block *block;

	if (all.expandable) {
		segment = expandable_segment(device, stream, pool, small);
		return segment ? extend(bytes, segment) : NULL;
	}
	segment = new_segment(device, stream, pool, small);
	block = take_segment(segment_bytes(bytes), segment);
	if (!block)
		free(segment);
	return block;
}

static void split(struct block *block, uint64_t bytes)
{
	uint64_t rest = block->bytes - bytes;
	struct block *after;

	if (block->segment->small || block->segment->handles ? rest < 512 : rest <= SMALL_BLOCK)
		return;
	after = new_block(block->segment, block->address + bytes, rest);
	block->bytes = bytes;
	insert_after(after, block);
	push_free(after);
}

static struct block *refuse(uint64_t bytes, uint64_t requested, int device, int stream)
{
	struct segment where = {.device = device, .stream = stream};
	size_t unused = 0, total;

	cudaMemGetInfo(&unused, &total);
	record(STANDIN_OOM, &where, 0, requested, unused);
	report_oom(bytes, device);
	return NULL;
}

static struct block *allocate(uint64_t requested, int device, int stream, int pool)
{
	uint64_t bytes = requested < 512 ? 512 : (requested + 511) / 512 * 512;
	bool small = bytes <= SMALL_BLOCK;
	struct block *block = best_fit(bytes, device, stream, pool, small);

	if (!block)
		block = grow_pool(bytes, device, stream, pool, small);
	if (!block) {
		release_cached();
		block = grow_pool(bytes, device, stream, pool, small);
	}
	if (!block)
		return refuse(bytes, requested, device, stream);
	drop_free(block);
	split(block, bytes);
	block->allocated = true;
	block->requested = requested;
	block->frames = all.frames;
	all.totals[device].allocated += block->bytes;
	record(STANDIN_ALLOC, block->segment, block->address, requested, 0);
	report(block->address, (int64_t)block->bytes, device);
	return block;
}

struct block *standin_allocate(uint64_t bytes, int device, int stream, int pool, unsigned launches)
{
	struct block *block;
	int current;

	standin_launch(launches);
	cudaGetDevice(&current);
	if (current != device)
		cudaSetDevice(device);
	pthread_mutex_lock(&all.lock);
	block = allocate(bytes, device, stream, pool);
	pthread_mutex_unlock(&all.lock);
	if (current != device)
		cudaSetDevice(current);
	return block;
}

void standin_free(struct block *block)
{
	uint64_t address = block->address, bytes = block->bytes;
	int device = block->segment->device;

	pthread_mutex_lock(&all.lock);
	block->allocated = false;
	record(STANDIN_FREE_REQUESTED, block->segment, block->address, block->requested, 0);
	all.totals[device].allocated -= bytes;
	if (block->on_other_stream) {
		block->pending = true;
		block->free_next = all.pending;
		all.pending = block;
	} else {
		complete_free(block);
	}
	report(address, -(int64_t)bytes, device);
	pthread_mutex_unlock(&all.lock);
}

void standin_record_stream(struct block *block)
{
	block->on_other_stream = true;
}

void standin_synchronize(void)
{
	cudaDeviceSynchronize();
	pthread_mutex_lock(&all.lock);
	complete_pending();
	pthread_mutex_unlock(&all.lock);
}

void standin_empty_cache(void)
{
	pthread_mutex_lock(&all.lock);
	release_cached();
	pthread_mutex_unlock(&all.lock);
}

/* The first launch loads the code; a batch's copy goes with each call. */
void standin_launch(unsigned launches)
{
	static const unsigned int image[16] = {0x464c457f};
	static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
	void *module;

	pthread_mutex_lock(&once);
	if (!all.kernel) {
		cudaFree(NULL);
		cuModuleLoadData(&module, image);
		cuModuleGetFunction(&all.kernel, module, "kernel");
	}
	pthread_mutex_unlock(&once);
	all.clock_us += 40 * launches;
	while (launches--)
		cuLaunchKernel(all.kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
}

void standin_release_pool(int pool)
{
	all.pool_released[pool % MOST_POOLS] = true;
}

void standin_set_fraction(int device, double fraction)
{
	all.fraction[device] = fraction;
}

void standin_set_expandable(bool on)
{
	all.expandable = on;
}

/* ---- pinned memory ---- */

static unsigned power_of(uint64_t bytes)
{
	unsigned power = 9;

	while (1ull << power < bytes)
		power++;
	return power;
}

void *standin_pin(uint64_t bytes)
{
	unsigned power = power_of(bytes);
	void *memory = NULL;

	pthread_mutex_lock(&all.lock);
	memory = all.pinned[power];
	if (memory)
		all.pinned[power] = all.pinned[power]->next;
	else if (cudaMallocHost(&memory, 1ull << power))
		memory = NULL;
	pthread_mutex_unlock(&all.lock);
	return memory;
}

void standin_unpin(void *memory, uint64_t bytes)
{
	struct pinned *pinned = memory;
	unsigned power = power_of(bytes);

	pthread_mutex_lock(&all.lock);
	pinned->next = all.pinned[power];
	all.pinned[power] = pinned;
	pthread_mutex_unlock(&all.lock);
}

/* ---- what the package asks ---- */

void standin_record(bool on, bool virtual_clock)
{
	all.recording = on;
	all.virtual_clock = virtual_clock;
	all.clock_us = 1700000000000000;
}

void standin_at(int frames)
{
	all.frames = frames;
}

uint64_t standin_entries(const struct standin_entry **entries)
{
	*entries = all.entries;
	return all.count;
}

static struct standin_row row_of(const struct segment *segment)
{
	return (struct standin_row){
		.device = segment->device,
		.stream = segment->stream,
		.pool = segment->pool,
		.small = segment->small,
		.expandable = segment->handles != NULL,
	};
}

/* Each segment, its blocks behind it; how many there are, of which `room` at most are written. */
uint64_t standin_rows(struct standin_row *rows, uint64_t room)
{
	uint64_t count = 0;

	for (const struct segment *segment = all.segments; segment; segment = segment->next) {
		struct standin_row row = row_of(segment);

		row.is_segment = 1;
		row.address = segment->address;
		row.bytes = segment->bytes;
		row.frames = segment->frames;
		if (count++ < room)
			rows[count - 1] = row;
		for (const struct block *block = segment->first; block; block = block->next) {
			row = row_of(segment);
			row.address = block->address;
			row.bytes = block->bytes;
			row.requested = block->requested;
			row.frames = block->frames;
			row.state = block->allocated ? 1 : block->pending ? 2 : 0;
			if (count++ < room)
				rows[count - 1] = row;
		}
	}
	return count;
}
