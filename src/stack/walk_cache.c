/*
 * The walk cache. docs/internals/walk-cache.md proves that it is exact and lists what it does not
 * cover.
 *
 * A program uses the processor's caches for its own data, so what is read costs more than what is
 * computed: a word takes eight bytes, a prediction one cache line, and what the captures of a
 * thread need besides these one more line.
 */
#include "stack/walk_cache.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define LINE_BYTES	 sizeof(struct gm_walk_cache_line)
#define MOST_STACK	 (8u * UINT16_MAX)  /* that a cached walk spans */
#define LARGEST_SP	 ((1ull << 48) - 1) /* of a prediction */
#define LARGEST_POSITION ((1ull << GM_POSITION_BITS) - 1)

struct gm_walk_cache gm_walk_caches[GM_WALK_CACHES];

static uint64_t powers[GM_CACHED_FRAMES + 1]; /* of GM_PCS_HASH_FACTOR */

void gm_walk_cache_init(void)
{
	powers[0] = 1;
	for (unsigned i = 1; i <= GM_CACHED_FRAMES; i++)
		powers[i] = powers[i - 1] * GM_PCS_HASH_FACTOR;
}

uint64_t gm_pcs_hash_part(uint64_t from, uint64_t after, unsigned count)
{
	return from - powers[count] * after;
}

/* Returns NULL if there is no memory. errno is kept. */
static struct gm_walk_cache_memory *map_memory(void)
{
	int saved = errno;
	void *memory = mmap(NULL, sizeof(struct gm_walk_cache_memory), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	errno = saved;
	return memory == MAP_FAILED ? NULL : memory;
}

bool gm_walk_cache_renew(struct gm_walk_cache *cache, uint64_t generation)
{
	struct gm_walk_cache_memory *memory = cache->memory ? cache->memory : map_memory();

	if (!memory)
		return false;
	if (cache->memory && cache->generation == (uint32_t)generation &&
	    cache->head < LARGEST_POSITION / 2)
		return true;
	if (cache->memory) /* else it is zero, and most of its pages are never touched */
		memset(memory->prediction, 0, sizeof(memory->prediction));
	if (cache->head >= LARGEST_POSITION / 2)
		cache->head = 0; /* nothing leads to any position now */
	cache->head += GM_WALK_CACHE_LINES + 1; /* never the same position twice, nor 0 */
	cache->current = cache->expected = 0;
	cache->last = 0;
	cache->generation = (uint32_t)generation;
	cache->memory = memory;
	return true;
}

struct gm_cached_frame *gm_walk_cache_frames(struct gm_walk_cache *cache)
{
	return cache->memory->frame;
}

const struct gm_cached_walk *gm_walk_cache_last(const struct gm_walk_cache *cache)
{
	return gm_walk_cache_at(cache, cache->last);
}

static struct gm_prediction *make_prediction(struct gm_walk_cache *cache, uint64_t context)
{
	struct gm_prediction *set = gm_walk_cache_set(cache, context);

	set[1] = set[0];
	set[0] = (struct gm_prediction){.context = context};
	return set;
}

const struct gm_cached_walk *gm_walk_cache_predict(const struct gm_walk_cache *cache, uintptr_t sp,
						   bool brief)
{
	const struct gm_prediction *prediction = gm_walk_cache_find(cache, sp, brief);

	return prediction ? gm_walk_cache_at(cache, prediction->position) : NULL;
}

/* Makes a prediction that of a cached walk. The result of the walk that it was of is dropped. */
static void predict(struct gm_prediction *prediction, const struct gm_cached_walk *cached)
{
	prediction->result.key = 0;
	prediction->position = cached->position & LARGEST_POSITION;
	prediction->words = cached->words;
	prediction->sp = cached->sp & LARGEST_SP;
	prediction->span = (cached->top - cached->sp) / 8 & UINT16_MAX;
	prediction->bp = cached->bp;
	prediction->live_bp = cached->live_bp;
}

void gm_walk_cache_repeat(struct gm_walk_cache *cache, uintptr_t sp, bool brief,
			  const struct gm_cached_walk *cached)
{
	struct gm_prediction *prediction = gm_walk_cache_find(cache, sp, brief);

	if (!prediction)
		prediction = make_prediction(cache, gm_walk_cache_context(cache, sp, brief));
	if (prediction->position != cached->position)
		predict(prediction, cached);
	gm_walk_cache_move_to(cache, prediction);
	if (!brief)
		cache->last = cached->position;
	gm_walk_cache_add_context(cache, brief, cached->hash + sp);
}

void gm_walk_cache_set_result(struct gm_walk_cache *cache, uintptr_t sp, bool brief,
			      const struct gm_cached_result *result)
{
	cache->memory->prediction[cache->current].result = *result;
	if (!brief) /* the result takes the place of the walk in the context */
		cache->last_hash >>= GM_CONTEXT_BITS;
	gm_walk_cache_add_context(cache, brief, gm_cached_result_hash(result, sp));
}

/* Lists a word before `word`. `base` is the address that offsets count from. */
static struct gm_cached_word *list_word(struct gm_cached_word *word, uintptr_t base, uintptr_t at,
					uintptr_t value)
{
	*--word = (struct gm_cached_word){value, (uint32_t)((at - base) / 8)};
	return word;
}

/*
 * Lists the words that the steps from walk->frame[…] read, in reverse order from `word` downwards,
 * and completes these frames from the outermost one inwards. Returns the first word.
 */
static struct gm_cached_word *list_words(const struct gm_new_walk *walk,
					 struct gm_cached_word *word)
{
	struct gm_cached_frame *frame = walk->frame + walk->frames;
	const uintptr_t *pc = walk->pc + walk->frames, base = walk->frame->sp - 8;
	const struct gm_cached_frame *caller = NULL;
	uintptr_t caller_pc = 0;
	unsigned left = 0;

