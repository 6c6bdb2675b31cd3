/*
 * The text of a chain's links (link_text.h). A link whose text is part of the next one's has none:
 * an instance's dictionary, the tuple of a function's closure. Each link has two texts, without and
 * with the index or key, so that the elements of one list can be counted as one chain.
 */
#include "holders/link_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_TEXT 600u

struct gm_text_block {
	struct gm_text_block *next;
	size_t used;
	char text[1 << 16];
};

static const char *copy_text(struct gm_links *links, const char *text)
{
	size_t bytes = strlen(text) + 1;
	struct gm_text_block *block = links->texts;
	char *copy;

	if (!block || block->used + bytes > sizeof(block->text)) {
		block = malloc(sizeof(*block));
		if (!block || bytes > sizeof(block->text)) {
			free(block);
			return "";
		}
		block->next = links->texts;
		block->used = 0;
		links->texts = block;
	}
	copy = memcpy(block->text + block->used, text, bytes);
	block->used += bytes;
	return copy;
}

static const char *print(struct gm_links *links, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static const char *print(struct gm_links *links, const char *format, ...)
{
	char text[MOST_TEXT];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	return copy_text(links, text);
}

static struct gm_cpython *python_of(const struct gm_links *links)
{
	return links->graph->python;
}

static uint64_t address_of(const struct gm_links *links, uint32_t node)
{
	return links->graph->nodes[node].address;
}

static const struct gm_type *type_of(const struct gm_links *links, uint32_t node)
{
	return gm_graph_type(links->graph, node);
}

/* The link to a node; NULL of a root. */
static struct gm_link *link_to(const struct gm_links *links, uint32_t node)
{
	return links->of_node[node] ? &links->links[links->of_node[node] - 1] : NULL;
}

static bool is_named(const struct gm_link *link, const char *name)
{
	return link && (link->edge.how == GM_BY_NAME || link->edge.how == GM_BY_DICT) &&
	       link->edge.name && strcmp(link->edge.name, name) == 0;
}

static uint64_t word_at(const struct gm_links *links, uint64_t address)
{
	uint64_t word = 0;

	gm_cpython_word(python_of(links), address, &word);
	return word;
}

/* The name of what can be called: a function, a method, a partial, a class; else its type's. */
static void callable_name(const struct gm_links *links, uint64_t object, char *text, size_t bytes)
{
	struct gm_cpython *python = python_of(links);

	for (unsigned depth = 0; depth < 4; depth++) {
		const struct gm_type *type = gm_cpython_type_of(python, object);

		snprintf(text, bytes, "%s", type ? type->name : "?");
		if (type && type->kind == GM_IS_FUNCTION) {
			gm_cpython_text(python,
					word_at(links, object + python->offsets->function_qualname),
					text, bytes);
			return;
		}
		if (type && type->kind == GM_IS_TYPE) {
			gm_cpython_string(python, word_at(links, object + GM_TYPE_NAME), text,
					  bytes);
			return;
		}
		if (type && type->kind == GM_IS_LRU)
			object = word_at(links, object + 88);
		else if (type && type->kind == GM_IS_FIELDS &&
			 (strcmp(type->name, "method") == 0 || strcmp(type->name, "partial") == 0))
			object = word_at(links, object + 16);
		else
			return;
	}
}

/*
 * Writes the name that stands before an owner's attributes: "class Model", "function f", "Trainer".
 */
static void owner_name(const struct gm_links *links, uint32_t node, char *text, size_t bytes)
{
	const struct gm_type *type = type_of(links, node);
	char name[200];

	callable_name(links, address_of(links, node), name, sizeof(name));
	if (type->kind == GM_IS_TYPE)
		snprintf(text, bytes, "class %s", name);
	else if (type->kind == GM_IS_FUNCTION)
		snprintf(text, bytes, "function %s", name);
	else
		snprintf(text, bytes, "%s", type->name ? type->name : "?");
}

/* A key as Python writes it, shortened. */
static void key_text(const struct gm_links *links, uint64_t key, char *text, size_t bytes)
{
	struct gm_cpython *python = python_of(links);
	const struct gm_type *type = gm_cpython_type_of(python, key);
	char name[80];
	uint64_t value;

	if (gm_cpython_text(python, key, name, sizeof(name)))
		snprintf(text, bytes, "'%s'", name);
	else if (type && type->kind == GM_IS_INT && gm_cpython_int(python, key, &value))
		snprintf(text, bytes, "%llu", (unsigned long long)value);
	else
		snprintf(text, bytes, "%s", type ? type->name : "?");
}

/* ---- functions ---- */

/* The name in a code object's tuple of names. */
static void name_in(const struct gm_links *links, uint64_t tuple, uint64_t index, char *text,
		    size_t bytes)
{
	uint64_t count = word_at(links, tuple + GM_VAR_SIZE);

	snprintf(text, bytes, "?");
	if (index < count)
		gm_cpython_text(
			python_of(links),
			word_at(links, tuple + python_of(links)->offsets->tuple_items + index * 8),
			text, bytes);
}

/* Free variables come last among the names of locals from 3.11 on. */
static void closure_variable(const struct gm_links *links, uint64_t function, uint64_t index,
			     uint64_t count, char *text, size_t bytes)
{
	const struct gm_python_offsets *at = python_of(links)->offsets;
	uint64_t code = word_at(links, function + at->function_code), names;

	if (at->code_freevars) {
		name_in(links, word_at(links, code + at->code_freevars), index, text, bytes);
		return;
	}
	names = word_at(links, code + at->code_names);
	name_in(links, names, word_at(links, names + GM_VAR_SIZE) - count + index, text, bytes);
}

/* Defaults belong to the last of the positional arguments. */
static void default_argument(const struct gm_links *links, uint64_t function, uint64_t index,
			     uint64_t count, char *text, size_t bytes)
{
	const struct gm_python_offsets *at = python_of(links)->offsets;
	uint64_t code = word_at(links, function + at->function_code);
	uint32_t arguments = 0;

	gm_memory_read(python_of(links)->memory, code + at->code_argcount, &arguments, 4);
	name_in(links, word_at(links, code + at->code_names), arguments - count + index, text,
		bytes);
}

/* Elements of the tuples and dicts that belong to a function, partial or cache. */
static const char *element_of_part(struct gm_links *links, const struct gm_link *link,
				   const struct gm_link *part)
{
	uint64_t owner = address_of(links, part->parent);
	char name[256], variable[256];

	callable_name(links, owner, name, sizeof(name));
	if (is_named(part, "__closure__")) {
		closure_variable(links, owner, link->edge.index, link->edge.size, variable,
				 sizeof(variable));
		return print(links, "function %s, closure variable %s", name, variable);
	}
	if (is_named(part, "__defaults__")) {
		default_argument(links, owner, link->edge.index, link->edge.size, variable,
				 sizeof(variable));
		return print(links, "function %s, default argument %s", name, variable);
	}
	if (is_named(part, "args"))
		return print(links, "functools.partial of %s, argument %llu", name,
			     (unsigned long long)link->edge.index);
	if (!gm_cpython_text(python_of(links), link->edge.key, variable, sizeof(variable)))
		key_text(links, link->edge.key, variable, sizeof(variable));
	if (is_named(part, "__kwdefaults__"))
		return print(links, "function %s, default argument %s", name, variable);
	return print(links, "functools.partial of %s, argument %s", name, variable);
}

/* True of a part of a function or partial whose elements say what it is. */
static bool is_part(const struct gm_links *links, const struct gm_link *link)
{
	const struct gm_type *owner;

	if (!link)
		return false;
	owner = type_of(links, link->parent);
	return (owner->kind == GM_IS_FUNCTION &&
		(is_named(link, "__closure__") || is_named(link, "__defaults__") ||
		 is_named(link, "__kwdefaults__"))) ||
	       (owner->kind == GM_IS_FIELDS && strcmp(owner->name, "partial") == 0 &&
		(is_named(link, "args") || is_named(link, "keywords")));
}

/* ---- frames ---- */

/* The frame whose variable a link is: of a frame object from 3.11 on what it points at. */
static uint64_t frame_of(const struct gm_links *links, const struct gm_link *link,
			 const char **what)
{
	const struct gm_type *owner = type_of(links, link->parent);
	const struct gm_link *before = link_to(links, link->parent);
	uint64_t frame = address_of(links, link->parent);

	*what = "frame";
	if (owner->kind == GM_IS_GENERATOR) {
		*what = owner->name;
		return frame + python_of(links)->offsets->generator_frame;
	}
	if (owner->kind == GM_IS_FRAME && python_of(links)->minor >= 11)
		return word_at(links, frame + 24);
	if (owner->kind == GM_IS_FRAME && before &&
	    type_of(links, before->parent)->kind == GM_IS_GENERATOR)
		*what = type_of(links, before->parent)->name;
	return frame;
}

/* Frames of one function are counted together; the line is shown where it is the same. */
static void local_text(struct gm_links *links, struct gm_link *link)
{
	const char *what;
	uint64_t frame = frame_of(links, link, &what);
	char code[480], name[200] = "?";

	if (link->edge.how != GM_BY_STACK)
		gm_cpython_text(python_of(links), link->edge.key, name, sizeof(name));
	for (unsigned exact = 0; exact < 2; exact++) {
		const char **text = exact ? &link->exact : &link->step;

		gm_cpython_frame_text(python_of(links), frame, exact, code, sizeof(code));
		*text = link->edge.how == GM_BY_STACK
				? print(links, "%s %s, evaluation stack", what, code)
				: print(links, "%s %s, local %s", what, code, name);
	}
}

/* ---- links ---- */

/* An attribute in the dictionary of `owner`; of a module it is a global. */
static const char *attribute_text(struct gm_links *links, uint32_t owner, uint64_t key)
{
	char name[256], text[200];

	if (!gm_cpython_text(python_of(links), key, text, sizeof(text)))
		key_text(links, key, text, sizeof(text));
	if (type_of(links, owner)->kind == GM_IS_MODULE)
		return copy_text(links, text);
	owner_name(links, owner, name, sizeof(name));
	return print(links, "%s.%s", name, text);
}

static void set_text(struct gm_link *link, const char *text)
{
	link->step = link->exact = text;
}

/* An element of a container: its index or key is in the exact text alone. */
static void element_text(struct gm_links *links, struct gm_link *link)
{
	const struct gm_type *type = type_of(links, link->parent);
	const struct gm_link *container = link_to(links, link->parent);
	char key[120];

	if (is_part(links, container)) {
		set_text(link, element_of_part(links, link, container));
		return;
	}
	if (container && container->edge.how == GM_BY_DICT && link->edge.how == GM_BY_KEY) {
		set_text(link, attribute_text(links, container->parent, link->edge.key));
		return;
	}
	if (is_named(container, "__globals__") && link->edge.how == GM_BY_KEY) {
		key_text(links, link->edge.key, key, sizeof(key));
		set_text(link, print(links, "global %s", key));
		return;
	}
	if (container && container->edge.how == GM_BY_ROOT &&
	    type_of(links, link->child == GM_NO_NODE ? link->parent : link->child)->kind ==
		    GM_IS_MODULE &&
	    strcmp(container->edge.name, "sys.modules") == 0) {
		char name[200] = "?";

		gm_cpython_text(python_of(links), link->edge.key, name, sizeof(name));
		set_text(link, print(links, "module %s", name));
		return;
	}
	link->step = print(links, "%s (%llu %s)", type->name, (unsigned long long)link->edge.size,
			   link->edge.size == 1 ? "entry" : "entries");
	link->exact = link->step;
	if (link->edge.how == GM_BY_ITEM) {
		link->exact =
			print(links, "%s[%llu]", link->step, (unsigned long long)link->edge.index);
	} else if (link->edge.how == GM_BY_KEY) {
		key_text(links, link->edge.key, key, sizeof(key));
		link->exact = print(links, "%s[%s]", link->step, key);
	} else if (type->kind == GM_IS_DICT) {
		link->step = link->exact = print(links, "%s, a key", link->step);
	}
}

/* Links between PyTorch's objects of C++: those that a tensor has are attributes of it in Python.
 */
static bool torch_text(struct gm_links *links, struct gm_link *link)
{
	const struct gm_type *type = type_of(links, link->parent);

	if (type->kind == GM_IS_AUTOGRAD_META)
		set_text(link, copy_text(links, link->edge.name));
	else if (type->kind == GM_IS_AUTOGRAD_NODE && strcmp(link->edge.name, "ctx") != 0)
		set_text(link, print(links, "%s.%s", type->name, link->edge.name));
	return true;
}

/* References that C structures have by name. */
static void field_text(struct gm_links *links, struct gm_link *link)
{
	const struct gm_type *type = type_of(links, link->parent);
	const struct gm_link *before = link_to(links, link->parent);
	const char *name = link->edge.name;
	char text[256];

	if (type->kind >= GM_IS_TENSOR_IMPL && torch_text(links, link))
		return;
	if (type->kind == GM_IS_TENSOR && strcmp(name, "impl") == 0) {
		set_text(link, copy_text(links, type->name));
		return;
	}
	if (is_part(links, link) || is_named(link, "tb_frame") || is_named(link, "tb_next") ||
	    (type->kind == GM_IS_GENERATOR && strcmp(name, "frame") == 0) ||
	    (strcmp(type->name, "_lru_list_elem") == 0 && strcmp(name, "result") == 0))
		return;
	/* A variable that closures share lies in a cell. */
	if (strcmp(type->name, "cell") == 0 && before &&
	    (before->edge.how == GM_BY_LOCAL || is_part(links, link_to(links, before->parent))))
		return;
	if (type->kind == GM_IS_LRU && strcmp(name, "cache") == 0) {
		callable_name(links, address_of(links, link->parent), text, sizeof(text));
		set_text(link, print(links, "functools.lru_cache of %s", text));
		return;
	}
	if (strcmp(type->name, "method") == 0) {
		callable_name(links, address_of(links, link->parent), text, sizeof(text));
		set_text(link, print(links, "bound method %s%s%s", text,
				     strcmp(name, "__self__") == 0 ? "" : ".",
				     strcmp(name, "__self__") == 0 ? "" : name));
		return;
	}
	if (type->kind == GM_IS_WEAKREF && strcmp(name, "referent") == 0) {
		set_text(link, print(links, "%s (weak)", type->name));
		return;
	}
	owner_name(links, link->parent, text, sizeof(text));
	set_text(link, print(links, "%s.%s", text, name));
}

static void link_text(struct gm_links *links, struct gm_link *link)
{
	char name[256], text[200];

	switch (link->edge.how) {
	case GM_BY_NAME:
		field_text(links, link);
		break;
	case GM_BY_MEMBER:
		owner_name(links, link->parent, name, sizeof(name));
		snprintf(text, sizeof(text), "%s", link->edge.name ? link->edge.name : "?");
		if (!link->edge.name)
			gm_cpython_string(python_of(links), link->edge.key, text, sizeof(text));
		set_text(link, print(links, "%s.%s", name, text));
		break;
	case GM_BY_STR:
		set_text(link, attribute_text(links, link->parent, link->edge.key));
		break;
	case GM_BY_ITEM:
	case GM_BY_KEY:
	case GM_AS_KEY:
		element_text(links, link);
		break;
	case GM_BY_LOCAL:
	case GM_BY_STACK:
		local_text(links, link);
		break;
	case GM_BY_ROOT:
		if (strcmp(link->edge.name, "sys.modules") != 0)
			set_text(link, link->edge.name);
		break;
	case GM_BY_TYPE:
		owner_name(links, link->parent, name, sizeof(name));
		set_text(link, print(links, "%s.__class__", name));
		break;
	case GM_BY_WORD:
		owner_name(links, link->parent, name, sizeof(name));
		set_text(link, print(links, "%s (a word at +%llu)", name,
				     (unsigned long long)link->edge.index));
		break;
	case GM_BY_DICT:
	case GM_BY_FRAME:
		break;
	}
}

/* ---- the last link ---- */

/* The field of a ctypes structure at an offset: a CField of its class has it. */
struct field_search {
	struct gm_object_walk walk;
	uint64_t offset;
	char name[200];
};

static bool compare_field(struct gm_object_walk *walk, const struct gm_dict_entry *entry,
			  void *data)
{
	struct field_search *search = data;
	const struct gm_type *type = gm_cpython_type_of(walk->python, entry->value);
	uint64_t offset = 0;

	if (!type || strcmp(type->name, "CField") != 0 ||
	    !gm_cpython_word(walk->python, entry->value + 16, &offset) || offset != search->offset)
		return true;
	return !gm_cpython_text(walk->python, entry->key, search->name, sizeof(search->name));
}

static void memory_text(struct gm_links *links, struct gm_link *link)
{
	const struct gm_type *type = type_of(links, link->parent);
	struct field_search search = {.walk.python = python_of(links), .offset = link->edge.index};

	if (type->kind == GM_IS_CTYPES) {
		uint64_t dict = word_at(links, type->address + GM_TYPE_DICT);

		gm_cpython_entries(&search.walk, dict, compare_field, &search);
		if (search.name[0]) {
			set_text(link, print(links, "%s.%s", type->name, search.name));
			return;
		}
	}
	if (type->kind == GM_IS_STORAGE_IMPL)
		return;
	if (type->kind == GM_IS_NDARRAY) {
		set_text(link, print(links, "%s.data", type->name));
		return;
	}
	link->step = link->exact = copy_text(links, type->name);
	if (type->kind != GM_IS_CTYPES && type->kind != GM_IS_ARRAY)
		set_text(link, print(links, "%s (a word at +%llu)", type->name,
				     (unsigned long long)(link->edge.slot -
							  address_of(links, link->parent))));
	else if (link->edge.size > 8)
		link->exact = print(links, "%s[%llu]", type->name,
				    (unsigned long long)link->edge.index / 8);
}

/* ---- chains ---- */

/* A thread's name by Python's `threading`, and its number there. */
struct thread_search {
	struct gm_object_walk walk;
	uint64_t ident, name;
};

static bool compare_ident(struct gm_object_walk *walk, const struct gm_dict_entry *entry,
			  void *data)
{
	struct thread_search *search = data;
	uint64_t ident;

	if (!gm_cpython_int(walk->python, entry->key, &ident) || ident != search->ident)
		return true;
	search->name = entry->value;
	return false;
}

static bool find_name(struct gm_object_walk *walk, const struct gm_edge *edge)
{
	struct thread_search *search = walk->data;
	char text[32];

	if (edge->how == GM_BY_DICT) {
		search->name = gm_cpython_lookup(walk->python, edge->child, "_name");
		return !search->name;
	}
	if (edge->how != GM_BY_STR ||
	    !gm_cpython_text(walk->python, edge->key, text, sizeof(text)) ||
	    strcmp(text, "_name") != 0)
		return true;
	search->name = edge->child;
	return false;
}

static const char *thread_text(struct gm_links *links, uint64_t thread)
{
	struct gm_cpython *python = python_of(links);
	/* PyThreadState.thread_id lies before asyncgen hooks: to 3.10 at 176, then 24 on from dict
	 */
	unsigned at = python->minor <= 10 ? 176 : python->offsets->thread_dict + 24;
	struct thread_search search = {.walk.python = python, .ident = word_at(links, thread + at)};
	uint64_t interpreter = word_at(links, thread + 16), object;
	const struct gm_type *type;
	char name[120] = "";

	object = gm_cpython_lookup(python, word_at(links, interpreter + python->offsets->modules),
				   "threading");
	object = object ? gm_cpython_lookup(python, word_at(links, object + GM_MODULE_DICT),
					    "_active")
			: 0;
	if (object)
		gm_cpython_entries(&search.walk, object, compare_ident, &search);
	type = search.name ? gm_cpython_type_of(python, search.name) : NULL;
	if (type) {
		struct gm_type copy = *type;

		object = search.name;
		search.name = 0;
		search.walk = (struct gm_object_walk){
			.python = python, .edge = find_name, .data = &search};
		gm_walk_object(&search.walk, object, &copy);
		if (search.name)
			gm_cpython_text(python, search.name, name, sizeof(name));
	}
	if (!name[0] && search.ident &&
	    search.ident == word_at(links, python->runtime + python->offsets->main_thread))
		strcpy(name, "MainThread"); /* as it is called once `threading` is loaded */
	return name[0] ? print(links, "thread %s", name) : copy_text(links, "thread");
}

static const char *root_text(struct gm_links *links, uint32_t root)
{
	const struct gm_type *type = type_of(links, root);

	switch (gm_graph_stage(links->graph, root)) {
	case GM_STAGE_GARBAGE:
		return print(links, "unreachable cycle, %s", type->name);
	case GM_STAGE_UNKNOWN:
		return print(links, "something that is no known object, %s", type->name);
	default:
		break;
	}
	if (type->kind == GM_IS_THREAD)
		return thread_text(links, address_of(links, root));
	return NULL;
}

static void put(const char **steps, const char **exact, unsigned *count, unsigned most,
		const char *step, const char *exact_step)
{
	if (!step || *count == most)
		return;
	steps[*count] = step;
	exact[(*count)++] = exact_step;
}

unsigned gm_links_text(struct gm_links *links, uint32_t last, const char **steps,
		       const char **exact, unsigned most)
{
	uint32_t path[256], length = 0, link = last;
	unsigned count = 0;
	const char *root;

	for (;;) {
		path[length++] = link;
		if (!links->of_node[links->links[link].parent] || length == 256)
			break;
		link = links->of_node[links->links[link].parent] - 1;
	}
	root = root_text(links, links->links[path[length - 1]].parent);
	put(steps, exact, &count, most, root, root);
	while (length) {
		struct gm_link *at = &links->links[path[--length]];

		if (!at->has_text) {
			at->has_text = true;
			if (at->child == GM_NO_NODE && !at->target)
				memory_text(links, at);
			else
				link_text(links, at);
		}
		put(steps, exact, &count, most, at->step, at->exact);
		if (at->child == GM_NO_NODE && at->target)
			put(steps, exact, &count, most, "int", "int");
	}
	put(steps, exact, &count, most, "block", "block");
	return count;
}

void gm_links_free_text(struct gm_links *links)
{
	while (links->texts) {
		struct gm_text_block *next = links->texts->next;

		free(links->texts);
		links->texts = next;
	}
}
