/*
 * Who counts where, and the sum (changes.h).
 *
 * Plain stores are enough, for all that is to be told is order: whoever sees what a call did to the device
 * sees that it had begun, and whoever sees that it ended sees it in the books. A call that is not seen to
 * have begun has done nothing yet that could be seen.
 */
#include "interpose/changes.h"
#include "track/event.h"

#include <unistd.h>

#define PLACES 64u /* threads beyond share one, with locked instructions */

static struct gm_changes places[PLACES];
static struct gm_changes shared; /* nobody's own */
static int forgotten;		 /* pid of a forked child that forgot its parent's threads */

/* One that was nobody's, or that of a thread with this id that is no more; NULL: all are taken. */
static struct gm_changes *find_place(void)
{
	uint32_t tid = gm_calling_thread(), owner;
	unsigned i;

	for (i = 0; i < PLACES; i++) {
		owner = __atomic_load_n(&places[i].owner, __ATOMIC_RELAXED);
		if (owner == tid ||
		    (!owner && __atomic_compare_exchange_n(&places[i].owner, &owner, tid, false,
							   __ATOMIC_RELAXED, __ATOMIC_RELAXED)))
			return &places[i];
	}
	return NULL;
}

GM_SELDOM void gm_shared_change_begins(void)
{
	if (!gm_thread.shares) {
		gm_thread.changes = find_place();
		gm_thread.shares = !gm_thread.changes;
	}
	if (gm_thread.changes) {
		gm_change_begins();
	} else if (!gm_thread.changing) { /* else left by a jump that jumps.c could not tell */
		gm_thread.changing = 1;
		__atomic_fetch_add(&shared.begun, 1, __ATOMIC_SEQ_CST);
	}
}

GM_SELDOM void gm_shared_change_ends(void)
{
	if (!gm_thread.changing)
		return;
	gm_thread.changing = 0;
	__atomic_fetch_add(&shared.ended, 1, __ATOMIC_SEQ_CST);
}

bool gm_calls_quiet(uint64_t *begun)
{
	const struct gm_changes *own = gm_thread.changes;
	uint64_t mine = own ? own->begun - own->ended : gm_thread.changing;
	uint64_t ended = __atomic_load_n(&shared.ended, __ATOMIC_ACQUIRE);
	unsigned i;

	/* In this order: a call that begins in between makes them differ. */
	for (i = 0; i < PLACES; i++)
		ended += __atomic_load_n(&places[i].ended, __ATOMIC_ACQUIRE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*begun = __atomic_load_n(&shared.begun, __ATOMIC_ACQUIRE);
	for (i = 0; i < PLACES; i++)
		*begun += __atomic_load_n(&places[i].begun, __ATOMIC_ACQUIRE);
	return *begun == ended + mine;
}

void gm_changes_forget(void)
{
	struct gm_changes *own = gm_thread.changes;
	unsigned i;

	if (forgotten == getpid())
		return;
	for (i = 0; i < PLACES; i++)
		if (&places[i] != own)
			places[i] = (struct gm_changes){.owner = 0};
	if (own)
		own->owner = gm_ask_thread_id(); /* after a raw clone what is known is the parent's */
	shared = (struct gm_changes){.begun = gm_thread.changing};
	forgotten = getpid();
}
