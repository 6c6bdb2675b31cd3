/*
 * What hostile.c compares at each of its captures.
 *
 * A walk with the cache against one without, both from inside this file. Then what a wrapper does:
 * the walk that begins in the caller's frame, and the stack that gm_stack_take gives a number to,
 * by a cached result or not, against a walk without the cache, frame by frame as the store has it.
 * What is kept of that walk, and with which flags, is worked out here once more.
 *
 * The library's Python is replaced: frames are made up, so that the native words stay the same
 * while Python's frames change.
 */
#include "hostile.h"
#include "probe.h"
#include "stack/cfi.h"
#include "stack/elf_symbols.h"
#include "stack/captured.h"
#include "stack/intern.h"
#include "stack/python.h"
#include "stack/walk_cache.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define NOINLINE  __attribute__((noinline))
#define BARRIER() __asm__ volatile("" ::: "memory")
#define OWN_MOST  16u /* frames of ours between an entry and a walk */

/* What all threads add up. */
static struct {
	uint64_t captures, differences, hashes, frames, stepped, full, whole;
	uint64_t takes, looked_up, lost, by_libgcc;
} total;

static bool store_is_full;

/* A wrapper's entry and what is asked for there. */
struct taking {
	struct gm_entry entry;
	unsigned limit;
};

/* ---- Python ---- */

/* The thread's Python frames as the library is to find them. */
static __thread struct {
	unsigned frames;
	unsigned odd, number; /* the frame at `odd` has another number */
	bool unreadable;
	uintptr_t stop; /* the interpreter's code */
} python;

bool gm_python_present = true;

static uint32_t python_frame(unsigned at)
{
	return 100 + at + (at == python.odd ? python.number : 0);
}

unsigned gm_python_walk(uint32_t *frames, unsigned max, uint16_t *flags)
{
	unsigned kept = python.frames < max ? python.frames : max;

	for (unsigned i = 0; i < kept; i++)
		frames[i] = python_frame(i);
	if (kept < python.frames)
		*flags |= GM_STACK_PYTHON_TRUNCATED;
	if (python.unreadable)
		*flags |= GM_STACK_PYTHON_UNREADABLE;
	return kept;
}

/* Of two frames, and of more than depths allow, nothing is told but their numbers. */
bool gm_python_places(struct gm_python_place *place, const uint32_t *frames, unsigned count)
{
	if (count != python.frames || count == 2 || python.unreadable)
		return false;
	for (unsigned i = 0; i < count; i++) {
		if (frames[i] != python_frame(i))
			return false;
		place[i] = (struct gm_python_place){i, frames[i], 1, 1};
	}
	return true;
}

bool gm_python_has_places(void)
{
	return true;
}

bool gm_python_same(const struct gm_python_place *place, unsigned count)
{
	if (count != python.frames || python.unreadable)
		return false;
	for (unsigned i = 0; i < count; i++)
		if (place[i].code != i || place[i].position != python_frame(i) ||
		    place[i].version != 1)
			return false;
	return true;
}

void gm_python_interpreter(uintptr_t *start, uintptr_t *bytes)
{
	*start = python.stop;
	*bytes = python.stop ? HOSTILE_STOP_BYTES : 0;
}

static void make_up_python(void)
{
	static const unsigned frames[] = {0, 0, 0, 1, 2, 7, 7, 7, 40, 300};

	python.frames = frames[hostile_dice(10)];
	python.odd = hostile_dice(8);
	python.number = 1000 * hostile_dice(3);
	python.unreadable = !hostile_dice(20);
	python.stop = hostile_interpreter();
}

/* ---- what a stack must be ---- */

struct expected {
	uintptr_t pc[GM_MAX_DEPTH];
	unsigned natives, pythons, flags;
};

