/*
 * Holds src/stack/python_layout.c against one CPython's own headers: compiled once for each version
 * that the build machine has headers of. Links no Python; every figure is the compiler's.
 */
#define Py_BUILD_CORE 1
#include <Python.h>

#include <frameobject.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#if PY_VERSION_HEX >= 0x030b0000
#include <internal/pycore_code.h>
#include <internal/pycore_frame.h>
#endif
#if PY_VERSION_HEX >= 0x03090000
#include <internal/pycore_interp.h>
#else
#include <internal/pycore_pystate.h>
#endif
#if PY_VERSION_HEX >= 0x030d0000
#include <internal/pycore_runtime.h>
#endif

#include "stack/python_layout.h"

static int failures;

static void check(const char *what, size_t ours, size_t theirs)
{
	if (ours == theirs)
		return;
	printf("%s: %zu in our table, %zu in the headers of %s\n", what, ours, theirs, PY_VERSION);
	failures++;
}

#if PY_VERSION_HEX < 0x030b0000
typedef PyFrameObject frame_type;
#define FRAME_BACK     f_back
#define FRAME_CODE     f_code
#define FRAME_POSITION f_lasti
#define STATE_FRAME    frame
#else
typedef struct _PyInterpreterFrame frame_type;
#define FRAME_BACK previous
#if PY_VERSION_HEX < 0x030d0000
#define FRAME_CODE     f_code
#define FRAME_POSITION prev_instr
#define STATE_FRAME    cframe
#else
#define FRAME_CODE     f_executable
#define FRAME_POSITION instr_ptr
#define STATE_FRAME    current_frame
#endif
#endif

#if PY_VERSION_HEX < 0x030a0000
#define CODE_LINES co_lnotab
#define LINES	   GM_LINES_LNOTAB
#elif PY_VERSION_HEX < 0x030b0000
#define CODE_LINES co_linetable
#define LINES	   GM_LINES_PAIRS
#else
#define CODE_LINES co_linetable
#define LINES	   GM_LINES_LOCATIONS
#endif

/* What this version publishes, filled in member by member as its initialiser does. */
static const char *get_layout(struct gm_python_layout *layout)
{
#if PY_VERSION_HEX < 0x030d0000
	const struct gm_python_layout *row = gm_python_layout(PY_MINOR_VERSION);

	if (!row)
		return "no row in our table";
	*layout = *row;
	return NULL;
#else
	static _Py_DebugOffsets offsets;

	memcpy(offsets.cookie, "xdebugpy", 8);
	offsets.version = PY_VERSION_HEX;
	offsets.thread_state.current_frame = offsetof(PyThreadState, current_frame);
	offsets.interpreter_frame.previous = offsetof(frame_type, previous);
	offsets.interpreter_frame.executable = offsetof(frame_type, f_executable);
	offsets.interpreter_frame.instr_ptr = offsetof(frame_type, instr_ptr);
	offsets.interpreter_frame.owner = offsetof(frame_type, owner);
	offsets.code_object.filename = offsetof(PyCodeObject, co_filename);
	offsets.code_object.name = offsetof(PyCodeObject, co_name);
	offsets.code_object.qualname = offsetof(PyCodeObject, co_qualname);
	offsets.code_object.linetable = offsetof(PyCodeObject, co_linetable);
	offsets.code_object.firstlineno = offsetof(PyCodeObject, co_firstlineno);
	offsets.code_object.co_code_adaptive = offsetof(PyCodeObject, co_code_adaptive);
	offsets.pyobject.size = sizeof(PyObject);
	offsets.pyobject.ob_type = offsetof(PyObject, ob_type);
	offsets.bytes_object.ob_size = offsetof(PyBytesObject, ob_base.ob_size);
	offsets.bytes_object.ob_sval = offsetof(PyBytesObject, ob_sval);
	offsets.unicode_object.state = offsetof(PyUnicodeObject, _base._base.state);
	offsets.unicode_object.length = offsetof(PyUnicodeObject, _base._base.length);
	offsets.unicode_object.asciiobject_size = sizeof(PyASCIIObject);
	offsets.thread_state.interp = offsetof(PyThreadState, interp);
	offsets.interpreter_state.gc = offsetof(PyInterpreterState, gc);
	offsets.gc.collecting = offsetof(struct _gc_runtime_state, collecting);
	return gm_python_published_layout(&offsets, PY_MINOR_VERSION, layout);
#endif
}

