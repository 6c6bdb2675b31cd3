/*
 * The references of an object of CPython (internal.h), as its type's tp_traverse would report them:
 * the same references, each once. References that CPython does not visit but owns are reported too
 * where that cannot make an object look unreachable (a frame that runs). Sources: the tp_traverse
 * functions of Objects/ and Modules/ of CPython 3.8 to 3.14.
 */
#include "holders/internal.h"

#include <stdlib.h>
#include <string.h>

#define MOST_ITEMS	   (1ull << 28)
#define BATCH		   512u
#define MOST_BYTES	   (1u << 20) /* of memory that an object owns, searched for addresses */
#define GENERATOR_OWNED	   1
#define FRAME_OBJECT_OWNED 2
#define INTERPRETER_OWNED  3 /* and above: no Python frame */
#define GENERATOR_CLEARED  4
#define LRU_ROOT_KEY	   40u

static bool word(struct gm_object_walk *walk, uint64_t address, uint64_t *value)
{
	return gm_cpython_word(walk->python, address, value);
}

/* A word that what follows depends on. */
static bool needed(struct gm_object_walk *walk, uint64_t address, uint64_t *value)
{
	if (!word(walk, address, value))
		return false;
	gm_walk_need(walk, address, *value);
	return true;
}

static bool number(struct gm_object_walk *walk, uint64_t address, uint32_t *value)
{
	return gm_memory_read(walk->python->memory, address, value, sizeof(*value));
}

/* The reference at `object + offset`. */
static bool field(struct gm_object_walk *walk, uint64_t object, unsigned offset, const char *name)
{
	struct gm_edge edge = {
		.slot = object + offset, .name = name, .how = GM_BY_NAME, .sure = true};

	if (!word(walk, edge.slot, &edge.child))
		return true;
	if (strcmp(name, "__dict__") == 0)
		edge.how = GM_BY_DICT;
	return gm_walk_report(walk, &edge);
}

/* Takes the object from a word of a frame; false if it is a number. */
static void take_slot(const struct gm_object_walk *walk, struct gm_edge *edge, uint64_t word)
{
	edge->child = gm_cpython_untag(walk->python, word);
	edge->tag = (uint8_t)(word - edge->child) & GM_TAG_NUMBER;
}

/* The reference at `offset` of a frame. */
static bool frame_field(struct gm_object_walk *walk, uint64_t frame, unsigned offset,
			const char *name)
{
	struct gm_edge edge = {
		.slot = frame + offset, .name = name, .how = GM_BY_NAME, .sure = true};
	uint64_t value;

	if (!word(walk, edge.slot, &value))
		return true;
	take_slot(walk, &edge, value);
	return gm_walk_report(walk, &edge);
}

/* An array of references, of which `edge` describes the first. */
static bool items(struct gm_object_walk *walk, struct gm_edge edge, uint64_t count)
{
	uint64_t batch[BATCH];

	if (count > MOST_ITEMS)
		return true;
	while (count) {
		unsigned piece = count < BATCH ? (unsigned)count : BATCH;

		if (!gm_memory_read(walk->python->memory, edge.slot, batch, piece * 8))
			return true;
		for (unsigned i = 0; i < piece; i++) {
			edge.child = batch[i];
			if (edge.how == GM_BY_STACK)
				take_slot(walk, &edge, batch[i]);
			if (!gm_walk_report(walk, &edge))
				return false;
			edge.slot += 8;
			edge.index++;
		}
		count -= piece;
	}
	return true;
}

/* ---- dictionaries ---- */

struct keys {
	uint64_t entries, count;
	unsigned step, key, value; /* of an entry, in bytes */
};

/* PyDictKeysObject: Objects/dict-common.h, from 3.11 on Include/internal/pycore_dict.h. */
static bool read_keys(struct gm_object_walk *walk, uint64_t at, struct keys *keys)
{
	unsigned char head[40];
	uint64_t size, count;

	if (!gm_memory_read(walk->python->memory, at, head, sizeof(head)))
		return false;
	if (walk->python->minor <= 10) {
		memcpy(&size, head + 8, 8);
		memcpy(&count, head + 32, 8);
		if (size > MOST_ITEMS || count > size)
			return false;
		keys->entries = at + 40 + size * (size <= 0xff ? 1 : size <= 0xffff ? 2 : 4);
		gm_walk_need(walk, at + 8, size);
	} else {
		memcpy(&count, head + 24, 8);
		memcpy(&size, head + 8, 8);
		if (head[8] > 28 || head[9] > 32 || head[10] > 2 || count > 1ull << head[8])
			return false;
		keys->entries = at + 32 + (1ull << head[9]);
		gm_walk_need(walk, at + 8, size); /* sizes, kind and version */
		if (head[10]) {			  /* a key that is a str knows its hash */
			keys->step = 16;
			keys->key = 0;
			keys->value = 8;
			keys->count = count;
			return true;
		}
	}
	keys->step = 24;
	keys->key = 8;
	keys->value = 16;
	keys->count = count;
	return true;
}

