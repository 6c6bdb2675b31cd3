/*
 * The unwinder that is tried first: the objects' own unwind tables, read once for each return
 * address and kept as a rule in a small table that all threads share. A step is then a look-up and
 * two loads.
 *
 * Beside being fast it knows what libunwind's cache does not: when code was unloaded (all rules are
 * then learnt anew), and where to stop. A frame that needs more than the rules can say (a signal
 * frame, a JIT compiler's code) is left to a full unwinder, see native.c.
 *
 * The table takes no lock. An entry's two words are stored one after the other; its key is kept
 * combined with its value, so a reader that sees halves of two entries finds neither.
 */
#include "stack/cfi.h"

#include "stack/cfi_rules.h"
#include "stack/native.h"
#include "stack/safe_read.h"
#include "stack/traces_next.h"
#include "store/hot.h"

#include <string.h>

/* The first of stack/ that are linked: the others follow in its line. */
GM_HOT_STACK __attribute__((aligned(64))) uintptr_t gm_program_stack_end;

#if defined(__x86_64__)

#define LINES	      4096u /* of four entries: 256 KiB, touched as needed */
#define WAYS	      4u
#define PAGE	      4096u
#define UNASKED	      (4u * PAGE) /* so far above what was read, the stack is taken to be there */
#define OFFSET_BITS   28
#define OFFSET_LIMIT  (1 << (OFFSET_BITS - 1))

struct entry {
	uint64_t key, value;
};

static struct entry rules[LINES][WAYS] __attribute__((aligned(64)));

static struct {
	uint64_t generation; /* rules of an older one are not found */
	bool no_traces;
} cfi;

void gm_cfi_forget(void)
{
	__atomic_fetch_add(&cfi.generation, 1, __ATOMIC_RELEASE);
}

#define PLAIN (1ull << 6)

/* What compilers mostly emit: the frame is of one size, and rbp saved in it if at all. */
static bool is_plain(const struct gm_cfi_rule *rule)
{
	int32_t size = rule->cfa_offset, saved = size + rule->bp_offset;

	if (rule->kind != GM_CFI_SP || size < 8 || size >= (int32_t)UNASKED || size & 7)
		return false;
	return rule->bp == GM_CFI_BP_SAME ||
	       (rule->bp == GM_CFI_BP_AT_CFA && saved >= 0 && saved < size && !(saved & 7));
}

/* A rule in one word; never 0. */
static uint64_t pack(const struct gm_cfi_rule *rule)
{
	const uint64_t mask = (1ull << OFFSET_BITS) - 1;

	if (rule->cfa_offset >= OFFSET_LIMIT || rule->cfa_offset < -OFFSET_LIMIT ||
	    rule->bp_offset >= OFFSET_LIMIT || rule->bp_offset < -OFFSET_LIMIT)
		return 1;
	return 1 | (uint64_t)rule->kind << 1 | (uint64_t)rule->bp << 4 |
	       (is_plain(rule) ? PLAIN : 0) | ((uint64_t)(uint32_t)rule->cfa_offset & mask) << 8 |
	       ((uint64_t)(uint32_t)rule->bp_offset & mask) << (8 + OFFSET_BITS);
}

static inline enum gm_cfi_kind kind_of(uint64_t value)
{
	return value >> 1 & 7;
}

static inline enum gm_cfi_bp bp_of(uint64_t value)
{
	return value >> 4 & 3;
}

static inline int64_t cfa_offset_of(uint64_t value)
{
	return (int64_t)(value << (64 - 8 - OFFSET_BITS)) >> (64 - OFFSET_BITS);
}

static inline int64_t bp_offset_of(uint64_t value)
{
	return (int64_t)value >> (8 + OFFSET_BITS);
}

static inline struct entry *line_of(uintptr_t pc)
{
	return rules[(pc * 0x9e3779b97f4a7c15ull) >> 52];
}

static inline uint64_t tag_of(uintptr_t pc, uint64_t generation)
{
	return pc ^ generation << 48;
}

