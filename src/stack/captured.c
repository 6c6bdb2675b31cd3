/*
 * Stacks as they were captured. A stack (addresses and Python frame numbers) is looked up without a
 * lock; one that was not captured before is resolved under the lock to frames, and equal frames get
 * the same stack of the file however they were reached (a library loaded at another address, a code
 * object compiled again).
 *
 * When an object is unloaded, what was learnt of addresses in it is taken out of the map, so that
 * stacks through a library that is loaded in its place are resolved again.
 */
#include "stack/captured.h"

#include "stack/cached_walk.h"
#include "stack/elf_symbols.h"
#include "stack/intern.h"
#include "stack/modules.h"
#include "stack/native.h"
#include "stack/python.h"
#include "stack/stack.h"

#include <errno.h>
#include <string.h>

#define MOST_CHANGES 64u
#define MOST_PLACES  16u /* of a stack */

/* The frames' positions in their code objects: all calls in one line make one stack. */
struct places {
	struct places *next;
	struct gm_python_place place[]; /* of each Python frame */
};

/* A captured stack and its stack in the file. Once it is in the map, only the places change. */
struct known_stack {
	uint32_t stack;
	uint32_t caller_module;
	uint16_t natives, pythons, flags;
	struct places *places; /* those met so far, the latest first */
	uintptr_t pc[];	       /* then pythons × uint32_t */
};

static inline const uint32_t *pythons_of(const struct known_stack *known)
{
	return (const uint32_t *)(known->pc + known->natives);
}

static struct {
	struct gm_map stacks;	    /* hash of a raw stack → struct known_stack */
	unsigned long long unloads; /* the loader's count when last asked */
	bool unmapped;		    /* some recorded address was in no object */
} captured;

/* The frame of a return address. */
static uint32_t native_frame(uintptr_t pc)
{
	struct gm_module *module = gm_modules_find(pc);
	struct gm_frame_record frame;

	memset(&frame, 0, sizeof(frame));
	frame.kind = GM_FRAME_NATIVE;
	frame.native.module = module ? gm_modules_record(module) : GM_NONE;
	frame.native.offset = pc - (module ? module->bias : 0);
	if (!module)
		captured.unmapped = true;
	return gm_intern_frame(&frame);
}

/* The innermost object that is neither CUDA's nor ours. */
static uint32_t find_caller_module(const struct gm_raw_stack *raw)
{
	for (unsigned i = 0; i < raw->natives; i++) {
		struct gm_module *module = gm_modules_find(raw->pc[i]);

		if (module && !module->cuda && !module->ours)
			return gm_modules_record(module);
	}
	return GM_NONE;
}

/*
 * A thread's outermost frame lies in the program or in libc (or the loader, before it was there).
 * An unwinder that ends elsewhere met code it could not see through, such as a JIT compiler's.
 */
static bool ends_early(const struct gm_raw_stack *raw)
{
	const struct gm_module *module;

	if (raw->pythons || !raw->natives || raw->flags & GM_STACK_TRUNCATED)
		return false;
	module = gm_modules_find(raw->pc[raw->natives - 1]);
	return !module || !(module->program || module->libc);
}

static uint64_t hash_captured(const struct gm_raw_stack *raw)
{
	uint64_t shape = (uint64_t)raw->natives << 32 | (uint64_t)raw->pythons << 16 | raw->flags;
	uint64_t hash = raw->hash ? raw->hash : gm_pcs_hash(raw->pc, raw->natives);

	hash = gm_hash_numbers(hash, shape, 5);
	return raw->pythons ? gm_hash(raw->python, raw->pythons * sizeof(*raw->python), hash)
			    : hash;
}

static const struct known_stack *find_captured(const struct gm_raw_stack *raw, uint64_t hash)
{
	struct gm_map_cursor cursor = gm_map_find(&captured.stacks, hash);
	uint64_t value;

	while ((value = gm_map_next(&cursor))) {
		const struct known_stack *known = (const void *)(uintptr_t)value;

		if (known->natives == raw->natives && known->pythons == raw->pythons &&
		    known->flags == raw->flags &&
		    !memcmp(known->pc, raw->pc, raw->natives * sizeof(*raw->pc)) &&
		    !memcmp(pythons_of(known), raw->python, raw->pythons * sizeof(*raw->python)))
			return known;
	}
	return NULL;
}

