/*
 * The walk cache: recognises a walk that was made before by comparing the words of the stack that
 * it depends on. docs/internals/walk-cache.md describes the cache and proves that it is exact. The
 * functions below allocate nothing but one mapping for each of a bounded number of caches.
 *
 * The fast path is inline and reads few cache lines: most captures only confirm a prediction.
 */
#ifndef GM_STACK_WALK_CACHE_H
#define GM_STACK_WALK_CACHE_H

#include "stack/cached_walk.h"
#include "stack/thread_stack.h"
#include "store/hot.h"

#include <stddef.h>

#define GM_WALK_CACHES	    64u /* threads share them by hash; 170 MiB in all if each is full */
#define GM_PREDICTION_BITS  13u
#define GM_PREDICTIONS	    (1u << GM_PREDICTION_BITS)
#define GM_WALK_CACHE_LINES (1u << 15) /* of the ring: 2 MiB */
#define GM_POSITION_BITS    38u
#define GM_FRAME_MOST_WORDS 3u	/* of one frame */
#define GM_CONTEXT_BITS	    16u /* for each of the last four stacks: a line often makes one twice */

/*
 * The walk that followed a context, its result, and of the cached walk what is compared before the
 * words, in one cache line. Only `after`, a hint, changes except by gm_walk_cache_repeat and
 * gm_walk_cache_set_result.
 */
struct gm_prediction {
	uint64_t context; /* gm_walk_cache_context; 0: none */
	uint64_t words : 12, live_bp : 1, position : GM_POSITION_BITS;
	uint64_t after : GM_PREDICTION_BITS; /* the prediction that was met next, the last time */
	uint64_t span : 16, sp : 48; /* the outermost sp is so many words above the innermost sp */
	uint64_t bp;
	struct gm_cached_result result;
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct gm_prediction) == 64, "one line");

struct gm_walk_cache_memory {
	struct gm_prediction prediction[GM_PREDICTIONS]; /* by context, two-way set-associative */
	struct gm_cached_frame frame[GM_CACHED_FRAMES];	 /* of the walk that is being made */
	struct gm_cached_word word[GM_CACHED_FRAMES * GM_FRAME_MOST_WORDS]; /* the same */
	struct gm_walk_cache_line {
		char bytes[64];
	} ring[GM_WALK_CACHE_LINES] __attribute__((aligned(64))); /* the cached walks */
};

/*
 * A cache, in one cache line, which is the first line that a capture misses. Positions count the
 * lines ever written to the ring; 0 is none.
 */
struct gm_walk_cache {
	bool busy;		     /* a capture uses the cache (atomic) */
	struct gm_walk_cache_memory *memory; /* mapped when first needed, never unmapped */
	uint32_t generation;	     /* of the rules, its low 32 bits */
	uint16_t current;	     /* index of the prediction that was met last */
	uint16_t expected;	     /* index of the prediction that is to be met next */
	uint64_t head;		     /* position of the next cached walk */
	uint64_t last;		     /* the last walk that is not brief */
	uint64_t last_hash;	     /* of the results of that walk and of the three before it */
	uint64_t brief_hash;	     /* of the result of the brief walk since then, or 0 */
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct gm_walk_cache) == 64, "one line");
_Static_assert(GM_PREDICTIONS <= 1 << 16, "current");

extern GM_HIDDEN struct gm_walk_cache gm_walk_caches[GM_WALK_CACHES];

/* To be called before the first use of the cache. */
void gm_walk_cache_init(void);

/*
 * Returns the hash of the first `count` of some frames, of which all have the hash `from` and those
 * after the first `count` have the hash `after`.
 */
uint64_t gm_pcs_hash_part(uint64_t from, uint64_t after, unsigned count);

/*
 * The inner frames that a walk found by its rules. `tail` is the cached walk that the walk went on
 * with.
 */
struct gm_new_walk {
	const struct gm_cached_walk *tail; /* or NULL */
	unsigned tail_frame;		   /* the frame of `tail` at which it begins */
	unsigned frames;		   /* found by rules */
	struct gm_cached_frame *frame;
	const uintptr_t *pc;
	enum gm_walk_end end;
	uintptr_t stop_start, stop_bytes;
};

/*
 * Must be called before a cache that was taken is used for a walk: drops the cached walks that were
 * made before the loaded code was in the state `generation`. Returns false if there is no memory.
 */
bool gm_walk_cache_renew(struct gm_walk_cache *cache, uint64_t generation);

/* Returns room for the frames of a walk. */
struct gm_cached_frame *gm_walk_cache_frames(struct gm_walk_cache *cache);

/* Returns the last walk that was not brief, or NULL. */
const struct gm_cached_walk *gm_walk_cache_last(const struct gm_walk_cache *cache);

/* Returns the walk that is predicted at this stack pointer, or NULL. */
const struct gm_cached_walk *gm_walk_cache_predict(const struct gm_walk_cache *cache, uintptr_t sp,
						   bool brief);

/*
 * Records that the walk that began at `sp` was a cached one, as far as the walk went. The result of
 * another walk at this place is dropped.
 */
void gm_walk_cache_repeat(struct gm_walk_cache *cache, uintptr_t sp, bool brief,
			  const struct gm_cached_walk *cached);

/* Keeps a walk that began at `sp`. Returns NULL if it is too long, or its addresses too large. */
const struct gm_cached_walk *gm_walk_cache_add(struct gm_walk_cache *cache, uintptr_t sp,
					       bool brief, const struct gm_new_walk *walk);

