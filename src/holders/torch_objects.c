/*
 * PyTorch's objects (internal.h): from a tensor in Python to the memory of its storage, and through
 * autograd's graph to the tensors that it saved. An object of C++ is told by its vtable, which
 * leads to the name of its class (Itanium C++ ABI: the word before a vtable's functions is the
 * type_info; a name, and of a class with one base the base's type_info, follow its own vtable).
 * Where a member lies is decided by the class of what it points at, so that no version's table is
 * needed; a member that points at something else is not followed.
 *
 * Sources: torch/csrc/autograd/python_variable.h, c10/core/TensorImpl.h, c10/core/StorageImpl.h,
 * torch/csrc/autograd/variable.h, function.h, saved_variable.h, python_cpp_function.h,
 * python_function.h of PyTorch 1.13 to 2.11.
 */
#include "holders/cpp_class.h"
#include "holders/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BASES 16u
#define MOST_NODE  (1u << 16) /* bytes of an autograd node */
#define NODE_BYTES 96u	      /* of torch::autograd::Node before its edges */
#define MOST_EDGES 4096u

static bool word(struct gm_cpython *python, uint64_t address, uint64_t *value)
{
	return gm_cpython_word(python, address, value);
}

/* ---- classes ---- */

static enum gm_object_kind kind_of(const char *name)
{
	static const struct {
		const char *name;
		enum gm_object_kind kind;
	} rows[] = {{"N3c1010TensorImplE", GM_IS_TENSOR_IMPL},
		    {"N3c1011StorageImplE", GM_IS_STORAGE_IMPL},
		    {"N5torch8autograd12AutogradMetaE", GM_IS_AUTOGRAD_META},
		    {"N5torch8autograd4NodeE", GM_IS_AUTOGRAD_NODE}};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (strcmp(rows[i].name, name) == 0)
			return rows[i].kind;
	return GM_IS_CPP;
}

static bool is_torch(struct gm_cpython *python, uint64_t address)
{
	const struct gm_mapping *mapping = gm_memory_find(python->memory, address);
	const char *slash = mapping ? strrchr(mapping->path, '/') : NULL;

	return slash && (strstr(slash, "torch") || strstr(slash, "c10"));
}

/* A class with several bases has no single one; none of those that are looked for does. */
static bool base_of(struct gm_cpython *python, uint64_t *info)
{
	uint64_t base;

	if (!word(python, *info + 16, &base) || base % 8 || !is_torch(python, base))
		return false;
	*info = base;
	return true;
}

static const struct gm_type *read_class(struct gm_cpython *python, uint64_t vtable)
{
	struct gm_type type = {.address = vtable, .kind = GM_IS_CPP};
	char name[512], own[512] = "";
	uint64_t info, text;

	if (!is_torch(python, vtable) || !word(python, vtable - 8, &info) || info % 8 ||
	    !is_torch(python, info))
		return NULL;
	for (unsigned i = 0; i < MOST_BASES && type.kind == GM_IS_CPP; i++) {
		if (!word(python, info + 8, &text) || !is_torch(python, text) ||
		    !gm_cpython_string(python, text, name, sizeof(name)))
			break;
		if (!i)
			gm_cpp_last_part(name, own, sizeof(own));
		type.kind = kind_of(name);
		if (!base_of(python, &info))
			break;
	}
	return own[0] ? gm_cpython_put_type(python, type, own) : NULL;
}

const struct gm_type *gm_torch_type_of(struct gm_cpython *python, uint64_t object)
{
	const struct gm_type *type;
	uint64_t vtable;

	if (object % 8 || object < 4096 || !word(python, object, &vtable) || vtable % 8 || !vtable)
		return NULL;
	type = gm_cpython_known_type(python, vtable);
	if (!type)
		type = read_class(python, vtable);
	return type && type->kind >= GM_IS_TENSOR_IMPL ? type : NULL;
}

static bool is_a(struct gm_cpython *python, uint64_t object, enum gm_object_kind kind)
{
	const struct gm_type *type = gm_torch_type_of(python, object);

	return type && type->kind == kind;
}

/* ---- references ---- */

/* A pointer at an object of C++; true too if it points at something else. */
static bool points(struct gm_object_walk *walk, uint64_t slot, enum gm_object_kind kind,
		   const char *name)
{
	struct gm_edge edge = {
		.slot = slot, .name = name, .how = GM_BY_NAME, .sure = true, .cpp = true};

	return !word(walk->python, slot, &edge.child) || !is_a(walk->python, edge.child, kind) ||
	       gm_walk_report(walk, &edge);
}

static bool object_at(struct gm_object_walk *walk, uint64_t slot, const char *name)
{
	struct gm_edge edge = {.slot = slot, .name = name, .how = GM_BY_NAME, .sure = true};

	return !word(walk->python, slot, &edge.child) || gm_walk_report(walk, &edge);
}

