/*
 * The table of roles (roles.h).
 */
#include "recorder/roles.h"
#include "recorder/internal.h"
#include "recorder/refuse.h"

#define OUTER	false
#define NESTED	true
#define KEEPS	false
#define CHANGES true

const struct gm_role_info gm_role_table[GM_ROLES] = {
#define GM_ROLE(name, class, nesting, memory, entry, source, cost, begin, end, meaning)            \
	[GM_ROLE_##name] = {nesting, memory, GM_ENTRY_##entry, GM_SOURCE_##source, begin, end},
#include "api/roles.def"
};
