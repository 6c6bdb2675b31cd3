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
 * raises the generation (gm_cfi_forget), and then all traces are dropped. Before that, notes of them are
 * believed no more (gm_intern_epoch).
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
 * takes eight bytes, what is compared of a trace is its words and one line that leads to them, and what a
 * thread's captures need beside these is one line more.
 *
 * Threads find their traces by hash. A capture takes them by exchanging `busy`, and goes without while
 * another one has them.
 */
#include "stack/traces.h"

#include "stack/traces_next.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define LINE_BYTES     sizeof(struct gm_trace_line)
#define MOST_STACK     (8u * UINT16_MAX) /* that a trace spans */
#define LARGEST_VALUE  ((1ull << 48) - 1) /* that a word says */
#define LARGEST_POSITION ((1ull << GM_TRACES_POSITION_BITS) - 1)

struct gm_traces gm_traces_slots[GM_TRACES_SLOTS];

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

/* NULL: no memory. errno stays. */
static struct gm_traces_room *map_room(void)
{
	int saved = errno;
	struct gm_traces_room *room = mmap(NULL, sizeof(*room), PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	errno = saved;
	return room == MAP_FAILED ? NULL : room;
}

bool gm_traces_renew(struct gm_traces *traces, uint64_t generation)
{
	struct gm_traces_room *room = traces->room ? traces->room : map_room();

	if (!room)
		return false;
	if (traces->room && traces->generation == (uint32_t)generation && traces->head < LARGEST_POSITION / 2)
		return true;
	memset(room->next, 0, sizeof(room->next));
	if (traces->head >= LARGEST_POSITION / 2)
		traces->head = 0; /* nothing leads to any position now */
	traces->head += GM_TRACES_LINES + 1; /* never the same position twice, nor 0 */
	traces->came_by = traces->foreseen = 0;
	traces->last = 0;
	traces->generation = (uint32_t)generation;
	traces->room = room;
	return true;
}

struct gm_trace_frame *gm_traces_room(struct gm_traces *traces)
{
	return traces->room->frame;
}

const struct gm_trace *gm_traces_last(const struct gm_traces *traces)
{
	return gm_traces_at(traces, traces->last);
}

static struct gm_trace_next *make_next(struct gm_traces *traces, uint64_t context)
{
	struct gm_trace_next *place = gm_traces_places(traces, context);

