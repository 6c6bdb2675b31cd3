/*
 * The CUPTI backend: the driver's calls told by NVIDIA's callback API instead of by our wrappers,
 * which then only forward. Whoever tells of a call, it goes the same way from there: gm_call_enter
 * and gm_call_end (interpose/preload.h), roles, tracker. gm_settings.backend says who does; it goes
 * back to GM_BACKEND_PRELOAD when CUPTI cannot be used.
 *
 * When it starts matters: before cuInit a subscription would start CUDA by itself, which a program
 * that forks later may not want, and would come before the tool that CUDA_INJECTION64_PATH names.
 * So that variable is set to ourselves where nobody has it, and libcuda calls InitializeInjection
 * (inject.c) from cuInit; where somebody has it, the first driver call after cuInit is early
 * enough.
 */
#ifndef GM_CUPTI_BACKEND_H
#define GM_CUPTI_BACKEND_H

#include <stdbool.h>

/* In the constructor: has libcuda call us from cuInit. Changes the environment, loads nothing. */
void gm_cupti_prepare(void);

/*
 * Finds libcupti, becomes its subscriber and has the table's functions told; says in a sentence
 * what came of it. Acts once; loads libraries. Called after cuInit's work is done.
 */
void gm_cupti_start(void);

/*
 * In a wrapper of `layer` (enum gm_layer), while CUPTI is the backend: true when CUPTI tells of the
 * call. Starts it if the injection did not come about.
 */
bool gm_cupti_tells(unsigned layer);

#endif
