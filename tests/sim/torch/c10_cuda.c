/*
 * A simulated libc10_cuda.so: PyTorch's caching allocator as far as others can see it. It replays a
 * trace (traces/convert.py tells the format): the calls it makes of CUDA, the hooks it calls in
 * libc10.so, across a real dynamic call, with its own totals. Which block lies where, and what is
 * flushed when, stands in the trace.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "c10.h"
#include "c10_cuda.h"

#define IDS		 131072
#define MOST_HANDLES	 16384
#define OUT_OF_MEMORY	 2
#define NOT_PERMITTED	 800
#define RELAXED		 2 /* of the modes of captures */
#define DEVICE_TYPE_CPU	 0
#define DEVICE_TYPE_CUDA 1

int cudaMalloc(void **pointer, size_t bytes);
int cudaFree(void *pointer);
int cudaMallocAsync(void **pointer, size_t bytes, void *stream);
int cudaFreeAsync(void *pointer, void *stream);
int cudaGetLastError(void);
int cudaSetDevice(int device);

struct property { /* CUmemAllocationProp */
	int type, handle_types;
	int location_type, location_id;
	void *win32;
	unsigned char flags[8];
};
struct access { /* CUmemAccessDesc */
	int location_type, location_id, flags;
};

static struct {
	int (*reserve)(uint64_t *address, size_t bytes, size_t align, uint64_t hint,
		       unsigned long long);
	int (*create)(uint64_t *handle, size_t bytes, const struct property *, unsigned long long);
	int (*map)(uint64_t address, size_t bytes, size_t offset, uint64_t handle,
		   unsigned long long);
	int (*access)(uint64_t address, size_t bytes, const struct access *, size_t count);
	int (*unmap)(uint64_t address, size_t bytes);
	int (*release)(uint64_t handle);
	int (*stream)(void **stream, unsigned flags);
	int (*begin)(void *stream, unsigned mode);
	int (*end)(void *stream, void **graph);
	int (*exchange)(unsigned *mode);
	int (*set)(uint64_t address, unsigned char value, size_t bytes, void *stream);
	int (*instantiate)(void **exec, void *graph, unsigned long long flags);
	int (*destroy)(void *graph);
	int (*destroy_exec)(void *exec);
} driver;

/* A segment, a range of address space, a block or an executable graph. */
struct thing {
	uint64_t address, bytes, handle_bytes;
	uint64_t *handles;
	int device;
};

struct replay {
	unsigned variant;
	int device;
	struct thing things[IDS];
	void *stream; /* that is captured into graphs; NULL: none was yet */
	bool captures;
	void (*mark)(const char *name);
	unsigned line;
};

/* The allocator's own, of all threads; its mutex is held through every call and hook, as PyTorch's.
 */
static struct {
	pthread_mutex_t lock;
	struct {
		uint64_t allocated, reserved;
	} totals[8];
} allocator = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int fail(const struct replay *replay, const char *what, int error)
{
	fprintf(stderr, "line %u: %s answered %d\n", replay->line, what, error);
	return 1;
}

static int open_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	if (!library)
		return 1;
	driver.reserve = (__typeof__(driver.reserve))dlsym(library, "cuMemAddressReserve");
	driver.create = (__typeof__(driver.create))dlsym(library, "cuMemCreate");
	driver.map = (__typeof__(driver.map))dlsym(library, "cuMemMap");
	driver.access = (__typeof__(driver.access))dlsym(library, "cuMemSetAccess");
	driver.unmap = (__typeof__(driver.unmap))dlsym(library, "cuMemUnmap");
	driver.release = (__typeof__(driver.release))dlsym(library, "cuMemRelease");
	driver.stream = (__typeof__(driver.stream))dlsym(library, "cuStreamCreate");
	driver.begin = (__typeof__(driver.begin))dlsym(library, "cuStreamBeginCapture_v2");
	driver.end = (__typeof__(driver.end))dlsym(library, "cuStreamEndCapture");
	driver.exchange = (__typeof__(driver.exchange))dlsym(library,
							     "cuThreadExchangeStreamCaptureMode");
	driver.set = (__typeof__(driver.set))dlsym(library, "cuMemsetD8Async");
	driver.instantiate =
		(__typeof__(driver.instantiate))dlsym(library, "cuGraphInstantiateWithFlags");
	driver.destroy = (__typeof__(driver.destroy))dlsym(library, "cuGraphDestroy");
	driver.destroy_exec = (__typeof__(driver.destroy_exec))dlsym(library, "cuGraphExecDestroy");
	return 0;
}

