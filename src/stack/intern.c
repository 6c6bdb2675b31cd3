/*
 * Interning (intern.h, gm_stack_intern). Two steps: a stack as captured (addresses and Python frame
 * numbers) is looked up without a lock; one not seen before is resolved under the lock to frames,
 * and equal frames get the same stack however they were reached (a library loaded at another
 * address, a code object compiled again).
 *
 * When an object is unloaded, what was learnt of addresses in it is taken out of the maps, so that
 * a library loaded in its place is resolved afresh.
 */
#include "stack/intern.h"

#include "stack/elf_symbols.h"
#include "stack/modules.h"
#include "stack/native.h"
#include "stack/python.h"
#include "stack/stack.h"
#include "stack/traces.h"
#include "store/lock.h"

#include <errno.h>
#include <string.h>

#define MOST_PRIVATE_BYTES (256ull << 20)
#define MOST_CHANGES	   64u
#define MOST_PLACES	   16u /* of a stack */

/* Where in their code objects the frames of a stack stood: calls in one line make one stack. */
struct places {
	struct places *next;
	struct gm_python_place place[]; /* of each Python frame */
};

/* A stack as captured, and what became of it. But for the places, never changes once it is in the map. */
struct known_stack {
	uint32_t stack;
	uint32_t caller_module;
	uint16_t natives, pythons, flags;
	struct places *places; /* those met so far, the latest first */
	uintptr_t pc[];		  /* then pythons × uint32_t */
};

static inline const uint32_t *pythons_of(const struct known_stack *known)
{
	return (const uint32_t *)(known->pc + known->natives);
}

static struct {
	struct gm_lock lock;
	struct gm_arena arena;
	struct gm_map captured;		      /* hash of a raw stack → struct known_stack */
	struct gm_map frames;		      /* hash of a frame record → frame + 2 */
	struct gm_map stacks;		      /* hash of frame numbers → stack + 2 */
	struct gm_map strings;		      /* hash of a text → string + 2 */
	unsigned long long unloads;	      /* the loader's count when last asked */
	bool homeless;			      /* some recorded address was in no object */
} interned;

/* The first variable of this section that is linked: the others follow it in its cache line. */
GM_HOT_STACK __attribute__((aligned(64))) struct gm_known_code gm_known_code = {.epoch = 1};

static __thread bool inside __attribute__((tls_model("initial-exec")));

bool gm_intern_enter(void)
{
	if (inside)
		return false;
	inside = true;
	__asm__ volatile("" ::: "memory");
	gm_lock_acquire(&interned.lock);
	return true;
}

void gm_intern_leave(void)
{
	gm_lock_release(&interned.lock);
	__asm__ volatile("" ::: "memory");
	inside = false;
}

struct gm_arena *gm_intern_arena(void)
{
	return &interned.arena;
}

bool gm_intern_may_cache(void)
{
	return interned.arena.mapped_bytes < MOST_PRIVATE_BYTES;
}

uint64_t gm_intern_bytes(void)
{
	return __atomic_load_n(&interned.arena.mapped_bytes, __ATOMIC_RELAXED);
}

void gm_intern_count_lost(void)
{
	if (gm_file)
		__atomic_fetch_add(&gm_file->lost_stacks, 1, __ATOMIC_RELAXED);
}

/* Numbers are kept plus two: 0 and GM_MAP_GONE mean something else to a map. */
static uint64_t packed(uint32_t number)
{
	return (uint64_t)number + 2;
}

static uint32_t unpacked(uint64_t value)
{
	return (uint32_t)(value - 2);
}

uint32_t gm_intern_string(const char *text, size_t bytes)
{
	uint64_t hash = gm_hash(text, bytes, 0), value;
	struct gm_map_cursor cursor = gm_map_find(&interned.strings, hash);
	uint32_t string;

	while ((value = gm_map_next(&cursor))) {
		const char *known = gm_store_record(GM_TABLE_STRINGS, unpacked(value));

		if (known && !strncmp(known, text, bytes) && !known[bytes])
			return unpacked(value);
	}
	string = gm_store_string(text, bytes);
	if (string != GM_NONE)
		gm_map_add(&interned.strings, &interned.arena, hash, packed(string));
	return string;
}

