/*
 * CUPTI's reports about calls and contexts, in the table's terms. Every function may be called from
 * any thread, inside CUDA; none calls CUDA.
 */
#ifndef GM_CUPTI_DRIVER_CALLS_H
#define GM_CUPTI_DRIVER_CALLS_H

#include <stdbool.h>
#include <stdint.h>

/* The name of a row whose calls CUPTI is to report, NULL for the others. */
const char *gm_cupti_wanted(unsigned function);

/* Maps the memory for calls under way; false if there is none. */
bool gm_cupti_calls_start(void);

/*
 * A driver call begins: `params` is CUPTI's structure of its arguments. CUPTI passes *correlation,
 * which is set here, to the end of the call. It ends with `result`.
 */
void gm_cupti_call_begins(unsigned function, const void *params, uint64_t *correlation);
void gm_cupti_call_ends(int result, const uint64_t *correlation);

/*
 * Puts CUPTI beside the wrappers (gm_cupti_join): it reports the calls that none of them sees; with
 * `on` false, none at all.
 */
void gm_cupti_listen(bool on);

/*
 * Reports no call that begins from now on, and waits up to 200 ms for the end of those that have
 * begun. If they do not end, reports calls again and returns false.
 */
bool gm_cupti_calls_drain(void);

/* A context was made; a context is about to be destroyed, by the program or by CUDA. */
void gm_cupti_context_created(void);
void gm_cupti_context_ends(uint64_t context);

#endif
