/*
 * Ranges.
 */
#include "track/named_ranges.h"
#include "track/in_use.h"
#include "track/range_names.h"
#include "track/thread_id.h"
#include "track/update.h"

#include <string.h>
#include <unistd.h>

#define STACKS	     64u /* threads with open ranges; those of others are not recorded */
#define DEPTH	     64u /* deeper ranges are counted, and not recorded */
#define STARTED	     64u /* open ranges that any thread may close; the first is that of marks */
#define MARKS_DOMAIN UINT16_MAX

struct measure {
	uint64_t start_bytes, peak_bytes, peak_ns;
};

struct open_range {
	uint64_t start_ns, first_serial;
	uint64_t id;	 /* of a started one; 0: not in use */
	uint32_t record; /* index in GM_TABLE_RANGES; GM_NONE */
	uint32_t period; /* that `record` is of; another one: it is to be looked up again */
	uint32_t thread;
	struct measure devices[GM_RANGE_DEVICES];
	struct gm_range_name name; /* its text is `text`, its domain lives as long as the process */
	char text[GM_RANGE_NAME_BYTES];
};

/*
 * The open ranges of a thread. They are the thread's own; but `depth`, which is stored last, and
 * the measures of the innermost one are read and raised by others under the tracker's lock.
 */
struct stack {
	uint32_t current; /* number of the innermost recorded range plus 1; 0: none */
	uint32_t depth;	  /* (atomic) */
	struct open_range open[DEPTH];
};

static struct {
	uint64_t active; /* a bit for each stack that a thread has (atomic) */
	uint64_t started_active;
	uint64_t last_id; /* (atomic) */
	uint32_t period;
	int pid;
	struct stack stacks[STACKS];
	struct open_range started[STARTED];
} ranges;

static __thread struct stack *own __attribute__((tls_model("initial-exec")));

/* ---- measures ---- */

static unsigned devices(void)
{
	uint32_t count = gm_file->tables[GM_TABLE_DEVICES].count;

	return count < GM_RANGE_DEVICES ? count : GM_RANGE_DEVICES;
}

static void raise(struct open_range *open, unsigned device, struct gm_in_use_most most)
{
	struct measure *measure = &open->devices[device];

	if (most.bytes > measure->peak_bytes) {
		measure->peak_bytes = most.bytes;
		measure->peak_ns = most.time_ns;
	}
}

/* Hands what was in use since the last event of a range to all ranges that are innermost. */
static void share_out(void)
{
	uint64_t left;

	for (unsigned device = 0; device < devices(); device++) {
		struct gm_in_use_most most = gm_in_use_take_most((int)device);

		left = __atomic_load_n(&ranges.active, __ATOMIC_ACQUIRE);
		for (; left; left &= left - 1) {
			struct stack *stack = &ranges.stacks[__builtin_ctzll(left)];
			uint32_t depth = __atomic_load_n(&stack->depth, __ATOMIC_ACQUIRE);

			if (depth && depth <= DEPTH)
				raise(&stack->open[depth - 1], device, most);
		}
		for (left = ranges.started_active; left; left &= left - 1)
			raise(&ranges.started[__builtin_ctzll(left)], device, most);
	}
}

/* ---- beginning and end of a range, under the lock ---- */

static void begin(struct open_range *open, uint32_t parent)
{
	open->record = open->name.recorded ? gm_range_find_or_make(&open->name, parent) : GM_NONE;
	open->period = ranges.period;
	open->thread = gm_calling_thread();
	open->start_ns = gm_track.now_ns;
	open->first_serial = gm_file->serial + 1;
	memset(open->devices, 0, sizeof(open->devices));
	for (unsigned device = 0; device < devices(); device++) {
		uint64_t bytes = gm_in_use_now((int)device);

		open->devices[device] = (struct measure){bytes, bytes, gm_track.now_ns};
	}
}

static void count_on(const struct open_range *open, unsigned device)
{
	const struct measure *measure = &open->devices[device];
	struct gm_range_instance instance = {
		.start_ns = open->start_ns,
		.end_ns = gm_track.now_ns,
		.peak_ns = measure->peak_ns,
		.peak_bytes = measure->peak_bytes,
		.start_bytes = measure->start_bytes,
		.retained_bytes = (int64_t)(gm_in_use_now((int)device) - measure->start_bytes),
		.first_serial = open->first_serial,
		.last_serial = gm_file->serial,
		.thread = open->thread,
	};

	memcpy(instance.name, open->text, sizeof(instance.name));
	gm_range_count(open->record, (int)device, &instance);
}

