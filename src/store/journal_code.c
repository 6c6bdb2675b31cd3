/*
 * Encoding and decoding of the journal's entries.
 */
#include "store/journal_code.h"

#include <string.h>

#define WHAT_BITS    3u
#define OTHER_THREAD 4u
#define LEVEL_SHIFT  3
#define BYTES_UNITS  32u
#define KEY_UNITS    64u
#define MORE	     128u
#define UNIT	     9 /* 512, what CUDA and PyTorch round to */

void gm_journal_begin(struct gm_journal_state *state, uint64_t base_ns, uint64_t base_serial)
{
	memset(state, 0, sizeof(*state));
	state->time_ns = base_ns;
	state->serial = base_serial;
}

/* ---- writing ---- */

static uint8_t *put(uint8_t *to, uint64_t value)
{
	while (value > 127) {
		*to++ = (uint8_t)(value | 128);
		value >>= 7;
	}
	*to++ = (uint8_t)value;
	return to;
}

static uint8_t *put_signed(uint8_t *to, int64_t value)
{
	return put(to, ((uint64_t)value << 1) ^ (uint64_t)(value >> 63));
}

/*
 * Stores the first byte and what follows it in every entry. `more` is the GM_ADD_ byte, 0 for none.
 */
static uint8_t *put_head(struct gm_journal_state *state, uint8_t *to, unsigned head, unsigned more,
			 uint64_t time_ns, uint32_t thread)
{
	uint64_t passed = time_ns > state->time_ns ? time_ns - state->time_ns : 0;

	*to++ = (uint8_t)(head | (thread != state->thread ? OTHER_THREAD : 0) | (more ? MORE : 0));
	if (more)
		*to++ = (uint8_t)more;
	to = put(to, passed);
	if (thread != state->thread)
		to = put(to, thread);
	state->time_ns += passed;
	state->thread = thread;
	return to;
}

static unsigned differing(const struct gm_journal_state *state, const struct gm_alloc_record *alloc,
			  uint64_t expected_bytes)
{
	unsigned level = alloc->level, more = 0;

	if (alloc->space != state->level[level].space || alloc->kind != state->level[level].kind ||
	    alloc->device != state->level[level].device ||
	    alloc->flags != state->level[level].flags)
		more |= GM_ADD_CLASS;
	if (alloc->stream != state->level[level].stream)
		more |= GM_ADD_STREAM;
	if (alloc->context != state->level[level].context)
		more |= GM_ADD_CONTEXT;
	if (alloc->owner != GM_NONE)
		more |= GM_ADD_OWNER;
	if (level == GM_LEVEL_DRIVER && alloc->physical_bytes != expected_bytes)
		more |= GM_ADD_PHYSICAL;
	if (alloc->serial != state->serial + 1)
		more |= GM_ADD_SERIAL;
	return more;
}

static uint8_t *put_more(struct gm_journal_state *state, uint8_t *to, unsigned more,
			 const struct gm_alloc_record *alloc, uint64_t expected_bytes)
{
	if (more & GM_ADD_CLASS) {
		*to++ = alloc->space;
		*to++ = alloc->kind;
		to = put_signed(to, alloc->device);
		to = put(to, alloc->flags);
	}
	if (more & GM_ADD_STREAM)
		to = put(to, alloc->stream);
	if (more & GM_ADD_CONTEXT)
		to = put(to, alloc->context);
	if (more & GM_ADD_OWNER)
		to = put(to, alloc->owner);
	if (more & GM_ADD_PHYSICAL)
		to = put_signed(to, (int64_t)(alloc->physical_bytes - expected_bytes));
	if (more & GM_ADD_SERIAL)
		to = put_signed(to, (int64_t)(alloc->serial - state->serial - 1));
	return to;
}

static void remember(struct gm_journal_state *state, const struct gm_alloc_record *alloc)
{
	state->level[alloc->level].key = alloc->key;
	state->level[alloc->level].stream = alloc->stream;
	state->level[alloc->level].context = alloc->context;
	state->level[alloc->level].flags = alloc->flags;
	state->level[alloc->level].space = alloc->space;
	state->level[alloc->level].kind = alloc->kind;
	state->level[alloc->level].device = alloc->device;
	state->serial = alloc->serial;
}

uint8_t *gm_journal_put_add(struct gm_journal_state *state, uint8_t *to, uint32_t index,
			    const struct gm_alloc_record *alloc, uint64_t expected_bytes)
{
	uint64_t moved = alloc->key - state->level[alloc->level].key;
	bool key_units = !(moved & ((1u << UNIT) - 1));
	bool bytes_units = alloc->bytes && !(alloc->bytes & ((1u << UNIT) - 1));
	unsigned more = differing(state, alloc, expected_bytes);
	unsigned head = GM_JOURNAL_ADD | (unsigned)alloc->level << LEVEL_SHIFT |
			(bytes_units ? BYTES_UNITS : 0) | (key_units ? KEY_UNITS : 0);

	to = put_head(state, to, head, more, alloc->time_ns, alloc->thread);
	to = put(to, index);
	to = put(to, alloc->site + 1); /* 0: none */
	to = put_signed(to, key_units ? (int64_t)moved >> UNIT : (int64_t)moved);
	to = put(to, bytes_units ? alloc->bytes >> UNIT : alloc->bytes);
	to = put_more(state, to, more, alloc, expected_bytes);
	remember(state, alloc);
	return to;
}