	place[1] = place[0];
	place[0] = (struct gm_trace_next){.context = context};
	return place;
}

const struct gm_trace *gm_traces_next(const struct gm_traces *traces, uintptr_t sp, bool brief)
{
	const struct gm_trace_next *next = gm_traces_find(traces, sp, brief);

	return next ? gm_traces_at(traces, next->position) : NULL;
}

/* What is compared before the trace's words. What was noted is of another one's stack. */
static void describe(struct gm_trace_next *next, const struct gm_trace *trace)
{
	next->note.key = 0;
	next->position = trace->position & LARGEST_POSITION;
	next->words = trace->words;
	next->sp = trace->sp & LARGEST_VALUE;
	next->span = (trace->top - trace->sp) / 8 & UINT16_MAX;
	next->bp = trace->bp;
	next->live_bp = trace->live_bp;
}

void gm_traces_again(struct gm_traces *traces, uintptr_t sp, bool brief, const struct gm_trace *trace)
{
	struct gm_trace_next *next = gm_traces_find(traces, sp, brief);

	if (!next)
		next = make_next(traces, gm_traces_context(traces, sp, brief));
	if (next->position != trace->position)
		describe(next, trace);
	gm_traces_came_by(traces, next);
	if (!brief)
		traces->last = trace->position;
	gm_traces_found(traces, brief, trace->hash + sp);
}

void gm_traces_note(struct gm_traces *traces, uintptr_t sp, bool brief, const struct gm_trace_note *note)
{
	traces->room->next[traces->came_by].note = *note;
	if (!brief) /* what the walk alone found counts no more */
		traces->last_hash >>= GM_TRACES_HISTORY_BITS;
	gm_traces_found(traces, brief, gm_traces_what(note, sp));
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

	if (words <= UINT16_MAX && value <= LARGEST_VALUE) {
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

static uint64_t lines_for(unsigned frames, unsigned words)
{
	uint64_t bytes = sizeof(struct gm_trace) + words * sizeof(struct gm_trace_word) +
			 frames * (sizeof(uintptr_t) + sizeof(struct gm_trace_frame));

	return (bytes + LINE_BYTES - 1) / LINE_BYTES;
}

/*
 * Room in the ring for so many lines, but not where `tail` is. What was there is forgotten, the
 * tail perhaps too, but it stays readable.
 */
static struct gm_trace *make_room(struct gm_traces *traces, uint64_t lines,
				  const struct gm_trace *tail)
{
	uint64_t at = traces->head, offset = at % GM_TRACES_LINES, from, to;
	struct gm_trace *trace;

	if (offset + lines > GM_TRACES_LINES) {
		at += GM_TRACES_LINES - offset;
		offset = 0;
	}
	if (tail) {
		from = (uint64_t)((const struct gm_trace_line *)tail - traces->room->ring);
		to = from + lines_for(tail->frames, tail->words);
		if (from < offset + lines && to > offset) {
			at += to - offset;
			offset = to;
		}
		if (offset + lines > GM_TRACES_LINES)
			at += GM_TRACES_LINES - offset;
	}
	trace = (void *)(traces->room->ring + at % GM_TRACES_LINES);
	trace->position = at;
	traces->head = at + lines;
	return trace;
}

const struct gm_trace *gm_traces_keep(struct gm_traces *traces, uintptr_t sp, bool brief,
				      const struct gm_trace_walk *walk)
{
	const struct gm_trace *tail = walk->tail;
	struct gm_trace_word *word_end = traces->room->word + GM_TRACE_FRAMES * GM_TRACES_MOST_WORDS, *word;
	unsigned tail_frames = tail ? tail->frames - walk->tail_frame : 0;
	unsigned frames = walk->frames + tail_frames, own_words, tail_words, given;
	const struct gm_trace_frame *tail_frame, *first, *last;
	struct gm_trace *trace;
	uintptr_t pc;

	if (frames > GM_TRACE_FRAMES || walk->stop_bytes > UINT32_MAX)
		return NULL;
	tail_frame = tail ? gm_trace_frames(tail) + walk->tail_frame : NULL;
	last = tail ? tail_frame + tail_frames - 1 : walk->frame + walk->frames - 1;
	first = walk->frames ? walk->frame : tail_frame;
	pc = walk->frames ? *walk->pc : gm_trace_pcs(tail)[walk->tail_frame];
	if (last->sp - first->sp > MOST_STACK || first->sp > LARGEST_VALUE || pc > LARGEST_VALUE)
		return NULL;
	word = walk->frames ? list_words(walk, word_end) : word_end;
	own_words = (unsigned)(word_end - word);
	tail_words = tail ? gm_trace_left(tail, walk->tail_frame) : 0;
	given = GM_TRACE_AT_ONCE - (own_words + tail_words) % GM_TRACE_AT_ONCE;
	trace = make_room(traces, lines_for(frames, given + own_words + tail_words), tail);
	trace->frames = frames & 0x3ff;
	trace->words = (given + own_words + tail_words) & 0xfff;
	trace->given = given & 7;
	trace->end = (tail ? tail->end : (unsigned)walk->end) & 0xf;
	trace->stop_start = walk->stop_start;
	trace->stop_bytes = (uint32_t)walk->stop_bytes;
	memcpy(gm_trace_pcs(trace), walk->pc, walk->frames * sizeof(*walk->pc));
	for (unsigned i = 0; i < given; i++)
		trace->word[i].packed = pc << 16 | 0;
	memcpy(trace->word + given, word, own_words * sizeof(*word));
	memcpy(gm_trace_frames(trace), walk->frame, walk->frames * sizeof(*tail_frame));
	if (tail) {
		memcpy(gm_trace_pcs(trace) + walk->frames, gm_trace_pcs(tail) + walk->tail_frame,
		       tail_frames * sizeof(*walk->pc));
		copy_words(trace->word + given + own_words, tail->word + tail->words - tail_words, tail_words,
			   (int64_t)(tail->sp - first->sp) / 8);
		memcpy(gm_trace_frames(trace) + walk->frames, tail_frame,
		       tail_frames * sizeof(*tail_frame));
	}
	first = gm_trace_frames(trace);
	trace->pc = pc;
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
	for (unsigned i = 0; i < GM_TRACES_SLOTS; i++) {
		struct gm_traces *traces = &gm_traces_slots[i];

		if (traces->busy)
			traces->generation = UINT32_MAX;
		traces->busy = false;
	}
}
