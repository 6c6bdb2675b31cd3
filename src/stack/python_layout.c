/*
 * CPython's structure offsets (python_layout.h). tests/unit/stack/python_layout_check.c holds this
 * table against the headers of every CPython that the build machine has.
 */
#include "stack/python_layout.h"

#include <stddef.h>
#include <string.h>

/*
 * Sources: PyThreadState in Include/cpython/pystate.h; PyFrameObject in
 * Include/cpython/frameobject.h (3.8 to 3.10), _PyInterpreterFrame in
 * Include/internal/pycore_frame.h (3.11, 3.12); PyCodeObject in Include/cpython/code.h;
 * PyASCIIObject in Include/cpython/unicodeobject.h; _PyCFrame beside PyThreadState; `gc` in struct
 * _is in Include/internal/pycore_interp.h, in 3.8 in _PyRuntimeState (pycore_pystate.h).
 */
static const struct gm_python_layout layouts[] = {
	{.minor = 8,
	 .lines = GM_LINES_LNOTAB,
	 .state_shift = 2,
	 .tstate_frame = 24,
	 .frame_back = 24,
	 .frame_code = 32,
	 .frame_position = 104,
	 .code_name = 112,
	 .code_filename = 104,
	 .code_firstlineno = 40,
	 .code_lines = 120,
	 .ascii_bytes = 48,
	 .compact_bytes = 72,
	 .tstate_interp = 16,
	 .gc_collecting = 544},
	{.minor = 9,
	 .lines = GM_LINES_LNOTAB,
	 .state_shift = 2,
	 .tstate_frame = 24,
	 .frame_back = 24,
	 .frame_code = 32,
	 .frame_position = 104,
	 .code_name = 112,
	 .code_filename = 104,
	 .code_firstlineno = 40,
	 .code_lines = 120,
	 .ascii_bytes = 48,
	 .compact_bytes = 72,
	 .tstate_interp = 16,
	 .gc_collecting = 816},
	{.minor = 10,
	 .lines = GM_LINES_PAIRS,
	 .state_shift = 2,
	 .tstate_frame = 24,
	 .frame_back = 24,
	 .frame_code = 32,
	 .frame_position = 96,
	 .code_name = 112,
	 .code_filename = 104,
	 .code_firstlineno = 40,
	 .code_lines = 120,
	 .ascii_bytes = 48,
	 .compact_bytes = 72,
	 .tstate_interp = 16,
	 .gc_collecting = 816},
	{.minor = 11,
	 .lines = GM_LINES_LOCATIONS,
	 .state_shift = 2,
	 .tstate_frame = 56,
	 .has_cframe = true,
	 .cframe_frame = 8,
	 .frame_back = 48,
	 .frame_code = 32,
	 .frame_position = 56,
	 .frame_owner = 69,
	 .code_name = 120,
	 .code_qualname = 128,
	 .code_filename = 112,
	 .code_firstlineno = 72,
	 .code_lines = 136,
	 .code_code = 184,
	 .code_firsttraceable = 168,
	 .ascii_bytes = 48,
	 .compact_bytes = 72,
	 .tstate_interp = 16,
	 .gc_collecting = 848},
	{.minor = 12,
	 .lines = GM_LINES_LOCATIONS,
	 .state_shift = 2,
	 .tstate_frame = 56,
	 .has_cframe = true,
	 .cframe_frame = 0,
	 .frame_back = 8,
	 .frame_code = 0,
	 .frame_position = 56,
	 .frame_owner = 70,
	 .code_name = 120,
	 .code_qualname = 128,
	 .code_filename = 112,
	 .code_firstlineno = 68,
	 .code_lines = 136,
	 .code_code = 192,
	 .code_firsttraceable = 176,
	 .code_version = 92,
	 .ascii_bytes = 40,
	 .compact_bytes = 56,
	 .tstate_interp = 16,
	 .gc_collecting = 312},
};

const struct gm_python_layout *gm_python_layout(unsigned minor)
{
	for (unsigned i = 0; i < sizeof(layouts) / sizeof(*layouts); i++)
		if (layouts[i].minor == minor)
			return &layouts[i];
	return NULL;
}

/*
 * The numbers of the 64-bit words of _Py_DebugOffsets. 3.13: Include/internal/pycore_runtime.h;
 * 3.14: Include/internal/pycore_debug_offsets.h, which has three members more in the interpreter's
 * part, two more in the frame's, one in the code object's, and a set's part. The collector's part
 * follows the text's in both.
 */
struct published {
	uint8_t minor, state_shift;
	uint8_t current_frame, previous, executable, instr_ptr, owner;
	uint8_t filename, name, qualname, linetable, firstlineno, code;
	uint8_t object_bytes, type, bytes_size, bytes_data, text_state, text_length, ascii_bytes;
	uint8_t interp, gc, collecting;
};