static void remember(const struct gm_raw_stack *raw, uint64_t hash, uint32_t stack, uint32_t module)
{
	size_t pcs = raw->natives * sizeof(*raw->pc), pythons = raw->pythons * sizeof(*raw->python);
	struct known_stack *known;

	if (!gm_intern_may_cache())
		return;
	known = gm_arena_alloc(gm_intern_arena(), sizeof(*known) + pcs + pythons);
	if (!known)
		return;
	*known = (struct known_stack){stack, module, raw->natives, raw->pythons, raw->flags, NULL};
	memcpy(known->pc, raw->pc, pcs);
	memcpy(known->pc + raw->natives, raw->python, pythons);
	gm_map_add(&captured.stacks, gm_intern_arena(), hash, (uintptr_t)known);
}

/* Drops what is remembered of stacks with an address in these ranges; more than fit: of all. */
static void forget_ranges(const struct gm_range *range, unsigned ranges)
{
	struct gm_map_slots *slots = captured.stacks.slots;

	for (uint32_t i = 0; slots && i <= slots->mask; i++) {
		const struct known_stack *known = (const void *)(uintptr_t)slots->slot[i].value;
		bool gone = ranges > MOST_CHANGES;

		if (slots->slot[i].value <= GM_MAP_GONE)
			continue;
		for (unsigned k = 0; !gone && k < ranges; k++)
			for (unsigned n = 0; !gone && n < known->natives; n++)
				gone = known->pc[n] >= range[k].start &&
				       known->pc[n] < range[k].end;
		if (gone)
			__atomic_store_n(&slots->slot[i].value, GM_MAP_GONE, __ATOMIC_RELEASE);
	}
	/* last: a thread that reads the new epoch must not find a dropped stack and cache it */
	if (ranges)
		gm_intern_forget_results();
}

/* Forgets what was learnt of code if something was unloaded; most dlclose calls unload nothing. */
static void check_unloads(unsigned long long unloads)
{
	if (__atomic_exchange_n(&captured.unloads, unloads, __ATOMIC_RELAXED) == unloads)
		return;
	gm_python_unloaded();
	gm_native_code_unloaded();
	gm_intern_forget_results();
	__atomic_fetch_add(&gm_known_code.changes_asked, 1, __ATOMIC_RELEASE);
}

void gm_captured_refresh_modules(void)
{
	uint32_t asked = __atomic_load_n(&gm_known_code.changes_asked, __ATOMIC_ACQUIRE);
	struct gm_range range[MOST_CHANGES];
	struct gm_modules_snapshot snapshot;
	unsigned changes;
	bool changed;

	if (!gm_modules_snapshot(&snapshot))
		return;
	changed = snapshot.memory != NULL;
	check_unloads(snapshot.subs); /* by a dlclose that nobody told us of */
	if (!gm_intern_enter()) {
		gm_modules_drop(&snapshot);
		return;
	}
	changes = gm_modules_merge(&snapshot, gm_intern_arena(), captured.unmapped, range,
				   MOST_CHANGES);
	forget_ranges(range, changes);
	if ((int32_t)(asked - gm_known_code.changes_done) > 0)
		__atomic_store_n(&gm_known_code.changes_done, asked, __ATOMIC_RELEASE);
	gm_intern_leave();
	if (changed)
		gm_python_find();
}

/* True if an address is in no object that we know of. */
static bool has_unknown(const struct gm_raw_stack *raw)
{
	for (unsigned i = 0; i < raw->natives; i++)
		if (!gm_modules_find(raw->pc[i]))
			return true;
	return false;
}

