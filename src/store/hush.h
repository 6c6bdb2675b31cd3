/*
 * A stretch of the tracker's own system calls that the program must not notice: no SIGPIPE and no
 * SIGXFSZ from what is written, no cancellation of the thread half-way, errno as it was. Calls the
 * kernel directly for signals, so that no preload's sigprocmask is met. Safe in signal handlers.
 */
#ifndef GM_STORE_HUSH_H
#define GM_STORE_HUSH_H

#include <stdint.h>

struct gm_hush {
	uint64_t mask;	  /* the thread's signal mask before */
	uint64_t pending; /* what was pending already and is not ours to take */
	int cancel, error;
};

void gm_hush_begin(struct gm_hush *hush);

/* Takes back the signals that the stretch raised and restores the rest. */
void gm_hush_end(struct gm_hush *hush);

#endif