/* The entries of keys, with the values in them or, of a split table, in an array. */
static bool entries(struct gm_object_walk *walk, uint64_t keys_at, uint64_t values, uint64_t most,
		    uint64_t size,
		    bool (*each)(struct gm_object_walk *walk, const struct gm_dict_entry *entry,
				 void *data),
		    void *data)
{
	unsigned char batch[24 * 128];
	struct keys keys;
	uint64_t count;

	if (!read_keys(walk, keys_at, &keys))
		return true;
	count = keys.count < most ? keys.count : most;
	for (uint64_t from = 0; from < count; from += 128) {
		uint64_t piece = count - from < 128 ? count - from : 128, array[128];

		if (!gm_memory_read(walk->python->memory, keys.entries + from * keys.step, batch,
				    piece * keys.step) ||
		    (values &&
		     !gm_memory_read(walk->python->memory, values + from * 8, array, piece * 8)))
			return true;
		for (uint64_t i = 0; i < piece; i++) {
			uint64_t at = keys.entries + (from + i) * keys.step;
			struct gm_dict_entry entry = {.slot = at + keys.value, .size = size};

			memcpy(&entry.key, batch + i * keys.step + keys.key, 8);
			memcpy(&entry.value, batch + i * keys.step + keys.value, 8);
			if (values) {
				entry.value = array[i];
				entry.slot = values + (from + i) * 8;
			}
			if (entry.value && entry.key && !each(walk, &entry, data))
				return false;
		}
	}
	return true;
}

/*
 * Finds the values of a dict; 0 if they are in its entries. From 3.13 on values may be embedded in
 * the instance whose dict this is, and are reported there.
 */
static bool dict_parts(struct gm_object_walk *walk, uint64_t dict, uint64_t *keys, uint64_t *values,
		       uint64_t *size, uint64_t *most)
{
	unsigned char head[4];

	*most = UINT64_MAX;
	if (!word(walk, dict + GM_VAR_SIZE, size) || !needed(walk, dict + GM_DICT_KEYS, keys) ||
	    !needed(walk, dict + GM_DICT_VALUES, values) || !*keys)
		return false;
	if (*values && walk->python->minor >= 13) {
		if (!gm_memory_read(walk->python->memory, *values, head, sizeof(head)))
			return false;
		*most = head[2] ? 0 : head[0];
		*values += 8;
	}
	return true;
}

bool gm_cpython_entries(struct gm_object_walk *walk, uint64_t dict,
			bool (*each)(struct gm_object_walk *walk, const struct gm_dict_entry *entry,
				     void *data),
			void *data)
{
	uint64_t keys, values, size, most;

	return !dict_parts(walk, dict, &keys, &values, &size, &most) ||
	       entries(walk, keys, values, most, size, each, data);
}

struct lookup {
	const char *key;
	uint64_t value;
};

static bool compare_key(struct gm_object_walk *walk, const struct gm_dict_entry *entry, void *data)
{
	struct lookup *lookup = data;
	char text[256];

	if (!gm_cpython_text(walk->python, entry->key, text, sizeof(text)) ||
	    strcmp(text, lookup->key) != 0)
		return true;
	lookup->value = entry->value;
	return false;
}

uint64_t gm_cpython_lookup(struct gm_cpython *python, uint64_t dict, const char *key)
{
	struct gm_object_walk walk = {.python = python};
	struct lookup lookup = {key, 0};

	gm_cpython_entries(&walk, dict, compare_key, &lookup);
	return lookup.value;
}

static bool dict_entry(struct gm_object_walk *walk, const struct gm_dict_entry *entry, void *data)
{
	struct gm_edge edge = {.child = entry->value,
			       .slot = entry->slot,
			       .key = entry->key,
			       .size = entry->size,
			       .how = GM_BY_KEY,
			       .sure = true};

	(void)data;
	if (!gm_walk_report(walk, &edge))
		return false;
	edge = (struct gm_edge){
		.child = entry->key, .size = entry->size, .how = GM_AS_KEY, .sure = true};
	return gm_walk_report(walk, &edge);
}

static bool attribute(struct gm_object_walk *walk, const struct gm_dict_entry *entry, void *data)
{
	struct gm_edge edge = {.child = entry->value,
			       .slot = entry->slot,
			       .key = entry->key,
			       .how = GM_BY_STR,
			       .sure = true};

	(void)data;
	return gm_walk_report(walk, &edge);
}

/* ---- attributes of instances ---- */

