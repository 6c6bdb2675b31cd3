/*
 * The offsets of fields in CPython's structures, for reading another process: one row for each
 * minor version, in bytes. 64-bit CPython without Py_TRACE_REFS, Py_DEBUG and free threading only.
 */
#ifndef GM_HOLDERS_PYTHON_OFFSETS_H
#define GM_HOLDERS_PYTHON_OFFSETS_H

#include <stdint.h>

struct gm_python_offsets {
	uint8_t minor;
	/* _PyRuntimeState: its id is that of a PyThreadState, and interpreters.head */
	uint16_t main_thread, first_interpreter;
	/* PyInterpreterState */
	uint16_t next, threads, modules, sysdict, builtins, dict, generations, forkers, atexit;
	/* PyThreadState */
	uint16_t frame, exception, exc_info, thread_dict, async_exc, thread_context, profile_object;
	/* PyFrameObject to 3.10, _PyInterpreterFrame from 3.11 */
	uint16_t frame_code, frame_locals, frame_local_slots, frame_stack, frame_trace, frame_run;
	uint16_t frame_previous, frame_function, frame_object, frame_owner;
	/* PyGenObject and its likes; exc_state is followed by the coroutine's origin */
	uint16_t generator_frame, generator_code, generator_exc, generator_state, generator_name;
	/* PyFunctionObject */
	uint16_t function_code, function_globals, function_builtins, function_defaults,
		function_kwdefaults, function_closure, function_doc, function_dict, function_module,
		function_annotations, function_annotate, function_qualname, function_typeparams;
	/* PyCodeObject: names of locals, as one tuple from 3.11, as three to 3.10 */
	uint16_t code_names, code_freevars, code_cellvars, code_locals, code_stacksize,
		code_filename, code_name, code_firstline, code_argcount, code_kwonlyargcount;
	/* PyHeapTypeObject */
	uint16_t type_keys, type_module;
	/* PyTupleObject: its items, from 3.14 on behind its hash */
	uint16_t tuple_items;
	/* PyBaseExceptionObject */
	uint16_t exc_notes, exc_traceback;
	/* lru_cache_object, dequeobject, localobject */
	uint16_t lru_bytes, deque_bytes;
	/* sizes of types, by which the row is checked in the process */
	uint16_t function_bytes, generator_bytes, frame_bytes, exception_bytes, type_bytes;
};

/* The row of a minor version of CPython 3; NULL if there is none. */
const struct gm_python_offsets *gm_python_offsets(unsigned minor);

/* These offsets are the same in all these versions. */
#define GM_OBJECT_TYPE	   8u
#define GM_VAR_SIZE	   16u
#define GM_LIST_ITEMS	   24u
#define GM_DICT_KEYS	   32u
#define GM_DICT_VALUES	   40u
#define GM_MODULE_DICT	   16u
#define GM_MODULE_STATE	   32u
#define GM_TYPE_NAME	   24u
#define GM_TYPE_BASICSIZE  32u
#define GM_TYPE_ITEMSIZE   40u
#define GM_TYPE_DEALLOC	   48u
#define GM_TYPE_FLAGS	   168u
#define GM_TYPE_TRAVERSE   184u
#define GM_TYPE_MEMBERS	   240u
#define GM_TYPE_BASE	   256u
#define GM_TYPE_DICT	   264u
#define GM_TYPE_DICTOFFSET 288u
#define GM_TYPE_BASES	   336u
#define GM_TYPE_MRO	   344u
#define GM_TYPE_CACHE	   352u
#define GM_GC_HEAD	   16u /* PyGC_Head lies before the object: next, previous */

#endif