/* ---- the hooks, under the names of one PyTorch ---- */

static void report(struct replay *replay, uint64_t address, int64_t bytes, int type)
{
	struct c10_device device = {(int8_t)type, (int8_t)replay->device};
	uint64_t allocated = allocator.totals[replay->device].allocated;
	uint64_t reserved = allocator.totals[replay->device].reserved;
	void *block = (void *)(uintptr_t)address;

	if (replay->variant == 0)
		_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(block, bytes, allocated,
								      reserved, device);
	else if (replay->variant == 1)
		_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE(block, bytes, allocated,
								      reserved, device);
	else
		_ZN3c1027reportMemoryUsageToProfilerEPvmmmNS_6DeviceE(block, bytes, allocated,
								      reserved, device);
}

static void report_oom(struct replay *replay, uint64_t bytes)
{
	struct c10_device device = {DEVICE_TYPE_CUDA, (int8_t)replay->device};
	uint64_t allocated = allocator.totals[replay->device].allocated;
	uint64_t reserved = allocator.totals[replay->device].reserved;

	if (replay->variant == 0)
		_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE((int64_t)bytes, allocated,
								    reserved, device);
	else if (replay->variant == 1)
		_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE((int64_t)bytes, allocated,
								    reserved, device);
	else
		_ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE((int64_t)bytes, allocated,
								    reserved, device);
}

/* Lines of a script, so to speak: blocks come from eight different places. */
#define SITE(number)                                                                               \
	__attribute__((noinline)) static void script_line_##number(struct replay *replay,          \
								   const struct thing *block)      \
	{                                                                                          \
		report(replay, block->address, (int64_t)block->bytes, DEVICE_TYPE_CUDA);           \
		__asm__ volatile("" : : "i"(number) : "memory");                                   \
	}
SITE(0)
SITE(1) SITE(2) SITE(3) SITE(4) SITE(5) SITE(6) SITE(7)

	static void (*const script[])(struct replay *, const struct thing *) = {
		script_line_0, script_line_1, script_line_2, script_line_3,
		script_line_4, script_line_5, script_line_6, script_line_7,
};

/* ---- segments ---- */

struct gpusim_mempool gpusim_torch_mempool;

/* As PyTorch where a MemPool has an allocator: that one is asked, with the mutex held. */
static int take_from_mempool(struct replay *replay, struct thing *segment, uint64_t bytes)
{
	void *pointer = gpusim_torch_mempool.raw_alloc(gpusim_torch_mempool.self, bytes);

	if (!pointer)
		return fail(replay, "a MemPool's allocator", OUT_OF_MEMORY);
	segment->address = (uintptr_t)pointer;
	segment->bytes = bytes;
	allocator.totals[replay->device].reserved += bytes;
	return 0;
}

static int give_to_mempool(struct replay *replay, const struct thing *segment)
{
	gpusim_torch_mempool.raw_delete(gpusim_torch_mempool.self,
					(void *)(uintptr_t)segment->address);
	allocator.totals[replay->device].reserved -= segment->bytes;
	return 0;
}

/* As PyTorch, which allows itself what a capture forbids for the time of the call. */
static int take_segment_for(struct replay *replay, struct thing *segment, uint64_t bytes,
			    bool capture)
{
	unsigned mode = RELAXED;
	void *pointer = NULL;
	int error;

	if (capture)
		driver.exchange(&mode);
	error = cudaMalloc(&pointer, bytes);
	if (capture)
		driver.exchange(&mode);
	if (error)
		return fail(replay, "cudaMalloc", error);
	segment->address = (uintptr_t)pointer;
	segment->bytes = bytes;
	allocator.totals[replay->device].reserved += bytes;
	return 0;
}

static int take_segment(struct replay *replay, struct thing *segment, uint64_t bytes)
{
	return take_segment_for(replay, segment, bytes, replay->captures);
}

struct request {
	struct replay *replay;
	struct thing *segment;
	uint64_t bytes;
	bool eager;
	int error;
};

static void *take_apart(void *data)
{
	struct request *request = data;

	request->error = cudaSetDevice(request->replay->device);
	if (!request->error)
		request->error =
			take_segment_for(request->replay, request->segment, request->bytes,
					 request->replay->captures && !request->eager);
	return NULL;
}

/* The same by a thread of autograd's, or by one whose stream is not captured. */
static int take_segment_apart(struct replay *replay, struct thing *segment, uint64_t bytes,
			      bool eager)
{
	struct request request = {replay, segment, bytes, eager, 0};
	pthread_t thread;

	if (pthread_create(&thread, NULL, take_apart, &request))
		return fail(replay, "pthread_create", 1);
	pthread_join(thread, NULL);
	return request.error;
}