static bool dict_at(struct gm_object_walk *walk, uint64_t slot)
{
	struct gm_edge edge = {.slot = slot, .how = GM_BY_DICT, .sure = true};

	return !word(walk, slot, &edge.child) || gm_walk_report(walk, &edge);
}

/*
 * Values without a dict, before the object: 3.11 has a word for each of both, 3.12 one word whose
 * lowest bit says which; 3.13 keeps the values in the object and the dict before it. Sources:
 * Include/internal/pycore_object.h and _PyObject_VisitInstanceAttributes, PyObject_VisitManagedDict
 * in Objects/dictobject.c.
 */
static bool managed(struct gm_object_walk *walk, uint64_t object, const struct gm_type *type)
{
	unsigned minor = walk->python->minor;
	unsigned char head[4];
	uint64_t values;

	if (minor >= 13) {
		values = object + (minor == 13 ? 16 : type->basicsize);
		if (type->flags & GM_TYPE_INLINE && type->keys &&
		    gm_memory_read(walk->python->memory, values, head, sizeof(head)) && head[3] &&
		    !entries(walk, type->keys, values + 8, head[0], 0, attribute, NULL))
			return false;
		return dict_at(walk, object - 24);
	}
	if (!needed(walk, object - (minor == 11 ? 32 : 24), &values))
		return true;
	if (minor == 12 && !(values & 1))
		return dict_at(walk, object - 24);
	values += minor == 12;
	if (values && type->keys &&
	    !entries(walk, type->keys, values, UINT64_MAX, 0, attribute, NULL))
		return false;
	return minor == 12 || dict_at(walk, object - 24);
}

/*
 * A negative offset counts from the end of an object of variable size. What lies within the known
 * structure is walked with it.
 */
static bool own_dict(struct gm_object_walk *walk, uint64_t object, const struct gm_type *type)
{
	int64_t offset = type->dictoffset, count;

	if (offset > 0 && offset < (int64_t)type->opaque_from && type->kind != GM_IS_OPAQUE)
		return true;
	if (type->flags & GM_TYPE_MANAGED_DICT && walk->python->minor >= 11)
		return managed(walk, object, type);
	if (offset < 0) {
		if (!gm_memory_read(walk->python->memory, object + GM_VAR_SIZE, &count, 8))
			return true;
		if (type->kind == GM_IS_INT && walk->python->minor >= 12)
			count >>= 3;
		if (count < 0)
			count = -count;
		if ((uint64_t)count > MOST_ITEMS)
			return true;
		offset += ((int64_t)type->basicsize + count * type->itemsize + 7) & ~7ll;
	}
	return offset < 16 || dict_at(walk, object + (uint64_t)offset);
}

static bool members(struct gm_object_walk *walk, uint64_t object, const struct gm_type *type)
{
	for (unsigned i = 0; i < type->members_count; i++) {
		const struct gm_member *member = &type->members[i];
		struct gm_edge edge = {.slot = object + member->offset,
				       .how = GM_BY_MEMBER,
				       .key = member->name,
				       .name = member->literal,
				       .sure = true};

		if (member->literal && strcmp(member->literal, "__dict__") == 0)
			edge.how = GM_BY_DICT;
		if (word(walk, edge.slot, &edge.child) && !gm_walk_report(walk, &edge))
			return false;
	}
	return true;
}

/* ---- frames ---- */

/* The name of local `index`: one tuple of names from 3.11 on, before that three in a row. */
static uint64_t local_name(struct gm_object_walk *walk, uint64_t code, uint64_t index)
{
	const struct gm_python_offsets *at = walk->python->offsets;
	const unsigned tuples[] = {at->code_names, at->code_cellvars, at->code_freevars};
	uint64_t tuple, count, name = 0;

	for (unsigned i = 0; i < (walk->python->minor >= 11 ? 1 : 3); i++) {
		if (!word(walk, code + tuples[i], &tuple) ||
		    !word(walk, tuple + GM_VAR_SIZE, &count))
			return 0;
		if (index < count) {
			word(walk, tuple + at->tuple_items + index * 8, &name);
			return name;
		}
		index -= count;
	}
	return 0;
}

/* A frame's slots: locals, then what is on its stack, of which `top` says how much is (0: unknown).
 */
