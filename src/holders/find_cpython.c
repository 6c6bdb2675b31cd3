/*
 * Finds the CPython of a process and its version (internal.h). The interpreter's structures are
 * believed only if their own contents agree with the table.
 */
#include "holders/internal.h"

#include "holders/elf_dynamic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum symbol {
	RUNTIME,
	TYPE,
	OBJECT,
	DICT,
	VERSION,
	DEBUG_BUILD,
	IN_3_9,
	IN_3_10,
	IN_3_11,
	IN_3_12,
	IN_3_13,
	IN_3_14,
	SYMBOLS
};

/* Functions that a version of CPython was the first to export tell the versions before 3.11. */
static const char *const symbol_names[SYMBOLS] = {
	[RUNTIME] = "_PyRuntime",	 [TYPE] = "PyType_Type",
	[OBJECT] = "PyBaseObject_Type",	 [DICT] = "PyDict_Type",
	[VERSION] = "Py_Version",	 [DEBUG_BUILD] = "_Py_NegativeRefcount",
	[IN_3_9] = "PyType_GetModule",	 [IN_3_10] = "PyModule_AddObjectRef",
	[IN_3_11] = "PyType_GetName",	 [IN_3_12] = "PyType_FromMetaclass",
	[IN_3_13] = "PyDict_GetItemRef", [IN_3_14] = "PyLong_AsInt64",
};

static unsigned read_minor(struct gm_memory *memory, const struct gm_exported *symbols)
{
	uint64_t version = 0;

	if (symbols[VERSION].address)
		return gm_memory_read(memory, symbols[VERSION].address, &version, 8) &&
				       version >> 24 == 3
			       ? version >> 16 & 0xff
			       : 0;
	for (unsigned i = IN_3_14; i >= IN_3_9; i--)
		if (symbols[i].address)
			return 9 + i - IN_3_9;
	return 8;
}

/* The first mapping of a file that exports a CPython's symbols; its own files are tried first. */
static bool find_symbols(struct gm_memory *memory, struct gm_exported *symbols)
{
	unsigned count;
	const struct gm_mapping *mappings = gm_memory_mappings(memory, &count);

	for (unsigned i = 0; i < SYMBOLS; i++)
		symbols[i].name = symbol_names[i];
	for (unsigned pass = 0; pass < 2; pass++) {
		for (unsigned i = 0; i < count; i++) {
			const char *slash = strrchr(mappings[i].path, '/');
			bool named = slash && strstr(slash, "python");

			if (!slash || mappings[i].offset || !mappings[i].inode ||
			    named != (pass == 0) ||
			    (i && strcmp(mappings[i].path, mappings[i - 1].path) == 0))
				continue;
			gm_exported_symbols(memory, &mappings[i], symbols, SYMBOLS);
			if (symbols[RUNTIME].address && symbols[TYPE].address &&
			    symbols[OBJECT].address)
				return true;
		}
	}
	return false;
}

/* Checks that the offsets that CPython publishes from 3.13 on agree with the table. */
static const char *check_published(struct gm_cpython *python)
{
	const struct gm_python_offsets *at = python->offsets;
	/* the word of the collector's state, a thread's current frame, a frame's size */
	unsigned gc = python->minor == 13 ? 10 : 11, current = python->minor == 13 ? 23 : 26;
	unsigned frame = python->minor == 13 ? 28 : 31;
	uint64_t word[38];

	if (python->minor < 13)
		return NULL;
	if (!gm_memory_read(python->memory, python->runtime, word, sizeof(word)) ||
	    memcmp(word, "xdebugpy", 8))
		return "it does not publish its structures";
	if (word[2])
		return "it is a free-threaded build, whose objects are laid out differently";
	/*
	 * Words of _Py_DebugOffsets: Include/internal/pycore_runtime.h of 3.13,
	 * pycore_debug_offsets.h of 3.14, which has more of the interpreter.
	 */
	if (word[5] != at->first_interpreter || word[8] != at->next || word[9] != at->threads ||
	    word[gc] + 24 != at->generations || word[gc + 1] != at->modules ||
	    word[gc + 2] != at->sysdict || word[gc + 3] != at->builtins ||
	    word[current] != at->frame || word[frame + 1] != at->frame_previous ||
	    word[frame + 2] != at->frame_code || word[frame + 4] != at->frame_local_slots ||
	    word[frame + 5] != at->frame_owner)
		return "the structures that it publishes are not those of its version";
	return NULL;
}

