/*
 * The table of roles (roles.h).
 */
#include "recorder/calls/roles.h"
#include "recorder/calls/internal.h"
#include "recorder/calls/refuse.h"
#include "recorder/calls/role_alloc.h"

#define OUTER	false
#define NESTED	true
#define KEEPS	false
#define CHANGES true
#define NO_COST		    {0, 0, false, false}
#define TAKES(what, number) {GM_COST_##what, number, false, true}
#define GIVES(what, number) {GM_COST_##what, number, true, true}

const struct gm_role_info gm_role_table[GM_ROLES] = {
#define GM_ROLE(name, class, nesting, memory, entry, source, cost, begin, end, meaning)            \
	[GM_ROLE_##name] = {nesting, memory, GM_ENTRY_##entry, GM_SOURCE_##source,             \
			    cost,    begin,  end},
#include "api/roles.def"
};
