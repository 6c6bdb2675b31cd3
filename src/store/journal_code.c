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

/* ---- checkpoints ---- */

/* A field of a record. Those of less than eight bytes are stored plus 1, so that "none" is 0. */
struct field {
	uint16_t offset;
	uint8_t bytes;
};

#define FIELD(type, member)                                                                        \
	{                                                                                          \
		offsetof(struct type, member), sizeof(((struct type *)0)->member)                  \
	}
#define ALLOC(member) FIELD(gm_alloc_record, member)
#define LEVEL(member) FIELD(gm_level_record, member)
#define USAGE(member) FIELD(gm_usage_record, member)
#define TORCH(member) FIELD(gm_torch_record, member)
#define VMM(member)   FIELD(gm_vmm_record, member)
#define SITE(member)  FIELD(gm_site_record, member)

static const struct field alloc_fields[] = {
	ALLOC(site),	ALLOC(key),    ALLOC(bytes), ALLOC(serial), ALLOC(physical_bytes),
	ALLOC(flags),	ALLOC(space),  ALLOC(kind),  ALLOC(device), ALLOC(level),
	ALLOC(time_ns), ALLOC(stream), ALLOC(owner), ALLOC(thread), ALLOC(context),
};
static const struct field level_fields[] = {
	LEVEL(current_bytes),	LEVEL(current_count), LEVEL(peak_bytes),  LEVEL(epoch),
	LEVEL(allocated_bytes), LEVEL(freed_bytes),   LEVEL(allocations), LEVEL(frees),
	LEVEL(peak_at_ns),	LEVEL(failures),      LEVEL(device),	  LEVEL(level),
};
static const struct field usage_fields[] = {
	USAGE(device),	      USAGE(kind),	  USAGE(current_bytes),
	USAGE(current_count), USAGE(peak_bytes),  USAGE(allocated_bytes),
	USAGE(freed_bytes),   USAGE(allocations), USAGE(frees),
	USAGE(failures),
};
static const struct field torch_fields[] = {
	TORCH(device),
	TORCH(allocator),
	TORCH(allocated_bytes),
	TORCH(allocated_peak_bytes),
	TORCH(reserved_bytes),
	TORCH(allocations),
	TORCH(frees),
	TORCH(allocated_total_bytes),
	TORCH(freed_total_bytes),
	TORCH(reserved_peak_bytes),
	TORCH(reserved_total_bytes),
	TORCH(released_total_bytes),
};
static const struct field vmm_fields[] = {
	VMM(device),  VMM(created_bytes),      VMM(mapped_bytes),      VMM(reserved_va_bytes),
	VMM(handles), VMM(created_peak_bytes), VMM(mapped_peak_bytes),
};
static const struct field window_fields[] = {
	FIELD(gm_header, serial),
	FIELD(gm_header, window_current),
	FIELD(gm_header, window_merges),
	FIELD(gm_header, window_resets),
};
static const struct field site_fields[] = {
	SITE(live_bytes),    SITE(live_count),	    SITE(freed_bytes),	   SITE(frees),
	SITE(bytes_at_peak), SITE(epoch),	    SITE(window_current),  SITE(window_merges),
	SITE(window_resets), SITE(peak_bytes),	    SITE(allocated_bytes), SITE(allocations),
	SITE(last_ns),	     SITE(level_max_bytes), SITE(min_alloc_bytes), SITE(max_alloc_bytes),
	SITE(failures),	     SITE(first_ns),	    SITE(first_serial),	   SITE(failed_frees),
};

#define FIELDS(list)                                                                               \
	{                                                                                          \
		list, sizeof(list) / sizeof(*(list))                                               \
	}

static const struct {
	const struct field *list;
	unsigned count;
} fields_of[GM_PARTS] = {
	[GM_PART_ALLOC] = FIELDS(alloc_fields), [GM_PART_LEVEL] = FIELDS(level_fields),
	[GM_PART_USAGE] = FIELDS(usage_fields), [GM_PART_TORCH] = FIELDS(torch_fields),
	[GM_PART_VMM] = FIELDS(vmm_fields),	[GM_PART_WINDOWS] = FIELDS(window_fields),
	[GM_PART_SITE] = FIELDS(site_fields),
};

/* The largest number that a field can hold. */
static uint64_t most_of(const struct field *field)
{
	return UINT64_MAX >> (64 - 8 * field->bytes);
}

