/*
 * The restricted pickle reader (pickle_reader.h): a stack machine with one function per group of
 * opcodes. Opcodes are those of CPython's Lib/pickletools.py.
 */
#include "report/import/pickle_reader.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_VALUES 200000000u /* about 8 GiB */
#define MAX_KEYS   64u	      /* of a dict that are looked at */

enum opcode {
	MARK = '(',
	STOP = '.',
	NONE = 'N',
	BININT = 'J',
	BININT1 = 'K',
	BININT2 = 'M',
	BINFLOAT = 'G',
	BINUNICODE = 'X',
	BINBYTES = 'B',
	SHORT_BINBYTES = 'C',
	EMPTY_LIST = ']',
	APPEND = 'a',
	APPENDS = 'e',
	EMPTY_DICT = '}',
	SETITEM = 's',
	SETITEMS = 'u',
	EMPTY_TUPLE = ')',
	TUPLE = 't',
	BINGET = 'h',
	LONG_BINGET = 'j',
	BINPUT = 'q',
	LONG_BINPUT = 'r',
	PROTO = 0x80,
	TUPLE1 = 0x85,
	TUPLE2,
	TUPLE3,
	NEWTRUE,
	NEWFALSE,
	LONG1,
	LONG4,
	SHORT_BINUNICODE = 0x8c,
	BINUNICODE8,
	MEMOIZE = 0x94,
	FRAME
};

struct reader {
	struct gm_zone *zone;
	const unsigned char *bytes;
	size_t count, at;
	struct gm_value **stack, **memo;
	unsigned stack_count, memo_count;
	size_t stack_room, memo_room;
	unsigned *marks; /* depths of the stack */
	unsigned marks_count;
	size_t marks_room;
	unsigned values;
	char *error;
	size_t error_bytes;
	bool failed;
};

__attribute__((format(printf, 2, 3))) static void fail(struct reader *reader, const char *format,
						       ...)
{
	va_list args;

	if (reader->failed)
		return;
	reader->failed = true;
	va_start(args, format);
	vsnprintf(reader->error, reader->error_bytes, format, args);
	va_end(args);
}

/* Room for one more element of `size` bytes in a malloc'd array. */
static void *grow(void *array, size_t *room, size_t count, size_t size)
{
	if (count < *room)
		return array;
	*room = *room ? 2 * *room : 64;
	return gm_realloc(array, *room * size);
}

static void push(struct reader *reader, struct gm_value *value)
{
	reader->stack = grow(reader->stack, &reader->stack_room, reader->stack_count,
			     sizeof(struct gm_value *));
	reader->stack[reader->stack_count++] = value;
}

/* A new value on the stack. Never NULL: past the limit, one that is thrown away. */
static struct gm_value *push_new(struct reader *reader, enum gm_value_type type)
{
	struct gm_value *value = gm_zone_alloc(reader->zone, 1, sizeof(*value));

	if (++reader->values > MAX_VALUES)
		fail(reader, "holds more than %u values", MAX_VALUES);
	value->type = type;
	push(reader, value);
	return value;
}

/* Returns the depth at which the open group begins: no value below the last mark may be taken. */
static unsigned floor_of(const struct reader *reader)
{
	return reader->marks_count ? reader->marks[reader->marks_count - 1] : 0;
}

static struct gm_value *pop(struct reader *reader)
{
	static struct gm_value nothing;

	if (reader->stack_count <= floor_of(reader)) {
		fail(reader, "is damaged: a value is missing at byte %zu", reader->at);
		return &nothing;
	}
	return reader->stack[--reader->stack_count];
}

/* `size` bytes of the pickle; NULL at its end. */
static const unsigned char *take(struct reader *reader, uint64_t size)
{
	const unsigned char *at = reader->bytes + reader->at;

	if (size > reader->count - reader->at) {
		fail(reader, "is cut short");
		return NULL;
	}
	reader->at += (size_t)size;
	return at;
}

static uint64_t take_little(struct reader *reader, unsigned size)
{
	const unsigned char *at = take(reader, size);
	uint64_t number = 0;

	for (unsigned i = 0; at && i < size; i++)
		number |= (uint64_t)at[i] << (8 * i);
	return number;
}

static void push_number(struct reader *reader, enum gm_value_type type, uint64_t number)
{
	push_new(reader, type)->number = number;
}

/* Two's complement of up to eight bytes, or nine of which the last is only a sign. */
static void push_long(struct reader *reader, uint64_t size)
{
	const unsigned char *at = take(reader, size);
	struct gm_value *value = push_new(reader, GM_VALUE_INT);
	bool negative = at && size && (at[size - 1] & 0x80);
	uint64_t number = negative ? UINT64_MAX : 0;

	if (size > 9 || (size == 9 && at && at[8] != (negative ? 0xff : 0))) {
		fail(reader, "has a number of more than 64 bits");
		return;
	}
	for (unsigned i = 0; at && i < size && i < 8; i++)
		number = (number & ~(0xffull << (8 * i))) | (uint64_t)at[i] << (8 * i);
	value->negative = negative;
	value->number = negative ? 0 - number : number;
}

