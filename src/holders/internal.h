/*
 * Types and functions that the files of this folder share: a CPython in another process, its types,
 * and the walk over an object's references.
 */
#ifndef GM_HOLDERS_INTERNAL_H
#define GM_HOLDERS_INTERNAL_H

#include "holders/process_memory.h"
#include "holders/python_offsets.h"
#include "stack/python_layout.h"

#define GM_TYPE_HEAP	     (1u << 9)
#define GM_TYPE_GC	     (1u << 14)
#define GM_TYPE_MANAGED_DICT (1u << 4)
#define GM_TYPE_INLINE	     (1u << 2)
#define GM_FIELDS	     11u
#define GM_NEEDS	     12u

/* The kind of an object, which decides how its references are walked. */
enum gm_object_kind {
	GM_IS_OPAQUE, /* a C type whose structure is not known */
	GM_IS_LEAF,   /* refers to nothing that could hold memory */
	GM_IS_INT,
	GM_IS_PLAIN, /* nothing of its own: a Python class's instance */
	GM_IS_LIST,
	GM_IS_TUPLE,
	GM_IS_DICT,
	GM_IS_SET,
	GM_IS_MODULE,
	GM_IS_FUNCTION,
	GM_IS_FRAME,
	GM_IS_RUNNING, /* no object: a frame on a thread's stack, from 3.11 on */
	GM_IS_THREAD,  /* no object: a PyThreadState */
	GM_IS_ROOTS,   /* no object: a PyInterpreterState */
	GM_IS_GENERATOR,
	GM_IS_TYPE,
	GM_IS_EXCEPTION,
	GM_IS_WEAKREF,
	GM_IS_FIELDS, /* references at fixed offsets: `row` */
	GM_IS_DEQUE,
	GM_IS_LRU,
	GM_IS_CTYPES,
	GM_IS_ARRAY,
	GM_IS_NDARRAY,
	GM_IS_HAMT,
	GM_IS_TENSOR,	     /* PyTorch's THPVariable, a Python object */
	GM_IS_TORCH_STORAGE, /* THPStorage, a Python object */
	GM_IS_TORCH_CONTEXT, /* THPFunction, a Python object: the ctx of an autograd.Function */
	GM_IS_TENSOR_IMPL,   /* from here on objects of C++, whose type is their vtable */
	GM_IS_STORAGE_IMPL,
	GM_IS_AUTOGRAD_META,
	GM_IS_AUTOGRAD_NODE,
	GM_IS_CPP /* another class of C++: not walked */
};

/* A C type with references at fixed offsets. */
struct gm_fields_row {
	const char *name;    /* tp_name */
	uint8_t first, last; /* minor versions */
	uint16_t bytes;	     /* tp_basicsize, by which it is recognised */
	struct {
		const char *name;
		uint16_t offset;
	} field[GM_FIELDS];
};

struct gm_member {
	uint64_t name; /* address of a C string; 0: `literal` is it */
	const char *literal;
	uint32_t offset;
};

struct gm_type {
	uint64_t address;
	char *name; /* without its module */
	enum gm_object_kind kind;
	const struct gm_fields_row *row;
	uint32_t basicsize, itemsize, flags;
	uint32_t opaque_from, opaque_to; /* bytes of an object that are not known; to 0: none */
	int32_t dictoffset;
	uint64_t keys; /* cached keys of instances */
	struct gm_member *members;
	unsigned members_count;
};

struct gm_cpython {
	struct gm_memory *memory;
	const struct gm_python_offsets *offsets;
	struct gm_python_layout layout; /* of texts and lines */
	unsigned minor;
	uint64_t runtime, type_type, object_type;
	uint64_t subtype_dealloc;
	struct gm_type *types;
	unsigned types_count;
	uint32_t *type_index; /* hash → types index + 1 */
	unsigned type_room;
	unsigned torch_base; /* bytes of c10::intrusive_ptr_target; 0: not known yet */
};

/* The kind of a reference from one object to another. */
enum gm_how {
	GM_BY_NAME,   /* a C attribute: `name` */
	GM_BY_MEMBER, /* a slot, whose name is the C string at `key` */
	GM_BY_STR,    /* an attribute, whose name is the str at `key` */
	GM_BY_DICT,   /* its dictionary of attributes */
	GM_BY_ITEM,   /* element `index` of `size` */
	GM_BY_KEY,    /* value of the key at `key` in a dict of `size` */
	GM_AS_KEY,    /* a key or an element of a set */
	GM_BY_LOCAL,  /* a local variable, whose name is the str at `key` */
	GM_BY_STACK,  /* on a frame's evaluation stack */
	GM_BY_ROOT,   /* of an interpreter or thread: `name` */
	GM_BY_TYPE,   /* its class */
	GM_BY_FRAME,  /* a frame that a thread runs */
	GM_BY_WORD    /* a word of an unknown structure, at `index` */
};

/*
 * Slots of frames have tags from 3.14 on (Include/internal/pycore_stackref.h): a reference that
 * does not count, because another one outlives it or because the object is immortal; no object but
 * a number.
 */
#define GM_TAG_BORROWED 1u
#define GM_TAG_NUMBER	3u

