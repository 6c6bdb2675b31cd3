/*
 * Rows of the table by their names, and the lock of the tables of real functions (internal.h).
 */
#include "interpose/internal.h"
#include "recorder/state/fork_page.h"

#include <string.h>

#define NAME_SLOTS 1024 /* a power of two, over twice the rows */

/* Changed under gm_lock_resolve; read without it. */
static struct {
	uint16_t by_name[NAME_SLOTS]; /* row + 1, open addressing */
	bool ready;
} names;

/*
 * Set while this thread holds the lock: a signal handler that interrupts it must not wait for the
 * lock.
 */
static __thread uint8_t resolving __attribute__((tls_model("initial-exec")));

bool gm_lock_resolve(void)
{
	if (resolving)
		return false;
	resolving = 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	gm_lock_acquire(&gm_fork_page()->resolve);
	return true;
}

void gm_unlock_resolve(void)
{
	gm_lock_release(&gm_fork_page()->resolve);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	resolving = 0;
}

bool gm_resolving(void)
{
	return resolving;
}

static uint32_t hash_name(const char *name)
{
	uint32_t hash = 2166136261u;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619u;
	return hash;
}

/*
 * Enters the names when the shim is loaded, or for a constructor of another library that comes
 * before.
 */
static void __attribute__((constructor)) enter_names(void)
{
	unsigned row;

	if (__atomic_load_n(&names.ready, __ATOMIC_ACQUIRE) || !gm_lock_resolve())
		return;
	for (row = 0; row < GM_FUNCTIONS && !names.ready; row++) {
		uint32_t slot = hash_name(gm_rows[row].name);
		uint16_t taken;

		/* A fork may have come between: what was entered by then stays. */
		while ((taken = names.by_name[slot % NAME_SLOTS]) != 0 && taken != row + 1)
			slot++;
		names.by_name[slot % NAME_SLOTS] = (uint16_t)(row + 1);
	}
	__atomic_store_n(&names.ready, true, __ATOMIC_RELEASE);
	gm_unlock_resolve();
}

enum gm_function gm_row_named(const char *name, unsigned majors)
{
	uint32_t slot;

	enter_names();
	for (slot = hash_name(name); names.by_name[slot % NAME_SLOTS]; slot++) {
		const struct gm_row *row = &gm_rows[names.by_name[slot % NAME_SLOTS] - 1];

		if (!strcmp(row->name, name) && (!row->majors || (row->majors & majors)))
			return (enum gm_function)(row - gm_rows);
	}
	return GM_FUNCTIONS;
}