/* Reads the tables for an address; `*object` is the object of the last one, often the same. */
static __attribute__((noinline)) uint64_t learn(uintptr_t pc, uint64_t generation,
						struct gm_object *object)
{
	struct entry *line = line_of(pc);
	struct gm_cfi_rule rule;
	unsigned way;
	uint64_t value;

	if ((pc - 1 < object->start || pc - 1 >= object->end) && !gm_object_at(pc - 1, object)) {
		object->start = object->end = 0;
		return 0; /* not kept: a library may be loaded there */
	}
	rule = gm_cfi_rule(object, pc);
	value = pack(&rule);
	for (way = 0; way < WAYS - 1; way++)
		if (!__atomic_load_n(&line[way].value, __ATOMIC_RELAXED))
			break;
	if (line[way].value)
		way = pc >> 3 & (WAYS - 1);
	__atomic_store_n(&line[way].key, tag_of(pc, generation) ^ value, __ATOMIC_RELAXED);
	__atomic_store_n(&line[way].value, value, __ATOMIC_RELAXED);
	return value;
}

static inline uint64_t look_up(uintptr_t pc, uint64_t generation, struct gm_object *object)
{
	const struct entry *line = line_of(pc);
	uint64_t tag = tag_of(pc, generation);

	for (unsigned way = 0; way < WAYS; way++) {
		uint64_t value = __atomic_load_n(&line[way].value, __ATOMIC_RELAXED);

		if ((__atomic_load_n(&line[way].key, __ATOMIC_RELAXED) ^ value) == tag && value)
			return value;
	}
	return learn(pc, generation, object);
}

/* Whether the words from sp to cfa, and some below bp, can be read on a stack with this end. */
static inline bool readable(uintptr_t sp, uintptr_t cfa, uintptr_t end)
{
	uint64_t word;

	if (end && cfa <= end && cfa - sp < UNASKED)
		return true;
	if (end && cfa > end)
		return false;
	if (!end && (sp - 1) / PAGE == (cfa - 1) / PAGE)
		return true;
	return gm_safe_read(&word, cfa - 8, 8);
}

static inline uintptr_t word_at(uintptr_t address)
{
	return *(const uintptr_t *)address;
}

/* Where a walk stands. */
struct place {
	uintptr_t pc, sp, bp;
};

static inline uint16_t words_between(uintptr_t sp, uintptr_t at)
{
	return (at - sp) / 8 < GM_TRACE_NOT ? (uint16_t)((at - sp) / 8) : GM_TRACE_NOT;
}

/*
 * From a frame to its caller's, and what of the stack that took. False where the rules end or fail.
 */
static inline bool step(struct place *place, struct gm_trace_frame *frame, uint64_t rule,
			uintptr_t end)
{
	uintptr_t cfa, saved, sp = place->sp, bp = place->bp;
	unsigned flags = 0;

	frame->saves = frame->loads = GM_TRACE_NOT;
	switch (kind_of(rule)) {
	case GM_CFI_SP:
		cfa = sp + (uintptr_t)cfa_offset_of(rule);
		break;
	case GM_CFI_BP:
		cfa = bp + (uintptr_t)cfa_offset_of(rule);
		flags = GM_TRACE_USES_BP;
		break;
	case GM_CFI_BP_LOAD:
		saved = bp + (uintptr_t)cfa_offset_of(rule);
		if (saved < sp || saved & 7 || !readable(sp, saved + 8, end))
			return false;
		cfa = word_at(saved);
		frame->loads = words_between(sp, saved);
		flags = GM_TRACE_USES_BP;
		break;
	default:
		return false;
	}
	if (cfa <= sp || cfa & 7 || !readable(sp, cfa, end))
		return false;
	if (cfa - sp >= UNASKED)
		flags |= GM_TRACE_LARGE;
	if (bp_of(rule) != GM_CFI_BP_SAME) {
		saved = (bp_of(rule) == GM_CFI_BP_AT_CFA ? cfa : bp) +
			(uintptr_t)bp_offset_of(rule);
		if (saved < sp || saved >= cfa || saved & 7)
			return false;
		if (bp_of(rule) == GM_CFI_BP_AT_BP)
			flags |= GM_TRACE_USES_BP;
		frame->saves = words_between(sp, saved);
		place->bp = word_at(saved);
	}
	frame->flags = (uint16_t)flags;
	place->pc = word_at(cfa - 8);
	place->sp = cfa;
	return true;
}

