/*
 * The id of the calling thread, which is asked of the system once in the life of a thread.
 */
#ifndef GM_TRACK_THREAD_ID_H
#define GM_TRACK_THREAD_ID_H

#include <stdint.h>

/* The calling thread's id; 0 before it was asked. The child of a fork sets it to 0. */
extern __thread uint32_t gm_thread_id
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Asks the system for the calling thread's id and remembers it. */
uint32_t gm_ask_thread_id(void);

/* Returns the calling thread's id as gettid does. Safe in signal handlers. */
static inline uint32_t gm_calling_thread(void)
{
	return __builtin_expect(gm_thread_id != 0, 1) ? gm_thread_id : gm_ask_thread_id();
}

#endif