static bool slots(struct gm_object_walk *walk, uint64_t code, uint64_t start, uint64_t locals,
		  int64_t top)
{
	struct gm_edge edge = {.slot = start, .how = GM_BY_LOCAL, .key = code, .sure = true};
	uint32_t deepest = 0;

	if (locals > 1 << 16)
		return true;
	for (uint64_t i = 0; i < locals; i++, edge.slot += 8) {
		uint64_t value;

		edge.index = i;
		if (!word(walk, edge.slot, &value))
			return true;
		take_slot(walk, &edge, value);
		edge.key = edge.child ? local_name(walk, code, i) : 0;
		if (!gm_walk_report(walk, &edge))
			return false;
	}
	edge.how = GM_BY_STACK;
	edge.key = edge.index = 0;
	edge.sure = top > 0;
	if (top > 0)
		return items(walk, edge, (uint64_t)top > locals ? (uint64_t)top - locals : 0);
	if (!walk->unsure || top < 0 ||
	    !number(walk, code + walk->python->offsets->code_stacksize, &deepest) ||
	    deepest > 1 << 16)
		return true;
	return items(walk, edge, deepest);
}

/*
 * Returns the number of slots of a frame that are in use, its locals included. While the frame
 * runs, the number is in a register: 0. From 3.14 on a running frame has the number whenever it
 * called something.
 */
static int64_t stack_top(struct gm_object_walk *walk, uint64_t frame)
{
	const struct gm_python_offsets *at = walk->python->offsets;
	uint64_t slots = frame + at->frame_local_slots, pointer = 0;
	int32_t top = 0;

	if (walk->python->minor <= 13) {
		gm_memory_read(walk->python->memory, frame + at->frame_stack, &top, sizeof(top));
		return top < 0 ? 0 : top;
	}
	if (!needed(walk, frame + at->frame_stack, &pointer) || pointer < slots ||
	    pointer - slots > MOST_BYTES)
		return 0;
	return (int64_t)((pointer - slots) / 8);
}

/* _PyInterpreterFrame, from 3.11 on. */
static bool inner_frame(struct gm_object_walk *walk, uint64_t frame)
{
	const struct gm_python_offsets *at = walk->python->offsets;
	uint32_t locals = 0;
	uint64_t code;

	if (!needed(walk, frame + at->frame_code, &code))
		return true;
	code = gm_cpython_untag(walk->python, code);
	if (!number(walk, code + at->code_locals, &locals))
		return true;
	return frame_field(walk, frame, at->frame_function, "function") &&
	       frame_field(walk, frame, at->frame_code, "code") &&
	       field(walk, frame, at->frame_locals, "f_locals") &&
	       field(walk, frame, at->frame_object, "frame") &&
	       slots(walk, code, frame + at->frame_local_slots, locals, stack_top(walk, frame));
}

static bool old_frame(struct gm_object_walk *walk, uint64_t frame)
{
	const struct gm_python_offsets *at = walk->python->offsets;
	uint64_t code, stack, locals, start = frame + at->frame_local_slots, top = 0;
	int64_t height = -1; /* empty, unless it runs */
	uint32_t depth = 0;
	char run = 0;

	if (!needed(walk, frame + at->frame_code, &code) || !word(walk, frame + 64, &stack) ||
	    stack < start)
		return true;
	locals = (stack - start) / 8;
	/* f_executing is 1 while it runs; from 3.10 on f_state is 0 (FRAME_EXECUTING). */
	if (gm_memory_read(walk->python->memory, frame + at->frame_run, &run, 1) &&
	    run == (walk->python->minor <= 9))
		height = 0;
	if (walk->python->minor <= 9) {
		if (word(walk, frame + at->frame_stack, &top) && top >= stack)
			height = (int64_t)(locals + (top - stack) / 8);
	} else if (number(walk, frame + at->frame_stack, &depth) && (int32_t)depth >= 0) {
		height = (int64_t)locals + (int32_t)depth;
	}
	return field(walk, frame, at->frame_previous, "f_back") &&
	       field(walk, frame, at->frame_code, "code") && field(walk, frame, 40, "f_builtins") &&
	       field(walk, frame, 48, "f_globals") &&
	       field(walk, frame, at->frame_locals, "f_locals") &&
	       field(walk, frame, at->frame_trace, "f_trace") &&
	       slots(walk, code, start, locals, height);
}

static bool frame(struct gm_object_walk *walk, uint64_t object)
{
	const struct gm_python_offsets *at = walk->python->offsets;
	unsigned char owner;
	uint64_t inner;

	if (walk->python->minor <= 10)
		return old_frame(walk, object);
	if (!field(walk, object, 16, "f_back") || !field(walk, object, 32, "f_trace") ||
	    (walk->python->minor >= 13 && (!field(walk, object, 48, "f_extra_locals") ||
					   !field(walk, object, 56, "f_locals"))) ||
	    (walk->python->minor >= 14 && !field(walk, object, 64, "f_overwritten_fast_locals")))
		return false;
	if (!needed(walk, object + 24, &inner) ||
	    !gm_memory_read(walk->python->memory, inner + at->frame_owner, &owner, 1) ||
	    owner != FRAME_OBJECT_OWNED)
		return true; /* it runs: its locals are the thread's or the generator's */
	return inner_frame(walk, inner);
}

