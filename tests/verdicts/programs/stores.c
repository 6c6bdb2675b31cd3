/*
 * Stores of memory: stores NAME [END]. Caches by key, pools, queues, sessions, arenas and tables,
 * of which some forget what they hold and some do not.
 */
#include "gpu.h"

#include <pthread.h>

#define STEPS 300
#define SLOTS 4096

static struct {
	void *memory;
	unsigned until;
} slots[SLOTS];

static void drop(unsigned slot)
{
	if (slots[slot].memory)
		MUST(cudaFree(slots[slot].memory));
	slots[slot].memory = NULL;
}

/* ---- caches by key ---- */

PLACE static void insert_entry(unsigned key, size_t bytes)
{
	if (!slots[key].memory)
		slots[key].memory = device_memory(bytes);
}

/* Users come and go: in every second step somebody new, whose entry stays. */
static void cache_of_users(void)
{
	for (volatile unsigned i = 0; i < STEPS; i++) {
		clean_step(16 * MIB);
		insert_entry(i % 2 ? noise(i / 2 + 1) : i / 2, 512 * KIB);
	}
}

/* Two entries come in each step, and one is evicted. */
static void evicts_too_little(void)
{
	unsigned oldest = 0;

	for (volatile unsigned i = 0; i < STEPS; i++) {
		clean_step(16 * MIB);
		insert_entry(2 * i, 512 * KIB);
		insert_entry(2 * i + 1, 512 * KIB);
		drop(oldest++);
	}
}

/* The least recently used of 32 entries goes; keys are skewed, most requests hit. */
static void least_recently_used(void)
{
	unsigned used[256] = {0}, held = 0;

	for (volatile unsigned i = 0; i < 2 * STEPS; i++) {
		unsigned key = noise(16) ? noise(24) : noise(256), oldest = 256;

		clean_step(16 * MIB);
		held += !slots[key].memory;
		insert_entry(key, MIB);
		used[key] = i;
		for (unsigned k = 0; held > 32 && k < 256; k++)
			if (slots[k].memory && (oldest == 256 || used[k] < used[oldest]))
				oldest = k;
		if (held > 32)
			drop(oldest), held--;
	}
}

/* A table of 24 plans by shape, each made when it is first needed; the shapes come early. */
static void plans_by_shape(void)
{
	for (volatile unsigned i = 0; i < 2 * STEPS; i++) {
		clean_step(8 * MIB);
		insert_entry(noise(24), 2 * MIB);
	}
}

/* ---- pools ---- */

static void *free_list[SLOTS];
static unsigned free_count;

PLACE static void add_chunk(void)
{
	void *chunk = device_memory(16 * MIB);

	for (unsigned i = 0; i < 16; i++)
		free_list[free_count++] = (char *)chunk + i * MIB;
}

static void *pool_take(void)
{
	if (!free_count)
		add_chunk();
	return free_list[--free_count];
}

/* One user in three does not give its block back: the pool takes another chunk now and then. */
static void pool_of_forgetful_users(void)
{
	for (volatile unsigned i = 0; i < 2 * STEPS; i++) {
		void *block = pool_take();

		clean_step(8 * MIB);
		if (i % 3)
			free_list[free_count++] = block;
	}
}

/* Up to 40 blocks are out at a time: the pool has its three chunks soon. */
static void pool_with_high_water_mark(void)
{
	void *out[40];

	for (volatile unsigned i = 0; i < STEPS; i++) {
		unsigned count = 8 + noise(33);

		for (volatile unsigned k = 0; k < count; k++)
			out[k] = pool_take();
		clean_step(8 * MIB);
		while (count)
			free_list[free_count++] = out[--count];
	}
}

/* ---- sessions ---- */

PLACE static void begin_session(unsigned number, unsigned steps)
{
	slots[number].memory = device_memory(MIB);
	slots[number].until = steps ? number + steps : SLOTS;
}

static void expire(unsigned now)
{
	for (unsigned i = 0; i <= now && i < SLOTS; i++)
		if (slots[i].memory && slots[i].until == now)
			drop(i);
}

/* Sessions expire after 20 steps; of one in ten the timer was never set. */
static void sessions_without_timer(void)
{
	for (volatile unsigned i = 0; i < 2 * STEPS; i++) {
		clean_step(8 * MIB);
		begin_session(i, i % 10 == 3 ? 0 : 20);
		expire(i);
	}
}

/* Sessions last 1 to 60 steps: some 30 at a time, after the first 60 steps. */
static void sessions_that_expire(void)
{
	for (volatile unsigned i = 0; i < 2 * STEPS; i++) {
		clean_step(8 * MIB);
		begin_session(i, 1 + noise(60));
		expire(i);
	}
}

/* Expiry breaks half-way: from then on nothing is dropped. */
static void expiry_breaks(void)
{
	for (volatile unsigned i = 0; i < 2 * STEPS; i++) {
		clean_step(8 * MIB);
		begin_session(i, 10);
		if (i < STEPS)
			expire(i);
	}
}

