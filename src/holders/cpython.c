/*
 * Types, texts and numbers of a CPython in another process (internal.h).
 * What an object is, is decided by its type alone: by the flags that CPython keeps for its own
 * families, by the type's name and size for C types whose structure is known, and by the nearest
 * such base for the rest. Nothing is guessed from an object's contents.
 */
#include "holders/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (unsigned)(sizeof(array) / sizeof(*(array)))
#define MOST_BASES   64u
#define MOST_NAME    512u
#define MOST_MEMBERS 256u
#define ALL	     8, 14
#define GROUPBY                                                                                    \
	{                                                                                          \
		{"it", 16}, {"keyfunc", 24}, {"tgtkey", 32}, {"currkey", 40}, {"currvalue", 48}    \
	}
#define ACCUMULATE                                                                                 \
	{                                                                                          \
		{"total", 16}, {"it", 24}, {"binop", 32}, {"initial", 40}                          \
	}
#define FUTURE                                                                                     \
	{"_loop", 16}, {"callback0", 24}, {"context0", 32},                                        \
	{                                                                                          \
		"_callbacks", 40                                                                   \
	}

/* tp_flags: Py_TPFLAGS_*_SUBCLASS of Include/object.h. */
#define FLAG_INT       (1u << 24)
#define FLAG_LIST      (1u << 25)
#define FLAG_TUPLE     (1u << 26)
#define FLAG_BYTES     (1u << 27)
#define FLAG_STR       (1u << 28)
#define FLAG_DICT      (1u << 29)
#define FLAG_EXCEPTION (1u << 30)
#define FLAG_TYPE      (1u << 31)

/*
 * Names are tp_name as the type has it. The references are those that the type's tp_traverse visits
 * (its source: the files of Objects, Python/context.c, Modules/_functoolsmodule.c,
 * Modules/_asynciomodule.c, Modules/_threadmodule.c, Modules/_queuemodule.c,
 * Modules/itertoolsmodule.c, Modules/_operator.c, Modules/_csv.c, Modules/_io/bufferedio.c).
 */
