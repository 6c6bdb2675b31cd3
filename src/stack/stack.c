/*
 * Taking a stack (stack.h): native addresses with the shim's own frames and the interpreter's
 * removed, Python frames after them, together no more than asked for. Interning is in intern.c.
 */
#include "stack/stack.h"

#include "stack/cfi.h"
#include "stack/intern.h"
#include "stack/native.h"
#include "stack/python.h"

#include <errno.h>
#include <string.h>

#define MOST_OWN_FRAMES 32u /* of the shim, between its entry and the unwinder */

static struct {
	enum gm_stack_mode mode;
	unsigned depth;
	unsigned own_frames; /* how many there were last time: a guess that saves unwinding */
	bool native_done;
} settings = {.depth = 64, .own_frames = 4};

void gm_stack_init(enum gm_stack_mode mode, unsigned depth)
{
	settings.mode = mode;
	settings.depth = depth < 1 ? 1 : depth > GM_MAX_DEPTH ? GM_MAX_DEPTH : depth;
	if (mode == GM_STACKS_OFF)
		return;
	if (!settings.native_done && mode != GM_STACKS_PYTHON) {
		gm_native_init(NULL);
		settings.native_done = true;
	}
	if (mode != GM_STACKS_NATIVE)
		gm_python_find();
}

void gm_stack_cache(bool on)
{
	gm_cfi_keep_traces(on);
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
	if (walk->noted)
		return 0;
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

/* Where `walk` comes back with a note, nothing else was found out. */
static void capture_native(struct gm_raw_stack *raw, struct gm_walk *walk, unsigned depth)
{
	/* where both kinds are many, each gets half */
	unsigned pythons = raw->pythons < depth / 2 ? raw->pythons : depth / 2;
	unsigned want = depth - pythons, own, kept;
	uintptr_t pc[GM_MAX_DEPTH + MOST_OWN_FRAMES + 2], caller = walk->caller;
	bool add_caller, at_interpreter;

	walk->pc = pc;
	if (raw->pythons)
		gm_python_interpreter(&walk->stop_start, &walk->stop_bytes);
	own = walk_from(walk, want);
	if (walk->noted)
		return;
	/* an unwinder that missed the wrapper's frame: we know better where it returns to */
	add_caller = caller && (own == walk->frames || pc[own] != caller);
	if (add_caller)
		raw->pc[0] = caller;
	at_interpreter =
		walk->frames > own && pc[walk->frames - 1] - walk->stop_start < walk->stop_bytes;
	kept = walk->frames - own - at_interpreter + add_caller;
	if (kept > want)
		raw->flags |= GM_STACK_TRUNCATED;
	else if (raw->pythons && !at_interpreter)
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

/*
 * What makes a stack out of a native walk, beside the walk itself: a note under the same key is of
 * the same stack, if its Python frames are the same.
 */
static inline uint64_t key_of(const struct gm_raw_stack *raw, unsigned depth)
{
	uint64_t epoch = gm_intern_epoch();

	_Static_assert(GM_MAX_DEPTH < 1 << 12 && GM_STACK_PYTHON_UNREADABLE < 1 << 8,
		       "two of them and the flags fit below the epoch");
	return epoch ? epoch << 32 | depth << 20 | (uint32_t)raw->pythons << 8 | raw->flags : 0;
}

/* The stack as captured, unless the walk brings a note: then only Python's part. */
static void capture(struct gm_raw_stack *raw, struct gm_walk *walk, unsigned limit)
{
	unsigned depth = limit && limit < settings.depth ? limit : settings.depth;
	enum gm_stack_mode mode = settings.mode;

	raw->natives = raw->pythons = raw->flags = 0;
	raw->hash = 0;
	walk->brief = depth < settings.depth;
	if (mode == GM_STACKS_OFF)
		return;
	if (mode != GM_STACKS_NATIVE)
		raw->pythons = (uint16_t)gm_python_walk(raw->python, depth, &raw->flags);
	if (mode != GM_STACKS_PYTHON) {
		walk->key = walk->sp ? key_of(raw, depth) : 0;
		capture_native(raw, walk, depth);
		if (walk->noted)
			return;
	}
	if (raw->natives + raw->pythons > (int)depth) {
		raw->pythons = (uint16_t)(depth - raw->natives);
		raw->flags |= GM_STACK_PYTHON_TRUNCATED;
	}
	if (raw->flags & GM_STACK_PYTHON_TRUNCATED)
		raw->flags |= GM_STACK_TRUNCATED;
}

void gm_stack_capture(struct gm_raw_stack *raw, uintptr_t caller, unsigned limit)
{
	struct gm_walk walk = {.caller = caller};
	int saved = errno;

	capture(raw, &walk, limit);
	errno = saved;
}

/* Where to begin; 0 where the stack does not show a call from there: then from inside, as ever. */
static inline uintptr_t sp_of(const struct gm_entry *entry)
{
	return entry->sp && ((const uintptr_t *)entry->sp)[-1] == entry->pc ? entry->sp : 0;
}

uint32_t gm_stack_take(const struct gm_entry *entry, unsigned limit, uint32_t *caller_module)
{
	struct gm_walk walk = {.caller = entry->pc, .sp = sp_of(entry), .bp = entry->bp};
	struct gm_trace_note *note = &walk.note;
	struct gm_raw_stack raw;
	int saved = errno;

	capture(&raw, &walk, limit);
	if (!walk.noted || (raw.pythons && !gm_intern_same_python(note, raw.python))) {
		if (walk.noted)
			gm_intern_recall(note, &raw);
		gm_intern_noted(&raw, note);
		note->key = walk.key;
		if (note->key && note->known)
			gm_cfi_note(&walk, note);
	}
	if (caller_module)
		*caller_module = note->module;
	errno = saved;
	return note->stack;
}

void gm_stack_reset(void)
{
	gm_cfi_reset();
	gm_python_reset();
	gm_intern_reset();
}