/* The same by a plain rule, where the stack's end is known to be further out. */
static inline bool step_plainly(struct place *place, struct gm_trace_frame *frame, uint64_t rule,
				uintptr_t end)
{
	uintptr_t cfa = place->sp + (uintptr_t)cfa_offset_of(rule), saved;

	if (!(rule & PLAIN) || cfa > end)
		return false;
	frame->saves = frame->loads = GM_TRACE_NOT;
	frame->flags = 0;
	if (bp_of(rule) != GM_CFI_BP_SAME) {
		saved = cfa + (uintptr_t)bp_offset_of(rule);
		frame->saves = (uint16_t)((saved - place->sp) / 8);
		place->bp = word_at(saved);
	}
	place->pc = word_at(cfa - 8);
	place->sp = cfa;
	return true;
}

/* A walk on its way. `now.frames` are behind it, of which walk->pc has the return addresses. */
struct walker {
	struct gm_walk *walk;
	struct place place;
	uintptr_t end;	/* of the stack */
	unsigned keeps; /* all ones; 0: now.frame is one frame for all */
	struct gm_trace_walk now;
};

/* Whether a trace can be gone by at all on this stack. */
static inline bool is_of_use(const struct walker *w, const struct gm_trace *trace)
{
	return trace && trace->stop_start == w->now.stop_start &&
	       trace->stop_bytes == w->now.stop_bytes && trace->top <= w->end;
}

static inline bool begins_at(const struct gm_trace *trace, const struct place *place)
{
	return trace->sp == place->sp && trace->pc == place->pc &&
	       (trace->bp == place->bp || !trace->live_bp);
}

static inline bool stands_at(const struct place *place, const struct gm_trace *trace,
			     const struct gm_trace_frame *frame)
{
	return frame->sp == place->sp &&
	       gm_trace_pcs(trace)[frame - gm_trace_frames(trace)] == place->pc &&
	       (frame->bp == place->bp || !(frame->flags & GM_TRACE_LIVE_BP));
}

static inline const struct gm_trace_word *first_changed(const struct gm_trace *trace,
							const struct gm_trace_word *word,
							const struct gm_trace_word *end)
{
	const uintptr_t *below = (const uintptr_t *)trace->sp - 1;

	while (word < end && !gm_trace_word_changed(below, *word))
		word++;
	return word;
}

/* The walk goes on by its own from a frame that a trace led to, `from` being where it stood. */
static void stand_at(struct walker *w, const struct gm_trace *trace, unsigned from, unsigned at)
{
	const struct gm_trace_frame *old = gm_trace_frames(trace);
	struct gm_trace_frame *frame = w->now.frame + w->now.frames;

	for (unsigned i = from; i < at; i++) {
		*frame = old[i];
		frame++->bp = w->place.bp; /* what nothing depended on was not compared */
		if (old[i].saves != GM_TRACE_NOT)
			w->place.bp = word_at(old[i].sp + old[i].saves * 8ul);
	}
	w->now.frames += at - from;
	w->place.pc = gm_trace_pcs(trace)[at];
	w->place.sp = old[at].sp;
}

enum followed { TO_THE_END, PART_OF_THE_WAY };

/*
 * The walk stands where the trace's frame `at` is: goes with it for as long as the stack is as it
 * was. `at` becomes where they part.
 */
