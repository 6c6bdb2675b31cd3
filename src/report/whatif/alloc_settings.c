/*
 * Reading PYTORCH_CUDA_ALLOC_CONF, and the sizes that follow from it (alloc_settings.h). Source of
 * the rules: c10/cuda/CUDAAllocatorConfig.cpp, c10/core/AllocatorConfig.cpp and, of its pool of
 * stream-ordered memory, c10/cuda/CUDAMallocAsyncAllocator.cpp of PyTorch.
 */
#include "report/whatif/alloc_settings.h"
#include "account/sizes.h"
#include "account/torch_record.h"
#include "base/size_text.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB		(1ull << 20)
#define LARGE_BYTES	(20 * MIB) /* kLargeBuffer */
#define MIN_LARGE_BYTES (10 * MIB) /* kMinLargeAlloc */
#define ROUND_LARGE	(2 * MIB)  /* kRoundLarge */
#define FIRST_INTERVAL	20	   /* the intervals of rounding begin at 2^20 */
#define MOST_TOKENS	256
#define TOKEN_BYTES	64

static const struct gm_torch_rules rules[] = {
	{206, false, true},
	{210, true, false},
};

const struct gm_torch_rules *gm_torch_rules(unsigned version)
{
	if (version < GM_TORCH_FIRST || version > GM_TORCH_LAST)
		return NULL;
	return version >= rules[1].first ? &rules[1] : &rules[0];
}

struct gm_torch_settings gm_torch_settings_default(void)
{
	return (struct gm_torch_settings){.max_split_bytes = UINT64_MAX,
					  .max_rounding_bytes = LARGE_BYTES};
}

struct reading {
	char tokens[MOST_TOKENS][TOKEN_BYTES];
	unsigned count, at;
	struct gm_torch_settings *settings;
	const struct gm_torch_rules *rules;
	char *error;
	size_t error_bytes;
};

#define FAIL(reading, ...) (snprintf((reading)->error, (reading)->error_bytes, __VA_ARGS__), false)

/* Words, and each of , : [ ] by itself; blanks do not count. */
static bool split(struct reading *reading, const char *text)
{
	bool open = false;

	for (; *text; text++) {
		char *token;
		size_t length;

		if (*text == ' ')
			continue;
		if (strchr(",:[]", *text) || !open) {
			if (reading->count == MOST_TOKENS)
				return FAIL(reading, "it is too long");
			reading->tokens[reading->count++][0] = '\0';
		}
		token = reading->tokens[reading->count - 1];
		length = strlen(token);
		if (length + 1 == TOKEN_BYTES)
			return FAIL(reading, "\"%.16s...\" is too long a word", token);
		token[length] = *text;
		token[length + 1] = '\0';
		open = !strchr(",:[]", *text);
	}
	return true;
}

static const char *next(struct reading *reading)
{
	return reading->at < reading->count ? reading->tokens[reading->at++] : "";
}

static bool expect(struct reading *reading, const char *token)
{
	const char *found = next(reading);

	return strcmp(found, token) == 0 ||
	       FAIL(reading, "PyTorch expects \"%s\" where it has \"%s\"", token, found);
}

static bool whole_number(struct reading *reading, const char *word, uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(word, &end, 10);
	if (*word >= '0' && *word <= '9' && !*end && !errno && *number <= UINT64_MAX / MIB)
		return true;
	return FAIL(reading, "\"%s\" is no number", word);
}

static bool power_of_two(uint64_t number)
{
	return number && !(number & (number - 1));
}

static bool read_mib(struct reading *reading, uint64_t *bytes, const char *key)
{
	uint64_t number, least = LARGE_BYTES / MIB + !reading->rules->shared_settings;

	if (!whole_number(reading, next(reading), &number))
		return false;
	if (number < least)
		return FAIL(reading, "%s must be at least %u", key, (unsigned)least);
	*bytes = number * MIB;
	return true;
}

static bool read_max_split(struct reading *reading)
{
	return read_mib(reading, &reading->settings->max_split_bytes, "max_split_size_mb");
}