static const struct gm_fields_row field_rows[] = {
	{"cell", ALL, 24, {{"cell_contents", 16}}},
	{"method", ALL, 48, {{"__func__", 16}, {"__self__", 24}}},
	{"instancemethod", ALL, 24, {{"__func__", 16}}},
	{"builtin_function_or_method", ALL, 56, {{"__self__", 24}, {"__module__", 32}}},
	{"builtin_method", 9, 14, 64, {{"__self__", 24}, {"__module__", 32}, {"mm_class", 56}}},
	{"method-wrapper", ALL, 32, {{"descr", 16}, {"__self__", 24}}},
	{"property", 8, 9, 56, {{"fget", 16}, {"fset", 24}, {"fdel", 32}, {"__doc__", 40}}},
	{"property", 10, 14, 64, {{"fget", 16}, {"fset", 24}, {"fdel", 32}, {"__doc__", 40}}},
	{"classmethod", ALL, 32, {{"__func__", 16}, {"__dict__", 24}}},
	{"staticmethod", ALL, 32, {{"__func__", 16}, {"__dict__", 24}}},
	{"mappingproxy", ALL, 24, {{"mapping", 16}}},
	{"traceback", ALL, 40, {{"tb_next", 16}, {"tb_frame", 24}}},
	{"slice", ALL, 40, {{"start", 16}, {"stop", 24}, {"step", 32}}},
	{"super", ALL, 40, {{"type", 16}, {"obj", 24}, {"obj_type", 32}}},
	{"list_iterator", ALL, 32, {{"it_seq", 24}}},
	{"list_reverseiterator", ALL, 32, {{"it_seq", 24}}},
	{"tuple_iterator", ALL, 32, {{"it_seq", 24}}},
	{"iterator", ALL, 32, {{"it_seq", 24}}},
	{"callable_iterator", ALL, 32, {{"it_callable", 16}, {"it_sentinel", 24}}},
	{"set_iterator", ALL, 48, {{"si_set", 16}}},
	{"dict_keyiterator", ALL, 56, {{"di_dict", 16}, {"di_result", 40}}},
	{"dict_valueiterator", ALL, 56, {{"di_dict", 16}, {"di_result", 40}}},
	{"dict_itemiterator", ALL, 56, {{"di_dict", 16}, {"di_result", 40}}},
	{"dict_reversekeyiterator", ALL, 56, {{"di_dict", 16}, {"di_result", 40}}},
	{"dict_reversevalueiterator", ALL, 56, {{"di_dict", 16}, {"di_result", 40}}},
	{"dict_reverseitemiterator", ALL, 56, {{"di_dict", 16}, {"di_result", 40}}},
	{"odict_iterator", ALL, 64, {{"di_odict", 24}, {"di_current", 48}, {"di_result", 56}}},
	{"dict_keys", ALL, 24, {{"dv_dict", 16}}},
	{"dict_values", ALL, 24, {{"dv_dict", 16}}},
	{"dict_items", ALL, 24, {{"dv_dict", 16}}},
	{"enumerate", ALL, 48, {{"en_sit", 24}, {"en_result", 32}, {"en_longindex", 40}}},
	{"enumerate", ALL, 56, {{"en_sit", 24}, {"en_result", 32}, {"en_longindex", 40}}},
	{"reversed", ALL, 32, {{"seq", 24}}},
	{"map", 8, 13, 32, {{"iters", 16}, {"func", 24}}},
	{"map", 14, 14, 40, {{"iters", 16}, {"func", 24}}},
	{"filter", ALL, 32, {{"func", 16}, {"it", 24}}},
	{"itertools.cycle", 8, 13, 48, {{"it", 16}, {"saved", 24}}},
	{"itertools.cycle", 14, 14, 40, {{"it", 16}, {"saved", 24}}},
	{"itertools.chain", ALL, 32, {{"source", 16}, {"active", 24}}},
	{"itertools.groupby", ALL, 64, GROUPBY},
	{"itertools.groupby", ALL, 72, GROUPBY},
	{"itertools._grouper", ALL, 32, {{"parent", 16}, {"tgtkey", 24}}},
	{"itertools.islice", ALL, 56, {{"it", 16}}},
	{"itertools.product", ALL, 48, {{"pools", 16}, {"result", 32}}},
	{"itertools.permutations", ALL, 64, {{"pool", 16}, {"result", 40}}},
	{"itertools.combinations", ALL, 56, {{"pool", 16}, {"result", 32}}},
	{"itertools.combinations_with_replacement", ALL, 56, {{"pool", 16}, {"result", 32}}},
	{"itertools.accumulate", ALL, 48, ACCUMULATE},
	{"itertools.accumulate", ALL, 56, ACCUMULATE},
	{"itertools.compress", ALL, 32, {{"data", 16}, {"selectors", 24}}},
	{"itertools.filterfalse", ALL, 32, {{"func", 16}, {"it", 24}}},
	{"itertools.takewhile", ALL, 40, {{"func", 16}, {"it", 24}}},
	{"itertools.dropwhile", ALL, 40, {{"func", 16}, {"it", 24}}},
	{"itertools.starmap", ALL, 32, {{"func", 16}, {"it", 24}}},
	{"itertools.count", ALL, 40, {{"cnt", 24}, {"step", 32}}},
	{"itertools.repeat", ALL, 32, {{"element", 16}}},
	{"itertools.zip_longest", ALL, 56, {{"ittuple", 32}, {"result", 40}, {"fillvalue", 48}}},
	{"itertools.pairwise", 10, 12, 32, {{"it", 16}, {"old", 24}}},
	{"itertools.pairwise", 13, 14, 40, {{"it", 16}, {"old", 24}, {"result", 32}}},
	{"itertools.batched", 12, 12, 32, {{"it", 16}}},
	{"itertools.batched", 13, 14, 40, {{"it", 16}}},
	{"itertools._tee", ALL, 40, {{"dataobj", 16}}},
	{"itertools._tee", ALL, 48, {{"dataobj", 16}}},
	{"operator.itemgetter", ALL, 40, {{"item", 24}, {"index", 32}}},
	{"operator.itemgetter", ALL, 48, {{"item", 24}}},
	{"operator.attrgetter", ALL, 32, {{"attr", 24}}},
	{"operator.attrgetter", ALL, 40, {{"attr", 24}}},
	{"operator.methodcaller", ALL, 40, {{"name", 16}, {"args", 24}, {"kwds", 32}}},
	{"operator.methodcaller", 13, 14, 64, {{"name", 16}, {"args", 24}, {"kwds", 32}}},
	{"memoryview", ALL, 144, {{"mbuf", 24}}},
	{"managedbuffer", ALL, 112, {{"obj", 40}}},
	{"getset_descriptor", ALL, 48, {{"__objclass__", 16}}},
	{"member_descriptor", ALL, 48, {{"__objclass__", 16}}},
	{"wrapper_descriptor", ALL, 56, {{"__objclass__", 16}}},
	{"method_descriptor", ALL, 56, {{"__objclass__", 16}}},
	{"classmethod_descriptor", ALL, 56, {{"__objclass__", 16}}},
	{"_io.BufferedRWPair", ALL, 48, {{"reader", 16}, {"writer", 24}, {"__dict__", 32}}},
	{"_csv.reader", ALL, 88, {{"input_iter", 16}, {"dialect", 24}, {"fields", 32}}},
	{"_csv.writer", ALL, 64, {{"write", 16}, {"dialect", 24}}},
	{"_csv.writer", ALL, 72, {{"write", 16}, {"dialect", 24}, {"error_obj", 64}}},
	{"coroutine_wrapper", ALL, 24, {{"cw_coroutine", 16}}},
	{"async_generator_asend", ALL, 40, {{"ags_gen", 16}, {"ags_sendval", 24}}},
	{"async_generator_athrow", ALL, 40, {{"agt_gen", 16}, {"agt_args", 24}}},
	{"async_generator_wrapped_value", ALL, 24, {{"agw_val", 16}}},
	{"Context", ALL, 48, {{"ctx_prev", 16}, {"ctx_vars", 24}}},
	{"_contextvars.Context", ALL, 48, {{"ctx_prev", 16}, {"ctx_vars", 24}}},
	{"ContextVar", ALL, 64, {{"name", 16}, {"default", 24}}},
	{"_contextvars.ContextVar", ALL, 64, {{"name", 16}, {"default", 24}}},
	{"Token", ALL, 48, {{"tok_ctx", 16}, {"var", 24}, {"old_value", 32}}},
	{"_contextvars.Token", ALL, 48, {{"tok_ctx", 16}, {"var", 24}, {"old_value", 32}}},
	{"hamt", ALL, 40, {{"h_root", 16}}},
	{"functools.partial",
	 8,
	 13,
	 64,
	 {{"func", 16}, {"args", 24}, {"keywords", 32}, {"__dict__", 40}}},
	{"functools.partial",
	 14,
	 14,
	 80,
	 {{"func", 16}, {"args", 24}, {"keywords", 32}, {"__dict__", 40}}},
	{"functools._lru_list_elem", ALL, 56, {{"key", 40}, {"result", 48}}},
	{"functools.KeyWrapper", ALL, 32, {{"cmp", 16}, {"obj", 24}}},
	{"_collections._deque_iterator", ALL, 56, {{"deque", 32}}},
	{"_collections._deque_reverse_iterator", ALL, 56, {{"deque", 32}}},
	{"collections._deque_iterator", ALL, 56, {{"deque", 32}}},
	{"collections._deque_reverse_iterator", ALL, 56, {{"deque", 32}}},
	{"_thread._localdummy", 8, 12, 32, {{"localdict", 16}}},
	{"_thread._local", 8, 12, 64, {{"args", 24}, {"kw", 32}, {"dummies", 48}}},
	{"_thread._local",
	 13,
	 14,
	 56,
	 {{"args", 16}, {"kw", 24}, {"localdicts", 40}, {"thread_watchdogs", 48}}},
	{"_queue.SimpleQueue", 8, 12, 56, {{"queue", 32}}},
	{"types.SimpleNamespace", ALL, 24, {{"__dict__", 16}}},
	{"zip", 8, 9, 40, {{"ittuple", 24}, {"result", 32}}},
	{"zip", 10, 14, 48, {{"ittuple", 24}, {"result", 32}}},
	{"TaskStepMethWrapper", ALL, 32, {{"task", 16}, {"arg", 24}}},
	{"TaskWakeupMethWrapper", ALL, 24, {{"task", 16}}},
	{"_asyncio.Future",
	 8,
	 8,
	 104,
	 {FUTURE, {"_exception", 48}, {"_result", 56}, {"source_traceback", 64}, {"__dict__", 88}}},
	{"_asyncio.Future",
	 9,
	 9,
	 144,
	 {FUTURE,
	  {"_exception", 48},
	  {"_result", 56},
	  {"source_traceback", 64},
	  {"_cancel_message", 72},
	  {"__dict__", 96},
	  {"cancelled", 120}}},
	{"_asyncio.Future",
	 10,
	 10,
	 152,
	 {FUTURE,
	  {"_exception", 48},
	  {"exception_tb", 56},
	  {"_result", 64},
	  {"source_traceback", 72},
	  {"_cancel_message", 80},
	  {"__dict__", 104},
	  {"cancelled", 128}}},
	{"_asyncio.Future",
	 11,
	 12,
	 128,
	 {FUTURE,
	  {"_exception", 48},
	  {"exception_tb", 56},
	  {"_result", 64},
	  {"source_traceback", 72},
	  {"_cancel_message", 80},
	  {"__dict__", 104},
	  {"cancelled", 120}}},
	{"_asyncio.Future",
	 13,
	 13,
	 104,
	 {FUTURE,
	  {"_exception", 48},
	  {"exception_tb", 56},
	  {"_result", 64},
	  {"source_traceback", 72},
	  {"_cancel_message", 80},
	  {"cancelled", 88}}},
	{"_asyncio.Future",
	 14,
	 14,
	 112,
	 {FUTURE,
	  {"_exception", 48},
	  {"exception_tb", 56},
	  {"_result", 64},
	  {"source_traceback", 72},
	  {"_cancel_message", 80},
	  {"cancelled", 88},
	  {"awaited_by", 96}}},
};