static inline enum followed follow(struct walker *w, const struct gm_trace *trace, unsigned *at)
{
	const struct gm_trace_word *words = trace->word + trace->words, *end, *other;
	unsigned room = w->walk->max - w->now.frames - 1, from = *at, last = trace->frames - 1u;
	unsigned to = last - from < room ? last : from + room;
	const uintptr_t *pc = gm_trace_pcs(trace);
	bool whole;

	end = words - gm_trace_left(trace, to);
	other = first_changed(trace, words - gm_trace_left(trace, from), end);
	whole = other == end;
	if (!whole)
		for (to = from; other >= words - gm_trace_left(trace, to + 1); to++)
			;
	memcpy(w->walk->pc + w->now.frames, pc + from, (to - from + 1) * sizeof(*pc));
	if (whole && (to - from == room || trace->end != GM_TRACE_ROOM)) {
		w->walk->frames = w->now.frames + to - from + 1;
		w->now.tail = trace;
		w->now.tail_frame = from;
		return TO_THE_END;
	}
	stand_at(w, trace, from, to);
	*at = to + 1;
	return PART_OF_THE_WAY;
}

/* The walk from where it stands on, with the help of the last one from its frame `at`. */
static enum gm_trace_end run(struct walker *w, const struct gm_trace *last, unsigned at,
			     uint64_t generation)
{
	const struct gm_trace_frame *const first = last ? gm_trace_frames(last) : NULL;
	const struct gm_trace_frame *const outermost = last ? first + last->frames : NULL;
	const struct gm_trace_frame *old = last ? first + at : NULL;
	const struct gm_walk asked = *w->walk;
	const uintptr_t end = w->end;
	struct place place = w->place; /* in registers, as far as they reach */
	unsigned frames = w->now.frames, stepped = 0;
	struct gm_object object;
	enum gm_trace_end how;

	object.start = object.end = 0;
	for (;; frames++, stepped++) {
		struct gm_trace_frame *frame;
		uint64_t rule;

		while (old < outermost && old->sp < place.sp)
			old++;
		if (old < outermost && stands_at(&place, last, old)) {
			w->place = place;
			w->now.frames = frames;
			at = (unsigned)(old - first);
			if (follow(w, last, &at) == TO_THE_END) {
				w->walk->stepped = stepped;
				return last->end;
			}
			old = first + at;
			place = w->place;
			frames = w->now.frames;
		}
		asked.pc[frames] = place.pc;
		frame = w->now.frame + (frames & w->keeps);
		frame->sp = place.sp;
		frame->bp = place.bp;
		how = GM_TRACE_STOP;
		if (place.pc - asked.stop_start < asked.stop_bytes)
			break;
		how = GM_TRACE_ROOM;
		if (frames + 1 == asked.max)
			break;
		rule = look_up(place.pc, generation, &object);
		how = kind_of(rule) == GM_CFI_END ? GM_TRACE_END : GM_TRACE_STUCK;
		if (!step_plainly(&place, frame, rule, end) && !step(&place, frame, rule, end))
			break;
		how = GM_TRACE_NULL;
		if (!place.pc)
			break;
	}
	w->now.frames = frames;
	w->walk->frames = frames + 1;
	w->walk->stepped = stepped;
	return how;
}

/* The trace is of this walk: what its frames hash to. */
static inline void note_hash(struct gm_walk *walk, const struct gm_trace *trace)
{
	const struct gm_trace_frame *frame = gm_trace_frames(trace);
	unsigned from = walk->from, end = walk->frames;

	if (walk->caller && (from >= end || walk->pc[from] != walk->caller))
		for (from = 0; from < end && walk->pc[from] != walk->caller;)
			from++;
	if (from >= end)
		return;
	walk->hashed = true;
	walk->from = from;
	walk->but_last = gm_trace_hash_part(frame[from].hash, frame[end - 1].hash, end - 1 - from);
	walk->hash = end == trace->frames
			     ? frame[from].hash
			     : gm_trace_hash_part(frame[from].hash, frame[end].hash, end - from);
}

