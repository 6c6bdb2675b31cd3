/*
 * The recorder's life in a process that gpumem-report attach loaded the shim into.
 */
#ifndef GM_RECORDER_ATTACHED_H
#define GM_RECORDER_ATTACHED_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The process is to be recorded with these settings, "NAME=value\n" of each, which are kept. Until
 * gm_attached_routes its calls are forwarded. `age_ns`: how long it has run. Returns NULL, or why
 * it is not to be recorded. Calls neither CUDA nor malloc.
 */
const char *gm_attached_begin(const char *settings, uint64_t age_ns);

/*
 * Has the next CUDA call begin the recording. Records in the file how many words of the process
 * lead to the shim, and of how many functions CUPTI reports the calls; if of none, the reason
 * `why`, whose address is kept.
 */
void gm_attached_routes(uint32_t slots, uint32_t table_words, uint32_t cupti, const char *why);

/*
 * Applies the settings and opens the libraries that the recorder needs. Returns false where the
 * process is not to be recorded. For a thread outside of the loader, malloc and the shim.
 */
bool gm_attached_prepare(const char *settings);

/* Forwards from now on, and closes the file if one is open. */
void gm_attached_end(void);

/*
 * Describes an attached process in the file that is open; in a file of its own if that is one that
 * an earlier attach closed. Returns false if there can be none. Nothing in a process that is not
 * attached. Under the start lock.
 */
bool gm_attached_describe(void);

#endif
