/*
 * A cached walk: a finished walk over the native frames, and the words of the stack that it depends
 * on. docs/internals/walk-cache.md defines the terms and proves that a walk which finds these words
 * unchanged finds the same frames. walk_cache.h keeps cached walks.
 */
#ifndef GM_STACK_CACHED_WALK_H
#define GM_STACK_CACHED_WALK_H

#include "store/layout.h"

#include <stdbool.h>
#include <stdint.h>

#define GM_CACHED_FRAMES  300u /* the longest walk that is kept */
#define GM_NO_WORD	  UINT16_MAX
#define GM_WORDS_AT_ONCE  8u /* words compared in one step */

/* The end of a walk. Walks that end by the last two are not kept. */
enum gm_walk_end {
	GM_WALK_END,	 /* at the first frame of a thread */
	GM_WALK_STOPPED, /* at the frame where the walk was to stop */
	GM_WALK_FULL,	 /* no more frames were wanted */
	GM_WALK_NULL,	 /* at a return address of 0 */
	GM_WALK_STUCK	 /* at a frame whose caller the rules do not find */
};

/*
 * A word of the stack that a walk read. The offset is in words, from the word below the innermost
 * frame's sp.
 */
struct gm_cached_word {
	uint64_t value;
	uint32_t offset;
};

/* Two words in one register, where the processor has such registers. */
typedef uint64_t gm_two_words __attribute__((vector_size(16)));

enum gm_cached_flags {
	GM_CACHED_USES_BP = 1, /* the step to the caller uses rbp */
	GM_CACHED_LIVE_BP = 2  /* rbp is live in this frame */
};

/* The state of the walk in a frame, but for the return address, which is kept apart. */
struct gm_cached_frame {
	uintptr_t sp, bp;
	uint64_t hash;	/* gm_pcs_hash of the return addresses from this frame outwards */
	uint16_t saves; /* the caller's rbp is so many words above sp; or GM_NO_WORD */
	uint16_t loads; /* the caller's sp is so many words above sp; or GM_NO_WORD */
	uint16_t left;	/* words read from this frame outwards */
	uint16_t flags; /* enum gm_cached_flags */
};

/*
 * The words are in the order in which the walk read them, and lie between the innermost and the
 * outermost frame's sp. Before them stands the innermost frame's return address, which the wrapper
 * gave and which lies where each call leaves it; it is repeated until all words together are a
 * multiple of GM_WORDS_AT_ONCE.
 */
struct gm_cached_walk {
	uint64_t position;	   /* in the ring, in lines */
	uintptr_t pc, sp, bp, top; /* of the innermost frame; `top` is the outermost frame's sp */
	uint64_t hash;		   /* of the innermost frame */
	uintptr_t stop_start;	   /* as in struct gm_walk, and so is stop_bytes */
	uint32_t stop_bytes;
	unsigned frames : 10, words : 12;
	unsigned given : 4;   /* repetitions of the given word */
	unsigned end : 4;     /* enum gm_walk_end */
	unsigned live_bp : 1; /* the innermost frame's GM_CACHED_LIVE_BP */
	/*
	 * The values of the words, then their offsets, of 16 bits; then the return addresses and
	 * the frames, both innermost first. An offset apart from its value needs not be taken out
	 * of it.
	 */
	uint64_t value[];
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct gm_cached_walk) % sizeof(gm_two_words) == 0, "values in pairs");

/* Returns the offsets of so many words, which follow their values. */
static inline uint16_t *gm_cached_offsets(const uint64_t *value, unsigned words)
{
	return (uint16_t *)(value + words);
}

static inline uintptr_t *gm_cached_pcs(const struct gm_cached_walk *cached)
{
	return (uintptr_t *)(gm_cached_offsets(cached->value, cached->words) + cached->words);
}

static inline struct gm_cached_frame *gm_cached_frames(const struct gm_cached_walk *cached)
{
	return (struct gm_cached_frame *)(gm_cached_pcs(cached) + cached->frames);
}

