/*
 * The start of recording in this process, and whether the process records at all: settings when the
 * shim is loaded, the file at the first CUDA event.
 *
 * The code of the shim runs in somebody else's process, at any moment: inside an allocator's lock,
 * in a constructor, in a signal handler, between fork and exec, after main has returned. All of
 * interpose/, recorder/ and cupti/ therefore obeys these rules:
 *
 *  - The real function is called with the caller's arguments and its result is returned unchanged,
 *    whatever happens to the recording of it. errno is as the real function left it. Only
 *    GPUMEMTRACE_CAPACITY and GPUMEMTRACE_FAIL change results (calls/refuse.h).
 *  - Nothing aborts, exits or asserts. A failure degrades what is recorded, and is counted.
 *  - No memory comes from the program's heap: what is needed is static, on the stack, in the file
 *    or in pages of its own. Thread-local variables are initial-exec and total under 512 bytes.
 *  - No lock of ours is held while the program's code runs or while CUDA is called for the program.
 *    In signal handlers and at the end, locks are only tried. The child of a fork finds them
 *    released.
 *  - Libraries are opened in two places only, when libcuda is first found and when CUPTI starts:
 *    dlopen and dlsym wait for any thread that runs a constructor. All other look-ups read the
 *    loaded objects' own tables (libraries.h). The GIL is never taken.
 *  - The driver is queried through its real functions, which change nothing of the program's state
 *    (query.h). It is not queried at exit, and otherwise only in a call that the program makes.
 *  - The environment changes in the constructor alone, a signal's handler only for
 *    GPUMEMTRACE_SIGNAL, and no thread is created.
 */
#ifndef GM_RECORDER_START_H
#define GM_RECORDER_START_H

#include "recorder/state/fork_page.h"

#include <stdbool.h>
#include <stdint.h>

enum gm_readiness {
	GM_UNREAD, /* the environment was not read yet, or is being read */
	GM_READY,
	GM_OFF,	   /* nothing is to be recorded */
	GM_ASLEEP  /* nothing but contexts, until gpumem-report asks for more (sleep.h) */
};
extern uint32_t gm_readiness __attribute__((visibility("hidden")));

/* Reads the environment if that was not done yet; the slow path of gm_disabled. */
bool gm_find_disabled(void);

/*
 * True when nothing is to be recorded: GPUMEMTRACE_DISABLE, a setuid program, no memory for the
 * file.
 */
static inline bool gm_disabled(void)
{
	uint32_t readiness = __atomic_load_n(&gm_readiness, __ATOMIC_ACQUIRE);

	return readiness == GM_READY ? false : readiness == GM_OFF || gm_find_disabled();
}

/*
 * Begins the complete history (GPUMEMTRACE_EVENTS=all) of the file, which is open. Under the start
 * lock.
 */
void gm_start_history(void);

/*
 * Counts a call that a signal handler made while its thread was opening the file.
 * Async-signal-safe.
 */
void gm_passed_early(void);

/* Opens the file; the slow path of gm_recording. */
bool gm_start(void);

/*
 * True when this process records. Opens the file at its first event; in the child of a fork drops
 * the parent's state and opens a file of its own. Any wrapper may call it; it costs one load once
 * started.
 */
static inline bool gm_recording(void)
{
	return __builtin_expect(gm_owns_file(), 1) || gm_start();
}

#endif