/* The walk, with whatever traces there are. */
static enum gm_trace_end walk_with(struct walker *w, struct gm_traces *traces, uint64_t generation)
{
	const uintptr_t sp = w->place.sp;
	const struct gm_trace *next = gm_traces_next(traces, sp, w->walk->brief), *last;
	unsigned at = 0;
	enum gm_trace_end how;

	w->now.frame = gm_traces_room(traces);
	w->keeps = ~0u;
	if (is_of_use(w, next) && begins_at(next, &w->place) &&
	    follow(w, next, &at) == TO_THE_END) {
		gm_traces_again(traces, sp, w->walk->brief, next);
		w->walk->kept = true;
		note_hash(w->walk, next);
		return next->end;
	}
	last = gm_traces_last(traces);
	how = run(w, is_of_use(w, last) ? last : NULL, next == last ? at : 0, generation);
	if (how == GM_TRACE_NULL || how == GM_TRACE_STUCK)
		return how;
	if (w->now.tail && !w->now.frames && !w->now.tail_frame) {
		note_hash(w->walk, last);
		gm_traces_again(traces, sp, w->walk->brief, last);
		w->walk->kept = true;
		return how;
	}
	w->now.pc = w->walk->pc;
	w->now.end = how;
	if (!w->now.tail)
		w->now.frames = w->walk->frames;
	next = gm_traces_keep(traces, sp, w->walk->brief, &w->now);
	if (next) {
		note_hash(w->walk, next);
		w->walk->kept = true;
	}
	return how;
}

/* This function has a frame pointer (-fno-omit-frame-pointer): its own step needs no rule. */
__attribute__((noinline)) bool gm_cfi_walk(struct gm_walk *walk)
{
	uintptr_t own = (uintptr_t)__builtin_frame_address(0);
	uint64_t generation = __atomic_load_n(&cfi.generation, __ATOMIC_ACQUIRE);
	struct gm_traces *traces = NULL;
	struct gm_trace_frame scratch;
	enum gm_trace_end how;
	struct walker w = {.walk = walk,
			   .place = walk->sp
					    ? (struct place){walk->caller, walk->sp, walk->bp}
					    : (struct place){word_at(own + 8), own + 16, word_at(own)},
			   .end = gm_stack_end_above(own),
			   .now = {.frame = &scratch,
				   .stop_start = walk->stop_start,
				   .stop_bytes = walk->stop_bytes}};

	walk->hashed = false;
	walk->stepped = 0;
	walk->kept = false;
	if (!walk->anew && !cfi.no_traces && w.end && walk->max <= GM_TRACE_FRAMES)
		traces = walk->traces ? walk->traces : gm_traces_take(gm_thread_pointer());
	if (traces && gm_traces_renew(traces, generation))
		how = walk_with(&w, traces, generation);
	else
		how = run(&w, NULL, 0, generation);
	if (traces && traces != walk->traces)
		gm_traces_give(traces);
	return how != GM_TRACE_STUCK;
}

void gm_cfi_note(const struct gm_walk *walk, const struct gm_trace_note *note)
{
	if (walk->kept && walk->traces)
		gm_traces_note(walk->traces, walk->sp, walk->brief, note);
}

void gm_cfi_keep_traces(bool keep)
{
	cfi.no_traces = !keep;
}

void gm_cfi_reset(void)
{
	gm_traces_reset();
}

bool gm_cfi_init(void)
{
	void *const *end = gm_objects_symbol("__libc_stack_end", NULL);

	gm_program_stack_end = end ? (uintptr_t)*end : 0;
	gm_traces_init();
	return true;
}

#else

void gm_cfi_forget(void)
{
}

bool gm_cfi_walk(struct gm_walk *walk)
{
	walk->frames = 0;
	walk->hashed = false;
	return false;
}

void gm_cfi_note(const struct gm_walk *walk, const struct gm_trace_note *note)
{
	(void)walk;
	(void)note;
}

void gm_cfi_keep_traces(bool keep)
{
	(void)keep;
}

void gm_cfi_reset(void)
{
}

bool gm_cfi_init(void)
{
	return false;
}

#endif
