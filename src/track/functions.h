/*
 * The CUDA functions that appear in the file (GM_TABLE_FUNCTIONS).
 */
#ifndef GM_TRACK_FUNCTIONS_H
#define GM_TRACK_FUNCTIONS_H

#include <stdint.h>

#define GM_MOST_FUNCTIONS 512

/* For each function id the index of its record plus 1; 0 if it has none yet (atomic). */
extern uint32_t gm_function_indices[GM_MOST_FUNCTIONS] __attribute__((visibility("hidden")));

/*
 * Returns the index in GM_TABLE_FUNCTIONS of the function `id`, which is below GM_MOST_FUNCTIONS
 * and is entered by its name at the first call. Returns GM_NONE if the file is full. Any thread.
 */
uint32_t gm_track_function(unsigned id, const char *name, unsigned layer);

/* Forgets all functions when a file was opened. For track/. */
void gm_functions_reset(void);

#endif