/* Finds the layout of texts and of line tables; without it frames have no lines. */
static void find_layout(struct gm_cpython *python)
{
	uint64_t published[128] = {0};

	if (python->minor <= 12)
		python->layout = *gm_python_layout(python->minor);
	else if (!gm_memory_read(python->memory, python->runtime, published, sizeof(published)) ||
		 gm_python_published_layout(published, python->minor, &python->layout))
		python->layout = (struct gm_python_layout){.state_shift = 2};
}

/* A class of importlib, which is Python code: its tp_dealloc is subtype_dealloc. */
static bool find_subtype_dealloc(struct gm_cpython *python, uint64_t modules)
{
	uint64_t module = gm_cpython_lookup(python, modules, "_frozen_importlib"), dict = 0, type;

	if (!module || !gm_cpython_word(python, module + GM_MODULE_DICT, &dict))
		return false;
	type = gm_cpython_lookup(python, dict, "ModuleSpec");
	return type && gm_cpython_word(python, type + GM_TYPE_DEALLOC, &python->subtype_dealloc) &&
	       python->subtype_dealloc;
}

/* NULL, or the reason why its objects cannot be read. */
static const char *examine(struct gm_cpython *python, const struct gm_exported *symbols)
{
	uint64_t interpreter = 0, modules = 0, dict_bytes = 0, type_bytes = 0;
	const char *reason;

	python->offsets = gm_python_offsets(python->minor);
	if (!python->offsets)
		return "its structures are not known";
	if (symbols[DEBUG_BUILD].address)
		return "it is a debug build";
	reason = check_published(python);
	if (reason)
		return reason;
	find_layout(python);
	if (!gm_cpython_word(python, python->runtime + python->offsets->first_interpreter,
			     &interpreter) ||
	    !interpreter)
		return "it has no interpreter now: it has not begun, or has ended";
	if (!gm_cpython_word(python, interpreter + python->offsets->modules, &modules) || !modules)
		return "its interpreter has no modules now: it has not begun, or is ending";
	if (!gm_cpython_word(python, symbols[DICT].address + GM_TYPE_BASICSIZE, &dict_bytes) ||
	    !gm_cpython_word(python, python->type_type + GM_TYPE_BASICSIZE, &type_bytes) ||
	    dict_bytes != 48 || type_bytes != python->offsets->type_bytes ||
	    !find_subtype_dealloc(python, modules))
		return "its structures are not as expected";
	gm_cpython_forget_types(python); /* they were classified without subtype_dealloc */
	return NULL;
}

struct gm_cpython *gm_cpython_open(struct gm_memory *memory, bool *native, char *error,
				   size_t error_bytes)
{
	struct gm_exported symbols[SYMBOLS];
	struct gm_cpython *python;
	const char *reason;

	if (!find_symbols(memory, symbols)) {
		*native = true;
		snprintf(error, error_bytes, "the process has no CPython");
		return NULL;
	}
	python = calloc(1, sizeof(*python));
	if (!python) {
		snprintf(error, error_bytes, "out of memory");
		return NULL;
	}
	python->memory = memory;
	python->runtime = symbols[RUNTIME].address;
	python->type_type = symbols[TYPE].address;
	python->object_type = symbols[OBJECT].address;
	python->minor = read_minor(memory, symbols);
	reason = examine(python, symbols);
	if (!reason)
		return python;
	snprintf(error, error_bytes, "objects of CPython 3.%u are not read: %s", python->minor,
		 reason);
	gm_cpython_close(python);
	return NULL;
}

void gm_cpython_close(struct gm_cpython *python)
{
	if (python)
		gm_cpython_forget_types(python);
	free(python);
}
