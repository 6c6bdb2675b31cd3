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

#if defined(__x86_64__)

#define LINES	      4096u /* of four entries: 256 KiB, touched as needed */
#define WAYS	      4u
#define LARGEST_STACK (1ull << 30)
#define PAGE	      4096u
#define OFFSET_BITS   28
#define OFFSET_LIMIT  (1 << (OFFSET_BITS - 1))

struct entry {
	uint64_t key, value;
};

static struct {
	struct entry line[LINES][WAYS] __attribute__((aligned(64)));
	uint64_t generation;   /* rules of an older one are not found */
	uintptr_t program_end; /* where the first thread's stack ends, __libc_stack_end */
} cfi;

void gm_cfi_forget(void)
{
	__atomic_fetch_add(&cfi.generation, 1, __ATOMIC_RELEASE);
}

/* A rule in one word; never 0. */
static uint64_t pack(const struct gm_cfi_rule *rule)
{
	const uint64_t mask = (1ull << OFFSET_BITS) - 1;

	if (rule->cfa_offset >= OFFSET_LIMIT || rule->cfa_offset < -OFFSET_LIMIT ||
	    rule->bp_offset >= OFFSET_LIMIT || rule->bp_offset < -OFFSET_LIMIT)
		return 1;
	return 1 | (uint64_t)rule->kind << 1 | (uint64_t)rule->bp << 4 |
	       ((uint64_t)(uint32_t)rule->cfa_offset & mask) << 8 |
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
	return cfi.line[(pc * 0x9e3779b97f4a7c15ull) >> 52];
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

/*
 * Up to where the stack can be read without asking: threads have their control block at its end,
 * the first thread's end is known from its start. On any other stack (a fiber's) nothing is known.
 */
static inline uintptr_t stack_end(uintptr_t sp)
{
	uintptr_t thread;

	__asm__("mov %%fs:0, %0" : "=r"(thread));
	if (thread - sp < LARGEST_STACK / 4)
		return thread;
	if (cfi.program_end - sp < LARGEST_STACK)
		return cfi.program_end;
	return 0;
}

/* Whether the words from sp to cfa, and some below bp, can be read on a stack with this end. */
static inline bool readable(uintptr_t sp, uintptr_t cfa, uintptr_t end)
{
	uint64_t word;

	if (end && cfa <= end && cfa - sp < 4 * PAGE)
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

/* A frame, and where its caller's rbp is, 0 for still in the register. */
struct frame {
	uintptr_t pc, sp, bp, bp_slot;
};

/*
 * From a frame to its caller's; `frame->bp_slot` is filled in. False where the rules end or fail. A
 * BP_LOAD frame is left without its `pc`: see last_walk.
 */
static inline bool step(struct frame *frame, struct frame *caller, uint64_t rule, uintptr_t end)
{
	uintptr_t cfa, saved, bp = frame->bp;

	frame->bp_slot = 0;
	switch (kind_of(rule)) {
	case GM_CFI_SP:
		cfa = frame->sp + (uintptr_t)cfa_offset_of(rule);
		break;
	case GM_CFI_BP:
		cfa = bp + (uintptr_t)cfa_offset_of(rule);
		break;
	case GM_CFI_BP_LOAD:
		saved = bp + (uintptr_t)cfa_offset_of(rule);
		if (saved < frame->sp || saved & 7 || !readable(frame->sp, saved + 8, end))
			return false;
		cfa = word_at(saved);
		frame->pc = 0;
		break;
	default:
		return false;
	}
	if (cfa <= frame->sp || cfa & 7 || !readable(frame->sp, cfa, end))
		return false;
	if (bp_of(rule) != GM_CFI_BP_SAME) {
		saved = (bp_of(rule) == GM_CFI_BP_AT_CFA ? cfa : bp) +
			(uintptr_t)bp_offset_of(rule);
		if (saved < frame->sp || saved >= cfa || saved & 7)
			return false;
		frame->bp_slot = saved;
		bp = word_at(saved);
	}
	*caller = (struct frame){word_at(cfa - 8), cfa, bp, 0};
	return true;
}

/*
 * A thread's last walk, innermost frame first. Where a walk reaches a frame that the last one had
 * too (same return address, stack pointer and rbp), its caller's return address and rbp stand where
 * they stood then, for the rule is the same and knows nothing else; so they are read from there,
 * without looking the rule up. Nothing is assumed of what they say. The processor can do many such
 * steps at a time, as none waits for the one before. Where a BP_LOAD frame's caller is depends on a
 * word of the stack as well: its `pc` is 0 here, which equals no frame's.
 */
struct last_walk {
	uint32_t busy;	  /* a signal handler, or a thread with the same slot, goes without */
	uint32_t current; /* which of the two arrays holds it */
	uint32_t count;
	uint64_t generation;
	struct frame frame[2][GM_CFI_MOST_FRAMES];
};

#define LAST_WALKS 256u /* threads share slots by hash; 20 KiB each, touched as needed */

static struct last_walk last_walks[LAST_WALKS];

static inline struct last_walk *take_last(void)
{
	uintptr_t thread;
	struct last_walk *last;

	__asm__("mov %%fs:0, %0" : "=r"(thread));
	last = &last_walks[(thread * 0x9e3779b97f4a7c15ull) >> 56];
	return __atomic_exchange_n(&last->busy, 1, __ATOMIC_ACQUIRE) ? NULL : last;
}

static inline bool same(const struct frame *a, const struct frame *b)
{
	return ((a->sp ^ b->sp) | (a->pc ^ b->pc) | (a->bp ^ b->bp)) == 0;
}

enum walked { CAME_TO_STOP, CAME_TO_END, STUCK };

/* The walk from `frame` on. `old` are the last walk's frames, `now` takes this one's. */
static inline enum walked run(struct gm_cfi_walk *walk, struct frame frame, const struct frame *old,
			      unsigned old_count, struct frame *now, uint64_t generation)
{
	const uintptr_t end = stack_end(frame.sp);
	const uintptr_t stop_start = walk->stop_start, stop_bytes = walk->stop_bytes;
	const struct frame *outermost = old + old_count - 1;
	uintptr_t *pc = walk->pc, *const room = pc + walk->max;
	const unsigned keeps = now != NULL;
	struct gm_object object;
	struct frame scratch;
	enum walked how = CAME_TO_END;

	object.start = object.end = 0;
	now = now ? now : &scratch;
	if (!old_count || outermost->sp > end)
		outermost = old; /* nothing to go by; also on a stack whose end is not known */
	for (; frame.pc; now += keeps) {
		*pc++ = frame.pc;
		*now = frame;
		if (pc == room || frame.pc - stop_start < stop_bytes) {
			how = CAME_TO_STOP;
			break;
		}
		while (old < outermost && old->sp < frame.sp)
			old++;
		if (old < outermost && same(old, &frame)) {
			now->bp_slot = old->bp_slot;
			frame.sp = (++old)->sp;
			frame.pc = word_at(frame.sp - 8);
			if (now->bp_slot)
				frame.bp = word_at(now->bp_slot);
		} else {
			uint64_t rule = look_up(frame.pc, generation, &object);

			if (!step(now, &frame, rule, end)) {
				how = kind_of(rule) == GM_CFI_END ? CAME_TO_END : STUCK;
				break;
			}
		}
	}
	walk->frames = (unsigned)(pc - walk->pc);
	return how;
}

/* This function has a frame pointer (-fno-omit-frame-pointer): its own step needs no rule. */
__attribute__((noinline)) bool gm_cfi_walk(struct gm_cfi_walk *walk)
{
	uintptr_t own = (uintptr_t)__builtin_frame_address(0);
	struct frame frame = {word_at(own + 8), own + 16, word_at(own), 0};
	uint64_t generation = __atomic_load_n(&cfi.generation, __ATOMIC_ACQUIRE);
	struct last_walk *last = walk->max <= GM_CFI_MOST_FRAMES ? take_last() : NULL;
	enum walked how;

	if (!last)
		return run(walk, frame, NULL, 0, NULL, generation) != STUCK;
	how = run(walk, frame, last->frame[last->current],
		  last->generation == generation ? last->count : 0, last->frame[last->current ^ 1],
		  generation);
	/* A walk cut short (a free's) knows less than the one before: that stays. */
	if (walk->frames >= last->count || walk->frames < walk->max ||
	    last->generation != generation) {
		last->current ^= 1;
		last->count = walk->frames;
		last->generation = generation;
	}
	__atomic_store_n(&last->busy, 0, __ATOMIC_RELEASE);
	return how != STUCK;
}

void gm_cfi_reset(void)
{
	for (unsigned i = 0; i < LAST_WALKS; i++)
		if (last_walks[i].busy) {
			last_walks[i].count = 0;
			last_walks[i].busy = 0;
		}
}

bool gm_cfi_init(void)
{
	void *const *end = gm_objects_symbol("__libc_stack_end", NULL);

	cfi.program_end = end ? (uintptr_t)*end : 0;
	return true;
}

#else

void gm_cfi_forget(void)
{
}

bool gm_cfi_walk(struct gm_cfi_walk *walk)
{
	walk->frames = 0;
	return false;
}

void gm_cfi_reset(void)
{
}

bool gm_cfi_init(void)
{
	return false;
}

#endif
