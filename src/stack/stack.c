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
static unsigned walk_from(struct gm_walk *walk, unsigned want, uintptr_t caller)
{
	unsigned guess = __atomic_load_n(&settings.own_frames, __ATOMIC_RELAXED), own;

	walk->from = guess;
	walk->max = want + 1 + guess;
	gm_native_walk(walk);
	own = skip_own(walk->pc, walk->frames, caller, walk->from);
	if (walk->frames == walk->max && own > guess) {
		walk->max = want + 1 + MOST_OWN_FRAMES;
		gm_native_walk(walk);
		own = skip_own(walk->pc, walk->frames, caller, walk->from);
		if (own <= MOST_OWN_FRAMES)
			__atomic_store_n(&settings.own_frames, own, __ATOMIC_RELAXED);
	}
	return own;
}

static void capture_native(struct gm_raw_stack *raw, uintptr_t caller, unsigned depth)
{
	/* where both kinds are many, each gets half */
	unsigned pythons = raw->pythons < depth / 2 ? raw->pythons : depth / 2;
	unsigned want = depth - pythons, own, kept;
	uintptr_t pc[GM_MAX_DEPTH + MOST_OWN_FRAMES + 2];
	struct gm_walk walk = {.pc = pc, .caller = caller};
	bool add_caller, at_interpreter;

	if (raw->pythons)
		gm_python_interpreter(&walk.stop_start, &walk.stop_bytes);
	own = walk_from(&walk, want, caller);
	/* an unwinder that missed the wrapper's frame: we know better where it returns to */
	add_caller = caller && (own == walk.frames || pc[own] != caller);
	if (add_caller)
		raw->pc[0] = caller;
	at_interpreter =
		walk.frames > own && pc[walk.frames - 1] - walk.stop_start < walk.stop_bytes;
	kept = walk.frames - own - at_interpreter + add_caller;
	if (kept > want)
		raw->flags |= GM_STACK_TRUNCATED;
	else if (raw->pythons && !at_interpreter)
		raw->flags |= GM_STACK_INCOMPLETE;
	kept = kept > want ? want : kept;
	raw->natives = (uint16_t)kept;
	memcpy(raw->pc + add_caller, pc + own, (kept - add_caller) * sizeof(*pc));
	if (!walk.hashed || walk.from != own || add_caller)
		return;
	if (kept == walk.frames - own)
		raw->hash = walk.hash;
	else if (kept == walk.frames - own - 1)
		raw->hash = walk.but_last;
}

void gm_stack_capture(struct gm_raw_stack *raw, uintptr_t caller, unsigned limit)
{
	unsigned depth = limit && limit < settings.depth ? limit : settings.depth;
	enum gm_stack_mode mode = settings.mode;
	int saved = errno;

	raw->natives = raw->pythons = raw->flags = 0;
	raw->hash = 0;
	if (mode == GM_STACKS_OFF)
		return;
	if (mode != GM_STACKS_NATIVE)
		raw->pythons = (uint16_t)gm_python_walk(raw->python, depth, &raw->flags);
	if (mode != GM_STACKS_PYTHON)
		capture_native(raw, caller, depth);
	if (raw->natives + raw->pythons > (int)depth) {
		raw->pythons = (uint16_t)(depth - raw->natives);
		raw->flags |= GM_STACK_PYTHON_TRUNCATED;
	}
	if (raw->flags & GM_STACK_PYTHON_TRUNCATED)
		raw->flags |= GM_STACK_TRUNCATED;
	errno = saved;
}

void gm_stack_reset(void)
{
	gm_cfi_reset();
	gm_python_reset();
	gm_intern_reset();
}
