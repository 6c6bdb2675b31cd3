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

const struct gm_role_info gm_role_table[GM_ROLES] = {
#define GM_ROLE(name, class, nesting, memory, entry, source, cost, begin, end, meaning)            \
	[GM_ROLE_##name] = {nesting, memory, GM_ENTRY_##entry, GM_SOURCE_##source, begin, end},
#include "api/roles.def"
};
