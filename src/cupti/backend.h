/*
 * The CUPTI backend: NVIDIA's callback API reports the driver's calls instead of the wrappers,
 * which then only forward. From there on a call goes the same way: gm_call_enter and gm_call_leave
 * (recorder/calls/slow_path.h), roles, tracker. gm_settings.backend says which of the two it is; it
 * goes back to GM_BACKEND_PRELOAD when CUPTI cannot be used.
 *
 * When it starts matters. Before cuInit a subscription would start CUDA by itself, which a program
 * that forks later may not want, and would come before the tool that CUDA_INJECTION64_PATH names.
 * So that variable is set to this library where no other has it (recorder/process/injection.c), and
 * libcuda calls InitializeInjection (interpose/inject.c) from cuInit. Where another library has it,
 * the first driver call after cuInit is early enough.
 */
#ifndef GM_CUPTI_BACKEND_H
#define GM_CUPTI_BACKEND_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Finds libcupti, becomes its subscriber and enables the callbacks of the table's functions;
 * reports the outcome on stderr. Acts once; loads libraries. Called when CUDA is initialised. Any
 * thread.
 */
void gm_cupti_start(void);

/*
 * For a wrapper of `layer` (enum gm_layer), while CUPTI is the backend: true when CUPTI reports the
 * call. Starts CUPTI if libcuda did not call InitializeInjection. Any thread.
 */
bool gm_cupti_reports(unsigned layer);

/*
 * Subscribes to CUPTI in a process that was attached to, where CUPTI stands beside the wrappers and
 * reports what does not come by them: calls by addresses that the program looked up before.
 * gm_cupti_listen (driver_calls.h) has it begin. Returns the number of functions whose calls CUPTI
 * reports from now on; 0 after a sentence without its end in `why`. Loads libcupti and calls the
 * driver, so it is called on a thread that is outside of the loader, malloc, CUDA and the shim,
 * where CUDA was initialised before. One thread at a time.
 */
unsigned gm_cupti_join(char *why, size_t bytes);

/*
 * Ends the subscription of gm_cupti_join, if there is one. False where calls that CUPTI reported
 * the begin of do not end within 200 ms: then everything is as before. The third time it is ended
 * all the same. On a thread as above.
 */
bool gm_cupti_leave(void);

#endif
