/*
 * The records of ranges.
 */
#include "track/range_names.h"
#include "store/writer.h"

#include <string.h>

#define SLOTS 8192u /* a power of two, several times GM_RANGE_RECORDS */

/* Records that are in the table of hashes, by index plus 1; 0: none. */
static uint32_t slots[SLOTS];

void gm_range_names_reset(void)
{
	memset(slots, 0, sizeof(slots));
}

static struct gm_range_record *at(uint32_t index)
{
	return gm_store_record(GM_TABLE_RANGES, index);
}

/* FNV-1a. */
static uint32_t hash_of(const char *text, uint32_t parent, const struct gm_range_name *name)
{
	uint32_t hash = 2166136261u ^ parent ^ (uint32_t)name->domain_number << 16 ^ name->source;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 16777619u;
	return hash;
}

/* The slot of a record, or the empty one where it would be. */
static uint32_t *find(const char *text, uint32_t hash, uint32_t parent,
		      const struct gm_range_name *name)
{
	uint32_t *slot;

	for (uint32_t i = hash;; i++) {
		const struct gm_range_record *record;

		slot = &slots[i % SLOTS];
		if (!*slot)
			return slot;
		record = at(*slot - 1);
		if (record->hash == hash && record->parent == parent &&
		    record->domain_number == name->domain_number &&
		    record->source == name->source &&
		    strcmp(gm_store_record(GM_TABLE_STRINGS, record->name_string), text) == 0)
			return slot;
	}
}

static uint32_t append(const struct gm_range_record *like)
{
	struct gm_range_record *record = NULL;
	uint32_t index;

	if (gm_file->tables[GM_TABLE_RANGES].count < GM_RANGE_RECORDS)
		record = gm_store_append(GM_TABLE_RANGES, 1, &index);
	if (!record)
		return GM_NONE;
	*record = *like;
	record->device = GM_HOST;
	record->other_device = GM_NONE;
	record->stride = 1;
	gm_store_publish(GM_TABLE_RANGES);
	return index;
}