uint32_t gm_intern_frame(const struct gm_frame_record *frame)
{
	uint64_t hash = gm_hash(frame, sizeof(*frame), 1), value;
	struct gm_map_cursor cursor = gm_map_find(&interned.frames, hash);
	struct gm_frame_record *record;
	uint32_t index;

	while ((value = gm_map_next(&cursor))) {
		record = gm_store_record(GM_TABLE_FRAMES, unpacked(value));
		if (record && !memcmp(record, frame, sizeof(*frame)))
			return unpacked(value);
	}
	record = gm_store_append(GM_TABLE_FRAMES, 1, &index);
	if (!record)
		return GM_NONE;
	memcpy(record, frame, sizeof(*frame));
	gm_store_publish(GM_TABLE_FRAMES);
	gm_map_add(&interned.frames, &interned.arena, hash, packed(index));
	return index;
}

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
		interned.homeless = true;
	return gm_intern_frame(&frame);
}

static bool same_frames(const struct gm_stack_record *stack, const uint32_t *frames, unsigned count,
			unsigned flags)
{
	if (!stack || stack->frames != count || stack->flags != flags)
		return false;
	for (unsigned i = 0; i < count; i++) {
		const uint32_t *frame = gm_store_record(GM_TABLE_STACK_FRAMES, stack->first + i);

		if (!frame || *frame != frames[i])
			return false;
	}
	return true;
}

/* The stack of these frames in the file. */
static uint32_t intern_frames(const uint32_t *frames, unsigned count, unsigned flags)
{
	uint64_t hash = gm_hash(frames, count * sizeof(*frames), flags), value;
	struct gm_map_cursor cursor = gm_map_find(&interned.stacks, hash);
	struct gm_stack_record *record;
	uint32_t first, index;

	while ((value = gm_map_next(&cursor)))
		if (same_frames(gm_store_record(GM_TABLE_STACKS, unpacked(value)), frames, count,
				flags))
			return unpacked(value);
	if (!gm_store_append(GM_TABLE_STACK_FRAMES, count, &first))
		return GM_NONE;
	for (unsigned i = 0; i < count; i++)
		*(uint32_t *)gm_store_record(GM_TABLE_STACK_FRAMES, first + i) = frames[i];
	gm_store_publish(GM_TABLE_STACK_FRAMES);
	record = gm_store_append(GM_TABLE_STACKS, 1, &index);
	if (!record)
		return GM_NONE;
	*record = (struct gm_stack_record){hash, first, (uint16_t)count, (uint16_t)flags};
	gm_store_publish(GM_TABLE_STACKS);
	gm_map_add(&interned.stacks, &interned.arena, hash, packed(index));
	return index;
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
	uint64_t hash = raw->hash ? raw->hash : gm_trace_hash(raw->pc, raw->natives);

	hash = gm_hash_numbers(hash, shape, 5);
	return raw->pythons ? gm_hash(raw->python, raw->pythons * sizeof(*raw->python), hash)
			    : hash;
}

static const struct known_stack *find_captured(const struct gm_raw_stack *raw, uint64_t hash)
{
	struct gm_map_cursor cursor = gm_map_find(&interned.captured, hash);
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
	known = gm_arena_alloc(&interned.arena, sizeof(*known) + pcs + pythons);
	if (!known)
		return;
	*known = (struct known_stack){stack, module, raw->natives, raw->pythons, raw->flags, NULL};
	memcpy(known->pc, raw->pc, pcs);
	memcpy(known->pc + raw->natives, raw->python, pythons);
	gm_map_add(&interned.captured, &interned.arena, hash, (uintptr_t)known);
}

/* Drops what is remembered of stacks with an address in these ranges; more than fit: of all. */
static void forget_ranges(const struct gm_range *range, unsigned ranges)
{
	struct gm_map_slots *slots = interned.captured.slots;

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
	/* only now: who knows the new epoch must not find what was dropped, and note it */
	if (ranges)
		gm_intern_forget_notes();
}

/* Most dlclose calls unload nothing. If this one did, whatever was learnt of code is in doubt. */
static void note_unloads(unsigned long long unloads)
{
	if (__atomic_exchange_n(&interned.unloads, unloads, __ATOMIC_RELAXED) == unloads)
		return;
	gm_python_unloaded();
	gm_native_code_unloaded();
	gm_intern_forget_notes();
	__atomic_fetch_add(&gm_known_code.changes_asked, 1, __ATOMIC_RELEASE);
}

