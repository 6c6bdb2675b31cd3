/*
 * The unwinder that is tried first: the objects' own unwind tables, read once for each return address
 * and kept as a rule in a small table that all threads share. A step is then a look-up and two loads.
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

#define LINES	       4096u /* of four entries: 256 KiB, touched as needed */
#define WAYS	       4u
#define LARGEST_STACK  (1ull << 30)
#define PAGE	       4096u
#define OFFSET_BITS    28
#define OFFSET_LIMIT   (1 << (OFFSET_BITS - 1))

struct entry {
	uint64_t key, value;
};

static struct {
	struct entry line[LINES][WAYS] __attribute__((aligned(64)));
	uint64_t generation;	/* rules of an older one are not found */
	uintptr_t program_end;	/* where the first thread's stack ends, __libc_stack_end */
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
 * Up to where the stack can be read without asking: threads have their control block at its end, the
 * first thread's end is known from its start. On any other stack (a fiber's) nothing is known.
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

struct frame {
	uintptr_t pc, sp, bp;
};

/* From a frame to its caller's. False where the rules end or do not make sense. */
static inline bool step(struct frame *frame, uint64_t rule, uintptr_t end)
{
	uintptr_t cfa, saved;

	switch (kind_of(rule)) {
	case GM_CFI_SP:
		cfa = frame->sp + (uintptr_t)cfa_offset_of(rule);
		break;
	case GM_CFI_BP:
		cfa = frame->bp + (uintptr_t)cfa_offset_of(rule);
		break;
	case GM_CFI_BP_LOAD:
		saved = frame->bp + (uintptr_t)cfa_offset_of(rule);
		if (saved < frame->sp || saved & 7 || !readable(frame->sp, saved + 8, end))
			return false;
		cfa = word_at(saved);
		break;
	default:
		return false;
	}
	if (cfa <= frame->sp || cfa & 7 || !readable(frame->sp, cfa, end))
		return false;
	if (bp_of(rule) != GM_CFI_BP_SAME) {
		saved = (bp_of(rule) == GM_CFI_BP_AT_CFA ? cfa : frame->bp) +
			(uintptr_t)bp_offset_of(rule);
		if (saved < frame->sp || saved >= cfa || saved & 7)
			return false;
		frame->bp = word_at(saved);
	}
	frame->pc = word_at(cfa - 8);
	frame->sp = cfa;
	return true;
}

/* This function has a frame pointer (-fno-omit-frame-pointer): its own step needs no rule. */
__attribute__((noinline)) bool gm_cfi_walk(struct gm_cfi_walk *walk)
{
	uintptr_t own = (uintptr_t)__builtin_frame_address(0);
	struct frame frame = { word_at(own + 8), own + 16, word_at(own) };
	uint64_t generation = __atomic_load_n(&cfi.generation, __ATOMIC_ACQUIRE);
	uintptr_t end = stack_end(frame.sp);
	struct gm_object object;
	unsigned count = 0;
	uint64_t rule;

	object.start = object.end = 0;
	for (;;) {
		if (!frame.pc)
			break; /* some thread starts are marked so */
		if (count == walk->max)
			break;
		walk->pc[count++] = frame.pc;
		if (frame.pc - walk->stop_start < walk->stop_bytes)
			break;
		rule = look_up(frame.pc, generation, &object);
		if (!step(&frame, rule, end)) {
			walk->frames = count;
			return kind_of(rule) == GM_CFI_END;
		}
	}
	walk->frames = count;
	return true;
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

bool gm_cfi_init(void)
{
	return false;
}

#endif