/*
 * THPVariable: the tensor, alone or after a flag that says who owns it, then one or two references
 * to hooks.
 */
static bool tensor(struct gm_object_walk *walk, uint64_t object, const struct gm_type *type)
{
	unsigned end = type->opaque_from;

	for (unsigned at = 16; at <= 24; at += 8) {
		uint64_t impl;

		if (!word(walk->python, object + at, &impl) ||
		    !is_a(walk->python, impl, GM_IS_TENSOR_IMPL))
			continue;
		return points(walk, object + at, GM_IS_TENSOR_IMPL, "impl") &&
		       (at + 8 >= end || object_at(walk, object + at + 8, "_backward_hooks")) &&
		       (at + 16 >= end ||
			object_at(walk, object + at + 16, "_post_accumulate_grad_hooks"));
	}
	return true;
}

/*
 * intrusive_ptr_target is a vtable and two counts, of 64 bits each to 2.8 and of 32 later. The
 * storage follows it, and the autograd metadata the storage.
 */
static bool tensor_impl(struct gm_object_walk *walk, uint64_t object)
{
	struct gm_cpython *python = walk->python;
	uint64_t storage;

	for (unsigned base = 24; base >= 16; base -= 8)
		if (word(python, object + base, &storage) &&
		    is_a(python, storage, GM_IS_STORAGE_IMPL)) {
			python->torch_base = base;
			break;
		}
	if (!python->torch_base)
		return true;
	return points(walk, object + python->torch_base, GM_IS_STORAGE_IMPL, "storage") &&
	       points(walk, object + python->torch_base + 8, GM_IS_AUTOGRAD_META, "autograd");
}

static bool storage(struct gm_object_walk *walk, uint64_t object)
{
	return walk->unsure || !walk->bytes || !walk->python->torch_base ||
	       walk->bytes(walk, object + walk->python->torch_base, 8, true);
}

/* AutogradMeta: a vtable, a std::string of 32 bytes, grad_, grad_fn_, grad_accumulator_ (weak). */
static bool autograd_meta(struct gm_object_walk *walk, uint64_t object)
{
	return points(walk, object + 40, GM_IS_TENSOR_IMPL, "grad") &&
	       points(walk, object + 48, GM_IS_AUTOGRAD_NODE, "grad_fn");
}

/* A vector of {shared_ptr<Node>, uint32_t}: all of it has to look like one. */
static bool next_edges(struct gm_object_walk *walk, uint64_t node)
{
	uint64_t begin, end, room, next;

	if (!word(walk->python, node + NODE_BYTES, &begin) ||
	    !word(walk->python, node + NODE_BYTES + 8, &end) ||
	    !word(walk->python, node + NODE_BYTES + 16, &room) || begin > end || end > room ||
	    (end - begin) % 24 || (end - begin) / 24 > MOST_EDGES)
		return true;
	gm_walk_need(walk, node + NODE_BYTES, begin);
	for (uint64_t at = begin; at < end; at += 24)
		if (!word(walk->python, at, &next) ||
		    (next && !is_a(walk->python, next, GM_IS_AUTOGRAD_NODE)))
			return true;
	for (uint64_t at = begin; at < end; at += 24)
		if (!points(walk, at, GM_IS_AUTOGRAD_NODE, "next_functions"))
			return false;
	return true;
}

/*
 * SavedVariable: the tensor, a shared and a weak pointer (two words each), then the version counter
 * or, in versions without it, the saved version and the number of the output.
 */
static bool is_saved(struct gm_cpython *python, const uint64_t *at)
{
	const struct gm_type *counter = gm_torch_type_of(python, at[5]);

	if (!at[1] != !at[2] || !at[3] != !at[4])
		return false;
	return counter ? strcmp(counter->name, "VersionCounter") == 0
		       : at[5] >> 32 < 1024 && (at[6] & 0xff) == 0;
}

/* Tensors that were saved, among the words of an object or of an array that it has. */
static bool saved_in(struct gm_object_walk *walk, uint64_t address, const uint64_t *words,
		     uint64_t first, uint64_t count, const char *name, bool sure)
{
	for (uint64_t i = first; i < count; i++) {
		struct gm_edge edge = {.child = words[i],
				       .slot = address + i * 8,
				       .name = name,
				       .how = GM_BY_NAME,
				       .cpp = true};

		if (!is_a(walk->python, words[i], GM_IS_TENSOR_IMPL))
			continue;
		edge.sure = sure || is_saved(walk->python, &words[i]);
		if (!gm_walk_report(walk, &edge))
			return false;
	}
	return true;
}