static int drop_segment(struct replay *replay, struct thing *segment)
{
	int error = cudaFree((void *)(uintptr_t)segment->address);

	if (error)
		return fail(replay, "cudaFree", error);
	allocator.totals[replay->device].reserved -= segment->bytes;
	return 0;
}

static int fail_segment(struct replay *replay, uint64_t bytes)
{
	void *pointer = (void *)1;
	int error = cudaMalloc(&pointer, bytes);

	if (error != OUT_OF_MEMORY || pointer)
		return fail(replay, "a cudaMalloc that was to fail", error);
	cudaGetLastError();
	return 0;
}

static int reserve(struct replay *replay, struct thing *range, uint64_t bytes,
		   uint64_t handle_bytes)
{
	int error = driver.reserve(&range->address, bytes, 0, 0, 0);

	if (error)
		return fail(replay, "cuMemAddressReserve", error);
	range->bytes = bytes;
	range->handle_bytes = handle_bytes;
	range->handles = calloc(bytes / handle_bytes, sizeof(*range->handles));
	return range->handles ? 0 : 1;
}

/* As PyTorch: for a fabric handle first, which a process without the right to it is refused. */
static int create(struct replay *replay, uint64_t *handle, uint64_t bytes)
{
	struct property property = {
		.type = 1, .handle_types = 8, .location_type = 1, .location_id = replay->device};
	int error = driver.create(handle, bytes, &property, 0);

	if (error == NOT_PERMITTED) {
		property.handle_types = 0;
		error = driver.create(handle, bytes, &property, 0);
	}
	return error;
}

static int map(struct replay *replay, struct thing *range, uint64_t offset, uint64_t bytes)
{
	struct access access = {1, replay->device, 3};
	uint64_t size = range->handle_bytes, at;
	int error = 0;

	for (at = offset; at < offset + bytes && !error; at += size)
		error = create(replay, &range->handles[at / size], size);
	for (at = offset; at < offset + bytes && !error; at += size)
		error = driver.map(range->address + at, size, 0, range->handles[at / size], 0);
	if (!error)
		error = driver.access(range->address + offset, bytes, &access, 1);
	if (error)
		return fail(replay, "mapping", error);
	allocator.totals[replay->device].reserved += bytes;
	return 0;
}

static int unmap(struct replay *replay, struct thing *range, uint64_t offset, uint64_t bytes)
{
	uint64_t size = range->handle_bytes, at;
	int error = 0;

	for (at = offset; at < offset + bytes && !error; at += size) {
		error = driver.unmap(range->address + at, size);
		if (!error)
			error = driver.release(range->handles[at / size]);
	}
	if (error)
		return fail(replay, "unmapping", error);
	allocator.totals[replay->device].reserved -= bytes;
	return 0;
}

/* Handles are made until there is no memory for one more; then all are given back. */
static int fail_handles(struct replay *replay, uint64_t bytes, uint64_t handle_bytes)
{
	static uint64_t handles[MOST_HANDLES];
	unsigned count = 0;
	int error = 0;

	while ((uint64_t)count * handle_bytes < bytes && count < MOST_HANDLES && !error) {
		error = create(replay, &handles[count], handle_bytes);
		count += !error;
	}
	while (count)
		driver.release(handles[--count]);
	return error == OUT_OF_MEMORY ? 0 : fail(replay, "a cuMemCreate that was to fail", error);
}

/* ---- captures ---- */

static int begin_capture(struct replay *replay, unsigned mode)
{
	int error = replay->stream ? 0 : driver.stream(&replay->stream, 1);

	if (!error)
		error = driver.begin(replay->stream, mode);
	replay->captures = !error;
	return error ? fail(replay, "a capture", error) : 0;
}

/* The work that is captured: so many nodes, on a block. */
static int capture_work(struct replay *replay, const struct thing *block, uint64_t nodes)
{
	int error = 0;

	while (nodes-- && !error)
		error = driver.set(block->address, 0, 512, replay->stream);
	return error ? fail(replay, "captured work", error) : 0;
}

static int end_capture(struct replay *replay, struct thing *executable)
{
	void *graph, *exec;
	int error = driver.end(replay->stream, &graph);

	if (!error)
		error = driver.instantiate(&exec, graph, 0);
	if (!error)
		error = driver.destroy(graph);
	replay->captures = false;
	executable->address = (uintptr_t)exec;
	return error ? fail(replay, "the end of a capture", error) : 0;
}