/* ---- small, slow, rare ---- */

PLACE static void forget_event(size_t bytes)
{
	keep(device_memory(bytes));
}

/* 256 bytes in each of 8,000 steps. */
static void tiny_blocks(void)
{
	for (volatile unsigned i = 0; i < 8000; i++) {
		void *scratch = device_memory(MIB);

		work(1);
		forget_event(256);
		MUST(cudaFree(scratch));
	}
}

/* 4 KiB in each step below working memory of 64 to 512 MiB. */
static void slow_in_noise(void)
{
	for (volatile unsigned i = 0; i < 3 * STEPS; i++) {
		void *scratch = device_memory((64 + noise(449)) * MIB);

		work(20);
		forget_event(4 * KIB);
		MUST(cudaFree(scratch));
	}
}

/* One request in a hundred fails and forgets 4 MiB. */
static void rare_errors(void)
{
	for (volatile unsigned i = 0; i < 5 * STEPS; i++) {
		clean_step(8 * MIB);
		if (i % 100 == 60)
			forget_event(4 * MIB);
	}
}

/* Ten blocks at the end of each of twelve epochs. */
static void bursts(void)
{
	for (volatile unsigned i = 0; i < 2 * STEPS; i++) {
		clean_step(8 * MIB);
		for (volatile unsigned k = 0; i % 50 == 49 && k < 10; k++)
			forget_event(MIB);
	}
}

/* What is forgotten is a little larger each time. */
static void larger_each_time(void)
{
	for (volatile unsigned i = 0; i < STEPS; i++) {
		clean_step(16 * MIB);
		forget_event(i * 8 * KIB + KIB);
	}
}

/* ---- queues ---- */

static struct {
	void *batches[SLOTS];
	unsigned head, tail;
} queue;

PLACE static void enqueue(void)
{
	queue.batches[queue.tail++ % SLOTS] = device_memory(MIB);
}

static void dequeue(void)
{
	if (queue.head < queue.tail)
		MUST(cudaFree(queue.batches[queue.head++ % SLOTS]));
}

/* Four batches come for every three that are served, and the queue has no limit. */
static void queue_outruns_its_consumer(void)
{
	for (volatile unsigned i = 0; i < 3 * STEPS; i++) {
		clean_step(8 * MIB);
		enqueue();
		if (i % 4)
			dequeue();
	}
}

/* Arrivals and departures are random and equally frequent, at most 16 wait. */
static void bounded_queue(void)
{
	for (volatile unsigned i = 0; i < 3 * STEPS; i++) {
		clean_step(8 * MIB);
		if (noise(2) && queue.tail - queue.head < 16)
			enqueue();
		else
			dequeue();
	}
}

/* The results of the last 400 of 450 steps: full only when most of the run is over. */
static void long_window(void)
{
	for (volatile unsigned i = 0; i < 450; i++) {
		clean_step(16 * MIB);
		drop(i % 400);
		insert_entry(i % 400, MIB);
	}
}

/* ---- models, data ---- */

/* Buffers for 48 sizes of the batch, the largest first, as for captures; then a short service. */
static void sizes_from_the_largest(void)
{
	for (volatile unsigned size = 48; size; size--) {
		for (volatile int layer = 0; layer < 3; layer++)
			clean_step(8 * MIB);
		insert_entry(size, size * 256 * KIB);
	}
	for (volatile int i = 0; i < 20; i++)
		clean_step(16 * MIB);
}

PLACE static void load_part(size_t bytes)
{
	void *staging = device_memory(bytes);

	keep(device_memory(bytes));
	work(4);
	MUST(cudaFree(staging));
}

/* A data set is converted and preloaded; then epochs over it. */
static void preload(void)
{
	for (volatile unsigned i = 0; i < 400; i++)
		load_part(2 * MIB);
	for (volatile unsigned i = 0; i < 4 * STEPS; i++)
		clean_step(16 * MIB);
}

/* A model gets another stage at 10, 20, 30, 40 and 50 % of its training. */
static void stages(void)
{
	for (volatile unsigned i = 0; i < 2 * STEPS; i++) {
		if (i <= STEPS && i % 60 == 0)
			load_part(32 * MIB);
		clean_step(32 * MIB);
	}
}

/* A new version of the model is loaded ten times; then the old one goes. */
static void hot_swap(void)
{
	void *model = NULL;

	for (volatile unsigned i = 0; i < 2 * STEPS; i++) {
		if (i % 60 == 0) {
			void *next = device_memory(128 * MIB);

			if (model)
				MUST(cudaFree(model));
			model = next;
		}
		clean_step(16 * MIB);
	}
}

/* The last three checkpoints are kept. */
static void last_three(void)
{
	for (volatile unsigned i = 0; i < 2 * STEPS; i++) {
		clean_step(16 * MIB);
		if (i % 20 == 19) {
			enqueue();
			if (queue.tail - queue.head > 3)
				dequeue();
		}
	}
}