/* _PyErr_StackItem: to 3.10 three references. */
static bool exc_item(struct gm_object_walk *walk, uint64_t item)
{
	if (walk->python->minor >= 11)
		return field(walk, item, 0, "exception");
	return field(walk, item, 0, "exception type") && field(walk, item, 8, "exception") &&
	       field(walk, item, 16, "exception traceback");
}

/* A plain generator has no origin: nothing sets the word, or the object ends before it. */
static bool generator(struct gm_object_walk *walk, uint64_t object, const struct gm_type *type)
{
	const struct gm_python_offsets *at = walk->python->offsets;
	bool old = walk->python->minor <= 10;
	signed char state = 0;

	if (!exc_item(walk, object + at->generator_exc) ||
	    (strcmp(type->name, "generator") != 0 &&
	     !field(walk, object, at->generator_exc + (old ? 32 : 16), "origin")))
		return false;
	if (at->generator_code && !field(walk, object, at->generator_code, "code"))
		return false;
	if (old)
		return field(walk, object, at->generator_frame, "frame");
	gm_memory_read(walk->python->memory, object + at->generator_state, &state, 1);
	return state >= GENERATOR_CLEARED || inner_frame(walk, object + at->generator_frame);
}

/* ---- others ---- */

static bool function(struct gm_object_walk *walk, uint64_t object)
{
	const struct gm_python_offsets *at = walk->python->offsets;

	return field(walk, object, at->function_code, "__code__") &&
	       field(walk, object, at->function_globals, "__globals__") &&
	       (!at->function_builtins ||
		field(walk, object, at->function_builtins, "__builtins__")) &&
	       field(walk, object, at->function_defaults, "__defaults__") &&
	       field(walk, object, at->function_kwdefaults, "__kwdefaults__") &&
	       field(walk, object, at->function_closure, "__closure__") &&
	       field(walk, object, at->function_doc, "__doc__") &&
	       field(walk, object, at->function_dict, "__dict__") &&
	       field(walk, object, at->function_module, "__module__") &&
	       field(walk, object, at->function_annotations, "__annotations__") &&
	       (!at->function_annotate ||
		field(walk, object, at->function_annotate, "__annotate__")) &&
	       (!at->function_typeparams ||
		field(walk, object, at->function_typeparams, "__type_params__"));
}

/* Static types have no references that keep memory, except for their dict. */
static bool type_object(struct gm_object_walk *walk, uint64_t object)
{
	uint32_t flags = 0;

	number(walk, object + GM_TYPE_FLAGS, &flags);
	if (!dict_at(walk, object + GM_TYPE_DICT))
		return false;
	if (!(flags & GM_TYPE_HEAP))
		return true;
	return field(walk, object, GM_TYPE_MRO, "__mro__") &&
	       field(walk, object, GM_TYPE_BASES, "__bases__") &&
	       field(walk, object, GM_TYPE_BASE, "__base__") &&
	       field(walk, object, GM_TYPE_CACHE, "tp_cache") &&
	       (!walk->python->offsets->type_module ||
		field(walk, object, walk->python->offsets->type_module, "module"));
}

static bool exception(struct gm_object_walk *walk, uint64_t object)
{
	const struct gm_python_offsets *at = walk->python->offsets;

	return field(walk, object, 16, "__dict__") && field(walk, object, 24, "args") &&
	       (!at->exc_notes || field(walk, object, at->exc_notes, "__notes__")) &&
	       field(walk, object, at->exc_traceback, "__traceback__") &&
	       field(walk, object, at->exc_traceback + 8, "__context__") &&
	       field(walk, object, at->exc_traceback + 16, "__cause__");
}

static bool weak_reference(struct gm_object_walk *walk, uint64_t object)
{
	struct gm_edge edge = {.slot = object + 16,
			       .how = GM_BY_NAME,
			       .name = "referent",
			       .weak = true,
			       .sure = true};

	if (word(walk, edge.slot, &edge.child) && !gm_walk_report(walk, &edge))
		return false;
	return field(walk, object, 24, "__callback__");
}

/* PySetObject: fill, used, mask, table; an entry is a key and its hash. */
static bool set(struct gm_object_walk *walk, uint64_t object)
{
	uint64_t used, mask, table;

	if (!word(walk, object + 24, &used) || !needed(walk, object + 32, &mask) ||
	    !needed(walk, object + 40, &table) || mask >= MOST_ITEMS)
		return true;
	for (uint64_t from = 0; from <= mask; from += BATCH / 2) {
		uint64_t batch[BATCH],
			piece = mask + 1 - from < BATCH / 2 ? mask + 1 - from : BATCH / 2;

		if (!gm_memory_read(walk->python->memory, table + from * 16, batch, piece * 16))
			return true;
		for (uint64_t i = 0; i < piece; i++) {
			struct gm_edge edge = {.child = batch[i * 2],
					       .slot = table + (from + i) * 16,
					       .size = used,
					       .how = GM_AS_KEY,
					       .sure = true};

			if (!gm_walk_report(walk, &edge))
				return false;
		}
	}
	return true;
}