static int drop_executable(struct replay *replay, const struct thing *executable)
{
	int error = driver.destroy_exec((void *)(uintptr_t)executable->address);

	return error ? fail(replay, "cuGraphExecDestroy", error) : 0;
}

/* ---- blocks ---- */

static void hand_out(struct replay *replay, struct thing *block, const struct thing *segment,
		     const uint64_t number[5])
{
	block->address = segment->address + number[2];
	block->bytes = number[3];
	block->device = replay->device;
	allocator.totals[replay->device].allocated += block->bytes;
	script[number[4] % 8](replay, block);
}

static void give_back(struct replay *replay, const struct thing *block)
{
	replay->device = block->device;
	allocator.totals[replay->device].allocated -= block->bytes;
	report(replay, block->address, -(int64_t)block->bytes, DEVICE_TYPE_CUDA);
}

/* A block of the CPU's allocator, at an address that a block on the device also has. */
static void host_block(struct replay *replay, const struct thing *block, int64_t bytes)
{
	report(replay, block->address, bytes, DEVICE_TYPE_CPU);
	report(replay, block->address, -bytes, DEVICE_TYPE_CPU);
}

/* backend:cudaMallocAsync: every tensor is a call of CUDA's, and no hook is called. */
static int take_tensor(struct replay *replay, struct thing *tensor, uint64_t bytes)
{
	void *pointer = NULL;
	int error = cudaMallocAsync(&pointer, bytes, NULL);

	tensor->address = (uintptr_t)pointer;
	return error ? fail(replay, "cudaMallocAsync", error) : 0;
}

static int drop_tensor(struct replay *replay, const struct thing *tensor)
{
	int error = cudaFreeAsync((void *)(uintptr_t)tensor->address, NULL);

	return error ? fail(replay, "cudaFreeAsync", error) : 0;
}

static int play(struct replay *replay, char what, uint64_t number[5])
{
	struct thing *first = &replay->things[number[0] % IDS];
	struct thing *second = &replay->things[number[1] % IDS];

	switch (what) {
	case 'R':
		return reserve(replay, first, number[1], number[2]);
	case 'S':
		return take_segment(replay, first, number[1]);
	case 'T':
		return take_segment_apart(replay, first, number[1], number[2]);
	case 'G':
		return begin_capture(replay, (unsigned)number[0]);
	case 'J':
		return capture_work(replay, first, number[1]);
	case 'V':
		return end_capture(replay, first);
	case 'W':
		return drop_executable(replay, first);
	case 'B':
		return take_from_mempool(replay, first, number[1]);
	case 'E':
		return give_to_mempool(replay, first);
	case 'F':
		return drop_segment(replay, first);
	case 'M':
		return map(replay, first, number[1], number[2]);
	case 'U':
		return unmap(replay, first, number[1], number[2]);
	case 'X':
		return fail_segment(replay, number[0]);
	case 'H':
		return fail_handles(replay, number[0], number[1]);
	case 'A':
		hand_out(replay, first, second, number);
		return 0;
	case 'D':
		give_back(replay, first);
		return 0;
	case 'C':
		host_block(replay, first, (int64_t)number[1]);
		return 0;
	case 'O':
		report_oom(replay, number[0]);
		return 0;
	case 'P':
		return take_tensor(replay, first, number[1]);
	case 'Q':
		return drop_tensor(replay, first);
	case 'N':
		replay->device = (int)number[0] % 8;
		return cudaSetDevice(replay->device);
	default:
		return fail(replay, "an unknown letter", what);
	}
}

int gpusim_torch_replay(const char *path, unsigned variant, void (*mark)(const char *name))
{
	struct replay *replay = calloc(1, sizeof(*replay));
	FILE *file = fopen(path, "r");
	char line[256];
	int error = !replay || !file || open_driver() || cudaFree(NULL);

	while (!error && fgets(line, sizeof(line), file)) {
		uint64_t number[5] = {0};

		replay->line++;
		replay->variant = variant;
		line[strcspn(line, "\n")] = '\0';
		if (line[0] == '#' || line[0] == '\0')
			continue;
		if (line[0] == 'K') {
			mark(line + 2);
			continue;
		}
		sscanf(line + 1, "%lu %lu %lu %lu %lu", &number[0], &number[1], &number[2],
		       &number[3], &number[4]);
		pthread_mutex_lock(&allocator.lock);
		error = play(replay, line[0], number);
		pthread_mutex_unlock(&allocator.lock);
	}
	if (file)
		fclose(file);
	return error;
}
