/*
 * Traces of walks (traces.h).
 *
 * Walking a stack by rules is a function of very little: where it begins (return address, stack
 * pointer, rbp), the rules of the return addresses that it meets, and the words of the stack that
 * it reads: each frame's return address, and of the saved rbp's those that a frame further out
 * takes its own place from. A trace is the list of these words, in the order in which they were
 * read. If a walk stands where a trace has a frame (same return address and stack pointer, and same
 * rbp if that has a say in what follows), and the words from there on hold what they held, then
 * each step leads where it led, by induction from the inside outwards, and the rest of the walk is
 * the rest of the trace. Nothing is assumed of what the program did in between: returned and called
 * again, jumped, threw, switched stacks, had another thread's stack at the same place. A trace
 * thus belongs to no thread and never becomes wrong but by a change of rules: code that is unloaded
 * raises the generation (gm_cfi_forget), and then all traces are dropped.
 *
 * The words are compared one after the other and the first difference ends it, so that nothing is
 * read that the walk by rules would not read as well, with the same right.
 *
 * Not kept: walks that the rules do not carry to the end (signal frames, JIT compilers' code), and
 * those on stacks whose end is not known (fibers). A frame of 16 KiB and more is stepped over by
 * its rule each time.
 *
 * Of the traces a walk is tried against two: the one that came next when the last four walks were as
 * they were and this one's stack pointer the same (programs repeat themselves; training loops to the
 * letter), and the last walk, whose outer frames are mostly still there. Brief walks, a free's, are
 * told by what came before them, but tell nothing of what comes after: a loop that frees what an
 * allocation many calls ago left would else look the same before each of its allocations.
 *
 * A program uses its caches for something else, so what is read counts more than what is done: a word
 * takes eight bytes, what is compared of a trace lies in one piece, and what a thread's captures need
 * beside it in one line.
 */
#include "stack/traces.h"
#include "store/hot.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define RING_BYTES (2u << 20)
#define NEXT_BITS  13u
#define NEXTS	   (1u << NEXT_BITS)
#define MOST_WORDS 8u /* of a frame, two for each that cannot be written down */
#define MOST_STACK (8u * UINT16_MAX) /* that a trace spans */
#define HISTORY_BITS 16u /* for each of the last four stacks: a line often makes the same one twice */
#define SLOTS	   64u /* threads share them by hash; some 170 MiB in all if every one is full */

struct room {
	struct gm_trace_next next[NEXTS]; /* what was before and the stack pointer → trace */
	struct gm_trace_frame frame[GM_TRACE_FRAMES];
	struct gm_trace_word word[GM_TRACE_FRAMES * MOST_WORDS];
	char ring[RING_BYTES] __attribute__((aligned(64)));
};

/*
 * In one cache line, which is the first that a capture misses. Positions count the bytes ever written to
 * the ring; 0 is none.
 */
static struct gm_traces {
	uint32_t busy;
	uint16_t came_by;  /* where in `next` the latest walk stands … */
	bool latest_brief; /* … and whether it is a brief one */
	struct room *room; /* mapped when first needed, never unmapped */
	uint64_t generation;
	uint64_t head;	     /* where the next trace goes */
	uint64_t last;	     /* the last walk that is not brief */
	uint64_t last_hash;  /* of what it and the three before it found */
	uint64_t brief_hash; /* the same of the brief one that came since, or 0 */
	uint64_t latest;     /* of all */
} slots[SLOTS] __attribute__((aligned(64)));

_Static_assert(sizeof(struct gm_traces) == 64, "one line");
_Static_assert(NEXTS <= 1 << 16, "came_by");

static uint64_t powers[GM_TRACE_FRAMES + 1]; /* of GM_TRACE_FACTOR */

void gm_traces_init(void)
{
	powers[0] = 1;
	for (unsigned i = 1; i <= GM_TRACE_FRAMES; i++)
		powers[i] = powers[i - 1] * GM_TRACE_FACTOR;
}

uint64_t gm_trace_hash_part(uint64_t from, uint64_t after, unsigned count)
{
	return from - powers[count] * after;
}

static inline struct gm_traces *own_slot(void)
{
	uintptr_t thread;

#if defined(__x86_64__) /* compilers that are not new do not know the other there */
	__asm__("mov %%fs:0, %0" : "=r"(thread));
#else
	thread = (uintptr_t)__builtin_thread_pointer();
#endif
	return &slots[(thread * 0x9e3779b97f4a7c15ull) >> 58];
}

