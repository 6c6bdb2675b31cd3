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

#endif
