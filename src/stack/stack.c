/*
 * Taking a stack (stack.h): native addresses with the shim's own frames and the interpreter's
 * removed, Python frames after them, together no more than asked for.
 */
#include "stack/stack.h"

#include "stack/captured.h"
#include "stack/cfi.h"
#include "stack/intern.h"
#include "stack/native.h"
#include "stack/python.h"
#include "stack/walk_cache.h"
#include "store/hot.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define likely(condition)   __builtin_expect(!!(condition), 1)
#define unlikely(condition) __builtin_expect(!!(condition), 0)

#define FETCHED_LINES	6u  /* of a walk's values; the processor fetches the next ones itself */
#define FETCHED_PLACES	3u  /* lines of Python's places: of some seven frames */
#define MOST_OWN_FRAMES 32u /* of the shim, between its entry and the unwinder */

GM_HOT_STACK static struct {
	enum gm_stack_mode mode;
	unsigned depth;
	unsigned own_frames; /* their number last time: a guess that saves unwinding */
	bool native_done;
} settings = {.depth = 64, .own_frames = 4};

static struct {
	enum gm_stack_unwinder unwinder;
	void (*log)(const char *line);
} asked;

void gm_stack_ask_unwinder(enum gm_stack_unwinder unwinder, void (*log)(const char *line))
{
	asked.unwinder = unwinder;
	asked.log = log;
}

/*
 * Chooses the unwinder that was asked for; if it cannot be had says so, and chooses the usual one.
 */
static void init_native(void)
{
	static const char *const names[] = {
		[GM_UNWINDER_AUTO] = NULL,
		[GM_UNWINDER_TABLES] = "unwind tables",
		[GM_UNWINDER_LIBUNWIND] = "libunwind",
		[GM_UNWINDER_LIBGCC] = "libgcc",
		[GM_UNWINDER_FRAME_POINTERS] = "frame pointers",
		[GM_UNWINDER_CHECK] = NULL,
	};
	const char *name = names[asked.unwinder];
	char line[200];

	if (gm_native_init(name) &&
	    (asked.unwinder != GM_UNWINDER_CHECK || gm_native_check(asked.log)))
		return;
	if (asked.unwinder == GM_UNWINDER_AUTO)
		return;
	gm_native_init(NULL);
	snprintf(line, sizeof(line),
		 "%s cannot be used here, as GPUMEMTRACE_UNWINDER asks; stacks come from %s",
		 name ? name : "a comparison of the unwind tables with libunwind",
		 gm_native_name());
	asked.log(line);
}

void gm_stack_init(enum gm_stack_mode mode, unsigned depth)
{
	int saved = errno;

	settings.mode = mode;
	settings.depth = depth < 1 ? 1 : depth > GM_MAX_DEPTH ? GM_MAX_DEPTH : depth;
	if (mode == GM_STACKS_OFF)
		return;
	if (!settings.native_done && mode != GM_STACKS_PYTHON) {
		init_native();
		settings.native_done = true;
		errno = saved;
	}
	if (mode != GM_STACKS_NATIVE)
		gm_python_find();
}

void gm_stack_cache(bool on)
{
	gm_native_use_cache(on);
}

const char *gm_stack_unwinder(void)
{
	return gm_native_name();
}

const char *gm_stack_python(void)
{
	return gm_python_status();
}

/* Index of the first frame that is not the shim's: `caller`, or else the first outside our code. */
static unsigned skip_own(const uintptr_t *pc, unsigned frames, uintptr_t caller, unsigned guess)
{
	unsigned i;

	if (guess < frames && pc[guess] == caller)
		return guess;
	for (i = 0; i < frames && i < MOST_OWN_FRAMES; i++)
		if (pc[i] == caller)
			return i;
	for (i = 0; i < frames && gm_native_is_own(pc[i]); i++)
		;
	return i;
}

/* A walk that takes in `want` frames from `caller` outwards and the one after them. */
static unsigned walk_from(struct gm_walk *walk, unsigned want)
{
	unsigned guess = __atomic_load_n(&settings.own_frames, __ATOMIC_RELAXED), own;

	walk->spare = guess;
	walk->from = walk->sp ? 0 : guess;
	walk->max = want + 1 + walk->from;
	gm_native_walk(walk);
	own = skip_own(walk->pc, walk->frames, walk->caller, walk->from);
	if (walk->frames == walk->max && own > guess) {
		walk->max = want + 1 + MOST_OWN_FRAMES;
		walk->sp = 0;
		gm_native_walk(walk);
		own = skip_own(walk->pc, walk->frames, walk->caller, walk->from);
		if (own <= MOST_OWN_FRAMES)
			__atomic_store_n(&settings.own_frames, own, __ATOMIC_RELAXED);
	}
	return own;
}

