/*
 * The walk that is expected next, and whether it is that one again: all that most captures do, so it is
 * inline and touches few lines of memory. For stack.c and what it calls in cfi.c and traces.c.
 */
#ifndef GM_STACK_TRACES_NEXT_H
#define GM_STACK_TRACES_NEXT_H

#include "stack/thread_stack.h"
#include "stack/traces.h"

#include <stddef.h>

#define GM_TRACES_SLOTS	    64u /* threads share them by hash; some 170 MiB in all if every one is full */
#define GM_TRACES_NEXT_BITS 13u
#define GM_TRACES_NEXTS	    (1u << GM_TRACES_NEXT_BITS)
#define GM_TRACES_LINES	    (1u << 15) /* of the ring: 2 MiB */
#define GM_TRACES_POSITION_BITS 38u
#define GM_TRACES_MOST_WORDS 8u /* of a frame, two for each that cannot be written down */
#define GM_TRACES_HISTORY_BITS 16u /* for each of the last four stacks: a line often makes one twice */

/*
 * The walk that came after others: what was noted of it, and of its trace what is compared before the
 * words. In one cache line. But for `after`, a hint, it changes only by gm_traces_again and gm_traces_note.
 */
struct gm_trace_next {
	uint64_t context; /* what was before it; 0: none */
	uint64_t words : 12, live_bp : 1, position : GM_TRACES_POSITION_BITS;
	uint64_t after : GM_TRACES_NEXT_BITS; /* the one that came after it, the last time */
	uint64_t span : 16, sp : 48; /* the outermost sp is so many words above the innermost */
	uint64_t bp;
	struct gm_trace_note note;
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct gm_trace_next) == 64, "one line");

struct gm_traces_room {
	struct gm_trace_next next[GM_TRACES_NEXTS]; /* what was before and the stack pointer → trace */
	struct gm_trace_frame frame[GM_TRACE_FRAMES];
	struct gm_trace_word word[GM_TRACE_FRAMES * GM_TRACES_MOST_WORDS];
	struct gm_trace_line {
		char bytes[64];
	} ring[GM_TRACES_LINES] __attribute__((aligned(64)));
};

/*
 * What a thread has of traces, in one cache line, which is the first that a capture misses. Positions
 * count the lines ever written to the ring; 0 is none.
 */
struct gm_traces {
	bool busy;		     /* a capture uses them (atomic) */
	struct gm_traces_room *room; /* mapped when first needed, never unmapped */
	uint32_t generation;	     /* its last 32 bits */
	uint16_t came_by;	     /* where in `next` the latest one stands … */
	uint16_t foreseen;	     /* … and the one that is to come after it */
	uint64_t head;	     /* where the next trace goes */
	uint64_t last;	     /* the last walk that is not brief */
	uint64_t last_hash;  /* of what it and the three before it found */
	uint64_t brief_hash; /* the same of the brief one that came since, or 0 */
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct gm_traces) == 64, "one line");
_Static_assert(GM_TRACES_NEXTS <= 1 << 16, "came_by");

extern GM_HIDDEN struct gm_traces gm_traces_slots[GM_TRACES_SLOTS];

static inline struct gm_traces *gm_traces_of(uintptr_t thread)
{
	_Static_assert(GM_TRACES_SLOTS == 1 << (64 - 58), "each is found");
	return &gm_traces_slots[(thread * GM_TRACE_FACTOR) >> 58];
}

/*
 * The calling thread's traces. NULL where they are in use, by a capture that a signal interrupted or by
 * a thread that shares them: nobody waits for them. To be given back.
 */
static inline struct gm_traces *gm_traces_take(uintptr_t thread)
{
	struct gm_traces *traces = gm_traces_of(thread);

	return __builtin_expect(__atomic_exchange_n(&traces->busy, true, __ATOMIC_ACQUIRE), 0) ? NULL : traces;
}

static inline void gm_traces_give(struct gm_traces *traces)
{
	__atomic_store_n(&traces->busy, false, __ATOMIC_RELEASE);
}