static bool read_max_rounding(struct reading *reading)
{
	return read_mib(reading, &reading->settings->max_rounding_bytes,
			"max_non_split_rounding_mb");
}

static bool read_share(struct reading *reading, double *share, bool one, const char *key)
{
	const char *word = next(reading);
	char *end;

	*share = strtod(word, &end);
	if (end != word && !*end && *share > 0 && (*share < 1 || (one && *share <= 1)))
		return true;
	return FAIL(reading, "%s must lie between 0 and 1", key);
}

static bool read_gc(struct reading *reading)
{
	return read_share(reading, &reading->settings->gc_threshold, false,
			  "garbage_collection_threshold");
}

static bool read_fraction(struct reading *reading)
{
	if (!reading->rules->shared_settings)
		return FAIL(reading,
			    "PyTorch before 2.10 does not know per_process_memory_fraction; "
			    "use --fraction");
	return read_share(reading, &reading->settings->fraction, true,
			  "per_process_memory_fraction");
}

static bool read_bool(struct reading *reading, bool *value)
{
	const char *word = next(reading);

	*value = strcmp(word, "True") == 0;
	return *value || strcmp(word, "False") == 0 ||
	       FAIL(reading, "PyTorch expects True or False where it has \"%s\"", word);
}

static bool read_expandable(struct reading *reading)
{
	return read_bool(reading, &reading->settings->expandable);
}

static bool read_backend(struct reading *reading)
{
	const char *word = next(reading);

	reading->settings->driver_pool = strcmp(word, "cudaMallocAsync") == 0;
	reading->settings->release_threshold_bytes = UINT64_MAX; /* lazy_init_device() sets it */
	return reading->settings->driver_pool || strcmp(word, "native") == 0 ||
	       FAIL(reading, "backend:%s is another allocator, which is not modelled", word);
}

static bool read_threshold(struct reading *reading)
{
	const char *word = next(reading);
	uint64_t *bytes = &reading->settings->release_threshold_bytes;

	reading->settings->driver_pool = true;
	*bytes = UINT64_MAX;
	return strcmp(word, "max") == 0 || gm_parse_size(word, bytes) ||
	       FAIL(reading, "release_threshold is a size, like 64MiB, or max");
}

/* Skips settings that change neither segments nor blocks: pinned memory, locks. */
static bool read_ignored(struct reading *reading)
{
	next(reading);
	return true;
}

/* "[256:1,512:2,>:4]": the interval that begins with so many MiB is divided by so much. */
static bool read_intervals(struct reading *reading)
{
	uint64_t *divisions = reading->settings->roundup_divisions;
	unsigned last = 0;
	bool first = true;

	for (;;) {
		const char *word = next(reading);
		uint64_t boundary = 0, value;
		bool rest = strcmp(word, ">") == 0;
		unsigned index;

		if (!rest && !whole_number(reading, word, &boundary))
			return false;
		if (!rest && !power_of_two(boundary))
			return FAIL(reading, "an interval must begin with a power of two");
		if (!expect(reading, ":") || !whole_number(reading, next(reading), &value))
			return false;
		if (value && !power_of_two(value))
			return FAIL(reading, "a number of divisions must be a power of two or 0");
		if (rest) {
			/* 2.10 leaves the interval named last as it is, earlier ones do not */
			for (index = last + reading->rules->shared_settings;
			     index < GM_ROUNDUP_INTERVALS; index++)
				divisions[index] = value;
		} else {
			index = 63 - (unsigned)__builtin_clzll(boundary);
			if (index >= GM_ROUNDUP_INTERVALS)
				index = GM_ROUNDUP_INTERVALS - 1;
			for (unsigned i = 0; first && i < index; i++)
				divisions[i] = value;
			first = false;
			divisions[index] = value;
			last = index;
		}
		word = next(reading);
		if (strcmp(word, "]") == 0)
			return true;
		if (strcmp(word, ",") != 0)
			return FAIL(reading, "PyTorch expects \",\" where it has \"%s\"", word);
	}
}