/* dequeobject: blocks of 64 references between two links; the first begins at leftindex. */
static bool deque(struct gm_object_walk *walk, uint64_t object)
{
	uint64_t size, block, left, blocks = 0;
	struct gm_edge edge = {.how = GM_BY_ITEM, .sure = true};

	if (!word(walk, object + GM_VAR_SIZE, &size) || !needed(walk, object + 24, &block) ||
	    !needed(walk, object + 40, &left) || left > 64 || size > MOST_ITEMS)
		return true;
	edge.size = size;
	edge.size_at = object + GM_VAR_SIZE;
	while (size && block && blocks++ < MOST_ITEMS / 64) {
		uint64_t piece = 64 - left < size ? 64 - left : size;

		edge.slot = block + 8 + left * 8;
		if (!items(walk, edge, piece))
			return false;
		edge.index += piece;
		size -= piece;
		left = 0;
		if (!word(walk, block + 520, &block))
			return true;
	}
	return true;
}

/*
 * lru_cache_object: the links of a bounded cache are in its dict too, and hold results; wrapper,
 * typed, cache, hits, func follow the list's root.
 */
static bool lru(struct gm_object_walk *walk, uint64_t object)
{
	unsigned end = walk->python->minor >= 10 ? 128 : 112;

	return field(walk, object, 72, "cache") && field(walk, object, 88, "func") &&
	       (walk->python->minor < 10 || (field(walk, object, 112, "kwd_mark") &&
					     field(walk, object, 120, "lru_list_elem_type"))) &&
	       field(walk, object, end, "cache_info_type") &&
	       field(walk, object, end + 8, "__dict__");
}

/* CDataObject (Modules/_ctypes/ctypes.h): b_ptr, b_needsfree, b_base, b_size, ..., b_objects. */
static bool ctypes_object(struct gm_object_walk *walk, uint64_t object, const struct gm_type *type)
{
	uint64_t memory, bytes;

	if (!field(walk, object, 32, "_b_base_") || !field(walk, object, 64, "_objects"))
		return false;
	if (type->opaque_from == 160 &&
	    (!field(walk, object, 104, "callable") || !field(walk, object, 112, "converters") ||
	     !field(walk, object, 120, "argtypes") || !field(walk, object, 128, "restype") ||
	     !field(walk, object, 144, "errcheck") || !field(walk, object, 152, "paramflags")))
		return false;
	if (walk->unsure || !walk->bytes || !needed(walk, object + 16, &memory) ||
	    !word(walk, object + 40, &bytes))
		return true;
	return walk->bytes(walk, memory, bytes < MOST_BYTES ? bytes : MOST_BYTES, true);
}

/* arrayobject: the second int of its descriptor is the size of an item. */
static bool array(struct gm_object_walk *walk, uint64_t object)
{
	uint64_t memory, count, descriptor;
	uint32_t item = 0;

	if (walk->unsure || !walk->bytes || !word(walk, object + GM_VAR_SIZE, &count) ||
	    !needed(walk, object + 24, &memory) || !word(walk, object + 40, &descriptor) ||
	    !number(walk, descriptor + 4, &item) || item != 8 || count > MOST_BYTES)
		return true;
	return walk->bytes(walk, memory, count * 8, true);
}

/*
 * numpy's PyArrayObject_fields: data, nd, dimensions, strides, base, descr; type_num of the
 * descriptor at 28, NPY_OBJECT is 17 (ndarraytypes.h of 1.x and 2.x).
 */
static bool ndarray(struct gm_object_walk *walk, uint64_t object)
{
	uint64_t base = 0, descriptor, memory, dimensions, count = 1, length;
	struct gm_edge edge = {.how = GM_BY_ITEM, .sure = true};
	uint32_t type = 0, axes = 0;

	if (!field(walk, object, 48, "base") || !field(walk, object, 56, "dtype"))
		return false;
	if (!walk->unsure && walk->bytes && !walk->bytes(walk, object + 16, 8, true))
		return false;
	word(walk, object + 48, &base);
	if (base || !word(walk, object + 56, &descriptor) ||
	    !number(walk, descriptor + 28, &type) || type != 17 ||
	    !needed(walk, object + 16, &memory) || !number(walk, object + 24, &axes) || axes > 64 ||
	    !word(walk, object + 32, &dimensions))
		return true;
	for (uint32_t i = 0; i < axes; i++) {
		if (!word(walk, dimensions + i * 8, &length) || length > MOST_ITEMS)
			return true;
		count *= length;
		if (count > MOST_ITEMS)
			return true;
	}
	edge.slot = memory;
	edge.size = count;
	return items(walk, edge, count);
}