/* Fields that C types add to the base whose kind they have. */
static const struct gm_fields_row extra_rows[] = {
	{"collections.defaultdict", ALL, 56, {{"default_factory", 48}}},
	{"collections.OrderedDict", ALL, 112, {{NULL, 0}}},
	{"_asyncio.Task", 8, 8, 144, {{"waiter", 104}, {"coro", 112}, {"context", 128}}},
	{"_asyncio.Task", 9, 9, 184, {{"waiter", 144}, {"coro", 152}, {"context", 168}}},
	{"_asyncio.Task", 10, 10, 192, {{"waiter", 152}, {"coro", 160}, {"context", 176}}},
	{"_asyncio.Task", 11, 12, 176, {{"waiter", 128}, {"coro", 136}, {"context", 152}}},
	{"_asyncio.Task", 13, 13, 144, {{"waiter", 112}, {"coro", 120}, {"context", 136}}},
	{"_asyncio.Task", 14, 14, 168, {{"waiter", 120}, {"coro", 128}, {"context", 144}}},
};

/* C types that are walked by code of their own, by tp_name and size; 0: the size follows below. */
static const struct {
	const char *name;
	enum gm_object_kind kind;
	uint16_t bytes;
} own_rows[] = {
	{"module", GM_IS_MODULE, 56},
	{"frame", GM_IS_FRAME, 0},
	{"function", GM_IS_FUNCTION, 0},
	{"generator", GM_IS_GENERATOR, 0},
	{"coroutine", GM_IS_GENERATOR, 0},
	{"async_generator", GM_IS_GENERATOR, 0},
	{"set", GM_IS_SET, 200},
	{"frozenset", GM_IS_SET, 200},
	{"weakref", GM_IS_WEAKREF, 0},
	{"weakref.ReferenceType", GM_IS_WEAKREF, 0},
	{"weakproxy", GM_IS_WEAKREF, 0},
	{"weakref.ProxyType", GM_IS_WEAKREF, 0},
	{"weakcallableproxy", GM_IS_WEAKREF, 0},
	{"weakref.CallableProxyType", GM_IS_WEAKREF, 0},
	{"collections.deque", GM_IS_DEQUE, 0},
	{"functools._lru_cache_wrapper", GM_IS_LRU, 0},
	{"_queue.SimpleQueue", GM_IS_RING, 72},
	{"itertools._tee_dataobject", GM_IS_TEE, 496},
	{"_ctypes._CData", GM_IS_CTYPES, 96},
	{"_ctypes.PyCFuncPtr", GM_IS_CTYPES, 160},
	{"_ctypes.CFuncPtr", GM_IS_CTYPES, 160},
	{"array.array", GM_IS_ARRAY, 64},
	{"numpy.ndarray", GM_IS_NDARRAY, 0},
	{"torch._C._TensorBase", GM_IS_TENSOR, 0},
	{"torch._C.TensorBase", GM_IS_TENSOR, 0},
	{"torch._C.StorageBase", GM_IS_TORCH_STORAGE, 0},
	{"torch._C._StorageBase", GM_IS_TORCH_STORAGE, 0},
	{"torch._C._FunctionBase", GM_IS_TORCH_CONTEXT, 0},
	{"hamt_bitmap_node", GM_IS_HAMT, 0},
	{"hamt_array_node", GM_IS_HAMT, 0},
	{"hamt_collision_node", GM_IS_HAMT, 0},
	{"float", GM_IS_LEAF, 24},
	{"complex", GM_IS_LEAF, 32},
	{"NoneType", GM_IS_LEAF, 0},
	{"NotImplementedType", GM_IS_LEAF, 0},
	{"ellipsis", GM_IS_LEAF, 0},
	{"code", GM_IS_LEAF, 0},
	{"bytearray", GM_IS_LEAF, 0},
	{"range", GM_IS_LEAF, 0},
	{"_thread.lock", GM_IS_LEAF, 0},
	{"_thread.RLock", GM_IS_LEAF, 0},
	{"_ctypes.CField", GM_IS_LEAF, 0},
	{"stderrprinter", GM_IS_LEAF, 0},
};

