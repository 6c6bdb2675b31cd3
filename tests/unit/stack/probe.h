/*
 * The "shim" of the stack tests: a shared library that holds src/stack, a stand-in for the store
 * and a few entries that take stacks and tell what is in them, for C tests and for ctypes.
 */
#ifndef PROBE_H
#define PROBE_H

#include "stack/native.h"
#include "stack/stack.h"
#include "store_double.h"

#include <stddef.h>

/* Starts over: empty store, nothing interned, stacks of at most `depth` frames. */
void probe_start(int mode, unsigned depth);

/* As probe_start, with the unwinder of that name; false if it does not work here. */
bool probe_start_with(const char *unwinder, unsigned depth);

/*
 * Takes the caller's stack, interns it twice, and returns its number (GM_NONE: none) when both
 * agree, else -2 as unsigned. `limit` as in gm_stack_capture.
 */
uint32_t probe_stack(unsigned limit);

/* The same from `frames` functions deeper inside this library. */
uint32_t probe_stack_deep(unsigned limit, unsigned frames);

/* Takes `captures` stacks as probe_stack does; the last one's number. */
uint32_t probe_many(unsigned captures);

/*
 * Writes a stack out, a line a frame, innermost first: "python\tFUNCTION\tFILE\tLINE" or
 * "native\tMODULE\tOFFSET"; and first "flags\tN". Returns the length.
 */
size_t probe_describe(uint32_t stack, char *to, size_t room);

/* Path of the innermost module outside CUDA of the latest probe_stack, "" if none. */
const char *probe_caller_module(void);

/* Calls `function(data)`: a frame of this library and, between calls, of the program. */
void probe_call(void (*function)(void *), void *data);

/* True if the unwind tables and libgcc see the same stack from the caller on. */
bool probe_unwinders_agree(void);

/* How often they did not so far. */
uint64_t probe_disagreements(void);

/* Runs probe_stack on a thread that Python knows nothing of. */
uint32_t probe_stack_on_thread(void);

#endif