/* Nodes of a context's map, told apart by their size: array, bitmap, collision (Python/hamt.c). */
static bool hamt(struct gm_object_walk *walk, uint64_t object, const struct gm_type *type)
{
	struct gm_edge edge = {.how = GM_BY_ITEM, .sure = true};
	uint64_t count = 32;

	edge.slot = object + 16;
	if (type->itemsize) {
		edge.slot = object + 32;
		if (!word(walk, object + GM_VAR_SIZE, &count))
			return true;
	}
	edge.size = count;
	return items(walk, edge, count);
}

static bool list(struct gm_object_walk *walk, uint64_t object)
{
	struct gm_edge edge = {.how = GM_BY_ITEM, .size_at = object + GM_VAR_SIZE, .sure = true};

	if (!word(walk, edge.size_at, &edge.size) ||
	    !needed(walk, object + GM_LIST_ITEMS, &edge.slot))
		return true;
	return items(walk, edge, edge.size);
}

static bool tuple(struct gm_object_walk *walk, uint64_t object)
{
	struct gm_edge edge = {.how = GM_BY_ITEM,
			       .slot = object + walk->python->offsets->tuple_items,
			       .sure = true};

	return !word(walk, object + GM_VAR_SIZE, &edge.size) || items(walk, edge, edge.size);
}

/* ---- roots ---- */

static bool root(struct gm_object_walk *walk, uint64_t slot, const char *name)
{
	struct gm_edge edge = {.slot = slot, .name = name, .how = GM_BY_ROOT, .sure = true};

	return !word(walk, slot, &edge.child) || gm_walk_report(walk, &edge);
}

/* Functions that atexit calls: pointers to {func, args, kwargs}; from 3.14 on a list of tuples. */
static bool atexit_calls(struct gm_object_walk *walk, uint64_t state)
{
	uint64_t calls, call, list;
	uint32_t count = 0;

	if (walk->python->minor <= 13) {
		if (!word(walk, state, &calls) || !number(walk, state + 8, &count))
			return true;
	} else if (!word(walk, state, &list) || !list ||
		   !word(walk, list + GM_LIST_ITEMS, &calls) ||
		   !number(walk, list + GM_VAR_SIZE, &count)) {
		return true;
	}
	for (uint32_t i = 0; calls && i < count && count <= 1 << 16; i++) {
		if (!word(walk, calls + i * 8, &call) || !call)
			continue;
		if (walk->python->minor >= 14)
			call += walk->python->offsets->tuple_items;
		if (!root(walk, call, "atexit function") ||
		    !root(walk, call + 8, "atexit arguments") ||
		    !root(walk, call + 16, "atexit arguments"))
			return false;
	}
	return true;
}

static bool interpreter(struct gm_object_walk *walk, uint64_t state)
{
	const struct gm_python_offsets *at = walk->python->offsets;
	uint64_t modules = 0, module, module_state = 0, gc;

	gc = (walk->python->minor == 8 ? walk->python->runtime : state) + at->generations +
	     (walk->python->minor <= 13 ? 184 : 176);
	if (!root(walk, state + at->modules, "sys.modules") ||
	    !root(walk, state + at->sysdict, "sys") ||
	    !root(walk, state + at->builtins, "builtins") ||
	    !root(walk, state + at->dict, "interpreter's dict") || !root(walk, gc, "gc.garbage") ||
	    !root(walk, gc + 8, "gc.callbacks") ||
	    !root(walk, state + at->forkers, "os.register_at_fork") ||
	    !root(walk, state + at->forkers + 8, "os.register_at_fork") ||
	    !root(walk, state + at->forkers + 16, "os.register_at_fork"))
		return false;
	if (at->atexit)
		return atexit_calls(walk, state + at->atexit);
	word(walk, state + at->modules, &modules);
	module = gm_cpython_lookup(walk->python, modules, "atexit");
	return !module || !word(walk, module + GM_MODULE_STATE, &module_state) || !module_state ||
	       atexit_calls(walk, module_state);
}