static void push_int32(struct reader *reader)
{
	int32_t number = (int32_t)take_little(reader, 4);
	struct gm_value *value = push_new(reader, GM_VALUE_INT);

	value->negative = number < 0;
	value->number = number < 0 ? 0 - (uint64_t)(int64_t)number : (uint64_t)number;
}

static void push_float(struct reader *reader)
{
	const unsigned char *at = take(reader, 8);
	struct gm_value *value = push_new(reader, GM_VALUE_FLOAT);
	uint64_t bits = 0;

	for (unsigned i = 0; at && i < 8; i++) /* big-endian, unlike everything else */
		bits = bits << 8 | at[i];
	memcpy(&value->real, &bits, sizeof(bits));
}

static void push_text(struct reader *reader, uint64_t size)
{
	const unsigned char *at = take(reader, size);
	struct gm_value *value = push_new(reader, GM_VALUE_TEXT);

	if (size > UINT32_MAX)
		fail(reader, "has a text of over 4 GiB");
	value->text = (const char *)at;
	value->count = at ? (unsigned)size : 0;
}

static void push_mark(struct reader *reader)
{
	reader->marks = grow(reader->marks, &reader->marks_room, reader->marks_count,
			     sizeof(*reader->marks));
	reader->marks[reader->marks_count++] = reader->stack_count;
}

/* Ends the open group: its values are the last `*count` that were on the stack. */
static struct gm_value **pop_group(struct reader *reader, unsigned *count)
{
	unsigned from;

	*count = 0;
	if (!reader->marks_count) {
		fail(reader, "is damaged: a group ends that was not begun at byte %zu", reader->at);
		return reader->stack;
	}
	from = reader->marks[--reader->marks_count];
	*count = reader->stack_count - from;
	reader->stack_count = from;
	return from ? reader->stack + from : reader->stack; /* NULL if it never grew */
}

/* Puts values at the end of the container that is on top of the stack. */
static void put(struct reader *reader, enum gm_value_type type, struct gm_value **values,
		unsigned count)
{
	struct gm_value *into;

	if (reader->stack_count <= floor_of(reader) ||
	    reader->stack[reader->stack_count - 1]->type != type ||
	    (type == GM_VALUE_DICT && count % 2)) {
		fail(reader, "is damaged: values for no %s at byte %zu",
		     type == GM_VALUE_DICT ? "dict" : "list", reader->at);
		return;
	}
	into = reader->stack[reader->stack_count - 1];
	for (unsigned i = 0; i < count; i++)
		*(struct gm_value **)gm_zone_push(reader->zone, &into->items, &into->count,
						  sizeof(struct gm_value *)) = values[i];
}

static void push_tuple(struct reader *reader, struct gm_value **values, unsigned count)
{
	struct gm_value **items = gm_zone_alloc(reader->zone, count, sizeof(struct gm_value *));
	struct gm_value *tuple;

	if (count)
		memcpy(items, values, count * sizeof(struct gm_value *));
	tuple = push_new(reader, GM_VALUE_TUPLE);
	tuple->items = items;
	tuple->count = count;
}

static void small_tuple(struct reader *reader, unsigned count)
{
	struct gm_value *values[3];

	for (unsigned i = count; i-- > 0;)
		values[i] = pop(reader);
	push_tuple(reader, values, count);
}

/* Numbers of the memo follow on each other, so there are never more than bytes. */
static void memoize(struct reader *reader, uint64_t number)
{
	if (reader->stack_count <= floor_of(reader) || number > reader->count) {
		fail(reader, "is damaged: nothing to remember at byte %zu", reader->at);
		return;
	}
	while (reader->memo_count <= number) {
		reader->memo = grow(reader->memo, &reader->memo_room, reader->memo_count,
				    sizeof(struct gm_value *));
		reader->memo[reader->memo_count++] = NULL;
	}
	reader->memo[number] = reader->stack[reader->stack_count - 1];
}

static void recall(struct reader *reader, uint64_t number)
{
	if (number >= reader->memo_count || !reader->memo[number])
		fail(reader, "is damaged: it refers to value %llu, which is not there",
		     (unsigned long long)number);
	else
		push(reader, reader->memo[number]);
}

static void containers(struct reader *reader, unsigned char opcode)
{
	struct gm_value *values[2], **group;
	unsigned count;

	switch (opcode) {
	case APPEND:
		values[0] = pop(reader);
		put(reader, GM_VALUE_LIST, values, 1);
		break;
	case SETITEM:
		values[1] = pop(reader);
		values[0] = pop(reader);
		put(reader, GM_VALUE_DICT, values, 2);
		break;
	case APPENDS:
	case SETITEMS:
		group = pop_group(reader, &count);
		put(reader, opcode == APPENDS ? GM_VALUE_LIST : GM_VALUE_DICT, group, count);
		break;
	case TUPLE:
		group = pop_group(reader, &count);
		push_tuple(reader, group, count);
		break;
	}
}