uint8_t *gm_journal_put_drop(struct gm_journal_state *state, uint8_t *to, uint32_t index,
			     uint64_t time_ns, uint32_t thread)
{
	to = put_head(state, to, GM_JOURNAL_DROP, 0, time_ns, thread);
	return put(to, index);
}

uint8_t *gm_journal_put_resize(struct gm_journal_state *state, uint8_t *to, uint32_t index,
			       uint64_t bytes, uint64_t time_ns, uint32_t thread)
{
	to = put_head(state, to, GM_JOURNAL_RESIZE, 0, time_ns, thread);
	to = put(to, index);
	return put(to, bytes);
}

static unsigned call_bits(const struct gm_event_record *event)
{
	return (event->key ? GM_CALL_KEY : 0) | (event->bytes ? GM_CALL_BYTES : 0) |
	       (event->serial ? GM_CALL_SERIAL : 0) | (event->site != GM_NONE ? GM_CALL_SITE : 0) |
	       (event->stack != GM_NONE ? GM_CALL_STACK : 0) |
	       (event->function != UINT16_MAX ? GM_CALL_FUNCTION : 0) |
	       (event->error ? GM_CALL_ERROR : 0) | (event->stream ? GM_CALL_STREAM : 0) |
	       (event->space || event->kind || event->device || event->level ? GM_CALL_CLASS : 0);
}

uint8_t *gm_journal_put_call(struct gm_journal_state *state, uint8_t *to,
			     const struct gm_event_record *event)
{
	unsigned bits = call_bits(event);

	to = put_head(state, to, GM_JOURNAL_CALL, 0, event->time_ns, event->thread);
	*to++ = event->op;
	to = put(to, bits);
	if (bits & GM_CALL_KEY)
		to = put_signed(to, (int64_t)(event->key - state->call_key));
	if (bits & GM_CALL_BYTES)
		to = put(to, event->bytes);
	if (bits & GM_CALL_SERIAL)
		to = put(to, state->serial - event->serial);
	if (bits & GM_CALL_SITE)
		to = put(to, event->site);
	if (bits & GM_CALL_STACK)
		to = put(to, event->stack);
	if (bits & GM_CALL_FUNCTION)
		to = put(to, event->function);
	if (bits & GM_CALL_ERROR)
		to = put_signed(to, event->error);
	if (bits & GM_CALL_STREAM)
		to = put(to, event->stream);
	if (bits & GM_CALL_CLASS) {
		*to++ = event->space;
		*to++ = event->kind;
		to = put_signed(to, event->device);
		*to++ = event->level;
	}
	if (bits & GM_CALL_KEY)
		state->call_key = event->key;
	return to;
}

/* ---- reading ---- */

/* The position of the next byte; NULL once the bytes have run out or are no entry. */
struct bytes {
	const uint8_t *at, *end;
};

static uint64_t get_long(struct bytes *from)
{
	uint64_t value = 0;
	unsigned shift;

	for (shift = 0; shift < 64 && from->at && from->at < from->end; shift += 7) {
		uint8_t byte = *from->at++;

		value |= (uint64_t)(byte & 127) << shift;
		if (byte < 128)
			return value;
	}
	from->at = NULL;
	return 0;
}

static inline uint64_t get(struct bytes *from)
{
	if (from->at && from->at < from->end && *from->at < 128)
		return *from->at++;
	return get_long(from);
}

