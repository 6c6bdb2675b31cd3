/*
 * The id of the calling thread, which is asked of the system once in the life of a thread.
 */
#ifndef GM_TRACK_THREAD_ID_H
#define GM_TRACK_THREAD_ID_H

#include "store/thread_state.h"

/*
 * Asks the system for the calling thread's id and remembers it. The child of a fork forgets it, by
 * a 0.
 */
uint32_t gm_ask_thread_id(void);

/* Returns the calling thread's id as gettid does. Safe in signal handlers. */
static inline uint32_t gm_calling_thread(void)
{
	return __builtin_expect(gm_thread.id != 0, 1) ? gm_thread.id : gm_ask_thread_id();
}

#endif
