/*
 * The unwinder that is tried first: the objects' own unwind tables, read once for each return
 * address and kept as a rule in a small table that all threads share. A step is then a look-up and
 * two loads.
 *
 * Beside being fast it knows what libunwind's cache does not: when code was unloaded (all rules are
 * then learnt anew), where to stop, and what can be read. On the thread's own stack words are
 * loaded directly, and so are those on the page that the walk begins on. All others are copied by
 * gm_safe_read: on a coroutine's stack the first frame's return address is often made up, and what
 * lies above is a guard page, or memory that another thread may unmap at any moment. A frame whose
 * caller cannot be found, or not be read, ends the walk; no other unwinder is asked then, for none
 * looks before it reads.
 *
 * Frames that have no rule are looked at each time that they are met: those of signals by what the
 * kernel saved, and code of JIT compilers by the tables that they register with libgcc
 * (__register_frame), which libgcc is only asked to find.
 *
 * The table of rules takes no lock. An entry's two words are stored one after the other; its key is
 * kept combined with its value, so a reader that sees halves of two entries finds neither.
 */
#include "stack/cfi.h"

#include "stack/cfi_rules.h"
#include "stack/native.h"
#include "stack/safe_read.h"
#include "stack/walk_cache.h"
#include "store/hot.h"

#include <stddef.h>
#include <string.h>
#include <ucontext.h>

#if defined(__x86_64__)

#define LINES	      4096u /* of four entries: 256 KiB, touched as needed */
#define WAYS	      4u
#define PAGE	      4096u
#define CHUNK	      512u /* of a stack that may not be there, copied at a time; part of a page */
#define LARGEST_PLAIN 16384
#define MOST_SWITCHES 16u	     /* of stacks, and signals, in one walk */
#define INTERRUPTED   (1ull << 15) /* in a generation: the address is not a return address */
#define OFFSET_BITS   28
#define OFFSET_LIMIT  (1 << (OFFSET_BITS - 1))

struct entry {
	uint64_t key, value;
};

static struct entry rules[LINES][WAYS] __attribute__((aligned(64)));

static struct {
	uint64_t generation; /* rules of an older one are not found */
	bool no_cache;
	gm_find_entry *find_registered;
} cfi;

void gm_cfi_forget(void)
{
	__atomic_fetch_add(&cfi.generation, 1, __ATOMIC_RELEASE);
}

#define PLAIN (1ull << 6)

/*
 * The rule that compilers emit most: the frame has one size, and rbp is saved in it or not at all.
 */
static bool is_plain(const struct gm_cfi_rule *rule)
{
	int32_t size = rule->cfa_offset, saved = size + rule->bp_offset;

	if (rule->kind != GM_CFI_SP || size < 8 || size >= LARGEST_PLAIN || size & 7)
		return false;
	return rule->bp == GM_CFI_BP_SAME ||
	       (rule->bp == GM_CFI_BP_AT_CFA && saved >= 0 && saved < size && !(saved & 7));
}