/* NULL: no memory. errno stays. */
static struct room *map_room(void)
{
	int saved = errno;
	struct room *room = mmap(NULL, sizeof(*room), PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	errno = saved;
	return room == MAP_FAILED ? NULL : room;
}

static __attribute__((noinline)) bool start(struct gm_traces *traces, uint64_t generation)
{
	struct room *room = traces->room ? traces->room : map_room();

	if (!room)
		return false;
	traces->room = room;
	memset(room->next, 0, sizeof(room->next));
	traces->head += RING_BYTES; /* never the same position twice */
	traces->last = traces->latest = 0;
	traces->came_by = 0;
	traces->generation = generation;
	return true;
}

GM_HOT_CODE struct gm_traces *gm_traces_take(uint64_t generation)
{
	struct gm_traces *traces = own_slot();

	if (__atomic_exchange_n(&traces->busy, 1, __ATOMIC_ACQUIRE))
		return NULL;
	if ((!traces->room || traces->generation != generation) && !start(traces, generation)) {
		gm_traces_give(traces);
		return NULL;
	}
	return traces;
}

GM_HOT_CODE void gm_traces_give(struct gm_traces *traces)
{
	__atomic_store_n(&traces->busy, 0, __ATOMIC_RELEASE);
}

struct gm_trace_frame *gm_traces_room(struct gm_traces *traces)
{
	return traces->room->frame;
}

/* NULL for none and for one that was overwritten. */
static inline const struct gm_trace *trace_at(const struct gm_traces *traces, uint64_t position)
{
	if (position + RING_BYTES < traces->head || !position)
		return NULL;
	return (const void *)(traces->room->ring + position % RING_BYTES);
}

const struct gm_trace *gm_traces_last(const struct gm_traces *traces)
{
	return trace_at(traces, traces->last);
}

static inline uint64_t digest(uint64_t hash)
{
	return hash * GM_TRACE_FACTOR >> (64 - HISTORY_BITS);
}

/* What tells a walk among those that came next: what was before it, and where it begins. */
static inline uint64_t context_of(const struct gm_traces *traces, uintptr_t sp, bool brief)
{
	uint64_t before = traces->last_hash ^ (brief ? ~traces->brief_hash : 0);

	return (before ^ sp) * GM_TRACE_FACTOR;
}

/* A context has two places; of three that share them the one that came first goes. */
static inline struct gm_trace_next *places_of(const struct gm_traces *traces, uint64_t context)
{
	return &traces->room->next[context >> (64 - NEXT_BITS) & ~1ull];
}

static inline struct gm_trace_next *find_next(const struct gm_traces *traces, uint64_t context)
{
	struct gm_trace_next *place = places_of(traces, context);

	return place[0].context == context ? place : place[1].context == context ? place + 1 : NULL;
}

static __attribute__((noinline)) struct gm_trace_next *make_next(struct gm_traces *traces, uint64_t context)
{
	struct gm_trace_next *place = places_of(traces, context);

	place[1] = place[0];
	place[0] = (struct gm_trace_next){.context = context};
	return place;
}

const struct gm_trace *gm_traces_next(const struct gm_traces *traces, uintptr_t sp, bool brief)
{
	const struct gm_trace_next *next = find_next(traces, context_of(traces, sp, brief));

	return next ? trace_at(traces, next->position) : NULL;
}

GM_HOT_CODE const struct gm_trace *gm_traces_noted(const struct gm_traces *traces, uintptr_t sp, bool brief,
						   const struct gm_trace_note **note)
{
	static const struct gm_trace_note none;
	const struct gm_trace_next *next = find_next(traces, context_of(traces, sp, brief));

	*note = next ? &next->note : &none;
	return next ? trace_at(traces, next->position) : NULL;
}

GM_HOT_CODE void gm_traces_again(struct gm_traces *traces, uintptr_t sp, bool brief,
				 const struct gm_trace *trace)
{
	uint64_t context = context_of(traces, sp, brief), hash = trace->hash + sp;
	struct gm_trace_next *next = find_next(traces, context);

	if (__builtin_expect(!next, 0))
		next = make_next(traces, context);
	if (next->position != trace->position) {
		next->position = trace->position;
		next->note.key = 0;
	}
	traces->came_by = (uint16_t)(next - traces->room->next);
	traces->latest = trace->position;
	traces->latest_brief = brief;
	traces->brief_hash = brief ? hash : 0;
	if (brief)
		return;
	traces->last = trace->position;
	traces->last_hash = traces->last_hash << HISTORY_BITS ^ digest(hash);
}

GM_HOT_CODE void gm_traces_was(struct gm_traces *traces, const struct gm_trace_note *note)
{
	uint64_t *hash = traces->latest_brief ? &traces->brief_hash : &traces->last_hash;

	*hash ^= digest(note->stack + (uintptr_t)note->places);
}

void gm_traces_note(struct gm_traces *traces, uint64_t position, const struct gm_trace_note *note)
{
	if (traces->latest != position)
		return; /* another thread's walk came between */
	traces->room->next[traces->came_by].note = *note;
	gm_traces_was(traces, note);
}

/*
 * What goes before `word`, read when the walk stands at `frame`. Where it cannot be written down a
 * comparison must end: of what was read last to come there, the return address below, two things are
 * said of which one is wrong.
 */
static struct gm_trace_word *list_word(struct gm_trace_word *word, uintptr_t base,
				       const struct gm_trace_frame *frame, uintptr_t at, uintptr_t value)
{
	uint64_t words = (at - base) / 8;

	if (words <= UINT16_MAX && value >> 48 == 0) {
		*--word = (struct gm_trace_word){value << 16 | words};
	} else {
		words = (frame->sp - 8 - base) / 8;
		*--word = (struct gm_trace_word){0 << 16 | words};
		*--word = (struct gm_trace_word){1 << 16 | words};
	}
	return word;
}

/*
 * Lists the words that the steps from walk->frame[…] read, last one first, from `word` downwards,
 * and finishes these frames from the outermost in. Returns the first word.
 */
static struct gm_trace_word *list_words(const struct gm_trace_walk *walk, struct gm_trace_word *word)
{
	struct gm_trace_frame *frame = walk->frame + walk->frames;
	const uintptr_t *pc = walk->pc + walk->frames, base = walk->frame->sp - 8;
	const struct gm_trace_frame *caller = NULL;
	uintptr_t caller_pc = 0;
	unsigned left = 0;