struct gm_edge {
	uint64_t child, slot, key, index, size;
	uint64_t size_at; /* a word that has to stay above `index`; 0: none */
	const char *name;
	enum gm_how how;
	bool sure, weak;
	bool cpp;    /* the child is an object of C++ */
	uint8_t tag; /* bits that the slot has beside the address; GM_TAG_BORROWED */
};

/* A word that an edge depends on. */
struct gm_need {
	uint64_t address, value;
	enum {
		GM_EQUAL,
		GM_ABOVE,
		GM_REFERENCED
	} how; /* GM_REFERENCED: the count of a live object */
};

struct gm_object_walk {
	struct gm_cpython *python;
	/* Called for each reference; false ends the walk. */
	bool (*edge)(struct gm_object_walk *walk, const struct gm_edge *edge);
	/* Called for memory of the object that may hold an address; may be NULL. */
	bool (*bytes)(struct gm_object_walk *walk, uint64_t address, uint64_t bytes, bool certain);
	bool unsure; /* also references that are not certain, and only those */
	void *data;
	struct gm_need needs[GM_NEEDS]; /* of the edge that is being reported, but its slot */
	unsigned needs_count;
};

/* The address of the object in a slot of a frame; 0: none. */
static inline uint64_t gm_cpython_untag(const struct gm_cpython *python, uint64_t word)
{
	if (python->minor <= 13)
		return word;
	return (word & GM_TAG_NUMBER) == GM_TAG_NUMBER ? 0 : word & ~(uint64_t)GM_TAG_NUMBER;
}

/* The number of references in an object's first word, which has flags above it from 3.14 on. */
static inline uint64_t gm_cpython_count(const struct gm_cpython *python, uint64_t word)
{
	return python->minor <= 13 ? word : word & ~(0xffffull << 48);
}

/* Walks what an object of a type refers to; false if a callback ended the walk. */
bool gm_walk_object(struct gm_object_walk *walk, uint64_t object, const struct gm_type *type);

/* Reports a reference where it is asked for; false ends the walk. */
static inline bool gm_walk_report(struct gm_object_walk *walk, const struct gm_edge *edge)
{
	return !edge->child || edge->sure == walk->unsure || walk->edge(walk, edge);
}

/* Notes a word that the next references depend on. */
static inline void gm_walk_need(struct gm_object_walk *walk, uint64_t address, uint64_t value)
{
	if (walk->needs_count < GM_NEEDS)
		walk->needs[walk->needs_count++] = (struct gm_need){address, value, GM_EQUAL};
}

/* A word of the process; false if it cannot be read. */
bool gm_cpython_word(struct gm_cpython *python, uint64_t address, uint64_t *word);

/* The type of an object; NULL if the address is no object. The index stays, the pointer does not.
 */
const struct gm_type *gm_cpython_type_of(struct gm_cpython *python, uint64_t object);
const struct gm_type *gm_cpython_type(struct gm_cpython *python, uint64_t address);

/* Adds a type that is not there yet; `type.name` is copied. NULL if memory ran out. */
const struct gm_type *gm_cpython_put_type(struct gm_cpython *python, struct gm_type type,
					  const char *name);

/* The type at an address if it was added before. */
const struct gm_type *gm_cpython_known_type(const struct gm_cpython *python, uint64_t address);

/* The class of an object of PyTorch's C++ by its vtable; NULL if it has none. */
const struct gm_type *gm_torch_type_of(struct gm_cpython *python, uint64_t object);

/* Walks the references of PyTorch's objects; true for objects of other kinds. */
bool gm_walk_torch(struct gm_object_walk *walk, uint64_t object, const struct gm_type *type);

/* Forgets all types, which are classified again when they are met. */
void gm_cpython_forget_types(struct gm_cpython *python);

/* Copies a str's text, as ASCII or UTF-8; false if it is none. */
bool gm_cpython_text(struct gm_cpython *python, uint64_t object, char *text, size_t bytes);

/* A C string in the process. */
bool gm_cpython_string(struct gm_cpython *python, uint64_t address, char *text, size_t bytes);

/* The value of an int below 2^64; false for others. */
bool gm_cpython_int(struct gm_cpython *python, uint64_t object, uint64_t *value);

/* Calls `each` for the entries of a dict; false if it returned false. */
struct gm_dict_entry {
	uint64_t key, value, slot, size;
};
bool gm_cpython_entries(struct gm_object_walk *walk, uint64_t dict,
			bool (*each)(struct gm_object_walk *walk, const struct gm_dict_entry *entry,
				     void *data),
			void *data);

/* The value of a text key in a dict; 0. */
uint64_t gm_cpython_lookup(struct gm_cpython *python, uint64_t dict, const char *key);

/*
 * Writes the function that a frame runs, as "name (file:line)"; without the line if `line` is false
 * or the frame has not begun. `frame` is a PyFrameObject to 3.10, later a _PyInterpreterFrame.
 */
void gm_cpython_frame_text(struct gm_cpython *python, uint64_t frame, bool line, char *text,
			   size_t bytes);

/*
 * Finds the CPython in a process. NULL and a sentence in `error` where there is none that can be
 * read; `native` says that there is none at all. The caller closes it.
 */
struct gm_cpython *gm_cpython_open(struct gm_memory *memory, bool *native, char *error,
				   size_t error_bytes);
void gm_cpython_close(struct gm_cpython *python);

#endif