/* Keeps the result of the last walk, which was kept and began at `sp`. */
void gm_walk_cache_set_result(struct gm_walk_cache *cache, uintptr_t sp, bool brief,
			      const struct gm_cached_result *result);

/* In the child of a fork: releases the caches of threads that the child does not have. */
void gm_walk_cache_reset(void);

/* ---- the fast path ---- */

static inline struct gm_walk_cache *gm_walk_cache_of(uintptr_t thread)
{
	_Static_assert(GM_WALK_CACHES == 1 << (64 - 58), "the hash reaches each of them");
	return &gm_walk_caches[(thread * GM_PCS_HASH_FACTOR) >> 58];
}

/*
 * Returns the calling thread's cache, to be released. Returns NULL, without waiting, if a capture
 * that a signal interrupted uses the cache, or a thread that shares it.
 */
static inline struct gm_walk_cache *gm_walk_cache_take(uintptr_t thread)
{
	struct gm_walk_cache *cache = gm_walk_cache_of(thread);
	bool busy = __atomic_exchange_n(&cache->busy, true, __ATOMIC_ACQUIRE);

	return __builtin_expect(busy, 0) ? NULL : cache;
}

static inline void gm_walk_cache_release(struct gm_walk_cache *cache)
{
	__atomic_store_n(&cache->busy, false, __ATOMIC_RELEASE);
}

/* Returns the cached walk at a position; NULL if there is none, or it was overwritten. */
static inline const struct gm_cached_walk *gm_walk_cache_at(const struct gm_walk_cache *cache,
							    uint64_t position)
{
	if (position + GM_WALK_CACHE_LINES < cache->head)
		return NULL;
	return (const void *)(cache->memory->ring + position % GM_WALK_CACHE_LINES);
}

/* Returns what a walk is predicted by: the stacks before it, and where it begins. */
static inline uint64_t gm_walk_cache_context(const struct gm_walk_cache *cache, uintptr_t sp,
					     bool brief)
{
	uint64_t before = cache->last_hash ^ (brief ? ~cache->brief_hash : 0);

	return (before ^ sp) * GM_PCS_HASH_FACTOR;
}

/* Makes the next walk be predicted by `hint` in place of the stacks before it. */
static inline void gm_walk_cache_hint(struct gm_walk_cache *cache, uint64_t hint)
{
	cache->last_hash = hint;
	cache->brief_hash = 0;
}

/* Returns the two predictions that a context can have; a new one displaces the older. */
static inline struct gm_prediction *gm_walk_cache_set(const struct gm_walk_cache *cache,
						      uint64_t context)
{
	return &cache->memory->prediction[context >> (64 - GM_PREDICTION_BITS) & ~1ull];
}

/* Returns the prediction for the present context, or NULL. The cache must have its memory. */
static inline struct gm_prediction *gm_walk_cache_find(const struct gm_walk_cache *cache,
						       uintptr_t sp, bool brief)
{
	uint64_t context = gm_walk_cache_context(cache, sp, brief);
	struct gm_prediction *set = gm_walk_cache_set(cache, context);

	if (__builtin_expect(set->context == context, 1))
		return set;
	return set[1].context == context ? set + 1 : NULL;
}

/*
 * Returns whether a walk that begins at `sp`, where a call was made, with this rbp, would be the
 * predicted walk, whose words have the values `value`.
 */
static inline bool gm_prediction_holds(const struct gm_prediction *prediction,
				       const uint64_t *value, uintptr_t sp, uintptr_t bp)
{
	if (prediction->sp != sp || (prediction->bp != bp && prediction->live_bp) ||
	    !gm_thread_stack_has(sp, prediction->span * 8ul))
		return false;
	return gm_cached_words_hold((const uintptr_t *)sp - 1, value, prediction->words);
}

/* Makes a walk's result part of the context of the walks that follow. */
static inline void gm_walk_cache_add_context(struct gm_walk_cache *cache, bool brief,
					     uint64_t found)
{
	uint64_t hash = found * GM_PCS_HASH_FACTOR;

	cache->brief_hash = brief ? hash : 0;
	if (!brief)
		cache->last_hash =
			cache->last_hash << GM_CONTEXT_BITS ^ hash >> (64 - GM_CONTEXT_BITS);
}

static inline uint64_t gm_cached_result_hash(const struct gm_cached_result *result, uintptr_t sp)
{
	return result->stack + (uintptr_t)result->places + sp;
}

/* Makes a prediction the current one and prefetches the one that followed it the last time. */
static inline void gm_walk_cache_move_to(struct gm_walk_cache *cache,
					 const struct gm_prediction *prediction)
{
	struct gm_prediction *list = cache->memory->prediction;
	unsigned at = (unsigned)(prediction - list);

	if (__builtin_expect(cache->expected != at, 0))
		list[cache->current].after = at & (GM_PREDICTIONS - 1);
	cache->current = (uint16_t)at;
	cache->expected = prediction->after;
	__builtin_prefetch(&list[cache->expected]);
}

/* Records that the walk from `sp` was the predicted one, as far as the walk went. */
static inline void gm_walk_cache_hit(struct gm_walk_cache *cache, uintptr_t sp, bool brief,
				     const struct gm_prediction *prediction)
{
	gm_walk_cache_move_to(cache, prediction);
	if (!brief)
		cache->last = prediction->position;
	gm_walk_cache_add_context(cache, brief, gm_cached_result_hash(&prediction->result, sp));
}

#endif