static void capture_native(struct gm_raw_stack *raw, struct gm_walk *walk, unsigned depth)
{
	/* if both kinds are many, each gets half */
	unsigned pythons = raw->pythons < depth / 2 ? raw->pythons : depth / 2;
	unsigned want = depth - pythons, own, kept;
	uintptr_t pc[GM_MAX_DEPTH + MOST_OWN_FRAMES + 2], caller = walk->caller;
	bool add_caller, at_interpreter;

	walk->pc = pc;
	if (raw->pythons)
		gm_python_interpreter(&walk->stop_start, &walk->stop_bytes);
	own = walk_from(walk, want);
	/* an unwinder that missed the wrapper's frame: we know better where it returns to */
	add_caller = caller && (own == walk->frames || pc[own] != caller);
	if (add_caller)
		raw->pc[0] = caller;
	at_interpreter =
		walk->frames > own && pc[walk->frames - 1] - walk->stop_start < walk->stop_bytes;
	kept = walk->frames - own - at_interpreter + add_caller;
	if (kept > want)
		raw->flags |= GM_STACK_TRUNCATED;
	else if (walk->incomplete || (raw->pythons && !at_interpreter))
		raw->flags |= GM_STACK_INCOMPLETE;
	kept = kept > want ? want : kept;
	raw->natives = (uint16_t)kept;
	memcpy(raw->pc + add_caller, pc + own, (kept - add_caller) * sizeof(*pc));
	if (!walk->hashed || walk->from != own || add_caller)
		return;
	if (kept == walk->frames - own)
		raw->hash = walk->hash;
	else if (kept == walk->frames - own - 1)
		raw->hash = walk->but_last;
}

static inline unsigned depth_of(unsigned limit)
{
	return limit && limit < settings.depth ? limit : settings.depth;
}

/* Captures the stack and returns the key of its result. */
static uint64_t capture(struct gm_raw_stack *raw, struct gm_walk *walk, unsigned depth)
{
	enum gm_stack_mode mode = settings.mode;
	uint64_t key;

	raw->natives = raw->pythons = raw->flags = 0;
	raw->hash = 0;
	walk->brief = depth < settings.depth;
	if (mode == GM_STACKS_OFF)
		return 0;
	if (mode != GM_STACKS_NATIVE)
		raw->pythons = (uint16_t)gm_python_walk(raw->python, depth, &raw->flags);
	key = gm_result_key(gm_intern_epoch(), depth, raw->pythons, raw->flags);
	if (mode != GM_STACKS_PYTHON)
		capture_native(raw, walk, depth);
	if (raw->natives + raw->pythons > (int)depth) {
		raw->pythons = (uint16_t)(depth - raw->natives);
		raw->flags |= GM_STACK_PYTHON_TRUNCATED;
	}
	if (raw->flags & GM_STACK_PYTHON_TRUNCATED)
		raw->flags |= GM_STACK_TRUNCATED;
	return key;
}

void gm_stack_capture(struct gm_raw_stack *raw, uintptr_t caller, unsigned limit)
{
	struct gm_walk walk = {.caller = caller};
	int saved = errno;

	capture(raw, &walk, depth_of(limit));
	errno = saved;
}

uint32_t gm_stack_intern(const struct gm_raw_stack *raw, uint32_t *caller_module)
{
	struct gm_cached_result result;

	gm_captured_intern(raw, &result);
	if (caller_module)
		*caller_module = result.module;
	return result.stack;
}

/*
 * The stack pointer to begin at; 0 if the stack shows no call there: the walk begins inside then.
 */
static inline uintptr_t sp_of(const struct gm_entry *entry)
{
	return entry->sp && ((const uintptr_t *)entry->sp)[-1] == entry->pc ? entry->sp : 0;
}

/* Looks for the predicted walk. */
static inline void predict(struct gm_stack_taking *taking, struct gm_walk_cache *cache,
			   uint64_t hint)
{
	const struct gm_prediction *prediction;
	const struct gm_cached_walk *cached;

	taking->cache = cache;
	if (unlikely(hint != 0) && cache)
		gm_walk_cache_hint(cache, hint);
	if (unlikely(!cache || !cache->memory))
		return;
	prediction = gm_walk_cache_find(cache, taking->entry->sp, taking->brief);
	cached = prediction ? gm_walk_cache_at(cache, prediction->position) : NULL;
	if (unlikely(!cached))
		return;
	taking->prediction = prediction;
	taking->values = cached->value;
	taking->expected = prediction->result.stack;
}

/* Prefetches what will be compared of the predicted walk. */
static inline void prefetch_predicted(const struct gm_stack_taking *taking)
{
	const struct gm_python_place *places;

	if (unlikely(!taking->prediction))
		return;
	places = taking->prediction->result.places;
	for (unsigned line = 0; line < FETCHED_LINES; line++)
		gm_prefetch_to_read((const char *)taking->values + 64 * line);
	gm_prefetch_to_read(gm_cached_offsets(taking->values, taking->prediction->words));
	if (places)
		for (unsigned line = 0; line < FETCHED_PLACES; line++)
			gm_prefetch_to_read((const char *)places + 64 * line);
}

