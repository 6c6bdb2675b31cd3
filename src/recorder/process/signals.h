/*
 * GPUMEMTRACE_SIGNAL: marks and copies of the file on a signal.
 */
#ifndef GM_RECORDER_SIGNALS_H
#define GM_RECORDER_SIGNALS_H

#include <stdint.h>

/* Signals that came while a lock was held, to be served after the next call (atomic). */
extern uint32_t gm_signals_waiting __attribute__((visibility("hidden")));

/* Serves them, if it can be done without waiting. Async-signal-safe. */
void gm_signals_serve(void);

/* Serves waiting signals after a call; there are hardly ever any. */
static inline void gm_signals_serve_waiting(void)
{
	if (__builtin_expect(__atomic_load_n(&gm_signals_waiting, __ATOMIC_RELAXED) != 0, 0))
		gm_signals_serve();
}

/* The file was opened: installs the handler, once per process. */
void gm_signals_start(void);

/* At the end: serves what is left and reports what went wrong. */
void gm_signals_finish(void);

#endif
