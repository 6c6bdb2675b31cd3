/*
 * What earlier walks of a thread's stack read, kept so that a walk need not be made again (traces.c
 * says why that is exact). For cfi.c; what is looked at first of all is in traces_next.h. Calls mmap,
 * once for each of a bounded number of slots, and nothing else.
 */
#ifndef GM_STACK_TRACES_H
#define GM_STACK_TRACES_H

#include <stdbool.h>
#include <stdint.h>

#define GM_TRACE_FRAMES 300u /* the longest walk that is kept */
#define GM_TRACE_NOT	UINT16_MAX
#define GM_TRACE_AT_ONCE 4u /* words compared in one go */

/* How a walk ended; what ends by the last two is not kept. */
enum gm_trace_end {
	GM_TRACE_END,  /* the first frame of a thread */
	GM_TRACE_STOP, /* where it was to stop */
	GM_TRACE_ROOM, /* no more were wanted */
	GM_TRACE_NULL, /* a return address of 0 */
	GM_TRACE_STUCK /* a frame that the rules do not see through */
};

/*
 * A word of the stack that a walk read: its value << 16 | where it lies, in words above the one below
 * the trace's innermost sp. Addresses have 48 bits at most.
 */
struct gm_trace_word {
	uint64_t packed;
};

enum gm_trace_flags {
	GM_TRACE_USES_BP = 1, /* the step to the caller needs rbp's value */
	GM_TRACE_LIVE_BP =
		2,	   /* this step or one further out does, and nothing restores it before */
	GM_TRACE_LARGE = 4 /* the step's reads are to be made with care */
};

/* A frame as the walk stood in it; its return address is kept apart. */
struct gm_trace_frame {
	uintptr_t sp, bp;
	uint64_t hash;	/* gm_trace_hash of the return addresses from this one outwards */
	uint16_t saves; /* the caller's rbp is this many words above sp; or GM_TRACE_NOT */
	uint16_t loads; /* the caller's sp is; or GM_TRACE_NOT */
	uint16_t left;	/* words read from this frame outwards */
	uint16_t flags;
};

/*
 * A walk. Its words are in the order in which they were read. Before them the innermost frame's return
 * address, which was given and lies where every call leaves it, some times over: all words together are
 * a multiple of GM_TRACE_AT_ONCE.
 */
struct gm_trace {
	uint64_t position;	   /* in the ring, in lines */
	uintptr_t pc, sp, bp, top; /* of the innermost frame; the outermost one's sp */
	uint64_t hash;		   /* the innermost frame's */
	uintptr_t stop_start;	   /* as in struct gm_walk, and stop_bytes below */
	uint32_t stop_bytes;
	unsigned frames : 10, words : 12;
	unsigned given : 3;   /* of the words, how often the given one */
	unsigned end : 4;     /* enum gm_trace_end */
	unsigned live_bp : 1; /* the innermost frame's GM_TRACE_LIVE_BP */
	struct gm_trace_word word[]; /* then the return addresses, then the frames, innermost first */
} __attribute__((aligned(64)));

static inline uintptr_t *gm_trace_pcs(const struct gm_trace *trace)
{
	return (uintptr_t *)(trace->word + trace->words);
}

static inline struct gm_trace_frame *gm_trace_frames(const struct gm_trace *trace)
{
	return (struct gm_trace_frame *)(gm_trace_pcs(trace) + trace->frames);
}

/* How many words were read from the frame `at` outwards. */
static inline unsigned gm_trace_left(const struct gm_trace *trace, unsigned at)
{
	if (at == 0)
		return trace->words - trace->given;
	return at + 1u == trace->frames ? 0 : gm_trace_frames(trace)[at].left;
}

/* Whether the stack holds another value there; `below` is the word below the trace's innermost sp. */
static inline bool gm_trace_word_changed(const uintptr_t *below, struct gm_trace_word word)
{
	return below[word.packed & UINT16_MAX] != word.packed >> 16;
}

/*
 * The hash of return addresses, from the outermost in: that of a stack's outer part is the same
 * whatever is inside of it. Multiplying makes room for the next; gm_map's users mix it well.
 */
#define GM_TRACE_FACTOR 0x9e3779b97f4a7c15ull

static inline uint64_t gm_trace_hash(const uintptr_t *pc, unsigned frames)
{
	uint64_t hash = 0;

	while (frames--)
		hash = hash * GM_TRACE_FACTOR + pc[frames];
	return hash;
}

/* Fills in what the two below need. */
void gm_traces_init(void);

/* The hash of the `count` first of the frames that `from` begins, where `after` follows them. */
uint64_t gm_trace_hash_part(uint64_t from, uint64_t after, unsigned count);

/* What a new walk found by itself: the inner frames; `tail` is the trace that goes on from there.
 */
struct gm_trace_walk {
	const struct gm_trace *tail; /* or NULL */
	unsigned tail_frame;	     /* the frame in it */
	unsigned frames;	     /* by itself */
	struct gm_trace_frame *frame;
	const uintptr_t *pc;
	enum gm_trace_end end;
	uintptr_t stop_start, stop_bytes;
};

struct gm_python_place;
struct gm_traces;

/*
 * What became of the stack that a trace showed, for one that asks with the same key again: noted by
 * intern.c, opaque here. It stands where the trace was found, so that a walk that comes after
 * another stack has a note of its own.
 */
struct gm_trace_note {
	uint64_t key; /* 0: none */
	const void *known;
	const struct gm_python_place *places; /* of the Python frames, or NULL */
	uint32_t stack, module;
};

/*
 * Before the calling thread's traces (traces_next.h) are used for a walk: drops those that were made
 * before the loaded code was in the state `generation`. False where there is no memory.
 */
bool gm_traces_renew(struct gm_traces *traces, uint64_t generation);

/* Room for the frames of a walk. */
struct gm_trace_frame *gm_traces_room(struct gm_traces *traces);

/*
 * The last walk that was not brief, or NULL; and the one that followed when it came to this stack
 * pointer, or NULL.
 */
const struct gm_trace *gm_traces_last(const struct gm_traces *traces);
const struct gm_trace *gm_traces_next(const struct gm_traces *traces, uintptr_t sp, bool brief);

/* The walk that began at `sp` was this one, as far as it went. What was noted of another goes. */
void gm_traces_again(struct gm_traces *traces, uintptr_t sp, bool brief,
		     const struct gm_trace *trace);

/* Keeps a walk that began at `sp`. NULL if it is too long, or its addresses are. */
const struct gm_trace *gm_traces_keep(struct gm_traces *traces, uintptr_t sp, bool brief,
				      const struct gm_trace_walk *walk);

/* Notes the stack of the last walk, which was kept and began at `sp`. */
void gm_traces_note(struct gm_traces *traces, uintptr_t sp, bool brief, const struct gm_trace_note *note);

/* In the child of a fork: threads that were in a walk are not there any more. */
void gm_traces_reset(void);

#endif