/* The walk without the cache from the entry's frame outwards. */
static NOINLINE unsigned walk_from_entry(const struct gm_entry *entry, uintptr_t *pc)
{
	struct gm_walk walk = {.pc = pc, .max = GM_MAX_DEPTH + 1 + OWN_MOST, .anew = true};
	unsigned own = 0;

	gm_unwinder_tables.walk(&walk);
	while (own < walk.frames && pc[own] != entry->pc)
		own++;
	memmove(pc, pc + own, (walk.frames - own) * sizeof(*pc));
	return walk.frames - own;
}

static unsigned smaller(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* By the words of stack.h and of docs/design.md. */
static void expect(const struct taking *taking, const uintptr_t *pc, unsigned frames,
		   struct expected *expected)
{
	unsigned depth = taking->limit ? taking->limit : GM_MAX_DEPTH, room, interpreter = 0;

	memset(expected, 0, offsetof(struct expected, pc));
	expected->pythons = smaller(python.frames, depth);
	expected->flags = python.unreadable ? GM_STACK_PYTHON_UNREADABLE : 0;
	room = depth - smaller(expected->pythons, depth / 2);
	while (interpreter < frames &&
	       (!expected->pythons || !python.stop ||
		pc[interpreter] - python.stop >= HOSTILE_STOP_BYTES))
		interpreter++;
	expected->natives = smaller(interpreter, room);
	if (interpreter > room)
		expected->flags |= GM_STACK_TRUNCATED;
	else if (expected->pythons && interpreter == frames)
		expected->flags |= GM_STACK_INCOMPLETE;
	expected->pythons = smaller(expected->pythons, depth - expected->natives);
	if (expected->pythons < python.frames)
		expected->flags |= GM_STACK_TRUNCATED | GM_STACK_PYTHON_TRUNCATED;
	memcpy(expected->pc, pc, expected->natives * sizeof(*pc));
}

/* What was loaded from the start; and the library of hostile.c's that the thread is in. */
static struct gm_object objects[16];
static unsigned objects_known;
static __thread const char *plugin;

static int remember_object(const struct gm_object *object, void *data)
{
	(void)data;
	objects[objects_known++] = *object;
	return objects_known == sizeof(objects) / sizeof(*objects);
}

void hostile_in_plugin(const char *path)
{
	plugin = path;
}

static const char *path_of(uintptr_t pc)
{
	for (unsigned i = 0; i < objects_known; i++)
		if (pc >= objects[i].start && pc < objects[i].end)
			return objects[i].path;
	return plugin;
}

/* The program has no path as the loader knows it. */
static bool is_in_module(uintptr_t pc, uint32_t number)
{
	const struct gm_module_record *module = gm_store_record(GM_TABLE_MODULES, number);
	const char *path = path_of(pc);

	return number != GM_NONE && module && path && pc >= module->start && pc < module->end &&
	       (!*path || !strcmp(store_double_string(module->path_string), path));
}

static bool is_frame(const struct gm_frame_record *frame, uintptr_t pc)
{
	const struct gm_module_record *module;

	if (!frame || frame->kind != GM_FRAME_NATIVE || !is_in_module(pc, frame->native.module))
		return false;
	module = gm_store_record(GM_TABLE_MODULES, frame->native.module);
	return module->bias + frame->native.offset == pc;
}

/* Whether the store has under this number what is expected, and the innermost frame's module. */
static bool is_recorded(uint32_t stack, uint32_t module, const struct expected *expected)
{
	const struct gm_stack_record *record = gm_store_record(GM_TABLE_STACKS, stack);
	const uint32_t *frame;

	if (!record || record->frames != expected->natives + expected->pythons ||
	    record->flags != expected->flags)
		return false;
	frame = gm_store_record(GM_TABLE_STACK_FRAMES, record->first);
	for (unsigned i = 0; i < expected->natives; i++, frame++)
		if (!is_frame(gm_store_record(GM_TABLE_FRAMES, *frame), expected->pc[i]))
			return false;
	for (unsigned i = 0; i < expected->pythons; i++, frame++)
		if (*frame != python_frame(i))
			return false;
	return expected->natives ? is_in_module(expected->pc[0], module) : module == GM_NONE;
}

static void show_stack(uint32_t stack, const struct taking *taking, const struct expected *expected)
{
	const struct gm_stack_record *record = gm_store_record(GM_TABLE_STACKS, stack);
	const uint32_t *frame =
		record ? gm_store_record(GM_TABLE_STACK_FRAMES, record->first) : NULL;

	fprintf(stderr, "stack %u of %u frames, flags %u; expected %u and %u, flags %u, limit %u\n",
		stack, record ? record->frames : 0u, record ? record->flags : 0u,
		expected->natives, expected->pythons, expected->flags, taking->limit);
	for (unsigned i = 0; frame && i < expected->natives && i < record->frames; i++, frame++) {
		const struct gm_frame_record *is = gm_store_record(GM_TABLE_FRAMES, *frame);

		fprintf(stderr, "%3u  %#18lx  module %u + %#lx\n", i, expected->pc[i],
			is ? is->native.module : GM_NONE, is ? (long)is->native.offset : -1l);
	}
}

static void differs(void)
{
	__atomic_fetch_add(&total.differences, 1, __ATOMIC_RELAXED);
}

/* ---- stacks that wrappers take ---- */

/* The library's own is called by way of this one, to see how many stacks had no cached result. */
uint32_t gm_captured_intern(const struct gm_raw_stack *raw, struct gm_cached_result *result)
{
	static uint32_t (*library)(const struct gm_raw_stack *, struct gm_cached_result *);

	if (!library)
		*(void **)&library = dlsym(RTLD_NEXT, "gm_captured_intern");
	__atomic_fetch_add(&total.looked_up, 1, __ATOMIC_RELAXED);
	return library(raw, result);
}

static bool may_be_lost(void)
{
	return __atomic_load_n(&store_is_full, __ATOMIC_RELAXED);
}

static NOINLINE void take(const struct taking *taking)
{
	uintptr_t pc[GM_MAX_DEPTH + 1 + OWN_MOST];
	struct expected expected;
	uint32_t module, stack = gm_stack_take(&taking->entry, taking->limit, &module);

	__atomic_fetch_add(&total.takes, 1, __ATOMIC_RELAXED);
	if (stack == GM_NONE && may_be_lost()) {
		__atomic_fetch_add(&total.lost, 1, __ATOMIC_RELAXED);
		return;
	}
	expect(taking, pc, walk_from_entry(&taking->entry, pc), &expected);
	if (is_recorded(stack, module, &expected))
		return;
	if (!__atomic_load_n(&total.differences, __ATOMIC_RELAXED))
		show_stack(stack, taking, &expected);
	differs();
	BARRIER();
}

/* From the caller's frame, as a walk and as it is in registers. */
static NOINLINE void walk_given(const struct gm_entry *entry)
{
	uintptr_t pc[2][GM_MAX_DEPTH + 1 + OWN_MOST];
	struct gm_walk walk = {.pc = pc[0], .max = GM_MAX_DEPTH, .caller = entry->pc,
			       .sp = entry->sp, .bp = entry->bp, .spare = OWN_MOST};
	unsigned frames = smaller(walk_from_entry(entry, pc[1]), GM_MAX_DEPTH), own = 0;

	gm_unwinder_tables.walk(&walk);
	while (!walk.sp && own < walk.frames && pc[0][own] != entry->pc)
		own++;
	walk.frames = smaller(walk.frames - own, GM_MAX_DEPTH);
	if (walk.frames != frames || memcmp(pc[0] + own, pc[1], frames * sizeof(*pc[1])) != 0)
		differs();
	BARRIER();
}

/* ---- walks from inside ---- */

static void note(const struct gm_walk *walk, bool is_wrong)
{
	__atomic_fetch_add(&total.captures, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&total.differences, is_wrong, __ATOMIC_RELAXED);
	__atomic_fetch_add(&total.hashes, walk[0].hashed, __ATOMIC_RELAXED);
	__atomic_fetch_add(&total.frames, walk[0].frames, __ATOMIC_RELAXED);
	__atomic_fetch_add(&total.stepped, walk[0].stepped, __ATOMIC_RELAXED);
	__atomic_fetch_add(&total.full, walk[1].stepped, __ATOMIC_RELAXED);
	__atomic_fetch_add(&total.whole, !walk[0].stepped, __ATOMIC_RELAXED);
}

static bool hashes_are_right(const struct gm_walk *walk)
{
	unsigned frames = walk->frames - walk->from;

	return !walk->hashed ||
	       (walk->hash == gm_pcs_hash(walk->pc + walk->from, frames) &&
		walk->but_last == gm_pcs_hash(walk->pc + walk->from, frames - 1));
}

static void show(const struct gm_walk *walk)
{
	for (unsigned i = 0; i < walk[0].frames || i < walk[1].frames; i++)
		fprintf(stderr, "%3u  %#18lx %#18lx\n", i, i < walk[0].frames ? walk[0].pc[i] : 0ul,
			i < walk[1].frames ? walk[1].pc[i] : 0ul);
}

/* Both walks begin at the same call, so that they must agree from the first frame on. */
static NOINLINE void walk_both(struct gm_walk *walk)
{
	for (volatile int i = 0; i < 2; i++)
		gm_unwinder_tables.walk(&walk[i]);
	BARRIER();
}

static NOINLINE void walks(void)
{
	static const unsigned limits[] = {9, 14, 40, 70, 70, 70, 290};
	uintptr_t pc[2][GM_CACHED_FRAMES], stop = hostile_stop();
	unsigned max = limits[hostile_dice(7)], from = hostile_dice(4);
	bool differ;
	struct gm_walk walk[2];

	for (int i = 0; i < 2; i++) {
		walk[i] = (struct gm_walk){.pc = pc[i], .max = max, .from = from, .anew = i == 1};
		walk[i].stop_start = stop;
		walk[i].stop_bytes = stop ? HOSTILE_STOP_BYTES : 0;
	}
	walk_both(walk);
	differ = walk[0].frames != walk[1].frames ||
		 memcmp(pc[0], pc[1], walk[0].frames * sizeof(**pc)) != 0;
	if (differ && !__atomic_load_n(&total.differences, __ATOMIC_RELAXED))
		show(walk);
	note(walk, differ || !hashes_are_right(&walk[0]));
	BARRIER();
}

/* ---- entries ---- */

/* All of it, in changing order: what a walk is tried against is what the last one left. */
static NOINLINE void check(const struct gm_entry *entry)
{
	static const unsigned limits[] = {0, 0, 0, 0, 1, 2, 8, 8, 16, 40};
	struct taking taking = {*entry, limits[hostile_dice(10)]};
	unsigned first = hostile_dice(4);

	make_up_python();
	if (!first)
		walks();
	take(&taking);
	if (first)
		walks();
	if (first == 2)
		walk_given(entry);
	if (first == 3) { /* the same once more, and Python has gone on */
		python.number += 1000;
		take(&taking);
	}
	/* where no call was made from; the sanitizer minds that such a word is read */
	if (!hostile_dice(50) && !SANITIZED) {
		taking.entry.sp += 8 + 8 * hostile_dice(3);
		if (((const uintptr_t *)taking.entry.sp)[-1] != taking.entry.pc)
			take(&taking);
	}
	if (!hostile_dice(200)) {
		__atomic_fetch_add(&total.by_libgcc, 1, __ATOMIC_RELAXED);
		if (!probe_unwinders_agree())
			differs();
	}
	hostile_took_one();
	BARRIER();
}

NOINLINE void hostile_capture(void)
{
	const struct gm_entry entry = GM_ENTRY_HERE();

	check(&entry);
	BARRIER();
}

/* A wrapper whose frame is aligned by hand. */
NOINLINE void hostile_capture_aligned(void)
{
	volatile char room[64] __attribute__((aligned(64)));
	const struct gm_entry entry = GM_ENTRY_HERE();

	room[0] = 1;
	check(&entry);
	room[1] = room[0];
	BARRIER();
}

/* One that keeps a call's entry while it calls further in, as a runtime's call does a driver's. */
static NOINLINE void capture_inner(const struct gm_entry *outer)
{
	const struct gm_entry entry = GM_ENTRY_HERE();

	check(hostile_dice(2) ? outer : &entry);
	BARRIER();
}

NOINLINE void hostile_capture_outer(void)
{
	const struct gm_entry entry = GM_ENTRY_HERE();

	capture_inner(&entry);
	BARRIER();
}

NOINLINE void hostile_capture_plainly(void)
{
	const struct taking taking = {GM_ENTRY_HERE(), 0};

	memset(&python, 0, sizeof(python));
	take(&taking);
	BARRIER();
}

void hostile_check_agreement(void)
{
	if (!probe_unwinders_agree())
		differs();
	BARRIER();
}

/*
 * In the handler of a signal that comes at any moment, in a walk or between it and its result:
 * looks no further out than to itself. Interning that was interrupted cannot be gone on with.
 */
static NOINLINE void take_innermost(void)
{
	const struct taking taking = {GM_ENTRY_HERE(), 1};
	const struct expected expected = {{taking.entry.pc}, 1, 0, GM_STACK_TRUNCATED};
	uint32_t module, stack = gm_stack_take(&taking.entry, taking.limit, &module);

	if (stack != GM_NONE && !is_recorded(stack, module, &expected))
		differs();
	BARRIER();
}

NOINLINE void hostile_check_in_handler(bool may_intern)
{
	uintptr_t pc[2][3];
	struct gm_walk walk[2] = {{.pc = pc[0], .max = 3}, {.pc = pc[1], .max = 3, .anew = true}};
	typeof(python) before = python;

	walk_both(walk);
	if (walk[0].frames != walk[1].frames ||
	    memcmp(pc[0], pc[1], walk[0].frames * sizeof(**pc)) != 0)
		differs();
	if (!may_intern)
		return;
	memset(&python, 0, sizeof(python));
	BARRIER();
	take_innermost();
	BARRIER();
	python = before;
}

/* ---- the whole run ---- */

bool hostile_start_over(void)
{
	bool works = probe_start_with("unwind tables", GM_MAX_DEPTH);

	store_is_full = false;
	if (works && !objects_known)
		gm_objects_each(remember_object, NULL);
	return works;
}

void hostile_fill_store(void)
{
	store_double_fill(true);
	__atomic_store_n(&store_is_full, true, __ATOMIC_RELAXED);
}

static double percent(uint64_t part, uint64_t whole)
{
	return 100.0 * (double)part / (double)whole;
}

bool hostile_print_totals(void)
{
	printf("%llu captures, %.1f frames each\n", (unsigned long long)total.captures,
	       (double)total.frames / (double)total.captures);
	printf("%.1f %% whole from the cache; %.1f %% of all frames stepped by rule\n",
	       percent(total.whole, total.captures), percent(total.stepped, total.full));
	printf("%llu stacks taken, %.1f %% by a cached result alone; %llu not, the store being "
	       "full\n",
	       (unsigned long long)total.takes, 100.0 - percent(total.looked_up, total.takes),
	       (unsigned long long)total.lost);
	printf("%llu compared with libgcc's as well\n", (unsigned long long)total.by_libgcc);
	printf("%.1f %% with a hash; %llu differences\n", percent(total.hashes, total.captures),
	       (unsigned long long)total.differences);
	if (total.stepped * 10 > total.full * 9 || total.looked_up * 10 > total.takes * 9) {
		printf("the cache was hardly used: this run shows nothing\n");
		return false;
	}
	return !total.differences;
}
