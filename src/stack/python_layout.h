/*
 * The offsets of fields in CPython's structures: one row per minor version that publishes nothing
 * about itself (3.8 to 3.12), and the reader of `_PyRuntime.debug_offsets` for those that do (3.13,
 * 3.14). Pure tables and checks; touches no running interpreter but for the offsets it publishes.
 */
#ifndef GM_STACK_PYTHON_LAYOUT_H
#define GM_STACK_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

/* The form of a code object's table of lines. */
enum gm_python_lines {
	GM_LINES_LNOTAB,   /* to 3.9: pairs of address and line steps */
	GM_LINES_PAIRS,	   /* 3.10: ranges, a line step of -128 is "no line" */
	GM_LINES_LOCATIONS /* from 3.11: variable-length entries per instruction */
};

/* Offsets in bytes. 0 where the version has no such member, except `frame_code` and `cframe_frame`.
 */
struct gm_python_layout {
	uint8_t minor;
	uint8_t lines;	       /* enum gm_python_lines */
	uint8_t state_shift;   /* most bits of PyASCIIObject.state below `kind` */
	bool has_cframe;       /* 3.11, 3.12: the frame is reached through tstate->cframe */
	uint16_t tstate_frame; /* PyThreadState: frame, cframe or current_frame */
	uint16_t cframe_frame; /* _PyCFrame.current_frame */
	uint16_t frame_back, frame_code;
	uint16_t frame_position; /* to 3.10: f_lasti (int); later a pointer to an instruction */
	uint16_t frame_owner;
	uint16_t code_name, code_qualname, code_filename, code_firstlineno;
	uint16_t code_lines; /* co_lnotab or co_linetable, a bytes object */
	uint16_t code_code;  /* co_code_adaptive, the instructions themselves; to 3.10 0 */
	uint16_t code_firsttraceable, code_version;
	uint16_t ascii_bytes, compact_bytes; /* sizes of PyASCIIObject, PyCompactUnicodeObject */
	uint16_t tstate_interp; /* PyThreadState.interp */
	uint16_t gc_collecting; /* int, in PyInterpreterState; 3.8: in _PyRuntime. 0: not known */
};

/* The same in every version of 64-bit CPython without Py_TRACE_REFS. */
#define GM_PY_TYPE	  8u  /* PyObject.ob_type */
#define GM_PY_SIZE	  16u /* PyVarObject.ob_size */
#define GM_PY_BYTES_DATA  32u /* PyBytesObject.ob_sval */
#define GM_PY_TEXT_LENGTH 16u /* PyASCIIObject.length */
#define GM_PY_TEXT_HASH	  24u /* PyASCIIObject.hash, -1 unless computed */
#define GM_PY_TEXT_STATE  32u /* PyASCIIObject.state */
#define GM_PY_TYPE_BASE	  256u /* PyTypeObject.tp_base */

/*
 * The collector's state to 3.13, in bytes before its `collecting`: the pointer `generation0`,
 * which points at `generations[0]`, and `enabled`. Source: struct _gc_runtime_state in
 * Include/internal/pycore_gc.h, in 3.8 pycore_pymem.h.
 */
#define GM_PY_GC_GENERATION0 104u
#define GM_PY_GC_GENERATIONS 176u
#define GM_PY_GC_ENABLED     188u

/*
 * PyASCIIObject.state with `kind` (1, 2 or 4) in its lowest bits. Of 3.14 there are two: `interned`
 * before it has 16 bits, of which two are used, or, as in the versions before and in 3.14.10, two
 * (Include/cpython/unicodeobject.h). A kind is never 0, and says which.
 */
static inline uint32_t gm_python_text_state(const struct gm_python_layout *layout, uint32_t state)
{
	return state >> (state & 0x1c ? 2 : layout->state_shift);
}

/* The row of a minor version, NULL if there is none. */
const struct gm_python_layout *gm_python_layout(unsigned minor);

/*
 * Fills a layout from `_PyRuntime`, which begins with the offsets. Returns NULL, or the reason
 * (static) why they cannot be used: another version's, a free-threaded build's, or not as we know
 * CPython.
 */
const char *gm_python_published_layout(const void *runtime, unsigned minor,
				       struct gm_python_layout *layout);

#endif
