/*
 * Who counts where, and the sum (changes.h).
 *
 * A thread's counts are plain stores, which another processor may see late: a call that it does not see
 * yet may be changing the device already. So who asks has all processors that run this process catch up
 * first (membarrier). Where the kernel does not do that, and for threads beyond those that find a place,
 * counts are shared and changed by locked instructions.
 */
#include "interpose/changes.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PLACES 64u

static struct gm_changes places[PLACES];
static struct gm_changes shared; /* owner unused */
static uint32_t private_counts;	 /* the kernel has the others catch up (atomic); once true it stays so */

static bool membarrier(int command)
{
	int saved = errno;
	long result = syscall(SYS_membarrier, command, 0, 0);

	errno = saved;
	return result == 0;
}

/* While there is one thread, as mostly here, the kernel answers at once. */
void gm_changes_init(void)
{
	__atomic_store_n(&private_counts, membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED),
			 __ATOMIC_RELAXED);
}

/* ---- places ---- */

static uint32_t own_tid(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

/* False only if there is certainly no thread of that id in this process. errno stays. */
static bool is_alive(uint32_t tid)
{
	int saved = errno;
	bool gone = syscall(SYS_tgkill, getpid(), tid, 0) != 0 && errno == ESRCH;

	errno = saved;
	return !gone;
}

static bool take(struct gm_changes *place, uint32_t from, uint32_t tid)
{
	return __atomic_compare_exchange_n(&place->owner, &from, tid, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

/* One that was never anybody's, or that of a thread that is no more; NULL: all are taken. */
static struct gm_changes *find_place(void)
{
	uint32_t tid = own_tid(), owner;
	unsigned i;

	for (i = 0; i < PLACES; i++) {
		owner = __atomic_load_n(&places[i].owner, __ATOMIC_RELAXED);
		if (owner == tid || (!owner && take(&places[i], 0, tid)))
			return &places[i];
	}
	for (i = 0; i < PLACES; i++) {
		owner = __atomic_load_n(&places[i].owner, __ATOMIC_RELAXED);
		if (!is_alive(owner) && take(&places[i], owner, tid))
			return &places[i];
	}
	return NULL;
}

/* ---- counting ---- */

GM_SELDOM void gm_shared_change_begins(void)
{
	if (!gm_thread.shares && __atomic_load_n(&private_counts, __ATOMIC_RELAXED))
		gm_thread.changes = find_place();
	gm_thread.shares = 1; /* unless it has its own now */
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

/* Places never go back, and a thread that is no more left its counts as they were. */
static uint64_t sum(size_t of)
{
	uint64_t sum = __atomic_load_n((uint64_t *)((char *)&shared + of), __ATOMIC_SEQ_CST);
	unsigned i;

	for (i = 0; i < PLACES; i++)
		sum += __atomic_load_n((uint64_t *)((char *)&places[i] + of), __ATOMIC_SEQ_CST);
	return sum;
}

/* False: nobody can tell. The child of a fork may have to register anew. */
static bool others_catch_up(void)
{
	return !__atomic_load_n(&private_counts, __ATOMIC_RELAXED) ||
	       membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) ||
	       (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
		membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED));
}

bool gm_calls_quiet(uint64_t *begun)
{
	const struct gm_changes *own = gm_thread.changes;
	uint64_t mine = own ? own->begun - own->ended : gm_thread.changing, ended;

	if (!others_catch_up())
		return false;
	/* In this order: a call that begins in between makes them differ. */
	ended = sum(offsetof(struct gm_changes, ended));
	*begun = sum(offsetof(struct gm_changes, begun));
	return *begun == ended + mine;
}

void gm_changes_forget(void)
{
	struct gm_changes *own = gm_thread.changes;
	unsigned i;

	if (own)
		own->owner = own_tid();
	for (i = 0; i < PLACES; i++)
		if (places[i].owner && &places[i] != own && !is_alive(places[i].owner))
			places[i] = (struct gm_changes){.owner = 0};
	shared.begun = gm_thread.changing;
	shared.ended = 0;
}