/* NULL for none and for one that was overwritten. */
static inline const struct gm_trace *gm_traces_at(const struct gm_traces *traces, uint64_t position)
{
	if (position + GM_TRACES_LINES < traces->head)
		return NULL;
	return (const void *)(traces->room->ring + position % GM_TRACES_LINES);
}

/* What tells a walk among those that came next: what was before it, and where it begins. */
static inline uint64_t gm_traces_context(const struct gm_traces *traces, uintptr_t sp, bool brief)
{
	uint64_t before = traces->last_hash ^ (brief ? ~traces->brief_hash : 0);

	return (before ^ sp) * GM_TRACE_FACTOR;
}

/* A context has two places; of three that share them the one that came first goes. */
static inline struct gm_trace_next *gm_traces_places(const struct gm_traces *traces, uint64_t context)
{
	return &traces->room->next[context >> (64 - GM_TRACES_NEXT_BITS) & ~1ull];
}

/* What came next when it was as it is now, or NULL. There is a room. */
static inline struct gm_trace_next *gm_traces_find(const struct gm_traces *traces, uintptr_t sp, bool brief)
{
	uint64_t context = gm_traces_context(traces, sp, brief);
	struct gm_trace_next *place = gm_traces_places(traces, context);

	if (__builtin_expect(place->context == context, 1))
		return place;
	return place[1].context == context ? place + 1 : NULL;
}

/*
 * Whether a walk that begins at `sp`, where a call was made from, with rbp as it was, would be that of
 * the trace with these words.
 */
static inline bool gm_traces_same(const struct gm_trace_next *next, const struct gm_trace_word *word,
				  uintptr_t sp, uintptr_t bp)
{
	const struct gm_trace_word *const end = word + next->words;
	const uintptr_t *const below = (const uintptr_t *)sp - 1;

	if (next->sp != sp || (next->bp != bp && next->live_bp) ||
	    sp + next->span * 8ul > gm_thread_stack_end(sp))
		return false;
	_Static_assert(GM_TRACE_AT_ONCE == 4, "all of them");
	for (; word < end; word += GM_TRACE_AT_ONCE)
		if (gm_trace_word_changed(below, word[0]) || gm_trace_word_changed(below, word[1]) ||
		    gm_trace_word_changed(below, word[2]) || gm_trace_word_changed(below, word[3]))
			return false;
	return true;
}

/* A walk has found this, a number that stands for it: what follows depends on it. */
static inline void gm_traces_found(struct gm_traces *traces, bool brief, uint64_t what)
{
	uint64_t hash = what * GM_TRACE_FACTOR;

	traces->brief_hash = brief ? hash : 0;
	if (!brief)
		traces->last_hash = traces->last_hash << GM_TRACES_HISTORY_BITS ^
				    hash >> (64 - GM_TRACES_HISTORY_BITS);
}

static inline uint64_t gm_traces_what(const struct gm_trace_note *note, uintptr_t sp)
{
	return note->stack + (uintptr_t)note->places + sp;
}

/* The latest one stands there. Fetches the one that comes after it, if it does so again. */
static inline void gm_traces_came_by(struct gm_traces *traces, const struct gm_trace_next *next)
{
	struct gm_trace_next *list = traces->room->next;
	unsigned at = (unsigned)(next - list);

	if (__builtin_expect(traces->foreseen != at, 0))
		list[traces->came_by].after = at & (GM_TRACES_NEXTS - 1);
	traces->came_by = (uint16_t)at;
	traces->foreseen = next->after;
	__builtin_prefetch(&list[traces->foreseen]);
}

/* The walk from `sp` was the one that `next` says, as far as it goes. */
static inline void gm_traces_met(struct gm_traces *traces, uintptr_t sp, bool brief,
				 const struct gm_trace_next *next)
{
	gm_traces_came_by(traces, next);
	if (!brief)
		traces->last = next->position;
	gm_traces_found(traces, brief, gm_traces_what(&next->note, sp));
}

#endif