static uint64_t load(const struct field *field, const void *record)
{
	const char *at = (const char *)record + field->offset;

	switch (field->bytes) {
	case 1:
		return *(const uint8_t *)at;
	case 2:
		return *(const uint16_t *)at;
	case 4:
		return *(const uint32_t *)at;
	default:
		return *(const uint64_t *)at;
	}
}

static void store(const struct field *field, void *record, uint64_t value)
{
	char *at = (char *)record + field->offset;

	switch (field->bytes) {
	case 1:
		*(uint8_t *)at = (uint8_t)value;
		break;
	case 2:
		*(uint16_t *)at = (uint16_t)value;
		break;
	case 4:
		*(uint32_t *)at = (uint32_t)value;
		break;
	default:
		*(uint64_t *)at = value;
	}
}

/* Finds the numbers that follow the fields, those of each window up to the open one. */
static unsigned numbers_of(enum gm_checkpoint_part part, const void *record, size_t *offset)
{
	if (part == GM_PART_SITE) {
		*offset = offsetof(struct gm_site_record, windows);
		return 3 * (((const struct gm_site_record *)record)->window_current + 1u);
	}
	if (part == GM_PART_WINDOWS) {
		*offset = offsetof(struct gm_header, window_start_ns);
		return ((const struct gm_header *)record)->window_current + 1;
	}
	*offset = 0;
	return 0;
}

uint8_t *gm_journal_put_part(struct gm_journal_state *state, uint8_t *to,
			     enum gm_checkpoint_part part, uint32_t index, const void *record,
			     uint64_t time_ns)
{
	size_t offset;
	unsigned i, numbers = numbers_of(part, record, &offset);

	to = put_head(state, to, GM_JOURNAL_CALL, 0, time_ns, state->thread);
	*to++ = GM_JOURNAL_PART_OP;
	*to++ = (uint8_t)part;
	to = put(to, index);
	for (i = 0; i < fields_of[part].count; i++) {
		const struct field *field = &fields_of[part].list[i];
		uint64_t value = load(field, record);

		to = put(to, field->bytes == 8 ? value : (value + 1) & most_of(field));
	}
	for (i = 0; i < numbers; i++)
		to = put(to, ((const uint64_t *)((const char *)record + offset))[i]);
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

/* False if the record names a level, kind or window that does not exist. */
static bool is_known(const struct gm_checkpoint_record *record)
{
	switch (record->part) {
	case GM_PART_ALLOC:
		return record->of.alloc.space < GM_SPACES && record->of.alloc.kind < GM_KINDS &&
		       record->of.alloc.level < GM_LEVELS && record->of.alloc.device >= GM_HOST;
	case GM_PART_LEVEL:
		return record->of.level.level < GM_LEVELS;
	case GM_PART_USAGE:
		return record->of.usage.kind < GM_KINDS;
	case GM_PART_WINDOWS:
		return record->of.windows.window_current < GM_WINDOWS;
	case GM_PART_SITE:
		return record->of.site.window_current < GM_WINDOWS;
	default:
		return true;
	}
}

static void get_part(struct bytes *from, struct gm_checkpoint_record *record)
{
	uint8_t part = get_byte(from);
	unsigned i, numbers;
	size_t offset;

	if (part >= GM_PARTS) {
		from->at = NULL;
		return;
	}
	memset(record, 0, sizeof(*record));
	record->part = (enum gm_checkpoint_part)part;
	record->index = (uint32_t)get_up_to(from, UINT32_MAX);
	for (i = 0; i < fields_of[part].count; i++) {
		const struct field *field = &fields_of[part].list[i];

		store(field, &record->of,
		      get_up_to(from, most_of(field)) - (field->bytes == 8 ? 0 : 1));
	}
	if (!is_known(record)) {
		from->at = NULL;
		return;
	}
	numbers = numbers_of(record->part, &record->of, &offset);
	for (i = 0; i < numbers; i++)
		((uint64_t *)((char *)&record->of + offset))[i] = get(from);
}

static void get_call(struct gm_journal_state *state, struct bytes *from,
		     struct gm_event_record *event)
{
	uint64_t bits = get_up_to(from, GM_CALL_BITS);

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
	case GM_JOURNAL_PART: /* not among WHAT_BITS */
		entry->event.op = get_byte(&from);
		if (entry->event.op == GM_JOURNAL_PART_OP) {
			entry->what = GM_JOURNAL_PART;
			get_part(&from, &entry->record);
		} else {
			get_call(state, &from, &entry->event);
		}
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
