/*
 * Interning of strings, frames and stacks, and what all of src/stack shares for it.
 */
#include "stack/intern.h"

#include "store/lock.h"

#include <string.h>

#define MOST_PRIVATE_BYTES (256ull << 20)

static struct {
	struct gm_lock lock;
	struct gm_arena arena;
	struct gm_map frames;  /* hash of a frame record → frame + 2 */
	struct gm_map stacks;  /* hash of frame numbers → stack + 2 */
	struct gm_map strings; /* hash of a text → string + 2 */
} interned;

/* The first variable of this section that is linked: the others follow it in its cache line. */
GM_HOT_STACK __attribute__((aligned(64))) struct gm_known_code gm_known_code = {.epoch = 1};

static __thread bool inside __attribute__((tls_model("initial-exec")));

bool gm_intern_enter(void)
{
	if (inside)
		return false;
	inside = true;
	__asm__ volatile("" ::: "memory");
	gm_lock_acquire(&interned.lock);
	return true;
}

void gm_intern_leave(void)
{
	gm_lock_release(&interned.lock);
	__asm__ volatile("" ::: "memory");
	inside = false;
}

struct gm_arena *gm_intern_arena(void)
{
	return &interned.arena;
}

bool gm_intern_may_cache(void)
{
	return interned.arena.mapped_bytes < MOST_PRIVATE_BYTES;
}

uint64_t gm_intern_bytes(void)
{
	return __atomic_load_n(&interned.arena.mapped_bytes, __ATOMIC_RELAXED);
}

void gm_intern_count_lost(void)
{
	if (gm_file)
		__atomic_fetch_add(&gm_file->lost_stacks, 1, __ATOMIC_RELAXED);
}

/* Numbers are kept plus two: 0 and GM_MAP_GONE mean something else to a map. */
static uint64_t packed(uint32_t number)
{
	return (uint64_t)number + 2;
}

static uint32_t unpacked(uint64_t value)
{
	return (uint32_t)(value - 2);
}

uint32_t gm_intern_string(const char *text, size_t bytes)
{
	uint64_t hash = gm_hash(text, bytes, 0), value;
	struct gm_map_cursor cursor = gm_map_find(&interned.strings, hash);
	uint32_t string;

	while ((value = gm_map_next(&cursor))) {
		const char *known = gm_store_record(GM_TABLE_STRINGS, unpacked(value));

		if (known && !strncmp(known, text, bytes) && !known[bytes])
			return unpacked(value);
	}
	string = gm_store_string(text, bytes);
	if (string != GM_NONE)
		gm_map_add(&interned.strings, &interned.arena, hash, packed(string));
	return string;
}

uint32_t gm_intern_frame(const struct gm_frame_record *frame)
{
	uint64_t hash = gm_hash(frame, sizeof(*frame), 1), value;
	struct gm_map_cursor cursor = gm_map_find(&interned.frames, hash);
	struct gm_frame_record *record;
	uint32_t index;

	while ((value = gm_map_next(&cursor))) {
		record = gm_store_record(GM_TABLE_FRAMES, unpacked(value));
		if (record && !memcmp(record, frame, sizeof(*frame)))
			return unpacked(value);
	}
	record = gm_store_append(GM_TABLE_FRAMES, 1, &index);
	if (!record)
		return GM_NONE;
	memcpy(record, frame, sizeof(*frame));
	gm_store_publish(GM_TABLE_FRAMES);
	gm_map_add(&interned.frames, &interned.arena, hash, packed(index));
	return index;
}

static bool same_frames(const struct gm_stack_record *stack, const uint32_t *frames, unsigned count,
			unsigned flags)
{
	if (!stack || stack->frames != count || stack->flags != flags)
		return false;
	for (unsigned i = 0; i < count; i++) {
		const uint32_t *frame = gm_store_record(GM_TABLE_STACK_FRAMES, stack->first + i);

		if (!frame || *frame != frames[i])
			return false;
	}
	return true;
}

uint32_t gm_intern_stack(const uint32_t *frames, unsigned count, unsigned flags)
{
	uint64_t hash = gm_hash(frames, count * sizeof(*frames), flags), value;
	struct gm_map_cursor cursor = gm_map_find(&interned.stacks, hash);
	struct gm_stack_record *record;
	uint32_t first, index;

	while ((value = gm_map_next(&cursor)))
		if (same_frames(gm_store_record(GM_TABLE_STACKS, unpacked(value)), frames, count,
				flags))
			return unpacked(value);
	if (!gm_store_append(GM_TABLE_STACK_FRAMES, count, &first))
		return GM_NONE;
	for (unsigned i = 0; i < count; i++)
		*(uint32_t *)gm_store_record(GM_TABLE_STACK_FRAMES, first + i) = frames[i];
	gm_store_publish(GM_TABLE_STACK_FRAMES);
	record = gm_store_append(GM_TABLE_STACKS, 1, &index);
	if (!record)
		return GM_NONE;
	*record = (struct gm_stack_record){hash, first, (uint16_t)count, (uint16_t)flags};
	gm_store_publish(GM_TABLE_STACKS);
	gm_map_add(&interned.stacks, &interned.arena, hash, packed(index));
	return index;
}

void gm_intern_reset(void)
{
	struct gm_arena arena = interned.arena;

	memset(&interned, 0, sizeof(interned));
	gm_known_code.changes_asked = gm_known_code.changes_done = 0;
	gm_intern_forget_results();
	inside = false;
	gm_arena_reset(&arena);
}