	if (walk->tail) {
		caller = gm_trace_frames(walk->tail) + walk->tail_frame;
		caller_pc = gm_trace_pcs(walk->tail)[walk->tail_frame];
		left = gm_trace_left(walk->tail, walk->tail_frame);
	} else {
		frame--;
		frame->saves = frame->loads = GM_TRACE_NOT;
		frame->flags = frame->left = 0;
		frame->hash = *--pc;
		caller = frame;
		caller_pc = *pc;
	}
	while (frame-- != walk->frame) {
		const struct gm_trace_word *before = word;
		unsigned live = caller->flags & GM_TRACE_LIVE_BP;

		if (frame->saves != GM_TRACE_NOT) {
			if (live)
				word = list_word(word, base, frame, frame->sp + frame->saves * 8ul,
						 caller->bp);
			live = 0;
		}
		word = list_word(word, base, frame, caller->sp - 8, caller_pc);
		if (frame->loads != GM_TRACE_NOT)
			word = list_word(word, base, frame, frame->sp + frame->loads * 8ul,
					 caller->sp);
		if (frame->flags & GM_TRACE_LARGE)
			word = list_word(word, base, frame, frame->sp, UINT64_MAX);
		frame->flags &= (uint16_t)~GM_TRACE_LIVE_BP;
		if (live || frame->flags & GM_TRACE_USES_BP)
			frame->flags |= GM_TRACE_LIVE_BP;
		left += (unsigned)(before - word);
		frame->left = (uint16_t)left;
		caller_pc = *--pc;
		frame->hash = caller->hash * GM_TRACE_FACTOR + caller_pc;
		caller = frame;
	}
	return word;
}

/* Words of a trace that begins `further` words further out, or in, where the other went deeper. */
static void copy_words(struct gm_trace_word *to, const struct gm_trace_word *from, unsigned count,
		       int64_t further)
{
	for (unsigned i = 0; i < count; i++)
		to[i].packed = from[i].packed + (uint64_t)further;
}

static uint64_t bytes_for(unsigned frames, unsigned words)
{
	uint64_t bytes = sizeof(struct gm_trace) + words * sizeof(struct gm_trace_word) +
			 frames * (sizeof(uintptr_t) + sizeof(struct gm_trace_frame));

	return (bytes + 63) & ~63ull;
}

static uint64_t bytes_of(const struct gm_trace *trace)
{
	return bytes_for(trace->frames, trace->words);
}

/*
 * Room in the ring for so many bytes, but not where `tail` is. What was there is forgotten, the
 * tail perhaps too, but it stays readable.
 */
static struct gm_trace *make_room(struct gm_traces *traces, uint64_t bytes,
				  const struct gm_trace *tail)
{
	uint64_t at = traces->head, offset = at % RING_BYTES, from, to;
	struct gm_trace *trace;

	if (offset + bytes > RING_BYTES) {
		at += RING_BYTES - offset;
		offset = 0;
	}
	if (tail) {
		from = (uint64_t)((const char *)tail - traces->room->ring);
		to = from + bytes_of(tail);
		if (from < offset + bytes && to > offset) {
			at += to - offset;
			offset = to;
		}
		if (offset + bytes > RING_BYTES)
			at += RING_BYTES - offset;
	}
	trace = (void *)(traces->room->ring + at % RING_BYTES);
	trace->position = at;
	traces->head = at + bytes;
	return trace;
}

const struct gm_trace *gm_traces_keep(struct gm_traces *traces, uintptr_t sp, bool brief,
				      const struct gm_trace_walk *walk)
{
	const struct gm_trace *tail = walk->tail;
	struct gm_trace_word *word_end = traces->room->word + GM_TRACE_FRAMES * MOST_WORDS, *word;
	unsigned tail_frames = tail ? tail->frames - walk->tail_frame : 0;
	unsigned frames = walk->frames + tail_frames, own_words, tail_words;
	const struct gm_trace_frame *tail_frame, *first, *last;
	struct gm_trace *trace;

	if (frames > GM_TRACE_FRAMES || walk->stop_bytes > UINT32_MAX)
		return NULL;
	tail_frame = tail ? gm_trace_frames(tail) + walk->tail_frame : NULL;
	last = tail ? tail_frame + tail_frames - 1 : walk->frame + walk->frames - 1;
	first = walk->frames ? walk->frame : tail_frame;
	if (last->sp - first->sp > MOST_STACK)
		return NULL;
	word = walk->frames ? list_words(walk, word_end) : word_end;
	own_words = (unsigned)(word_end - word);
	tail_words = tail ? gm_trace_left(tail, walk->tail_frame) : 0;
	trace = make_room(traces, bytes_for(frames, own_words + tail_words), tail);
	trace->frames = frames & 0x3ff;
	trace->words = (own_words + tail_words) & 0xfff;
	trace->end = (tail ? tail->end : (unsigned)walk->end) & 0xf;
	trace->stop_start = walk->stop_start;
	trace->stop_bytes = (uint32_t)walk->stop_bytes;
	memcpy(gm_trace_pcs(trace), walk->pc, walk->frames * sizeof(*walk->pc));
	memcpy(trace->word, word, own_words * sizeof(*word));
	memcpy(gm_trace_frames(trace), walk->frame, walk->frames * sizeof(*tail_frame));
	if (tail) {
		memcpy(gm_trace_pcs(trace) + walk->frames, gm_trace_pcs(tail) + walk->tail_frame,
		       tail_frames * sizeof(*walk->pc));
		copy_words(trace->word + own_words, tail->word + tail->words - tail_words, tail_words,
			   (int64_t)(tail->sp - first->sp) / 8);
		memcpy(gm_trace_frames(trace) + walk->frames, tail_frame,
		       tail_frames * sizeof(*tail_frame));
	}
	first = gm_trace_frames(trace);
	trace->pc = *gm_trace_pcs(trace);
	trace->sp = first->sp;
	trace->bp = first->bp;
	trace->hash = first->hash;
	trace->live_bp = (first->flags & GM_TRACE_LIVE_BP) != 0;
	trace->top = gm_trace_frames(trace)[frames - 1].sp;
	gm_traces_again(traces, sp, brief, trace);
	return trace;
}

void gm_traces_reset(void)
{
	for (unsigned i = 0; i < SLOTS; i++)
		if (slots[i].busy) {
			slots[i].generation = UINT64_MAX;
			slots[i].busy = 0;
		}
}
