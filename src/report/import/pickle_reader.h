/*
 * A restricted reader of Python pickles: numbers, texts, lists, tuples and dicts, of protocols 2
 * to 5. Nothing is ever called or looked up: a pickle that names a class or function is refused.
 * Whatever the bytes are, memory is bounded by their number, and there is no recursion.
 */
#ifndef GM_REPORT_IMPORT_PICKLE_READER_H
#define GM_REPORT_IMPORT_PICKLE_READER_H

#include "report/support/memory.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gm_value_type {
	GM_VALUE_NONE,
	GM_VALUE_BOOL, /* number 0 or 1 */
	GM_VALUE_INT,  /* number, or `negative` */
	GM_VALUE_FLOAT,
	GM_VALUE_TEXT, /* also bytes */
	GM_VALUE_LIST,
	GM_VALUE_TUPLE,
	GM_VALUE_DICT /* items: key, value, key, value, ... in order of their putting */
};

/* Values may hold each other in a circle if the pickle was made so: walk them by known depth. */
struct gm_value {
	enum gm_value_type type;
	bool negative;	/* of an int: it is -number */
	unsigned count; /* items, or bytes of text */
	union {
		uint64_t number;
		double real;
		const char *text; /* in the pickle's bytes, not ended by NUL, any bytes */
		struct gm_value **items;
	};
};

/* True if a file that begins so can be a pickle of these protocols. */
bool gm_is_pickle(const void *bytes, size_t count);

/*
 * Reads the pickle in `bytes`, which must outlive the values; they live in the zone. NULL when it
 * is none that can be read here: `error` then says why, half a sentence.
 */
const struct gm_value *gm_pickle_read(struct gm_zone *zone, const void *bytes, size_t count,
				      char *error, size_t error_bytes);

/*
 * The value of a dict's key among its last 64 (the last, if it was put several times); NULL without
 * it or of no dict.
 */
const struct gm_value *gm_value_get(const struct gm_value *dict, const char *key);

/* A key's number; `otherwise` if it is missing, negative or no number. */
uint64_t gm_value_number(const struct gm_value *dict, const char *key, uint64_t otherwise);

/* True if the value is this text. */
bool gm_value_is(const struct gm_value *value, const char *text);

/* The items of a key's list; NULL and 0 if there is none. */
struct gm_value **gm_value_list(const struct gm_value *dict, const char *key, unsigned *count);

#endif