/* Words of the process with six more behind them that are no SavedVariable's; NULL. Freed by the
 * caller. */
static uint64_t *copy_words(struct gm_cpython *python, uint64_t address, uint64_t bytes)
{
	uint64_t *words = malloc(bytes + 56);

	if (!words || !gm_memory_read(python->memory, address, words, bytes)) {
		free(words);
		return NULL;
	}
	memset((char *)words + bytes, 0xff, 56);
	return words;
}

/*
 * THPFunction: four tuples, then vectors, of which one is std::vector<SavedVariable>, with what
 * save_for_backward was given. Attributes that the program sets on it are in its dictionary.
 */
static bool context(struct gm_object_walk *walk, uint64_t object, const struct gm_type *type)
{
	static const char *const tuples[] = {"needs_input_grad", "to_save", "non_differentiable",
					     "dirty_tensors"};
	uint64_t end = type->opaque_from < 512 ? type->opaque_from : 512, vector[3], *words;
	bool more = true;

	for (unsigned i = 0; i < 4; i++)
		if (!object_at(walk, object + 16 + i * 8, tuples[i]))
			return false;
	for (uint64_t at = 48; at + 24 <= end && more; at += 8) {
		if (!gm_memory_read(walk->python->memory, object + at, vector, sizeof(vector)) ||
		    vector[0] < 4096 || vector[0] >= vector[1] || vector[1] > vector[2] ||
		    (vector[0] | vector[1] | vector[2]) % 8 || vector[1] - vector[0] > MOST_NODE)
			continue;
		words = copy_words(walk->python, vector[0], vector[1] - vector[0]);
		if (!words)
			continue;
		gm_walk_need(walk, object + at, vector[0]);
		more = saved_in(walk, vector[0], words, 0, (vector[1] - vector[0]) / 8,
				"saved_tensors", false);
		walk->needs_count--;
		free(words);
	}
	return more;
}

/* PyNode: the ctx of a Function of the program's, behind what every node has. */
static bool context_of_node(struct gm_object_walk *walk, uint64_t object, const uint64_t *words,
			    uint64_t first, uint64_t count)
{
	for (uint64_t i = first; i < count; i++) {
		const struct gm_type *type = gm_cpython_type_of(walk->python, words[i]);

		if (type && type->kind == GM_IS_TORCH_CONTEXT)
			return object_at(walk, object + i * 8, "ctx");
	}
	return true;
}

/*
 * Walks a node of autograd. The members of its class lie behind the base's part, up to the end of
 * the node's memory: a node is allocated by itself, and glibc's malloc keeps its size in the word
 * before (malloc/malloc.c).
 */
static bool node(struct gm_object_walk *walk, uint64_t object, const struct gm_type *type)
{
	bool accumulates = strcmp(type->name, "AccumulateGrad") == 0;
	struct gm_cpython *python = walk->python;
	uint64_t bytes, *words, first = NODE_BYTES / 8 + 3;
	bool more;

	if (!next_edges(walk, object) || !word(python, object - 8, &bytes))
		return true;
	bytes = (bytes & ~7ull) - 8;
	if (bytes < NODE_BYTES + 24 || bytes > MOST_NODE)
		return true;
	words = copy_words(python, object, bytes);
	if (!words)
		return true;
	more = strcmp(type->name, "PyNode") != 0 ||
	       context_of_node(walk, object, words, first, bytes / 8);
	more = more && saved_in(walk, object, words, first, bytes / 8,
				accumulates ? "variable" : "SavedVariable", accumulates);
	free(words);
	return more;
}

bool gm_walk_torch(struct gm_object_walk *walk, uint64_t object, const struct gm_type *type)
{
	if (type->kind >= GM_IS_TENSOR_IMPL)
		gm_walk_need(walk, object, type->address);
	switch (type->kind) {
	case GM_IS_TENSOR:
		return tensor(walk, object, type);
	case GM_IS_TORCH_STORAGE:
		return points(walk, object + 16, GM_IS_STORAGE_IMPL, "storage") &&
		       points(walk, object + 24, GM_IS_STORAGE_IMPL, "storage");
	case GM_IS_TORCH_CONTEXT:
		return context(walk, object, type);
	case GM_IS_TENSOR_IMPL:
		return tensor_impl(walk, object);
	case GM_IS_STORAGE_IMPL:
		return storage(walk, object);
	case GM_IS_AUTOGRAD_META:
		return autograd_meta(walk, object);
	case GM_IS_AUTOGRAD_NODE:
		return node(walk, object, type);
	case GM_IS_OPAQUE: /* THPCppFunction: a shared_ptr<Node> behind the object's head */
		return points(walk, object + 16, GM_IS_AUTOGRAD_NODE, "node");
	default:
		return true;
	}
}
