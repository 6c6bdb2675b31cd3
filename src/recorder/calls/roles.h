/*
 * The roles of api/roles.def with their handlers: the arguments and the result of a call become
 * events of track/.
 */
#ifndef GM_RECORDER_ROLES_H
#define GM_RECORDER_ROLES_H

#include "api/api.h"
#include "store/layout.h"

#include <stdbool.h>

struct gm_call;

/* The words of roles.def. */
enum gm_role_entry {
	GM_ENTRY_PLAIN,
	GM_ENTRY_CAPTURE,
	GM_ENTRY_LAUNCH,
	GM_ENTRY_CODE_USE,
	GM_ENTRY_WAIT,
};
enum gm_role_source { GM_SOURCE_CUPTI, GM_SOURCE_WRAPPER, GM_SOURCE_NOBODY };

/* The column `cost`: what a call takes beside allocations. */
struct gm_role_cost {
	uint8_t kind;	/* enum gm_cost */
	int8_t objects; /* that come by the call */
	bool gives;	/* it may return memory */
	bool measured;
};

struct gm_role_info {
	bool nested, changes;
	uint8_t entry;	/* enum gm_role_entry */
	uint8_t source; /* enum gm_role_source */
	struct gm_role_cost cost;
	/* NULL, or before the real call: what must be known or marked then */
	void (*begin)(struct gm_call *call, const struct gm_row *row);
	/*
	 * NULL, or after it. The driver may be asked questions (query.h); the program's state is
	 * not changed.
	 */
	void (*end)(struct gm_call *call, const struct gm_row *row, int result);
};

/* Indexed by enum gm_role. */
extern const struct gm_role_info gm_role_table[GM_ROLES] __attribute__((visibility("hidden")));

/* gm_role_table[role].nested, as a constant where the role is one. */
static inline bool gm_role_nests(unsigned role)
{
	static const uint64_t nested = 0
#define OUTER  0
#define NESTED 1
#define GM_ROLE(name, class, nesting, ...) | (uint64_t)(nesting) << GM_ROLE_##name
#include "api/roles.def"
#undef OUTER
#undef NESTED
		;
	_Static_assert(GM_ROLES <= 64, "a bit for each role");

	return nested >> role & 1;
}

#endif
