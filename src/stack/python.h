/*
 * Python frames of the calling thread, read from CPython's memory without the GIL and without
 * calling anything of Python's but PyGILState_GetThisThreadState, which reads a thread-local.
 */
#ifndef GM_STACK_PYTHON_H
#define GM_STACK_PYTHON_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Looks for an interpreter among the loaded objects and whether its frames can be read. To be
 * called again when objects were loaded or unloaded. Any thread; takes the loader's list lock, and
 * the stack lock at the end: neither may be held.
 */
void gm_python_find(void);

/*
 * Objects were unloaded: an interpreter that went with them, as one does that a program embedded
 * for a while, is not to be asked for thread states any more. Any thread; takes the loader's list
 * lock, which may not be held, and no other.
 */
void gm_python_unloaded(void);

/* gm_stack_python(). */
const char *gm_python_status(void);

/* There is an interpreter: without one no thread has Python frames (atomic). */
extern bool gm_python_present;

/*
 * The calling thread's Python frames, innermost first, as numbers in GM_TABLE_FRAMES. Writes at
 * most `max`; the frames that follow are only noted in `*flags` (GM_STACK_PYTHON_TRUNCATED), as are
 * a chain that does not check (GM_STACK_PYTHON_UNREADABLE). Safe wherever gm_stack_capture is.
 */
unsigned gm_python_walk(uint32_t *frames, unsigned max, uint16_t *flags);

/*
 * A Python frame as it stands: its code object, the place in it as the frame says it, and what
 * tells that code object from any other.
 */
struct gm_python_place {
	uint64_t code, position;
	uint32_t version, line; /* the code object's number, and its first line */
};

/*
 * The places of the calling thread's Python frames. False, and nothing to be made of `place`,
 * unless they are all there are, have these numbers and can be told by what a place holds (CPython
 * numbers its code objects from 3.12 on).
 */
bool gm_python_places(struct gm_python_place *place, const uint32_t *frames, unsigned count);

/* False if it is never true of this interpreter. */
bool gm_python_has_places(void);

/*
 * True if the calling thread's Python frames are these and no others: then they have the same
 * numbers.
 */
bool gm_python_same(const struct gm_python_place *place, unsigned count);

/*
 * True if a collection of CPython's garbage collector runs in the calling thread's interpreter:
 * what the thread frees now, the collector frees. A thread that frees memory without the GIL while
 * another thread collects is taken for the collector too. False where Python's frames are not read
 * (yet), or the collector's state is not as expected. Takes no lock; any thread.
 */
bool gm_python_collecting(void);

/*
 * True if the program switched that collector off (gc.disable). The interpreter's end runs it all
 * the same. Not known, and false, from 3.14 on. Otherwise as above.
 */
bool gm_python_collector_off(void);

/*
 * True while the interpreter ends: a collection then frees what modules held, too. False where
 * Python's frames are not read (yet). Takes no lock; any thread.
 */
bool gm_python_ending(void);

/*
 * Returns a number that tells the calling thread's innermost Python frames from others; 0 without
 * any. Different frames can have the same number.
 */
uint64_t gm_python_hint(void);

/* The interpreter's code; 0 bytes if there is none. */
void gm_python_interpreter(uintptr_t *start, uintptr_t *bytes);

void gm_python_reset(void);

#endif