bool gm_cpython_word(struct gm_cpython *python, uint64_t address, uint64_t *word)
{
	return gm_memory_read(python->memory, address, word, sizeof(*word));
}

bool gm_cpython_string(struct gm_cpython *python, uint64_t address, char *text, size_t bytes)
{
	for (size_t at = 0; at < bytes; at++) {
		if (!gm_memory_read(python->memory, address + at, &text[at], 1))
			return false;
		if (!text[at])
			return true;
	}
	text[bytes - 1] = '\0';
	return true;
}

/* ---- texts ---- */

static size_t put_utf8(char *to, uint32_t point)
{
	if (point < 0x80) {
		to[0] = (char)point;
		return 1;
	}
	if (point < 0x800) {
		to[0] = (char)(0xc0 | point >> 6);
		to[1] = (char)(0x80 | (point & 0x3f));
		return 2;
	}
	if (point < 0x10000) {
		to[0] = (char)(0xe0 | point >> 12);
		to[1] = (char)(0x80 | (point >> 6 & 0x3f));
		to[2] = (char)(0x80 | (point & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | (point >> 18 & 7));
	to[1] = (char)(0x80 | (point >> 12 & 0x3f));
	to[2] = (char)(0x80 | (point >> 6 & 0x3f));
	to[3] = (char)(0x80 | (point & 0x3f));
	return 4;
}

/* PyASCIIObject and PyCompactUnicodeObject: Include/cpython/unicodeobject.h. */
bool gm_cpython_text(struct gm_cpython *python, uint64_t object, char *text, size_t bytes)
{
	const struct gm_type *type = gm_cpython_type_of(python, object);
	bool late = python->minor >= 12; /* without wstr */
	uint64_t data, length;
	size_t used = 0;
	uint32_t state;
	unsigned kind;

	text[0] = '\0';
	if (!type || !(type->flags & FLAG_STR) ||
	    !gm_memory_read(python->memory, object + 16, &length, 8) ||
	    !gm_memory_read(python->memory, object + 32, &state, 4))
		return false;
	state = gm_python_text_state(&python->layout, state);
	kind = state & 7;
	if (!(state >> 3 & 1) || (kind != 1 && kind != 2 && kind != 4)) /* compact only */
		return false;
	data = object + (state >> 4 & 1 ? (late ? 40 : 48) : (late ? 56 : 72));
	for (uint64_t i = 0; i < length && used + 5 < bytes; i++) {
		uint32_t point = 0;

		if (!gm_memory_read(python->memory, data + i * kind, &point, kind))
			return false;
		if (point < 0x20 || point == 0x7f || (point >= 0xd800 && point < 0xe000))
			point = '?';
		used += put_utf8(text + used, point);
	}
	text[used] = '\0';
	return true;
}

/* PyLongObject: digits of 30 bits; Include/longintrepr.h, Include/cpython/longintrepr.h. */
bool gm_cpython_int(struct gm_cpython *python, uint64_t object, uint64_t *value)
{
	uint32_t digits[3] = {0};
	int64_t size;

	if (!gm_memory_read(python->memory, object + 16, &size, 8))
		return false;
	if (python->minor >= 12)
		size = (size & 3) == 2 ? -1 : size >> 3;
	if (size < 0 || size > 3 ||
	    !gm_memory_read(python->memory, object + 24, digits, (size_t)size * 4))
		return false;
	if (digits[2] > 0xf)
		return false;
	*value = (uint64_t)digits[0] | (uint64_t)digits[1] << 30 | (uint64_t)digits[2] << 60;
	return true;
}

/* ---- types ---- */

static unsigned hash_address(uint64_t address)
{
	return (unsigned)((address >> 4) * 0x9E3779B97F4A7C15u >> 40);
}

const struct gm_type *gm_cpython_known_type(const struct gm_cpython *python, uint64_t address)
{
	unsigned mask = python->type_room - 1;

	for (unsigned at = hash_address(address) & mask; python->type_room; at = (at + 1) & mask) {
		uint32_t index = python->type_index[at];

		if (!index)
			return NULL;
		if (python->types[index - 1].address == address)
			return &python->types[index - 1];
	}
	return NULL;
}

static bool index_types(struct gm_cpython *python)
{
	unsigned room = python->type_room ? python->type_room * 2 : 4096;
	uint32_t *index = calloc(room, sizeof(*index));
	struct gm_type *types = realloc(python->types, room / 2 * sizeof(*types));

	if (types)
		python->types = types;
	if (!index || !types) {
		free(index);
		return false;
	}
	for (unsigned i = 0; i < python->types_count; i++) {
		unsigned at = hash_address(types[i].address) & (room - 1);

		while (index[at])
			at = (at + 1) & (room - 1);
		index[at] = i + 1;
	}
	free(python->type_index);
	python->type_index = index;
	python->type_room = room;
	return true;
}

/* True for `type` itself and what derives from it: an object whose type that is, is a type. */
static bool is_metatype(struct gm_cpython *python, uint64_t address)
{
	for (unsigned i = 0; i < MOST_BASES && address; i++) {
		if (address == python->type_type)
			return true;
		if (!gm_cpython_word(python, address + GM_TYPE_BASE, &address))
			return false;
	}
	return false;
}

static const struct gm_fields_row *find_row(const struct gm_cpython *python,
					    const struct gm_fields_row *rows, unsigned count,
					    const char *name, uint64_t bytes)
{
	for (unsigned i = 0; i < count; i++)
		if (strcmp(rows[i].name, name) == 0 && rows[i].first <= python->minor &&
		    python->minor <= rows[i].last && rows[i].bytes == bytes)
			return &rows[i];
	return NULL;
}

static bool has_size(const struct gm_cpython *python, enum gm_object_kind kind, uint64_t bytes)
{
	const struct gm_python_offsets *at = python->offsets;

	switch (kind) {
	case GM_IS_FUNCTION:
		return bytes == at->function_bytes;
	case GM_IS_FRAME:
		return bytes == at->frame_bytes;
	case GM_IS_LRU:
		return bytes == at->lru_bytes;
	case GM_IS_DEQUE:
		return bytes == at->deque_bytes;
	case GM_IS_GENERATOR: /* a coroutine and an asynchronous one have more to 3.10 */
		return bytes >= at->generator_bytes && bytes <= at->generator_bytes + 24u;
	case GM_IS_WEAKREF:
		return bytes == (python->minor >= 11 ? 64 : 56);
	case GM_IS_NDARRAY: /* ndarraytypes.h: PyArrayObject_fields, 80 bytes at its first */
		return bytes >= 80 && bytes <= 128;
	default:
		return true;
	}
}

/* Kinds of types that CPython marks by flags, or that are known by name. False: look at its base.
 */
static bool find_kind(const struct gm_cpython *python, struct gm_type *type, uint64_t address,
		      const char *name, uint32_t flags, uint64_t bytes)
{
	type->row = find_row(python, field_rows, COUNT(field_rows), name, bytes);
	if (type->row) {
		type->kind = GM_IS_FIELDS;
		return true;
	}
	for (unsigned i = 0; i < COUNT(own_rows); i++) {
		if (strcmp(own_rows[i].name, name) != 0 ||
		    (own_rows[i].bytes && own_rows[i].bytes != bytes) ||
		    !has_size(python, own_rows[i].kind, bytes))
			continue;
		type->kind = own_rows[i].kind;
		return true;
	}
	if (address == python->object_type)
		type->kind = GM_IS_PLAIN;
	else if (flags & FLAG_TYPE && address == python->type_type)
		type->kind = GM_IS_TYPE;
	else if (flags & FLAG_INT && strcmp(name, "int") == 0)
		type->kind = GM_IS_INT;
	else if (flags & FLAG_LIST && strcmp(name, "list") == 0 && bytes == 40)
		type->kind = GM_IS_LIST;
	else if (flags & FLAG_TUPLE && strcmp(name, "tuple") == 0 &&
		 bytes == python->offsets->tuple_items)
		type->kind = GM_IS_TUPLE;
	else if (flags & FLAG_DICT && strcmp(name, "dict") == 0 && bytes == 48)
		type->kind = GM_IS_DICT;
	else if (flags & FLAG_BYTES && strcmp(name, "bytes") == 0)
		type->kind = GM_IS_LEAF;
	else if (flags & FLAG_STR && strcmp(name, "str") == 0)
		type->kind = GM_IS_LEAF;
	else if (flags & FLAG_EXCEPTION && strcmp(name, "BaseException") == 0 &&
		 bytes == python->offsets->exception_bytes)
		type->kind = GM_IS_EXCEPTION;
	else
		return false;
	return true;
}

static void add_member(struct gm_type *type, uint64_t name, const char *literal, uint32_t offset)
{
	struct gm_member *more;

	for (unsigned i = 0; i < type->members_count; i++)
		if (type->members[i].offset == offset)
			return;
	more = realloc(type->members, (type->members_count + 1) * sizeof(*more));
	if (!more)
		return;
	type->members = more;
	more[type->members_count++] = (struct gm_member){name, literal, offset};
}

/* PyMemberDef: T_OBJECT is 6, T_OBJECT_EX 16 in all versions (Include/structmember.h). */
static void add_members(struct gm_cpython *python, struct gm_type *type, uint64_t members)
{
	for (unsigned i = 0; members && i < MOST_MEMBERS; i++) {
		struct {
			uint64_t name;
			int32_t type, pad;
			int64_t offset, flags, doc;
		} member;

		if (!gm_memory_read(python->memory, members + i * sizeof(member), &member,
				    sizeof(member)) ||
		    !member.name)
			return;
		if ((member.type == 6 || member.type == 16) && member.offset >= 16 &&
		    member.offset < 1 << 20)
			add_member(type, member.name, NULL, (uint32_t)member.offset);
	}
}

/* The fields of a type object or of one of its bases that decide how it is walked. */
struct type_head {
	uint64_t name, basicsize, itemsize, dealloc, base, members;
	int64_t dictoffset;
	uint32_t flags;
};

static bool read_head(struct gm_cpython *python, uint64_t address, struct type_head *head)
{
	unsigned char bytes[304];

	if (!gm_memory_read(python->memory, address, bytes, sizeof(bytes)))
		return false;
	memcpy(&head->name, bytes + GM_TYPE_NAME, 8);
	memcpy(&head->basicsize, bytes + GM_TYPE_BASICSIZE, 8);
	memcpy(&head->itemsize, bytes + GM_TYPE_ITEMSIZE, 8);
	memcpy(&head->dealloc, bytes + GM_TYPE_DEALLOC, 8);
	memcpy(&head->flags, bytes + GM_TYPE_FLAGS, 4);
	memcpy(&head->members, bytes + GM_TYPE_MEMBERS, 8);
	memcpy(&head->base, bytes + GM_TYPE_BASE, 8);
	memcpy(&head->dictoffset, bytes + GM_TYPE_DICTOFFSET, 8);
	return head->basicsize >= 16 && head->basicsize < 1 << 24 && head->itemsize < 1 << 24;
}

/*
 * Goes from the type to its bases until one is known. What Python code added on the way are slots
 * and a dictionary, which the type describes; a C type of unknown structure makes it opaque.
 */
static void classify(struct gm_cpython *python, struct gm_type *type, struct type_head head)
{
	uint64_t at = type->address;

	for (unsigned i = 0; i < MOST_BASES && at; i++) {
		const struct gm_fields_row *extra = NULL;
		char name[MOST_NAME];
		bool made = head.flags & GM_TYPE_HEAP && python->subtype_dealloc &&
			    head.dealloc == python->subtype_dealloc;

		if (!gm_cpython_string(python, head.name, name, sizeof(name)))
			break;
		if ((!made || at == python->object_type) &&
		    find_kind(python, type, at, name, head.flags, head.basicsize)) {
			type->opaque_from = (uint32_t)head.basicsize;
			/* `object` says nothing of what a C type has. */
			if (type->opaque_to && type->kind == GM_IS_PLAIN)
				type->kind = GM_IS_OPAQUE;
			return;
		}
		if (!made)
			extra = find_row(python, extra_rows, COUNT(extra_rows), name,
					 head.basicsize);
		for (unsigned k = 0; extra && k < GM_FIELDS && extra->field[k].name; k++)
			add_member(type, 0, extra->field[k].name, extra->field[k].offset);
		/* All references of exceptions are members. */
		if (!made && !extra && head.basicsize > 16 && !(head.flags & FLAG_EXCEPTION) &&
		    !type->opaque_to)
			type->opaque_to = (uint32_t)head.basicsize;
		add_members(python, type, head.members);
		at = head.base;
		if (at && !read_head(python, at, &head))
			break;
	}
	type->kind = GM_IS_OPAQUE;
	type->opaque_from = 16;
	type->opaque_to = type->basicsize;
}

const struct gm_type *gm_cpython_put_type(struct gm_cpython *python, struct gm_type type,
					  const char *name)
{
	unsigned at;

	if (python->types_count * 2 >= python->type_room && !index_types(python))
		return NULL;
	type.name = strdup(name);
	if (!type.name)
		return NULL;
	at = hash_address(type.address) & (python->type_room - 1);
	while (python->type_index[at])
		at = (at + 1) & (python->type_room - 1);
	python->types[python->types_count++] = type;
	python->type_index[at] = python->types_count;
	return &python->types[python->types_count - 1];
}

static const struct gm_type *add_type(struct gm_cpython *python, uint64_t address)
{
	struct gm_type type = {.address = address};
	struct type_head head;
	char name[MOST_NAME];
	const char *dot;
	uint64_t meta;

	if (address % 8 || !gm_cpython_word(python, address + GM_OBJECT_TYPE, &meta) ||
	    !is_metatype(python, meta) || !read_head(python, address, &head) ||
	    !gm_cpython_string(python, head.name, name, sizeof(name)) || !name[0])
		return NULL;
	type.basicsize = (uint32_t)head.basicsize;
	type.itemsize = (uint32_t)head.itemsize;
	type.flags = head.flags;
	type.dictoffset = (int32_t)head.dictoffset;
	classify(python, &type, head);
	if (head.flags & GM_TYPE_HEAP)
		gm_cpython_word(python, address + python->offsets->type_keys, &type.keys);
	dot = strrchr(name, '.');
	return gm_cpython_put_type(python, type, dot && dot[1] ? dot + 1 : name);
}

const struct gm_type *gm_cpython_type(struct gm_cpython *python, uint64_t address)
{
	const struct gm_type *type = gm_cpython_known_type(python, address);

	return type ? type : add_type(python, address);
}

const struct gm_type *gm_cpython_type_of(struct gm_cpython *python, uint64_t object)
{
	uint64_t head[2];

	if (object % 8 || object < 4096 ||
	    !gm_memory_read(python->memory, object, head, sizeof(head)) || (int64_t)head[0] <= 0)
		return NULL;
	return gm_cpython_type(python, head[1]);
}

void gm_cpython_forget_types(struct gm_cpython *python)
{
	for (unsigned i = 0; i < python->types_count; i++) {
		free(python->types[i].name);
		free(python->types[i].members);
	}
	free(python->types);
	free(python->type_index);
	python->types = NULL;
	python->type_index = NULL;
	python->types_count = python->type_room = 0;
}
