/*
 * Code that was seen before (code_seen.h).
 */
#include "recorder/calls/code_seen.h"
#include "recorder/query/query.h"

#define LAUNCH_PROBES 16u
#define USE_SETS      512u /* 9 bits of a hash */
#define USE_WAYS      4u

uint64_t gm_launches[GM_LAUNCH_SLOTS];

/* The code asked for last, by sets, the latest first in each (atomic). */
static uint64_t uses[USE_SETS][USE_WAYS];

/* The number of times that code was unloaded (atomic). The keys of `uses` depend on it. */
static uint64_t unloads;

bool gm_first_launch(uint64_t function)
{
	uint32_t first = gm_launch_slot(function);
	unsigned i;

	for (i = 0; i < LAUNCH_PROBES; i++) {
		uint64_t *slot = &gm_launches[(first + i) % GM_LAUNCH_SLOTS];
		uint64_t found = __atomic_load_n(slot, __ATOMIC_RELAXED);

		if (found == function)
			return false;
		if (!found && __atomic_compare_exchange_n(slot, &found, function, false,
							  __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return true;
		if (found == function)
			return false;
	}
	return false; /* the table is full here: this kernel's first launch is not measured */
}

bool gm_first_use(uint64_t code)
{
	/* Code is loaded into each device's context apart. Handles are addresses of 48 bits. */
	uint64_t device = (uint64_t)(gm_query_current_device() + 2) << 48;
	uint64_t key = (code ^ device) + __atomic_load_n(&unloads, __ATOMIC_RELAXED);
	uint64_t *set = uses[key * 0x9e3779b97f4a7c15ull >> 55];
	unsigned i;

	for (i = 0; i < USE_WAYS; i++)
		if (__atomic_load_n(&set[i], __ATOMIC_RELAXED) == key)
			return false;
	for (i = USE_WAYS - 1; i; i--)
		__atomic_store_n(&set[i], __atomic_load_n(&set[i - 1], __ATOMIC_RELAXED),
				 __ATOMIC_RELAXED);
	__atomic_store_n(&set[0], key, __ATOMIC_RELAXED);
	return true;
}

/* The gap that this leaves in a row of slots costs another kernel a second measurement, no more. */
void gm_forget_launch(uint64_t function)
{
	uint32_t first = gm_launch_slot(function);
	unsigned i;

	for (i = 0; i < LAUNCH_PROBES; i++) {
		uint64_t expected = function;

		__atomic_compare_exchange_n(&gm_launches[(first + i) % GM_LAUNCH_SLOTS], &expected,
					    0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	}
}

void gm_forget_launches(void)
{
	unsigned i;

	for (i = 0; i < GM_LAUNCH_SLOTS; i++)
		if (__atomic_load_n(&gm_launches[i], __ATOMIC_RELAXED))
			__atomic_store_n(&gm_launches[i], 0, __ATOMIC_RELAXED);
}

void gm_forget_uses(void)
{
	__atomic_fetch_add(&unloads, 1, __ATOMIC_RELAXED);
}

void gm_forget_code(void)
{
	gm_forget_launches();
	gm_forget_uses();
}