/* Resolves and records a stack not seen before. Lock held. */
static uint32_t intern_new(const struct gm_raw_stack *raw, uint64_t hash, uint32_t *caller_module)
{
	uint32_t frames[GM_MAX_DEPTH], stack = GM_NONE;
	unsigned count = 0, flags = raw->flags;

	*caller_module = find_caller_module(raw);
	if (ends_early(raw))
		flags |= GM_STACK_INCOMPLETE;
	for (unsigned i = 0; i < raw->natives && count < GM_MAX_DEPTH; i++) {
		frames[count] = native_frame(raw->pc[i]);
		if (frames[count++] == GM_NONE)
			return GM_NONE;
	}
	for (unsigned i = 0; i < raw->pythons && count < GM_MAX_DEPTH; i++)
		frames[count++] = raw->python[i];
	stack = gm_intern_stack(frames, count, flags);
	if (stack != GM_NONE)
		remember(raw, hash, stack, *caller_module);
	return stack;
}

static uint32_t intern_slow(const struct gm_raw_stack *raw, uint64_t hash,
			      uint32_t *caller_module)
{
	const struct known_stack *known;
	uint32_t stack = GM_NONE;

	*caller_module = GM_NONE;
	if (!gm_intern_enter()) {
		gm_intern_count_lost();
		return GM_NONE;
	}
	if (has_unknown(raw)) {
		gm_intern_leave();
		gm_captured_refresh_modules();
		gm_intern_enter();
	}
	known = find_captured(raw, hash);
	if (known) {
		stack = known->stack;
		*caller_module = known->caller_module;
	} else {
		stack = intern_new(raw, hash, caller_module);
	}
	gm_intern_leave();
	return stack;
}

uint32_t gm_captured_intern(const struct gm_raw_stack *raw, struct gm_cached_result *result)
{
	const struct known_stack *known;
	int saved = errno;
	uint64_t hash;

	result->known = NULL;
	result->stack = result->module = GM_NONE;
	if (!gm_file || !(raw->natives + raw->pythons))
		return GM_NONE;
	if (gm_intern_modules_changed())
		gm_captured_refresh_modules();
	hash = hash_captured(raw);
	known = find_captured(raw, hash);
	if (known) {
		result->known = known;
		result->stack = known->stack;
		result->module = known->caller_module;
	} else {
		result->stack = intern_slow(raw, hash, &result->module);
	}
	errno = saved;
	return result->stack;
}

bool gm_captured_same_python(const struct gm_cached_result *result, const uint32_t *python)
{
	const struct known_stack *known = result->known;

	return !memcmp(pythons_of(known), python, known->pythons * sizeof(*python));
}

static struct places *add_places(struct known_stack *known)
{
	struct places *places = NULL;
	size_t bytes = sizeof(*places) + known->pythons * sizeof(*places->place);

	if (!gm_intern_enter())
		return NULL;
	if (gm_intern_may_cache())
		places = gm_arena_alloc(gm_intern_arena(), bytes);
	if (places && !gm_python_places(places->place, pythons_of(known), known->pythons)) {
		gm_arena_free(gm_intern_arena(), places, bytes);
		places = NULL;
	}
	if (places) {
		places->next = known->places;
		__atomic_store_n(&known->places, places, __ATOMIC_RELEASE);
	}
	gm_intern_leave();
	return places;
}

void gm_captured_find_places(struct gm_cached_result *result)
{
	struct known_stack *known = (struct known_stack *)result->known;
	struct places *places = __atomic_load_n(&known->places, __ATOMIC_ACQUIRE);
	unsigned met = 0;

	result->places = NULL;
	/* without the lock: this is also where a stack is known, only not expected */
	if (!known->pythons || known->flags & GM_STACK_PYTHON_TRUNCATED || !gm_python_has_places())
		return;
	while (places && !gm_python_same(places->place, known->pythons)) {
		places = places->next;
		met++;
	}
	if (!places && met < MOST_PLACES)
		places = add_places(known);
	result->places = places ? places->place : NULL;
}

static int read_unloads(const struct gm_object *object, void *data)
{
	*(unsigned long long *)data = object->subs;
	return 1;
}

void gm_captured_check_unloads(void)
{
	unsigned long long unloads = 0;

	gm_objects_each(read_unloads, &unloads);
	check_unloads(unloads);
}

void gm_captured_reset(void)
{
	memset(&captured, 0, sizeof(captured));
	gm_modules_reset();
}