static const struct published published[] = {
	{.minor = 13,
	 .state_shift = 2,
	 .current_frame = 23,
	 .previous = 29,
	 .executable = 30,
	 .instr_ptr = 31,
	 .owner = 33,
	 .filename = 35,
	 .name = 36,
	 .qualname = 37,
	 .linetable = 38,
	 .firstlineno = 39,
	 .code = 43,
	 .object_bytes = 44,
	 .type = 45,
	 .bytes_size = 65,
	 .bytes_data = 66,
	 .text_state = 68,
	 .text_length = 69,
	 .ascii_bytes = 70,
	 .interp = 22,
	 .gc = 10,
	 .collecting = 72},
	{.minor = 14,
	 .state_shift = 16,
	 .current_frame = 26,
	 .previous = 32,
	 .executable = 33,
	 .instr_ptr = 34,
	 .owner = 36,
	 .filename = 40,
	 .name = 41,
	 .qualname = 42,
	 .linetable = 43,
	 .firstlineno = 44,
	 .code = 48,
	 .object_bytes = 50,
	 .type = 51,
	 .bytes_size = 75,
	 .bytes_data = 76,
	 .text_state = 78,
	 .text_length = 79,
	 .ascii_bytes = 80,
	 .interp = 25,
	 .gc = 11,
	 .collecting = 82},
};

static bool plausible(const uint64_t *word, const struct published *at)
{
	return word[at->object_bytes] == 16 && word[at->type] == GM_PY_TYPE &&
	       word[at->bytes_size] == GM_PY_SIZE && word[at->bytes_data] == GM_PY_BYTES_DATA &&
	       word[at->text_length] == GM_PY_TEXT_LENGTH &&
	       word[at->text_state] == GM_PY_TEXT_STATE && word[at->ascii_bytes] == 40 &&
	       word[at->current_frame] < 1024 && word[at->previous] < 256 &&
	       word[at->executable] < 256 && word[at->instr_ptr] < 256 && word[at->owner] < 256 &&
	       word[at->filename] < 1024 && word[at->name] < 1024 && word[at->qualname] < 1024 &&
	       word[at->linetable] < 1024 && word[at->firstlineno] < 1024 && word[at->code] < 1024;
}

/* Adds the offset of the collector's state if the published figures are plausible. Frames are read
 * either way. */
static void add_collector(struct gm_python_layout *layout, const uint64_t *word,
			  const struct published *at)
{
	if (word[at->interp] >= 1024 || word[at->gc] >= 1u << 15 || word[at->collecting] >= 1024 ||
	    (word[at->interp] | word[at->gc]) % 8 || word[at->collecting] % 4)
		return;
	layout->tstate_interp = (uint16_t)word[at->interp];
	layout->gc_collecting = (uint16_t)(word[at->gc] + word[at->collecting]);
}

const char *gm_python_published_layout(const void *runtime, unsigned minor,
				       struct gm_python_layout *layout)
{
	const struct published *at = NULL;
	const uint64_t *word = runtime;

	for (unsigned i = 0; i < sizeof(published) / sizeof(*published); i++)
		if (published[i].minor == minor)
			at = &published[i];
	if (!at)
		return "its structures are not known";
	if (memcmp(word, "xdebugpy", 8))
		return "it does not publish its structures";
	if (word[1] >> 16 != (3u << 8 | minor))
		return "it publishes the structures of another version";
	if (word[2])
		return "it is a free-threaded build";
	if (!plausible(word, at))
		return "the structures it publishes are not as expected";
	*layout = (struct gm_python_layout){
		.minor = (uint8_t)minor,
		.lines = GM_LINES_LOCATIONS,
		.state_shift = at->state_shift,
		.tstate_frame = (uint16_t)word[at->current_frame],
		.frame_back = (uint16_t)word[at->previous],
		.frame_code = (uint16_t)word[at->executable],
		.frame_position = (uint16_t)word[at->instr_ptr],
		.frame_owner = (uint16_t)word[at->owner],
		.code_name = (uint16_t)word[at->name],
		.code_qualname = (uint16_t)word[at->qualname],
		.code_filename = (uint16_t)word[at->filename],
		.code_firstlineno = (uint16_t)word[at->firstlineno],
		.code_lines = (uint16_t)word[at->linetable],
		.code_code = (uint16_t)word[at->code],
		/*
		 * Not published. `_co_firsttraceable` (int) and `co_extra` (pointer) precede the
		 * instructions, five ints lie between co_firstlineno and co_version, in 3.12, 3.13
		 * and 3.14 alike.
		 */
		.code_firsttraceable = (uint16_t)(word[at->code] - 16),
		.code_version = (uint16_t)(word[at->firstlineno] + 24),
		.ascii_bytes = 40,
		.compact_bytes = 56,
	};
	add_collector(layout, word, at);
	return NULL;
}
