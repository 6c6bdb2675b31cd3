/*
 * GPUMEMTRACE_SIGNAL: marks and copies of the file on a signal (signals.c).
 */
#ifndef GM_INTERPOSE_SIGNALS_H
#define GM_INTERPOSE_SIGNALS_H

#include <stdint.h>

/* Signals that came while a lock was held, to be served by the next recorded call. */
extern uint32_t gm_signals_waiting __attribute__((visibility("hidden")));

/* Serves them, if it can be done without waiting. Signal-safe. */
void gm_signals_serve(void);

/* The file was opened: installs the handler, once per process. */
void gm_signals_start(void);

/* The end: serves what is left and says what went wrong. */
void gm_signals_finish(void);

#endif