static bool read_roundup(struct reading *reading)
{
	uint64_t value;

	if (reading->at < reading->count && strcmp(reading->tokens[reading->at], "[") == 0) {
		reading->at++;
		return read_intervals(reading);
	}
	if (!whole_number(reading, next(reading), &value))
		return false;
	if (!power_of_two(value))
		return FAIL(reading, "a number of divisions must be a power of two");
	for (unsigned i = 0; i < GM_ROUNDUP_INTERVALS; i++)
		reading->settings->roundup_divisions[i] = value;
	return true;
}

static const struct {
	const char *key;
	bool (*read)(struct reading *reading);
} keys[] = {
	{"expandable_segments", read_expandable},
	{"max_split_size_mb", read_max_split},
	{"max_non_split_rounding_mb", read_max_rounding},
	{"garbage_collection_threshold", read_gc},
	{"roundup_power2_divisions", read_roundup},
	{"per_process_memory_fraction", read_fraction},
	{"backend", read_backend},
	{"release_threshold", read_threshold},
	{"release_lock_on_cudamalloc", read_ignored},
	{"release_lock_on_hipmalloc", read_ignored},
	{"pinned_use_cuda_host_register", read_ignored},
	{"pinned_use_hip_host_register", read_ignored},
	{"pinned_num_register_threads", read_ignored},
	{"pinned_use_background_threads", read_ignored},
	{"pinned_reserve_segment_size_mb", read_ignored},
};

static bool read_item(struct reading *reading)
{
	const char *key = next(reading);

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (strcmp(key, keys[i].key) == 0)
			return expect(reading, ":") && keys[i].read(reading);
	return FAIL(reading, "\"%s\" is no setting that is modelled", key);
}

bool gm_torch_settings_read(struct gm_torch_settings *settings, const char *text,
			    const struct gm_torch_rules *of, char *error, size_t error_bytes)
{
	struct reading reading = {
		.settings = settings, .rules = of, .error = error, .error_bytes = error_bytes};

	*settings = gm_torch_settings_default();
	if (strcmp(text, "default") == 0)
		return true;
	if (!split(&reading, text))
		return false;
	while (reading.at < reading.count)
		if (!read_item(&reading) || (reading.at < reading.count && !expect(&reading, ",")))
			return false;
	for (unsigned i = 0; i < GM_ROUNDUP_INTERVALS; i++)
		settings->rounds |= settings->roundup_divisions[i] > 1;
	return true;
}

/* Up to the next of the equal parts that lie between two powers of two. */
static uint64_t round_to_division(uint64_t bytes, uint64_t divisions)
{
	unsigned power = 63 - (unsigned)__builtin_clzll(bytes);
	uint64_t floor = 1ull << power, part = floor >> (63 - __builtin_clzll(divisions));

	if (bytes == floor)
		return bytes;
	return part ? gm_round_up(bytes, part) : 2 * floor;
}

uint64_t gm_torch_round_size(const struct gm_torch_settings *settings, uint64_t bytes)
{
	if (bytes < GM_TORCH_MIN_BLOCK_BYTES)
		return GM_TORCH_MIN_BLOCK_BYTES;
	if (settings->rounds) {
		unsigned power = 63 - (unsigned)__builtin_clzll(bytes);
		unsigned index = power > FIRST_INTERVAL ? power - FIRST_INTERVAL : 0;
		uint64_t divisions;

		if (index >= GM_ROUNDUP_INTERVALS)
			index = GM_ROUNDUP_INTERVALS - 1;
		divisions = settings->roundup_divisions[index];
		if (divisions > 1 && bytes > GM_TORCH_MIN_BLOCK_BYTES * divisions)
			return round_to_division(bytes, divisions);
	}
	return gm_round_up(bytes, GM_TORCH_MIN_BLOCK_BYTES);
}

uint64_t gm_torch_segment_size(uint64_t bytes)
{
	if (bytes <= GM_TORCH_SMALL_BYTES)
		return GM_TORCH_SMALL_SEGMENT_BYTES;
	return bytes < MIN_LARGE_BYTES ? LARGE_BYTES : gm_round_up(bytes, ROUND_LARGE);
}