static void check_frames(const struct gm_python_layout *l)
{
	check("tstate_frame", l->tstate_frame, offsetof(PyThreadState, STATE_FRAME));
	check("frame_back", l->frame_back, offsetof(frame_type, FRAME_BACK));
	check("frame_code", l->frame_code, offsetof(frame_type, FRAME_CODE));
	check("frame_position", l->frame_position, offsetof(frame_type, FRAME_POSITION));
#if PY_VERSION_HEX >= 0x030b0000
	check("frame_owner", l->frame_owner, offsetof(frame_type, owner));
	check("owner of generators' frames", 1, FRAME_OWNED_BY_GENERATOR);
#endif
#if PY_VERSION_HEX >= 0x030c0000 && PY_VERSION_HEX < 0x030e0000
	check("owner of helper frames", 3, FRAME_OWNED_BY_CSTACK);
#endif
#if PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030d0000
	check("has_cframe", l->has_cframe, 1);
	check("cframe_frame", l->cframe_frame, offsetof(_PyCFrame, current_frame));
#else
	check("has_cframe", l->has_cframe, 0);
#endif
}

static void check_code(const struct gm_python_layout *l)
{
	check("lines", l->lines, LINES);
	check("code_name", l->code_name, offsetof(PyCodeObject, co_name));
	check("code_filename", l->code_filename, offsetof(PyCodeObject, co_filename));
	check("code_firstlineno", l->code_firstlineno, offsetof(PyCodeObject, co_firstlineno));
	check("code_lines", l->code_lines, offsetof(PyCodeObject, CODE_LINES));
#if PY_VERSION_HEX >= 0x030b0000
	check("code_qualname", l->code_qualname, offsetof(PyCodeObject, co_qualname));
	check("code_code", l->code_code, offsetof(PyCodeObject, co_code_adaptive));
	check("code_firsttraceable", l->code_firsttraceable,
	      offsetof(PyCodeObject, _co_firsttraceable));
#else
	check("code_qualname", l->code_qualname, 0);
	check("code_code", l->code_code, 0);
#endif
#if PY_VERSION_HEX >= 0x030c0000
	check("code_version", l->code_version, offsetof(PyCodeObject, co_version));
#else
	check("code_version", l->code_version, 0);
#endif
}

static void check_objects(const struct gm_python_layout *l)
{
	PyASCIIObject text;
	unsigned state;

	check("GM_PY_TYPE", GM_PY_TYPE, offsetof(PyObject, ob_type));
	check("GM_PY_SIZE", GM_PY_SIZE, offsetof(PyVarObject, ob_size));
	check("GM_PY_BYTES_DATA", GM_PY_BYTES_DATA, offsetof(PyBytesObject, ob_sval));
	check("GM_PY_TEXT_LENGTH", GM_PY_TEXT_LENGTH, offsetof(PyASCIIObject, length));
	check("GM_PY_TEXT_HASH", GM_PY_TEXT_HASH, offsetof(PyASCIIObject, hash));
	check("GM_PY_TEXT_STATE", GM_PY_TEXT_STATE, offsetof(PyASCIIObject, state));
	check("GM_PY_TYPE_BASE", GM_PY_TYPE_BASE, offsetof(PyTypeObject, tp_base));
	check("where characters apart are", l->compact_bytes, offsetof(PyUnicodeObject, data));
	check("ascii_bytes", l->ascii_bytes, sizeof(PyASCIIObject));
	check("compact_bytes", l->compact_bytes, sizeof(PyCompactUnicodeObject));
	memset(&text, 0, sizeof(text));
	text.state.kind = 5;
	text.state.compact = 1;
	memcpy(&state, &text.state, sizeof(state));
	check("state_shift", (size_t)(5 | 1 << 3) << l->state_shift, state);
	text.state.ascii = 1;
	memcpy(&state, &text.state, sizeof(state));
	check("ascii bit", (size_t)(5 | 1 << 3 | 1 << 4) << l->state_shift, state);
}

static void check_collector(const struct gm_python_layout *l)
{
	typedef struct _gc_runtime_state state;
	size_t collecting = offsetof(state, collecting);

	check("tstate_interp", l->tstate_interp, offsetof(PyThreadState, interp));
#if PY_VERSION_HEX < 0x03090000
	check("gc_collecting", l->gc_collecting, offsetof(_PyRuntimeState, gc.collecting));
#else
	check("gc_collecting", l->gc_collecting, offsetof(PyInterpreterState, gc.collecting));
#endif
#if PY_VERSION_HEX < 0x030e0000
	check("generation0", GM_PY_GC_GENERATION0, collecting - offsetof(state, generation0));
	check("generations", GM_PY_GC_GENERATIONS, collecting - offsetof(state, generations));
	check("enabled", GM_PY_GC_ENABLED, collecting - offsetof(state, enabled));
#endif
}

int main(void)
{
	struct gm_python_layout layout;
	const char *refused = get_layout(&layout);

	if (refused) {
		printf("%s: %s\n", PY_VERSION, refused);
		return 1;
	}
	check_frames(&layout);
	check_code(&layout);
	check_objects(&layout);
	check_collector(&layout);
	return failures != 0;
}