static void finish(const struct open_range *open)
{
	bool measured = false;

	if (open->record == GM_NONE || open->period != ranges.period)
		return;
	for (unsigned device = 0; device < devices(); device++)
		if (open->devices[device].peak_bytes) {
			count_on(open, device);
			measured = true;
		}
	if (!measured)
		gm_range_count(open->record, GM_HOST, NULL);
}

/* ---- nesting ---- */

static struct stack *take_stack(void)
{
	uint64_t active = __atomic_load_n(&ranges.active, __ATOMIC_RELAXED);
	unsigned number;

	do {
		if (!~active)
			return NULL;
		number = (unsigned)__builtin_ctzll(~active);
	} while (!__atomic_compare_exchange_n(&ranges.active, &active, active | 1ull << number,
					      false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	own = &ranges.stacks[number];
	own->current = 0;
	gm_thread.range = &own->current;
	return own;
}

static void give_stack(void)
{
	uint64_t bit = 1ull << (own - ranges.stacks);

	own = NULL;
	gm_thread.range = NULL;
	__atomic_fetch_and(&ranges.active, ~bit, __ATOMIC_RELEASE);
}

static void set_depth(uint32_t depth)
{
	uint32_t record = GM_NONE;

	for (uint32_t i = depth < DEPTH ? depth : DEPTH; i-- > 0 && record == GM_NONE;)
		if (own->open[i].period == ranges.period)
			record = own->open[i].record;
	own->current = record + 1;
	__atomic_store_n(&own->depth, depth, __ATOMIC_RELEASE);
}

/* The record of the group around the range at `depth`; GM_NONE. */
static uint32_t parent_of(uint32_t depth)
{
	while (own && depth-- > 0)
		if (depth < DEPTH && own->open[depth].period == ranges.period &&
		    own->open[depth].record != GM_NONE)
			return gm_range_group(own->open[depth].record);
	return GM_NONE;
}

/* Ranges that were opened before the file, or in an earlier period, count from now on. */
static void begin_unknown(void)
{
	uint32_t depth = own ? own->depth : 0;

	for (uint32_t i = 0; i < depth && i < DEPTH; i++)
		if (own->open[i].period != ranges.period)
			begin(&own->open[i], parent_of(i));
}

static void fill(struct open_range *open, const struct gm_range_name *name)
{
	size_t bytes = strnlen(name->text ? name->text : "", GM_RANGE_NAME_BYTES - 1);

	open->name = *name;
	open->name.text = open->text;
	memcpy(open->text, name->text ? name->text : "", bytes);
	memset(open->text + bytes, 0, GM_RANGE_NAME_BYTES - bytes);
	open->period = 0;
	open->record = GM_NONE;
}

/* NVTX counts the nesting of each domain: how many of the ranges below `depth` are of this one. */
static int level_of(uint16_t domain, uint32_t depth)
{
	int level = 0;

	while (depth-- > 0)
		level += own->open[depth].name.domain_number == domain;
	return level;
}

int gm_track_range_push(const struct gm_range_name *name, bool recording)
{
	struct stack *stack = own ? own : take_stack();
	struct open_range *open;
	int level;

	if (!stack) {
		if (recording)
			__atomic_fetch_add(&gm_file->ranges_dropped, 1, __ATOMIC_RELAXED);
		return -1;
	}
	if (stack->depth >= DEPTH) {
		if (recording)
			__atomic_fetch_add(&gm_file->ranges_dropped, 1, __ATOMIC_RELAXED);
		return (int)stack->depth++;
	}
	level = level_of(name->domain_number, stack->depth);
	open = &stack->open[stack->depth];
	fill(open, name);
	if (!recording) {
		set_depth(stack->depth + 1);
		return level;
	}
	gm_update_begin();
	gm_in_use_measure_most();
	begin_unknown();
	share_out();
	begin(open, parent_of(stack->depth));
	set_depth(stack->depth + 1);
	gm_update_end();
	return level;
}

/* The thread's innermost range of a domain; GM_NONE. */
static uint32_t innermost(uint16_t domain)
{
	for (uint32_t i = own->depth; i-- > 0;)
		if (own->open[i].name.domain_number == domain)
			return i;
	return GM_NONE;
}

/*
 * Ends a range: a peak that ranges inside it have reached, it has reached, and the range around it
 * has reached its peak.
 */
static void finish_at(uint32_t at)
{
	struct open_range *open = &own->open[at];

	for (unsigned device = 0; device < devices(); device++) {
		struct measure *measure = &open->devices[device];

		for (uint32_t i = at + 1; i < own->depth; i++)
			raise(open, device,
			      (struct gm_in_use_most){own->open[i].devices[device].peak_bytes,
						      own->open[i].devices[device].peak_ns});
		if (at)
			raise(open - 1, device,
			      (struct gm_in_use_most){measure->peak_bytes, measure->peak_ns});
	}
	finish(open);
}

int gm_track_range_pop(uint16_t domain_number, bool recording, bool *marked)
{
	uint32_t at;
	int level;

	*marked = false;
	if (!own || !own->depth)
		return -1;
	if (own->depth > DEPTH)
		return (int)--own->depth;
	at = innermost(domain_number);
	if (at == GM_NONE)
		return -1;
	*marked = own->open[at].name.marked;
	level = level_of(domain_number, at);
	if (recording) {
		gm_update_begin();
		begin_unknown();
		share_out();
		finish_at(at);
	}
	for (uint32_t i = at; i + 1 < own->depth; i++) {
		own->open[i] = own->open[i + 1];
		own->open[i].name.text = own->open[i].text;
	}
	set_depth(own->depth - 1);
	if (!own->depth)
		give_stack();
	if (recording)
		gm_update_end();
	return level;
}

void gm_ranges_open_names(char *names, size_t bytes)
{
	uint32_t depth = own ? own->depth : 0;
	size_t used = 0;

	memset(names, 0, bytes);
	for (uint32_t i = 0; i < depth && i < DEPTH; i++) {
		const struct open_range *open = &own->open[i];
		size_t length = strnlen(open->text, GM_RANGE_NAME_BYTES);

		if (open->record == GM_NONE || open->period != ranges.period)
			continue;
		if (used + length + 2 > bytes)
			break;
		memcpy(names + used, open->text, length);
		for (size_t k = used; k < used + length; k++)
			names[k] = names[k] == '\n' ? ' ' : names[k];
		used += length;
		names[used++] = '\n';
	}
}

/* ---- ranges that any thread may end ---- */

/* Marks have the first place. */
static struct open_range *take_started(void)
{
	uint64_t unused = ~ranges.started_active & ~1ull;
	unsigned number;

	if (!unused)
		return NULL;
	number = (unsigned)__builtin_ctzll(unused);
	ranges.started_active |= 1ull << number;
	return &ranges.started[number];
}

uint64_t gm_track_range_start(const struct gm_range_name *name, bool recording)
{
	/* the lowest bit says whether it is marked, for ranges that could not be kept as well */
	uint64_t id = __atomic_add_fetch(&ranges.last_id, 2, __ATOMIC_RELAXED) | name->marked;
	struct open_range *open;

	if (!recording || !name->recorded)
		return id;
	gm_update_begin();
	gm_in_use_measure_most();
	begin_unknown();
	share_out();
	open = take_started();
	if (open) {
		fill(open, name);
		begin(open, parent_of(own ? own->depth : 0));
		open->id = id;
	} else {
		gm_file->ranges_dropped++;
	}
	gm_update_end();
	return id;
}

bool gm_track_range_end(uint64_t id, bool recording)
{
	if (!recording)
		return id & 1;
	gm_update_begin();
	for (uint64_t left = ranges.started_active & ~1ull; left; left &= left - 1) {
		struct open_range *open = &ranges.started[__builtin_ctzll(left)];

		if (open->id != id)
			continue;
		share_out();
		finish(open);
		open->id = 0;
		ranges.started_active &= ~(left & -left);
		break;
	}
	gm_update_end();
	return id & 1;
}

void gm_ranges_mark(const char *name)
{
	const struct gm_range_name stretch = {.text = name,
					      .domain_number = MARKS_DOMAIN,
					      .source = GM_RANGE_MARKS,
					      .recorded = true};
	struct open_range *open = &ranges.started[0];

	gm_in_use_measure_most();
	share_out();
	if (ranges.started_active & 1)
		finish(open);
	fill(open, &stretch);
	begin(open, GM_NONE);
	ranges.started_active |= 1;
}

/* ---- the start ---- */

/*
 * Forgets the threads of the process that was forked but the calling one, which alone may go on
 * here.
 */
static void forget_other_threads(void)
{
	__atomic_store_n(&ranges.active, own ? 1ull << (own - ranges.stacks) : 0, __ATOMIC_RELEASE);
}

void gm_ranges_reset(void)
{
	int pid = getpid();

	if (ranges.pid && ranges.pid != pid)
		forget_other_threads();
	ranges.pid = pid;
	ranges.period++;
	ranges.started_active = 0;
	gm_range_names_reset();
	for (unsigned i = 0; i < STACKS; i++)
		if (ranges.active >> i & 1)
			ranges.stacks[i].current = 0;
	begin_unknown();
	if (own) {
		gm_in_use_measure_most();
		set_depth(own->depth);
	}
}