/* Executes an opcode with its argument. */
static void step(struct reader *reader, unsigned char opcode)
{
	switch (opcode) {
	case PROTO:
		take(reader, 1);
		break;
	case FRAME:
		take(reader, 8);
		break;
	case MARK:
		push_mark(reader);
		break;
	case NONE:
		push_new(reader, GM_VALUE_NONE);
		break;
	case NEWTRUE:
	case NEWFALSE:
		push_number(reader, GM_VALUE_BOOL, opcode == NEWTRUE);
		break;
	case BININT:
		push_int32(reader);
		break;
	case BININT1:
	case BININT2:
		push_number(reader, GM_VALUE_INT, take_little(reader, opcode == BININT1 ? 1 : 2));
		break;
	case LONG1:
	case LONG4:
		push_long(reader, take_little(reader, opcode == LONG1 ? 1 : 4));
		break;
	case BINFLOAT:
		push_float(reader);
		break;
	case SHORT_BINUNICODE:
	case SHORT_BINBYTES:
		push_text(reader, take_little(reader, 1));
		break;
	case BINUNICODE:
	case BINBYTES:
		push_text(reader, take_little(reader, 4));
		break;
	case BINUNICODE8:
		push_text(reader, take_little(reader, 8));
		break;
	case EMPTY_LIST:
		push_new(reader, GM_VALUE_LIST);
		break;
	case EMPTY_TUPLE:
		push_new(reader, GM_VALUE_TUPLE);
		break;
	case EMPTY_DICT:
		push_new(reader, GM_VALUE_DICT);
		break;
	case TUPLE1:
	case TUPLE2:
	case TUPLE3:
		small_tuple(reader, opcode - TUPLE1 + 1u);
		break;
	case APPEND:
	case SETITEM:
	case APPENDS:
	case SETITEMS:
	case TUPLE:
		containers(reader, opcode);
		break;
	case BINPUT:
	case LONG_BINPUT:
		memoize(reader, take_little(reader, opcode == BINPUT ? 1 : 4));
		break;
	case MEMOIZE:
		memoize(reader, reader->memo_count);
		break;
	case BINGET:
	case LONG_BINGET:
		recall(reader, take_little(reader, opcode == BINGET ? 1 : 4));
		break;
	default:
		fail(reader,
		     "has the opcode 0x%02x at byte %zu, which no snapshot needs; it was not "
		     "executed",
		     opcode, reader->at - 1);
	}
}

bool gm_is_pickle(const void *bytes, size_t count)
{
	const unsigned char *at = bytes;

	return count >= 2 && at[0] == PROTO && at[1] >= 2 && at[1] <= 5;
}

const struct gm_value *gm_pickle_read(struct gm_zone *zone, const void *bytes, size_t count,
				      char *error, size_t error_bytes)
{
	struct reader reader = {.zone = zone,
				.bytes = bytes,
				.count = count,
				.error = error,
				.error_bytes = error_bytes};
	const struct gm_value *value = NULL;

	if (!gm_is_pickle(bytes, count))
		fail(&reader, "is no pickle of protocol 2 to 5");
	while (!reader.failed) {
		const unsigned char *opcode = take(&reader, 1);

		if (opcode && *opcode == STOP) {
			value = pop(&reader);
			break;
		}
		if (opcode)
			step(&reader, *opcode);
	}
	free(reader.stack);
	free(reader.memo);
	free(reader.marks);
	return reader.failed ? NULL : value;
}

bool gm_value_is(const struct gm_value *value, const char *text)
{
	return value && value->type == GM_VALUE_TEXT && value->count == strlen(text) &&
	       memcmp(value->text, text, value->count) == 0;
}

const struct gm_value *gm_value_get(const struct gm_value *dict, const char *key)
{
	unsigned least;

	if (!dict || dict->type != GM_VALUE_DICT)
		return NULL;
	/* No record has more keys; a dict of millions that is met millions of times costs nothing.
	 */
	least = dict->count > 2 * MAX_KEYS ? dict->count - 2 * MAX_KEYS : 0;
	for (unsigned i = dict->count; i >= least + 2; i -= 2)
		if (gm_value_is(dict->items[i - 2], key))
			return dict->items[i - 1];
	return NULL;
}

uint64_t gm_value_number(const struct gm_value *dict, const char *key, uint64_t otherwise)
{
	const struct gm_value *value = gm_value_get(dict, key);

	if (!value || value->negative ||
	    (value->type != GM_VALUE_INT && value->type != GM_VALUE_BOOL))
		return otherwise;
	return value->number;
}

struct gm_value **gm_value_list(const struct gm_value *dict, const char *key, unsigned *count)
{
	const struct gm_value *list = gm_value_get(dict, key);

	*count = list && (list->type == GM_VALUE_LIST || list->type == GM_VALUE_TUPLE) ? list->count
										       : 0;
	return *count ? list->items : NULL;
}