void gm_intern_refresh_modules(void)
{
	uint32_t asked = __atomic_load_n(&gm_known_code.changes_asked, __ATOMIC_ACQUIRE);
	struct gm_range range[MOST_CHANGES];
	struct gm_modules_snapshot snapshot;
	bool changed;

	if (!gm_modules_snapshot(&snapshot))
		return;
	changed = snapshot.memory != NULL;
	note_unloads(snapshot.subs); /* by a dlclose that nobody told us of */
	if (!gm_intern_enter()) {
		gm_modules_drop(&snapshot);
		return;
	}
	forget_ranges(range, gm_modules_merge(&snapshot, &interned.arena, interned.homeless, range,
					      MOST_CHANGES));
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
	stack = intern_frames(frames, count, flags);
	if (stack != GM_NONE)
		remember(raw, hash, stack, *caller_module);
	return stack;
}

static uint32_t intern_slowly(const struct gm_raw_stack *raw, uint64_t hash,
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
		gm_intern_refresh_modules();
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

uint32_t gm_intern_noted(const struct gm_raw_stack *raw, struct gm_trace_note *note)
{
	const struct known_stack *known;
	int saved = errno;
	uint64_t hash;

	note->known = NULL;
	note->stack = note->module = GM_NONE;
	if (!gm_file || !(raw->natives + raw->pythons))
		return GM_NONE;
	if (gm_intern_modules_changed())
		gm_intern_refresh_modules();
	hash = hash_captured(raw);
	known = find_captured(raw, hash);
	if (known) {
		note->known = known;
		note->stack = known->stack;
		note->module = known->caller_module;
	} else {
		note->stack = intern_slowly(raw, hash, &note->module);
	}
	errno = saved;
	return note->stack;
}

uint32_t gm_stack_intern(const struct gm_raw_stack *raw, uint32_t *caller_module)
{
	struct gm_trace_note note;

	gm_intern_noted(raw, &note);
	if (caller_module)
		*caller_module = note.module;
	return note.stack;
}

bool gm_intern_same_python(const struct gm_trace_note *note, const uint32_t *python)
{
	const struct known_stack *known = note->known;

	return !memcmp(pythons_of(known), python, known->pythons * sizeof(*python));
}

static struct places *add_places(struct known_stack *known)
{
	struct places *places = NULL;

	if (!gm_intern_enter())
		return NULL;
	if (gm_intern_may_cache())
		places = gm_arena_alloc(&interned.arena, sizeof(*places) + known->pythons * sizeof(*places->place));
	if (places && !gm_python_places(places->place, pythons_of(known), known->pythons)) {
		gm_arena_free(&interned.arena, places,
			      sizeof(*places) + known->pythons * sizeof(*places->place));
		places = NULL;
	}
	if (places) {
		places->next = known->places;
		__atomic_store_n(&known->places, places, __ATOMIC_RELEASE);
	}
	gm_intern_leave();
	return places;
}

void gm_intern_note_places(struct gm_trace_note *note)
{
	struct known_stack *known = (struct known_stack *)note->known;
	struct places *places = __atomic_load_n(&known->places, __ATOMIC_ACQUIRE);
	unsigned met = 0;

	note->places = NULL;
	/* without the lock: this is also where a stack is known, only not expected */
	if (!known->pythons || known->flags & GM_STACK_PYTHON_TRUNCATED || !gm_python_has_places())
		return;
	while (places && !gm_python_same(places->place, known->pythons)) {
		places = places->next;
		met++;
	}
	if (!places && met < MOST_PLACES)
		places = add_places(known);
	note->places = places ? places->place : NULL;
}

static int read_unloads(const struct gm_object *object, void *data)
{
	*(unsigned long long *)data = object->subs;
	return 1;
}

void gm_stack_modules_changed(void)
{
	unsigned long long unloads = 0;

	gm_objects_each(read_unloads, &unloads);
	note_unloads(unloads);
}

void gm_intern_reset(void)
{
	struct gm_arena arena = interned.arena;

	memset(&interned, 0, sizeof(interned));
	gm_known_code.changes_asked = gm_known_code.changes_done = 0;
	gm_intern_forget_notes();
	inside = false;
	gm_arena_reset(&arena);
	gm_modules_reset();
}