static inline __attribute__((always_inline)) void
begin(struct gm_stack_taking *taking, const struct gm_entry *entry, unsigned limit, uint64_t hint)
{
	unsigned depth = depth_of(limit);

	taking->entry = entry;
	taking->expected = GM_NONE;
	taking->depth = (uint16_t)depth;
	taking->brief = depth < settings.depth;
	taking->cache = NULL;
	taking->prediction = NULL;
	if (unlikely(settings.mode > GM_STACKS_NATIVE || !gm_native_cached || !sp_of(entry)))
		return;
	predict(taking, gm_walk_cache_take(gm_thread_pointer()), hint);
}

/* Returns whether the Python frames, read one by one, are those of the result. */
static __attribute__((noinline)) bool
has_same_python_frames(const struct gm_cached_result *result, unsigned depth)
{
	uint32_t frames[GM_MAX_DEPTH];
	uint16_t flags = 0;

	return gm_python_walk(frames, depth, &flags) == gm_result_pythons(result) &&
	       flags == gm_result_flags(result) && gm_captured_same_python(result, frames);
}

/* Returns whether the Python frames are those of the result, and the flags that they give. */
static __attribute__((noinline)) bool has_same_python(const struct gm_cached_result *result,
						      unsigned depth)
{
	unsigned pythons = gm_result_pythons(result), flags = gm_result_flags(result);

	if (likely(!flags) && likely(result->places || !pythons) &&
	    likely(gm_python_same(result->places, pythons)))
		return true;
	return has_same_python_frames(result, depth);
}

/*
 * Returns whether the predicted result holds: the same epoch and depth, the same words of the
 * stack, and the same Python frames. The walk then also stops where it stopped: at the interpreter,
 * which is in the same place, if there are Python frames. These are asked for last, so that no
 * value need be kept across the call.
 */
static GM_HOT_CODE __attribute__((noinline)) bool is_hit(const struct gm_stack_taking *taking)
{
	const struct gm_prediction *prediction = taking->prediction;
	const struct gm_entry *entry = taking->entry;

	if (unlikely(!prediction) ||
	    unlikely(!gm_result_is_for(&prediction->result, gm_intern_epoch(), taking->depth)) ||
	    unlikely(!gm_prediction_holds(prediction, taking->values, entry->sp, entry->bp)))
		return false;
	if (settings.mode == GM_STACKS_NATIVE ||
	    !__atomic_load_n(&gm_python_present, __ATOMIC_ACQUIRE))
		return gm_result_is_native(&prediction->result);
	return has_same_python(&prediction->result, taking->depth);
}

/* Captures and interns the stack, keeps the result, and releases the cache. */
static __attribute__((noinline)) uint32_t take_slow(const struct gm_stack_taking *taking,
						    uint32_t *caller_module)
{
	struct gm_walk walk = {.caller = taking->entry->pc,
			       .sp = sp_of(taking->entry),
			       .bp = taking->entry->bp,
			       .cache = taking->cache};
	struct gm_cached_result result;
	struct gm_raw_stack raw;
	int saved = errno;
	uint64_t key;

	key = capture(&raw, &walk, taking->depth);
	gm_captured_intern(&raw, &result);
	result.key = key;
	if (key && result.known && walk.kept) {
		gm_captured_find_places(&result);
		gm_cfi_set_result(&walk, &result);
	}
	if (taking->cache)
		gm_walk_cache_release(taking->cache);
	if (caller_module)
		*caller_module = result.module;
	errno = saved;
	return result.stack;
}

static inline uint32_t end(const struct gm_stack_taking *taking, uint32_t *caller_module)
{
	const struct gm_prediction *prediction = taking->prediction;

	if (unlikely(!is_hit(taking))) {
		if (settings.mode != GM_STACKS_OFF)
			return take_slow(taking, caller_module);
		if (caller_module)
			*caller_module = GM_NONE;
		return GM_NONE;
	}
	gm_walk_cache_hit(taking->cache, taking->entry->sp, taking->brief, prediction);
	gm_walk_cache_release(taking->cache);
	if (caller_module)
		*caller_module = prediction->result.module;
	return prediction->result.stack;
}

uint64_t gm_stack_hint(uint64_t bytes)
{
	bool python = settings.mode == GM_STACKS_FULL &&
		      __atomic_load_n(&gm_python_present, __ATOMIC_ACQUIRE);

	return bytes + (python ? gm_python_hint() : 0);
}

GM_HOT_CODE void gm_stack_begin(struct gm_stack_taking *taking, const struct gm_entry *entry,
				uint64_t hint)
{
	begin(taking, entry, 0, hint);
	prefetch_predicted(taking);
}

GM_HOT_CODE uint32_t gm_stack_end(struct gm_stack_taking *taking, uint32_t *caller_module)
{
	return end(taking, caller_module);
}

GM_HOT_CODE uint32_t gm_stack_take(const struct gm_entry *entry, unsigned limit,
				   uint32_t *caller_module)
{
	struct gm_stack_taking taking;

	begin(&taking, entry, limit, 0);
	return end(&taking, caller_module);
}

void gm_stack_modules_changed(void)
{
	gm_captured_check_unloads();
}

void gm_stack_reset(void)
{
	gm_cfi_reset();
	gm_native_in_child();
	gm_python_reset();
	gm_captured_reset();
	gm_intern_reset();
}