/* Returns how many words were read from the frame `at` outwards. */
static inline unsigned gm_cached_words_left(const struct gm_cached_walk *cached, unsigned at)
{
	if (at == 0)
		return cached->words - cached->given;
	return at + 1u == cached->frames ? 0 : gm_cached_frames(cached)[at].left;
}

/*
 * Returns whether the stack holds the values of all words; `below` points to the word below the
 * innermost frame's sp, and the stack up to the outermost frame's sp must be readable. No result
 * decides whether the next word is read, so that the processor waits for none of them. On a stack
 * of another layout some of the words lie between variables, where AddressSanitizer lets nothing
 * read.
 */
__attribute__((no_sanitize("address"))) static inline bool
gm_cached_words_hold(const uintptr_t *below, const uint64_t *value, unsigned words)
{
	const uint16_t *offset = gm_cached_offsets(value, words);
	gm_two_words changed = {0, 0};

	_Static_assert(GM_WORDS_AT_ONCE == 8, "the loop compares so many");
	for (unsigned long i = 0; i < words; i += 8) {
		const gm_two_words *expected = (const gm_two_words *)(value + i);
		const uint16_t *at = offset + i;

		changed |= (gm_two_words){below[at[0]], below[at[1]]} ^ expected[0];
		changed |= (gm_two_words){below[at[2]], below[at[3]]} ^ expected[1];
		changed |= (gm_two_words){below[at[4]], below[at[5]]} ^ expected[2];
		changed |= (gm_two_words){below[at[6]], below[at[7]]} ^ expected[3];
	}
	return !(changed[0] | changed[1]);
}

/*
 * The hash of return addresses is a polynomial over them, with the outermost one first. The hash of
 * the outer part of a stack thus does not depend on the inner part. The users of gm_map mix the
 * hash.
 */
#define GM_PCS_HASH_FACTOR 0x9e3779b97f4a7c15ull

static inline uint64_t gm_pcs_hash(const uintptr_t *pc, unsigned frames)
{
	uint64_t hash = 0;

	while (frames--)
		hash = hash * GM_PCS_HASH_FACTOR + pc[frames];
	return hash;
}

struct gm_python_place;

/*
 * The stack of the output file that a walk led to, kept next to the prediction of the walk, so that
 * equal walks that follow different stacks have a result each. captured.c makes results.
 */
struct gm_cached_result {
	uint64_t key;			      /* gm_result_key; 0: there is no result */
	const void *known;		      /* private to captured.c */
	const struct gm_python_place *places; /* of the Python frames, or NULL */
	uint32_t stack, module;		      /* indices in GM_TABLE_STACKS and GM_TABLE_MODULES */
};

/*
 * Returns the key of a result: the conditions, besides the walk itself, under which the result
 * holds if the Python frames are the same. Returns 0 in epoch 0 (gm_intern_epoch), when none is to
 * be kept.
 */
static inline uint64_t gm_result_key(uint32_t epoch, unsigned depth, unsigned pythons,
				     unsigned flags)
{
	_Static_assert(GM_MAX_DEPTH < 1 << 12 && GM_STACK_PYTHON_UNREADABLE < 1 << 8,
		       "two of them and the flags fit below the epoch");
	return epoch ? (uint64_t)epoch << 32 | depth << 20 | pythons << 8 | flags : 0;
}

/* Returns whether a result was made in this epoch for this depth; no result is made in epoch 0. */
static inline bool gm_result_is_for(const struct gm_cached_result *result, uint32_t epoch,
				    unsigned depth)
{
	return result->key >> 20 == ((uint64_t)epoch << 12 | depth);
}

/* Returns whether the stack of a result has Python frames, or flags. */
static inline bool gm_result_is_native(const struct gm_cached_result *result)
{
	return !(result->key & 0xfffff);
}

static inline unsigned gm_result_pythons(const struct gm_cached_result *result)
{
	return result->key >> 8 & 0xfff;
}

static inline unsigned gm_result_flags(const struct gm_cached_result *result)
{
	return result->key & 0xff;
}

#endif