static uint32_t make(uint32_t *slot, const char *text, uint32_t hash, uint32_t parent,
		     uint32_t group, const struct gm_range_name *name)
{
	struct gm_range_record record = {.hash = hash,
					 .parent = parent,
					 .group = group,
					 .domain_number = name->domain_number,
					 .source = name->source,
					 .domain_string = GM_NONE};

	record.name_string = gm_store_string(text, GM_RANGE_NAME_BYTES);
	if (name->domain)
		record.domain_string = gm_store_string(name->domain, GM_RANGE_NAME_BYTES);
	if (record.name_string == GM_NONE)
		return GM_NONE;
	*slot = append(&record) + 1;
	return *slot - 1;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_word(char c)
{
	return is_hex(c) || (c >= 'g' && c <= 'z') || (c >= 'G' && c <= 'Z') || c == '_';
}

/* The length of a word of hexadecimal digits, as of an address or a UUID; 0: it is none. */
static size_t hex_word(const char *text)
{
	size_t length = 0, digits = 0;

	for (; is_hex(text[length]); length++)
		digits += is_digit(text[length]);
	return length >= 4 && digits >= 2 && !is_word(text[length]) ? length : 0;
}

/* Writes the name with each number as '#'. Returns whether it has any. */
static bool without_numbers(char *to, const char *text)
{
	bool any = false, inside = false;

	while (*text) {
		size_t hex = inside ? 0 : hex_word(text);

		if (hex || is_digit(*text)) {
			text += hex;
			while (!hex && is_digit(*text))
				text++;
			*to++ = '#';
			any = true;
			inside = true;
		} else {
			inside = is_word(*text);
			*to++ = *text++;
		}
	}
	*to = '\0';
	return any;
}

/* The record of all names that differ from this one only in numbers; GM_NONE: there is no room. */
static uint32_t find_group(const char *pattern, uint32_t parent, const struct gm_range_name *name)
{
	uint32_t hash = hash_of(pattern, parent, name);
	uint32_t *slot = find(pattern, hash, parent, name);

	return *slot ? *slot - 1 : make(slot, pattern, hash, parent, GM_NONE, name);
}

static uint32_t find_or_make(const struct gm_range_name *name, uint32_t parent)
{
	char pattern[GM_RANGE_NAME_BYTES];
	uint32_t hash = hash_of(name->text, parent, name), group, own;
	uint32_t *slot = find(name->text, hash, parent, name);

	if (*slot)
		return *slot - 1;
	if (!without_numbers(pattern, name->text))
		return make(slot, name->text, hash, parent, GM_NONE, name);
	group = find_group(pattern, parent, name);
	if (group == GM_NONE || at(group)->names >= GM_RANGE_NAMES) {
		if (group != GM_NONE)
			at(group)->overflowed = 1;
		return group;
	}
	slot = find(name->text, hash, parent, name); /* the group may have taken it */
	own = make(slot, name->text, hash, parent, group, name);
	if (own == GM_NONE) {
		at(group)->overflowed = 1;
		return group;
	}
	at(group)->names++;
	return own;
}

uint32_t gm_range_find_or_make(const struct gm_range_name *name, uint32_t parent)
{
	uint32_t index = find_or_make(name, parent);

	if (index == GM_NONE) {
		gm_file->ranges_dropped++;
		return GM_NONE;
	}
	at(index)->opened++;
	if (at(index)->group != GM_NONE)
		at(at(index)->group)->opened++;
	return index;
}

uint32_t gm_range_group(uint32_t record)
{
	return at(record)->group == GM_NONE ? record : at(record)->group;
}

/* ---- counting ---- */

/* The record of the same range on a device; its first device has the record itself. */
static struct gm_range_record *on_device(uint32_t index, int device)
{
	struct gm_range_record *record = at(index);

	while (record->device != device && record->device != GM_HOST) {
		if (record->other_device == GM_NONE) {
			struct gm_range_record like = {.hash = record->hash,
						       .parent = record->parent,
						       .group = record->group,
						       .domain_number = record->domain_number,
						       .source = record->source,
						       .domain_string = record->domain_string,
						       .name_string = record->name_string};

			record->other_device = append(&like);
		}
		if (record->other_device == GM_NONE)
			return NULL;
		record = at(record->other_device);
	}
	record->device = (int16_t)device;
	return record;
}

/*
 * Adds an instance to the samples, of which there is every second, fourth, … where there are many.
 */
static void sample(struct gm_range_record *record, const struct gm_range_instance *instance)
{
	if ((record->measured - 1) % record->stride)
		return;
	if (record->samples_count == GM_RANGE_SAMPLES) {
		for (unsigned i = 0; i < GM_RANGE_SAMPLES / 2; i++)
			record->samples[i] = record->samples[2 * i];
		record->samples_count = GM_RANGE_SAMPLES / 2;
		record->stride *= 2;
		if ((record->measured - 1) % record->stride)
			return;
	}
	record->samples[record->samples_count++] = (struct gm_range_sample){
		instance->start_bytes, instance->peak_bytes, instance->retained_bytes};
}

static void count(uint32_t index, int device, const struct gm_range_instance *instance)
{
	struct gm_range_record *record = device == GM_HOST ? at(index) : on_device(index, device);
	uint64_t added;

	if (!record)
		return;
	record->closed++;
	if (!instance)
		return;
	record->measured++;
	added = instance->peak_bytes - instance->start_bytes;
	if (record->measured == 1 || instance->peak_bytes < record->lowest_peak_bytes)
		record->lowest_peak_bytes = instance->peak_bytes;
	if (added > record->most_added_bytes)
		record->most_added_bytes = added;
	if (record->measured == 1 || instance->peak_bytes > record->highest.peak_bytes)
		record->highest = *instance;
	if (record->measured == 1 ||
	    instance->retained_bytes > record->most_retained.retained_bytes)
		record->most_retained = *instance;
	record->retained_bytes += instance->retained_bytes;
	sample(record, instance);
}

void gm_range_count(uint32_t record, int device, const struct gm_range_instance *instance)
{
	count(record, device, instance);
	if (at(record)->group != GM_NONE)
		count(at(record)->group, device, instance);
}