	if (walk->tail) {
		caller = gm_cached_frames(walk->tail) + walk->tail_frame;
		caller_pc = gm_cached_pcs(walk->tail)[walk->tail_frame];
		left = gm_cached_words_left(walk->tail, walk->tail_frame);
	} else {
		frame--;
		frame->saves = frame->loads = GM_NO_WORD;
		frame->flags = frame->left = 0;
		frame->hash = *--pc;
		caller = frame;
		caller_pc = *pc;
	}
	while (frame-- != walk->frame) {
		const struct gm_cached_word *before = word;
		unsigned live = caller->flags & GM_CACHED_LIVE_BP;

		if (frame->saves != GM_NO_WORD) {
			if (live)
				word = list_word(word, base, frame->sp + frame->saves * 8ul,
						 caller->bp);
			live = 0;
		}
		word = list_word(word, base, caller->sp - 8, caller_pc);
		if (frame->loads != GM_NO_WORD)
			word = list_word(word, base, frame->sp + frame->loads * 8ul, caller->sp);
		frame->flags &= (uint16_t)~GM_CACHED_LIVE_BP;
		if (live || frame->flags & GM_CACHED_USES_BP)
			frame->flags |= GM_CACHED_LIVE_BP;
		left += (unsigned)(before - word);
		frame->left = (uint16_t)left;
		caller_pc = *--pc;
		frame->hash = caller->hash * GM_PCS_HASH_FACTOR + caller_pc;
		caller = frame;
	}
	return word;
}

static bool are_within(const struct gm_cached_word *word, unsigned count, uint64_t largest_offset)
{
	while (count--)
		if (word++->offset > largest_offset)
			return false;
	return true;
}

/* The words of a cached walk, and where the next one goes. */
struct word_places {
	uint64_t *value;
	uint16_t *offset;
};

static void put_words(struct word_places *to, const struct gm_cached_word *word, unsigned count)
{
	for (; count; count--, word++) {
		*to->value++ = word->value;
		*to->offset++ = (uint16_t)word->offset;
	}
}

/*
 * Copies the last words of a cached walk whose innermost sp is `further` words above that of the
 * new walk.
 */
static void copy_words(struct word_places *to, const struct gm_cached_walk *from, unsigned count,
		       int64_t further)
{
	const uint16_t *offset = gm_cached_offsets(from->value, from->words);

	for (unsigned i = from->words - count; i < from->words; i++) {
		*to->value++ = from->value[i];
		*to->offset++ = (uint16_t)(offset[i] + further);
	}
}

static uint64_t lines_for(unsigned frames, unsigned words)
{
	uint64_t bytes = sizeof(struct gm_cached_walk) +
			 words * (sizeof(uint64_t) + sizeof(uint16_t)) +
			 frames * (sizeof(uintptr_t) + sizeof(struct gm_cached_frame));

	return (bytes + LINE_BYTES - 1) / LINE_BYTES;
}

/*
 * Returns room for so many lines in the ring. The walks that were there are dropped. `tail` may be
 * dropped too, but stays readable, because the room does not overlap it.
 */
static struct gm_cached_walk *make_room(struct gm_walk_cache *cache, uint64_t lines,
					const struct gm_cached_walk *tail)
{
	uint64_t at = cache->head, offset = at % GM_WALK_CACHE_LINES, from, to;
	struct gm_cached_walk *cached;

	if (offset + lines > GM_WALK_CACHE_LINES) {
		at += GM_WALK_CACHE_LINES - offset;
		offset = 0;
	}
	if (tail) {
		from = (uint64_t)((const struct gm_walk_cache_line *)tail - cache->memory->ring);
		to = from + lines_for(tail->frames, tail->words);
		if (from < offset + lines && to > offset) {
			at += to - offset;
			offset = to;
		}
		if (offset + lines > GM_WALK_CACHE_LINES)
			at += GM_WALK_CACHE_LINES - offset;
	}
	cached = (void *)(cache->memory->ring + at % GM_WALK_CACHE_LINES);
	cached->position = at;
	cache->head = at + lines;
	return cached;
}

const struct gm_cached_walk *gm_walk_cache_add(struct gm_walk_cache *cache, uintptr_t sp,
					       bool brief, const struct gm_new_walk *walk)
{
	const struct gm_cached_walk *tail = walk->tail;
	struct gm_cached_word *word_end =
		cache->memory->word + GM_CACHED_FRAMES * GM_FRAME_MOST_WORDS;
	unsigned tail_frames = tail ? tail->frames - walk->tail_frame : 0;
	unsigned frames = walk->frames + tail_frames, own_words, tail_words, given;
	const struct gm_cached_frame *tail_frame, *first, *last;
	struct gm_cached_walk *cached;
	struct gm_cached_word *word;
	struct word_places places;
	uintptr_t pc;

	if (frames > GM_CACHED_FRAMES || walk->stop_bytes > UINT32_MAX)
		return NULL;
	tail_frame = tail ? gm_cached_frames(tail) + walk->tail_frame : NULL;
	last = tail ? tail_frame + tail_frames - 1 : walk->frame + walk->frames - 1;
	first = walk->frames ? walk->frame : tail_frame;
	pc = walk->frames ? *walk->pc : gm_cached_pcs(tail)[walk->tail_frame];
	if (last->sp - first->sp > MOST_STACK || first->sp > LARGEST_SP)
		return NULL;
	word = walk->frames ? list_words(walk, word_end) : word_end;
	own_words = (unsigned)(word_end - word);
	if (!are_within(word, own_words, (last->sp - first->sp) / 8))
		return NULL;
	tail_words = tail ? gm_cached_words_left(tail, walk->tail_frame) : 0;
	given = GM_WORDS_AT_ONCE - (own_words + tail_words) % GM_WORDS_AT_ONCE;
	cached = make_room(cache, lines_for(frames, given + own_words + tail_words), tail);
	cached->frames = frames & 0x3ff;
	cached->words = (given + own_words + tail_words) & 0xfff;
	cached->given = given & 15;
	cached->end = (tail ? tail->end : (unsigned)walk->end) & 0xf;
	cached->stop_start = walk->stop_start;
	cached->stop_bytes = (uint32_t)walk->stop_bytes;
	memcpy(gm_cached_pcs(cached), walk->pc, walk->frames * sizeof(*walk->pc));
	places = (struct word_places){cached->value,
				      gm_cached_offsets(cached->value, cached->words)};
	for (unsigned i = 0; i < given; i++)
		put_words(&places, &(struct gm_cached_word){pc, 0}, 1);
	put_words(&places, word, own_words);
	memcpy(gm_cached_frames(cached), walk->frame, walk->frames * sizeof(*tail_frame));
	if (tail) {
		memcpy(gm_cached_pcs(cached) + walk->frames, gm_cached_pcs(tail) + walk->tail_frame,
		       tail_frames * sizeof(*walk->pc));
		copy_words(&places, tail, tail_words, (int64_t)(tail->sp - first->sp) / 8);
		memcpy(gm_cached_frames(cached) + walk->frames, tail_frame,
		       tail_frames * sizeof(*tail_frame));
	}
	first = gm_cached_frames(cached);
	cached->pc = pc;
	cached->sp = first->sp;
	cached->bp = first->bp;
	cached->hash = first->hash;
	cached->live_bp = (first->flags & GM_CACHED_LIVE_BP) != 0;
	cached->top = gm_cached_frames(cached)[frames - 1].sp;
	gm_walk_cache_repeat(cache, sp, brief, cached);
	return cached;
}

void gm_walk_cache_reset(void)
{
	for (unsigned i = 0; i < GM_WALK_CACHES; i++) {
		struct gm_walk_cache *cache = &gm_walk_caches[i];

		if (cache->busy)
			cache->generation = UINT32_MAX;
		cache->busy = false;
	}
}