static int64_t get_signed(struct bytes *from)
{
	uint64_t value = get(from);

	return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

static uint8_t get_byte(struct bytes *from)
{
	if (from->at && from->at < from->end)
		return *from->at++;
	from->at = NULL;
	return 0;
}

/* Reads a number of at most `most`. A larger one is no entry. */
static uint64_t get_up_to(struct bytes *from, uint64_t most)
{
	uint64_t value = get(from);

	if (value > most)
		from->at = NULL;
	return value;
}

static int16_t get_device(struct bytes *from)
{
	int64_t device = get_signed(from);

	if (device < GM_HOST || device > INT16_MAX)
		from->at = NULL;
	return (int16_t)device;
}

static void get_class(struct gm_journal_state *state, struct bytes *from, unsigned level)
{
	state->level[level].space = get_byte(from);
	state->level[level].kind = get_byte(from);
	state->level[level].device = get_device(from);
	state->level[level].flags = (uint16_t)get_up_to(from, UINT16_MAX);
	if (state->level[level].space >= GM_SPACES || state->level[level].kind >= GM_KINDS)
		from->at = NULL;
}

static void get_add(struct gm_journal_state *state, struct bytes *from, uint8_t head, unsigned more,
		    struct gm_journal_entry *entry)
{
	struct gm_alloc_record *alloc = &entry->alloc;
	unsigned level = head >> LEVEL_SHIFT & 3;
	uint64_t site;
	int64_t moved;

	if (level >= GM_LEVELS) {
		from->at = NULL;
		return;
	}
	entry->index = (uint32_t)get_up_to(from, UINT32_MAX - 1);
	site = get_up_to(from, UINT32_MAX);
	alloc->site = (uint32_t)site - 1;
	moved = get_signed(from);
	alloc->key = state->level[level].key + ((uint64_t)moved << (head & KEY_UNITS ? UNIT : 0));
	alloc->bytes = get(from) << (head & BYTES_UNITS ? UNIT : 0);
	if (more & GM_ADD_CLASS)
		get_class(state, from, level);
	if (more & GM_ADD_STREAM)
		state->level[level].stream = get(from);
	if (more & GM_ADD_CONTEXT)
		state->level[level].context = (uint32_t)get_up_to(from, UINT32_MAX);
	alloc->owner = more & GM_ADD_OWNER ? (uint32_t)get_up_to(from, UINT32_MAX) : GM_NONE;
	alloc->kind = state->level[level].kind;
	alloc->physical_bytes = more & GM_ADD_PHYSICAL ? (uint64_t)get_signed(from) : 0;
	alloc->serial = state->serial + 1;
	if (more & GM_ADD_SERIAL)
		alloc->serial += (uint64_t)get_signed(from);
	alloc->state = GM_STATE_LIVE;
	alloc->time_ns = state->time_ns;
	alloc->stream = state->level[level].stream;
	alloc->references = 1;
	alloc->thread = state->thread;
	alloc->flags = state->level[level].flags;
	alloc->space = state->level[level].space;
	alloc->device = state->level[level].device;
	alloc->level = (uint8_t)level;
	alloc->mappings = 0;
	alloc->context = state->level[level].context;
	state->level[level].key = alloc->key;
	state->serial = alloc->serial;
}

static void get_call(struct gm_journal_state *state, struct bytes *from,
		     struct gm_event_record *event)
{
	uint64_t bits;

	event->op = get_byte(from);
	bits = get_up_to(from, GM_CALL_BITS);
	if (event->op >= GM_OPS)
		from->at = NULL;
	event->key = bits & GM_CALL_KEY ? state->call_key + (uint64_t)get_signed(from) : 0;
	event->bytes = bits & GM_CALL_BYTES ? get(from) : 0;
	event->serial = bits & GM_CALL_SERIAL ? state->serial - get(from) : 0;
	event->site = bits & GM_CALL_SITE ? (uint32_t)get_up_to(from, UINT32_MAX) : GM_NONE;
	event->stack = bits & GM_CALL_STACK ? (uint32_t)get_up_to(from, UINT32_MAX) : GM_NONE;
	event->function =
		bits & GM_CALL_FUNCTION ? (uint16_t)get_up_to(from, UINT16_MAX) : UINT16_MAX;
	event->error = bits & GM_CALL_ERROR ? (int32_t)get_signed(from) : 0;
	event->stream = bits & GM_CALL_STREAM ? get(from) : 0;
	event->space = event->kind = event->level = 0;
	event->device = 0;
	if (bits & GM_CALL_CLASS) {
		event->space = get_byte(from);
		event->kind = get_byte(from);
		event->device = get_device(from);
		event->level = get_byte(from);
	}
	if (event->space >= GM_SPACES || event->kind >= GM_KINDS || event->level >= GM_LEVELS)
		from->at = NULL;
	if (bits & GM_CALL_KEY)
		state->call_key = event->key;
}

const uint8_t *gm_journal_get(struct gm_journal_state *state, const uint8_t *at, const uint8_t *end,
			      struct gm_journal_entry *entry)
{
	struct bytes from = {at, end};
	uint8_t head = get_byte(&from);
	unsigned more = head & MORE ? get_byte(&from) : 0;

	entry->what = (enum gm_journal_what)(head & WHAT_BITS);
	state->time_ns += get(&from);
	if (head & OTHER_THREAD)
		state->thread = (uint32_t)get_up_to(&from, UINT32_MAX);
	entry->event.time_ns = state->time_ns;
	entry->event.thread = state->thread;
	switch (entry->what) {
	case GM_JOURNAL_ADD:
		get_add(state, &from, head, more, entry);
		break;
	case GM_JOURNAL_CALL:
		get_call(state, &from, &entry->event);
		break;
	case GM_JOURNAL_RESIZE:
		entry->index = (uint32_t)get_up_to(&from, UINT32_MAX - 1);
		entry->bytes = get(&from);
		break;
	case GM_JOURNAL_DROP:
		entry->index = (uint32_t)get_up_to(&from, UINT32_MAX - 1);
	}
	return from.at;
}