static bool thread(struct gm_object_walk *walk, uint64_t state)
{
	const struct gm_python_offsets *at = walk->python->offsets;
	uint64_t item = 0;

	if (!root(walk, state + at->exception, "exception being raised") ||
	    (walk->python->minor <= 11 &&
	     (!root(walk, state + at->exception + 8, "exception being raised") ||
	      !root(walk, state + at->exception + 16, "exception being raised"))) ||
	    !root(walk, state + at->thread_dict, "thread-local storage") ||
	    !root(walk, state + at->async_exc, "exception to be raised") ||
	    !root(walk, state + at->thread_context, "context") ||
	    !root(walk, state + at->thread_context - 16, "asyncgen hook") ||
	    !root(walk, state + at->thread_context - 8, "asyncgen hook") ||
	    !root(walk, state + at->profile_object, "sys.setprofile") ||
	    !root(walk, state + at->profile_object + 8, "sys.settrace"))
		return false;
	word(walk, state + at->exc_info, &item);
	for (unsigned i = 0; item && i < 10000; i++) {
		if (walk->python->minor >= 11) {
			if (!root(walk, item, "exception being handled"))
				return false;
		} else if (!root(walk, item, "exception being handled") ||
			   !root(walk, item + 8, "exception being handled") ||
			   !root(walk, item + 16, "exception being handled")) {
			return false;
		}
		if (!word(walk, item + (walk->python->minor >= 11 ? 8 : 24), &item))
			return true;
	}
	return true;
}

/* ---- dispatch ---- */

/* Words of a structure that is not known: references are only reported as unsure. */
static bool opaque(struct gm_object_walk *walk, uint64_t object, const struct gm_type *type)
{
	uint64_t end = type->opaque_to < 4096 ? type->opaque_to : 4096;

	if (!type->opaque_to)
		return true;
	if (!walk->unsure)
		return !walk->bytes || type->opaque_from >= end ||
		       walk->bytes(walk, object + type->opaque_from, end - type->opaque_from, true);
	for (uint64_t at = type->opaque_from; at + 8 <= end; at += 8) {
		struct gm_edge edge = {.slot = object + at, .index = at, .how = GM_BY_WORD};
		bool known = false;

		for (unsigned i = 0; i < type->members_count; i++)
			known |= type->members[i].offset == at;
		if (!known && word(walk, edge.slot, &edge.child) && !gm_walk_report(walk, &edge))
			return false;
	}
	return true;
}

static bool by_kind(struct gm_object_walk *walk, uint64_t object, const struct gm_type *type)
{
	switch (type->kind) {
	case GM_IS_LIST:
		return list(walk, object);
	case GM_IS_TUPLE:
		return tuple(walk, object);
	case GM_IS_DICT:
		return gm_cpython_entries(walk, object, dict_entry, NULL);
	case GM_IS_SET:
		return set(walk, object);
	case GM_IS_MODULE:
		return dict_at(walk, object + GM_MODULE_DICT);
	case GM_IS_FUNCTION:
		return function(walk, object);
	case GM_IS_FRAME:
		return frame(walk, object);
	case GM_IS_RUNNING:
		return inner_frame(walk, object);
	case GM_IS_THREAD:
		return thread(walk, object);
	case GM_IS_ROOTS:
		return interpreter(walk, object);
	case GM_IS_GENERATOR:
		return generator(walk, object, type);
	case GM_IS_TYPE:
		return type_object(walk, object);
	case GM_IS_EXCEPTION:
		return exception(walk, object);
	case GM_IS_WEAKREF:
		return weak_reference(walk, object);
	case GM_IS_FIELDS:
		for (unsigned i = 0; i < GM_FIELDS && type->row->field[i].name; i++)
			if (!field(walk, object, type->row->field[i].offset,
				   type->row->field[i].name))
				return false;
		return true;
	case GM_IS_DEQUE:
		return deque(walk, object);
	case GM_IS_LRU:
		return lru(walk, object);
	case GM_IS_CTYPES:
		return ctypes_object(walk, object, type);
	case GM_IS_ARRAY:
		return array(walk, object);
	case GM_IS_NDARRAY:
		return ndarray(walk, object);
	case GM_IS_HAMT:
		return hamt(walk, object, type);
	default:
		return gm_walk_torch(walk, object, type);
	}
}

bool gm_walk_object(struct gm_object_walk *walk, uint64_t object, const struct gm_type *type)
{
	struct gm_edge edge = {.slot = object + GM_OBJECT_TYPE, .how = GM_BY_TYPE, .sure = true};
	bool real = type->kind != GM_IS_RUNNING && type->kind != GM_IS_THREAD &&
		    type->kind != GM_IS_ROOTS;

	walk->needs_count = 0;
	if (type->kind >= GM_IS_TENSOR_IMPL)
		return gm_walk_torch(walk, object, type);
	if (real)
		gm_walk_need(walk, object + GM_OBJECT_TYPE, type->address);
	if (!by_kind(walk, object, type))
		return false;
	if (!real)
		return true;
	walk->needs_count = 1;
	if (!members(walk, object, type) || !own_dict(walk, object, type) ||
	    !opaque(walk, object, type))
		return false;
	edge.child = type->flags & GM_TYPE_HEAP ? type->address : 0;
	return gm_walk_report(walk, &edge);
}
