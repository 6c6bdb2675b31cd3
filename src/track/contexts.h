/*
 * Contexts: which exist, what they cost, and what ends with them.
 */
#ifndef GM_TRACK_CONTEXTS_H
#define GM_TRACK_CONTEXTS_H

#include "track/event.h"

/*
 * Returns the index in GM_TABLE_CONTEXTS of the live context in which memory that is allocated in
 * this one lives: itself, or for a green context the primary one. GM_NONE: not known. Without the
 * lock.
 */
uint32_t gm_track_context(uint64_t handle);

/*
 * Returns the device of the context with this index plus 1 (event->context), -1 if it is not known.
 * Without the lock.
 */
int gm_track_context_device(uint32_t context);

/*
 * A context was made or, if it is primary, retained. `bytes` is what it cost, GM_NO_BYTES if that
 * is not known. Returns its index.
 */
uint32_t gm_track_context_made(uint64_t handle, int device, bool primary, bool green,
			       uint64_t bytes, uint32_t stack);

/*
 * A context is gone, and with it everything that was allocated in it, for `cause`; `stack` is that
 * of the call, or GM_NONE. Without a handle these are all primary contexts of the device, and
 * memory whose context is not known. A handle that is not known changes nothing.
 */
void gm_track_context_gone(uint64_t handle, int device, enum gm_implicit_cause cause,
			   uint32_t stack);

extern uint32_t gm_context_changes __attribute__((visibility("hidden"))); /* (atomic) */

/*
 * Returns a number that rises whenever a context comes or goes: indices that were remembered
 * elsewhere are then to be looked up again.
 */
static inline uint32_t gm_track_context_changes(void)
{
	return __atomic_load_n(&gm_context_changes, __ATOMIC_ACQUIRE);
}

/*
 * There may be contexts that no recorded call makes: one was found (to be called before
 * gm_track_context_made), or the program has a function that may make some. Safe in any context,
 * also before a file is open.
 */
void gm_track_context_untold(void);

extern uint32_t gm_sole_context __attribute__((visibility("hidden"))); /* (atomic) */

/*
 * Returns the index plus 1 of the only context that exists, a primary one, so that whatever is
 * allocated is allocated in it; 0 if there may be others. This is certain if one device is visible.
 */
static inline uint32_t gm_track_sole_context(void)
{
	return __atomic_load_n(&gm_sole_context, __ATOMIC_ACQUIRE);
}

/* Forgets all contexts when a file was opened. For track/. */
void gm_contexts_reset(void);

#endif