/* Twenty steps with large scratch memory while kernels are tuned, then small steps. */
static void warm_up(void)
{
	for (volatile unsigned i = 0; i < 20; i++)
		clean_step(256 * MIB);
	insert_entry(0, 64 * MIB);
	for (volatile unsigned i = 0; i < 2 * STEPS; i++)
		clean_step(24 * MIB);
}

/* ---- a table that becomes longer ---- */

PLACE static void *lengthen_cache(void *old, size_t bytes)
{
	void *longer = device_memory(bytes);

	work(20);
	if (old)
		MUST(cudaFree(old));
	return longer;
}

/* Keys and values of one conversation that never ends. */
static void endless_conversation(void)
{
	void *cache = NULL;

	for (volatile unsigned i = 1; i <= STEPS; i++) {
		cache = lengthen_cache(cache, i * MIB);
		clean_step(4 * MIB);
	}
	keep(cache);
}

/* Twenty conversations of 30 tokens, one after the other; each frees its cache. */
static void conversations(void)
{
	for (volatile unsigned i = 0; i < 20; i++) {
		void *cache = NULL;

		for (volatile unsigned k = 1; k <= 30; k++) {
			cache = lengthen_cache(cache, k * 4 * MIB);
			clean_step(4 * MIB);
		}
		MUST(cudaFree(cache));
	}
}

/* ---- mapped memory, streams ---- */

#define PIECE (2 * MIB)

PLACE static void extend_arena(CUdeviceptr base, unsigned piece)
{
	CUmemAllocationProp prop = {.type = 1, .location = {1, 0}};
	CUmemGenericAllocationHandle handle;

	MUST(cuMemCreate(&handle, PIECE, &prop, 0));
	MUST(cuMemMap(base + piece * PIECE, PIECE, 0, handle, 0));
	MUST(cuMemRelease(handle));
}

/* An arena is extended in every step, or only until it has its working set. */
static void arena(unsigned pieces)
{
	CUdeviceptr base;

	work(1);
	MUST(cuMemAddressReserve(&base, 4 * GIB, 0, 0, 0));
	for (volatile unsigned i = 0; i < STEPS; i++) {
		if (i < pieces)
			extend_arena(base, i);
		clean_step(16 * MIB);
	}
}

static void arena_without_limit(void)
{
	arena(STEPS);
}

static void arena_of_working_set(void)
{
	arena(24);
}

PLACE static void stage_on_stream(cudaStream_t stream, bool returns)
{
	void *memory;

	MUST(cudaMallocAsync(&memory, MIB, stream));
	if (returns)
		MUST(cudaFreeAsync(memory, stream));
}

/* Four streams take from the pool in turn; one step in five forgets what it took, or none does. */
static void on_streams(unsigned forgets)
{
	cudaStream_t streams[4];

	for (unsigned i = 0; i < 4; i++)
		MUST(cudaStreamCreate(&streams[i]));
	for (volatile unsigned i = 0; i < 3 * STEPS; i++) {
		clean_step(8 * MIB);
		stage_on_stream(streams[i % 4], i % 5 >= forgets);
	}
	for (unsigned i = 0; i < 4; i++)
		MUST(cudaStreamSynchronize(streams[i]));
}

static void streams_forget(void)
{
	on_streams(1);
}

static void streams_return(void)
{
	on_streams(0);
}

static const struct behaviour behaviours[] = {
	{"cache-of-users", cache_of_users},
	{"evicts-too-little", evicts_too_little},
	{"least-recently-used", least_recently_used},
	{"plans-by-shape", plans_by_shape},
	{"pool-of-forgetful-users", pool_of_forgetful_users},
	{"pool-with-high-water-mark", pool_with_high_water_mark},
	{"sessions-without-timer", sessions_without_timer},
	{"sessions-that-expire", sessions_that_expire},
	{"expiry-breaks", expiry_breaks},
	{"tiny-blocks", tiny_blocks},
	{"slow-in-noise", slow_in_noise},
	{"rare-errors", rare_errors},
	{"bursts", bursts},
	{"larger-each-time", larger_each_time},
	{"queue-outruns-its-consumer", queue_outruns_its_consumer},
	{"bounded-queue", bounded_queue},
	{"long-window", long_window},
	{"sizes-from-the-largest", sizes_from_the_largest},
	{"preload", preload},
	{"stages", stages},
	{"hot-swap", hot_swap},
	{"last-three", last_three},
	{"warm-up", warm_up},
	{"endless-conversation", endless_conversation},
	{"conversations", conversations},
	{"arena-without-limit", arena_without_limit},
	{"arena-of-working-set", arena_of_working_set},
	{"streams-forget", streams_forget},
	{"streams-return", streams_return},
};

BEHAVIOURS(behaviours)