/* Returns a rule in one word, which is never 0. */
static uint64_t pack(const struct gm_cfi_rule *rule)
{
	const uint64_t mask = (1ull << OFFSET_BITS) - 1;

	if (rule->kind > GM_CFI_END || rule->cfa_offset >= OFFSET_LIMIT ||
	    rule->cfa_offset < -OFFSET_LIMIT || rule->bp_offset >= OFFSET_LIMIT ||
	    rule->bp_offset < -OFFSET_LIMIT)
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

static struct gm_cfi_rule unpack(uint64_t value)
{
	return (struct gm_cfi_rule){.kind = (uint8_t)kind_of(value),
				    .bp = (uint8_t)bp_of(value),
				    .cfa_offset = (int32_t)cfa_offset_of(value),
				    .bp_offset = (int32_t)bp_offset_of(value)};
}

static inline struct entry *line_of(uintptr_t pc)
{
	return rules[(pc * 0x9e3779b97f4a7c15ull) >> 52];
}

static inline uint64_t tag_of(uintptr_t pc, uint64_t generation)
{
	return pc ^ generation << 48;
}

/* Finds the object of an address; `*object` is that of the last one, often the same. */
static bool find_object(uintptr_t pc, struct gm_object *object)
{
	if (pc >= object->start && pc < object->end)
		return true;
	if (gm_object_at(pc, object))
		return true;
	object->start = object->end = 0;
	return false;
}

/* Reads the tables for an address. */
static __attribute__((noinline)) uint64_t learn(uintptr_t pc, uint64_t generation,
						struct gm_object *object)
{
	struct entry *line = line_of(pc);
	struct gm_cfi_rule rule;
	unsigned way;
	uint64_t value;

	/* no object: not kept, for a library may be loaded there */
	if (generation & INTERRUPTED || !find_object(pc - 1, object))
		return 0;
	rule = gm_cfi_rule(object, pc, GM_CFI_RETURN_ADDRESS);
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

static inline uintptr_t word_at(uintptr_t address)
{
	return *(const uintptr_t *)address;
}

/* The frame that a walk has reached. */
struct place {
	uintptr_t pc, sp, bp;
};

static inline uint16_t words_between(uintptr_t sp, uintptr_t at)
{
	return (at - sp) / 8 < GM_NO_WORD ? (uint16_t)((at - sp) / 8) : GM_NO_WORD;
}

/* A walk on its way. `now.frames` are behind it, of which walk->pc has the return addresses. */
struct walker {
	struct gm_walk *walk;
	struct place place;
	uintptr_t low, end; /* words in between are read directly */
	unsigned switches;  /* from one stack to another so far */
	uint64_t known;	    /* the generation of rules, and INTERRUPTED */
	uint64_t rule;	    /* that the walk is stuck with */
	bool transient;	    /* it met what may be something else the next time, unnoticed */
	unsigned keeps;	    /* all ones; 0: now.frame is one frame for all */
	struct gm_new_walk now;
	struct gm_cfi_rule interrupted; /* of the present frame, if a signal interrupted it */
	uintptr_t copied;		/* address of the words in `copy`; 0: there are none */
	uintptr_t *copy;		/* CHUNK bytes */
};

/* Settles where the walk reads directly from `sp` on. True on the thread's own stack. */
static bool enter_stack(struct walker *w, uintptr_t sp)
{
	w->end = gm_thread_stack_end(sp);
	if (!w->end)
		w->end = gm_thread_stack_learn(sp);
	w->low = w->end ? gm_thread.stack_low : 0;
	return w->end;
}

static __attribute__((noinline)) bool copy_word(struct walker *w, uintptr_t address,
						uintptr_t *word)
{
	uintptr_t chunk = address & -(uintptr_t)CHUNK;

	if (w->copied != chunk) {
		w->copied = 0;
		if (!gm_safe_read(w->copy, chunk, CHUNK))
			return false;
		w->copied = chunk;
	}
	*word = w->copy[(address - chunk) / 8];
	return true;
}

/* The word at an address that is a multiple of 8. False if it cannot be read. */
static inline bool read_word(struct walker *w, uintptr_t address, uintptr_t *word)
{
	if (address >= w->low && address < w->end) {
		*word = word_at(address);
		return true;
	}
	return copy_word(w, address, word);
}

/*
 * From a frame to its caller's, and what of the stack that took. False where the rules end or fail,
 * where the caller's frame is not further out, and where a word cannot be read.
 */
static __attribute__((always_inline)) inline bool
step(struct walker *w, struct place *place, struct gm_cached_frame *frame, uint64_t rule)
{
	uintptr_t cfa, pc, saved, sp = place->sp, bp = place->bp;
	unsigned flags = 0;

	frame->saves = frame->loads = GM_NO_WORD;
	switch (kind_of(rule)) {
	case GM_CFI_SP:
		cfa = sp + (uintptr_t)cfa_offset_of(rule);
		break;
	case GM_CFI_BP:
		cfa = bp + (uintptr_t)cfa_offset_of(rule);
		flags = GM_CACHED_USES_BP;
		break;
	case GM_CFI_BP_LOAD:
		saved = bp + (uintptr_t)cfa_offset_of(rule);
		if (saved < sp || saved & 7 || !read_word(w, saved, &cfa))
			return false;
		frame->loads = words_between(sp, saved);
		flags = GM_CACHED_USES_BP;
		break;
	default:
		return false;
	}
	if (cfa <= sp || cfa & 7 || !read_word(w, cfa - 8, &pc))
		return false;
	if (bp_of(rule) != GM_CFI_BP_SAME) {
		saved = (bp_of(rule) == GM_CFI_BP_AT_CFA ? cfa : bp) +
			(uintptr_t)bp_offset_of(rule);
		if (saved < sp || saved >= cfa || saved & 7 || !read_word(w, saved, &bp))
			return false;
		if (bp_of(rule) == GM_CFI_BP_AT_BP)
			flags |= GM_CACHED_USES_BP;
		frame->saves = words_between(sp, saved);
	}
	frame->flags = (uint16_t)flags;
	place->pc = pc;
	place->sp = cfa;
	place->bp = bp;
	return true;
}

/* The same by a plain rule, where the stack's end is known to be further out. */
static inline bool step_plainly(struct place *place, struct gm_cached_frame *frame, uint64_t rule,
				uintptr_t end)
{
	uintptr_t cfa = place->sp + (uintptr_t)cfa_offset_of(rule), saved;

	if (!(rule & PLAIN) || cfa > end)
		return false;
	frame->saves = frame->loads = GM_NO_WORD;
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

/*
 * A step that is tied to no stack: every word is looked for before it is read, wherever it lies.
 * For code that moves the stack pointer to a new stack and calls a function there, leaving its own
 * frame to be found by rbp; and from an interrupted instruction, where the saved rbp may lie below
 * the stack pointer.
 */
static bool step_anywhere(struct walker *w, const struct gm_cfi_rule *rule)
{
	struct place *place = &w->place;
	uintptr_t base = rule->kind == GM_CFI_SP ? place->sp : place->bp, pc, saved;
	uintptr_t cfa = base + (uintptr_t)(intptr_t)rule->cfa_offset, bp = place->bp;

	if (rule->kind == GM_CFI_BP_LOAD && (cfa & 7 || !read_word(w, cfa, &cfa)))
		return false;
	if (cfa & 7 || !read_word(w, cfa - 8, &pc))
		return false;
	saved = (rule->bp == GM_CFI_BP_AT_CFA ? cfa : bp) + (uintptr_t)(intptr_t)rule->bp_offset;
	if (rule->bp != GM_CFI_BP_SAME && (saved & 7 || !read_word(w, saved, &bp)))
		return false;
	*place = (struct place){pc, cfa, bp};
	enter_stack(w, cfa);
	return ++w->switches <= MOST_SWITCHES;
}

/* The rule of code that no object's tables cover but that was registered with libgcc. */
static struct gm_cfi_rule registered_rule(uintptr_t pc, enum gm_cfi_at at)
{
	uintptr_t target = at == GM_CFI_RETURN_ADDRESS ? pc - 1 : pc;
	const void *entry = NULL;
	void *bases[3];

	if (cfi.find_registered && gm_objects_enter()) {
		entry = cfi.find_registered((void *)target, bases);
		gm_objects_leave();
	}
	return entry ? gm_cfi_rule_of_entry(entry, pc, at)
		     : (struct gm_cfi_rule){.kind = GM_CFI_UNKNOWN};
}

/*
 * Between two calls the CFA may be known by a register that is not followed: all are at hand here.
 */
static struct gm_cfi_rule interrupted_rule(const greg_t *registers, struct gm_object *object)
{
	static const uint8_t numbers[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
					  REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
					  REG_R12, REG_R13, REG_R14, REG_R15};
	uintptr_t pc = (uintptr_t)registers[REG_RIP];
	struct gm_cfi_rule rule = find_object(pc, object)
					  ? gm_cfi_rule(object, pc, GM_CFI_INSTRUCTION)
					  : registered_rule(pc, GM_CFI_INSTRUCTION);

	if (rule.kind == GM_CFI_REGISTER) {
		int64_t above = registers[numbers[rule.cfa_register]] - registers[REG_RSP];

		rule.kind = above >= 0 && above < OFFSET_LIMIT ? GM_CFI_SP : GM_CFI_UNKNOWN;
		rule.cfa_offset += (int32_t)above;
	}
	return rule;
}

/*
 * The kernel's frame of a signal, whose handler returns into code that asks for the interrupted
 * state back: what libc and others install for that is known by its instructions. Then the walk
 * stands at the interrupted instruction.
 */
static bool step_over_signal(struct walker *w, struct gm_object *object)
{
	struct place *place = &w->place;
	static const uint8_t sigreturn[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
	static const uint8_t short_sigreturn[] = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};
	uint8_t code[sizeof(sigreturn)];
	gregset_t registers;

	if (!gm_safe_read(code, place->pc, sizeof(code)) ||
	    (memcmp(code, sigreturn, sizeof(sigreturn)) != 0 &&
	     memcmp(code, short_sigreturn, sizeof(short_sigreturn)) != 0) ||
	    !gm_safe_read(registers, place->sp + offsetof(ucontext_t, uc_mcontext.gregs),
			  sizeof(registers)))
		return false;
	*place = (struct place){(uintptr_t)registers[REG_RIP], (uintptr_t)registers[REG_RSP],
				(uintptr_t)registers[REG_RBP]};
	w->interrupted = interrupted_rule(registers, object);
	w->known |= INTERRUPTED;
	enter_stack(w, place->sp);
	return true;
}

/*
 * All functions of libc and the loader have tables but two that nothing called: the one that
 * makecontext lets a coroutine return to, by the address where it begins, and the one that begins
 * the program and runs the constructors.
 */
static bool is_first_frame(uintptr_t pc, struct gm_object *object)
{
	const char *name = find_object(pc, object) ? gm_object_basename(object) : "";

	return !strncmp(name, "libc.so", 7) || !strncmp(name, "ld-", 3);
}

/*
 * The step where w->rule did not do. Returns GM_WALK_STOPPED if the walk goes on. Nothing that it
 * relies on is known to be so the next time.
 */
static __attribute__((noinline)) enum gm_walk_end step_otherwise(struct walker *w)
{
	struct gm_cached_frame *frame = w->now.frame + (w->now.frames & w->keeps);
	bool inside = w->known & INTERRUPTED, stepped = false;
	struct gm_cfi_rule rule = inside ? w->interrupted : unpack(w->rule);
	struct gm_object object;

	object.start = object.end = 0;
	w->transient = true;
	w->known &= ~INTERRUPTED;
	frame->saves = frame->loads = GM_NO_WORD;
	frame->flags = 0;
	if (rule.kind == GM_CFI_UNKNOWN) {
		if (step_over_signal(w, &object))
			return GM_WALK_STOPPED;
		if (!inside)
			rule = registered_rule(w->place.pc, GM_CFI_RETURN_ADDRESS);
		stepped = step(w, &w->place, frame, pack(&rule));
		if (!stepped && !inside && is_first_frame(w->place.pc, &object))
			return GM_WALK_END;
	} else if (inside) {
		stepped = rule.kind != GM_CFI_END && step_anywhere(w, &rule);
	} else if (rule.kind != GM_CFI_SP) {
		uintptr_t low = w->low, end = w->end;

		stepped = step_anywhere(w, &rule) && (w->place.sp <= low || w->place.sp > end);
	}
	if (rule.kind == GM_CFI_END)
		return GM_WALK_END;
	return stepped ? GM_WALK_STOPPED : GM_WALK_STUCK;
}

/* Returns whether a cached walk can be compared at all on this stack. */
static inline bool is_of_use(const struct walker *w, const struct gm_cached_walk *cached)
{
	return cached && cached->stop_start == w->now.stop_start &&
	       cached->stop_bytes == w->now.stop_bytes && cached->top <= w->end;
}

static inline bool begins_at(const struct gm_cached_walk *cached, const struct place *place)
{
	return cached->sp == place->sp && cached->pc == place->pc &&
	       (cached->bp == place->bp || !cached->live_bp);
}

static inline bool stands_at(const struct place *place, const struct gm_cached_walk *cached,
			     const struct gm_cached_frame *frame)
{
	return frame->sp == place->sp &&
	       gm_cached_pcs(cached)[frame - gm_cached_frames(cached)] == place->pc &&
	       (frame->bp == place->bp || !(frame->flags & GM_CACHED_LIVE_BP));
}

/* Returns the first of the words from `word` up to `end` that has changed, `end` if none has. */
static inline unsigned first_changed(const struct gm_cached_walk *cached, unsigned word,
				     unsigned end)
{
	const uintptr_t *below = (const uintptr_t *)cached->sp - 1;
	const uint16_t *offset = gm_cached_offsets(cached->value, cached->words);

	while (word < end && below[offset[word]] == cached->value[word])
		word++;
	return word;
}

/* Moves the walk from the frame `from` of a cached walk, where it stands, to the frame `at`. */
static void stand_at(struct walker *w, const struct gm_cached_walk *cached, unsigned from,
		     unsigned at)
{
	const struct gm_cached_frame *old = gm_cached_frames(cached);
	struct gm_cached_frame *frame = w->now.frame + w->now.frames;

	for (unsigned i = from; i < at; i++) {
		*frame = old[i];
		frame++->bp = w->place.bp; /* a value that nothing depended on was not compared */
		if (old[i].saves != GM_NO_WORD)
			w->place.bp = word_at(old[i].sp + old[i].saves * 8ul);
	}
	w->now.frames += at - from;
	w->place.pc = gm_cached_pcs(cached)[at];
	w->place.sp = old[at].sp;
}

enum followed { TO_THE_END, PART_OF_THE_WAY };

/*
 * The walk stands in the frame `at` of a cached walk: follows it as long as the words are
 * unchanged, and sets `at` to the first frame that it does not follow.
 */
static inline enum followed follow(struct walker *w, const struct gm_cached_walk *cached,
				   unsigned *at)
{
	unsigned words = cached->words, end, other;
	unsigned room = w->walk->max - w->now.frames - 1, from = *at, last = cached->frames - 1u;
	unsigned to = last - from < room ? last : from + room;
	const uintptr_t *pc = gm_cached_pcs(cached);
	bool whole;

	end = words - gm_cached_words_left(cached, to);
	other = first_changed(cached, words - gm_cached_words_left(cached, from), end);
	whole = other == end;
	if (!whole)
		for (to = from; other >= words - gm_cached_words_left(cached, to + 1); to++)
			;
	memcpy(w->walk->pc + w->now.frames, pc + from, (to - from + 1) * sizeof(*pc));
	if (whole && (to - from == room || cached->end != GM_WALK_FULL)) {
		w->walk->frames = w->now.frames + to - from + 1;
		w->now.tail = cached;
		w->now.tail_frame = from;
		return TO_THE_END;
	}
	stand_at(w, cached, from, to);
	*at = to + 1;
	return PART_OF_THE_WAY;
}

/*
 * The walk from where it stands on, with the help of the last one from its frame `at`. If it gets
 * stuck, it stands at the frame that w->rule did not lead out of.
 */
static enum gm_walk_end run_by_rules(struct walker *w, const struct gm_cached_walk *last,
				     unsigned at)
{
	const struct gm_cached_frame *const first = last ? gm_cached_frames(last) : NULL;
	const struct gm_cached_frame *const outermost = last ? first + last->frames : NULL;
	const struct gm_cached_frame *old = last ? first + at : NULL;
	const struct gm_walk asked = *w->walk;
	const uint64_t known = w->known;
	const uintptr_t end = w->end;
	struct place place = w->place; /* in registers, as far as they reach */
	unsigned frames = w->now.frames, from = frames; /* the last ones by rules begin there */
	struct gm_object object;
	enum gm_walk_end how;

	object.start = object.end = 0;
	for (;; frames++) {
		struct gm_cached_frame *frame;
		uint64_t rule;

		while (old < outermost && old->sp < place.sp)
			old++;
		if (old < outermost && stands_at(&place, last, old)) {
			w->place = place;
			w->now.frames = frames;
			at = (unsigned)(old - first);
			w->walk->stepped += frames - from;
			if (follow(w, last, &at) == TO_THE_END)
				return last->end;
			old = first + at;
			place = w->place;
			frames = from = w->now.frames;
		}
		asked.pc[frames] = place.pc;
		frame = w->now.frame + (frames & w->keeps);
		frame->sp = place.sp;
		frame->bp = place.bp;
		how = GM_WALK_STOPPED;
		if (place.pc - asked.stop_start < asked.stop_bytes)
			break;
		how = GM_WALK_FULL;
		if (frames + 1 == asked.max)
			break;
		rule = look_up(place.pc, known, &object);
		if (!step_plainly(&place, frame, rule, end) && !step(w, &place, frame, rule)) {
			how = kind_of(rule) == GM_CFI_END ? GM_WALK_END : GM_WALK_STUCK;
			w->rule = rule;
			break;
		}
		how = GM_WALK_NULL;
		if (!place.pc)
			break;
	}
	w->place = place;
	w->now.frames = frames;
	w->walk->frames = frames + 1;
	w->walk->stepped += frames - from;
	return how;
}

static enum gm_walk_end run(struct walker *w, const struct gm_cached_walk *last, unsigned at)
{
	enum gm_walk_end how = run_by_rules(w, last, at);

	while (how == GM_WALK_STUCK) {
		how = step_otherwise(w);
		if (how != GM_WALK_STOPPED)
			break;
		if (!w->place.pc)
			return GM_WALK_NULL;
		w->now.frames++;
		how = run_by_rules(w, last, 0);
	}
	return how;
}

/* Sets the hash of a walk by the cached walk that is equal to it. */
static inline void set_hash(struct gm_walk *walk, const struct gm_cached_walk *cached)
{
	const struct gm_cached_frame *frame = gm_cached_frames(cached);
	unsigned from = walk->from, end = walk->frames;

	if (walk->caller && (from >= end || walk->pc[from] != walk->caller))
		for (from = 0; from < end && walk->pc[from] != walk->caller;)
			from++;
	if (from >= end)
		return;
	walk->hashed = true;
	walk->from = from;
	walk->but_last = gm_pcs_hash_part(frame[from].hash, frame[end - 1].hash, end - 1 - from);
	walk->hash = end == cached->frames
			     ? frame[from].hash
			     : gm_pcs_hash_part(frame[from].hash, frame[end].hash, end - from);
}

/* Walks with the help of a cache. */
static enum gm_walk_end walk_with(struct walker *w, struct gm_walk_cache *cache)
{
	const uintptr_t sp = w->place.sp;
	const struct gm_cached_walk *next = gm_walk_cache_predict(cache, sp, w->walk->brief), *last;
	unsigned at = 0;
	enum gm_walk_end how;

	w->now.frame = gm_walk_cache_frames(cache);
	w->keeps = ~0u;
	if (is_of_use(w, next) && begins_at(next, &w->place) &&
	    follow(w, next, &at) == TO_THE_END) {
		gm_walk_cache_repeat(cache, sp, w->walk->brief, next);
		w->walk->kept = true;
		set_hash(w->walk, next);
		return next->end;
	}
	last = gm_walk_cache_last(cache);
	how = run(w, is_of_use(w, last) ? last : NULL, next == last ? at : 0);
	if (how == GM_WALK_NULL || how == GM_WALK_STUCK || w->transient)
		return how;
	if (w->now.tail && !w->now.frames && !w->now.tail_frame) {
		set_hash(w->walk, last);
		gm_walk_cache_repeat(cache, sp, w->walk->brief, last);
		w->walk->kept = true;
		return how;
	}
	w->now.pc = w->walk->pc;
	w->now.end = how;
	if (!w->now.tail)
		w->now.frames = w->walk->frames;
	next = gm_walk_cache_add(cache, sp, w->walk->brief, &w->now);
	if (next) {
		set_hash(w->walk, next);
		w->walk->kept = true;
	}
	return how;
}

/* This function has a frame pointer (-fno-omit-frame-pointer): its own step needs no rule. */
__attribute__((noinline)) bool gm_cfi_walk(struct gm_walk *walk)
{
	uintptr_t own = (uintptr_t)__builtin_frame_address(0), copy[CHUNK / sizeof(uintptr_t)];
	uint64_t generation = __atomic_load_n(&cfi.generation, __ATOMIC_ACQUIRE);
	struct gm_walk_cache *cache = NULL;
	struct gm_cached_frame scratch;
	enum gm_walk_end how;
	struct place inside = {word_at(own + 8), own + 16, word_at(own)};
	struct place given = {walk->caller, walk->sp, walk->bp};
	struct walker w = {.walk = walk,
			   .place = walk->sp ? given : inside,
			   .known = generation % INTERRUPTED,
			   .copy = copy,
			   .now = {.frame = &scratch,
				   .stop_start = walk->stop_start,
				   .stop_bytes = walk->stop_bytes}};

	walk->hashed = false;
	walk->stepped = 0;
	walk->kept = false;
	if (!enter_stack(&w, w.place.sp)) {
		/* the rest of the calling frame's page can be read, for that frame is in use */
		w.low = w.place.sp - 8;
		w.end = ((w.place.sp - 1) | (PAGE - 1)) + 1;
	} else if (!walk->anew && !cfi.no_cache && walk->max <= GM_CACHED_FRAMES) {
		cache = walk->cache ? walk->cache : gm_walk_cache_take(gm_thread_pointer());
	}
	if (cache && gm_walk_cache_renew(cache, generation))
		how = walk_with(&w, cache);
	else
		how = run(&w, NULL, 0);
	if (cache && cache != walk->cache)
		gm_walk_cache_release(cache);
	return how != GM_WALK_STUCK;
}

void gm_cfi_set_result(const struct gm_walk *walk, const struct gm_cached_result *result)
{
	if (walk->kept && walk->cache)
		gm_walk_cache_set_result(walk->cache, walk->sp, walk->brief, result);
}

void gm_cfi_use_cache(bool keep)
{
	cfi.no_cache = !keep;
}

void gm_cfi_reset(void)
{
	gm_walk_cache_reset();
}

bool gm_cfi_init(gm_find_entry *find_registered)
{
	cfi.find_registered = find_registered;
	gm_walk_cache_init();
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

void gm_cfi_set_result(const struct gm_walk *walk, const struct gm_cached_result *result)
{
	(void)walk;
	(void)result;
}

void gm_cfi_use_cache(bool keep)
{
	(void)keep;
}

void gm_cfi_reset(void)
{
}

bool gm_cfi_init(gm_find_entry *find_registered)
{
	(void)find_registered;
	return false;
}

#endif
