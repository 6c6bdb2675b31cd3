/*
 * Prints the tables of CUDA functions and of their roles for coverage.py. The lines are
 * "role NAME CLASS MEANING" and "row NAME LAYER ROLE KIND MAJORS", with tabs between the columns;
 * MAJORS are those of libcudart as bits.
 */
#include "api/api.h"

#include <stdio.h>

static const struct {
	const char *name, *class, *meaning;
} roles[GM_ROLES] = {
#define GM_ROLE(name, class, nesting, memory, entry, source, cost, begin, end, meaning)            \
	[GM_ROLE_##name] = {#name, #class, meaning},
#include "api/roles.def"
};

static const char *const kinds[GM_KINDS] = {
	"",    "device", "managed", "array",	  "async",
	"vmm", "graph",	 "pinned",  "registered", "imported",
};

int main(void)
{
	unsigned i;

	for (i = 0; i < GM_ROLES; i++)
		printf("role\t%s\t%s\t%s\n", roles[i].name, roles[i].class, roles[i].meaning);
	for (i = 0; i < GM_FUNCTIONS; i++) {
		const struct gm_row *row = &gm_rows[i];

		printf("row\t%s\t%s\t%s\t%s\t%u\n", row->name,
		       row->layer == GM_LAYER_RUNTIME ? "runtime" : "driver",
		       roles[row->role].name, kinds[row->kind], row->majors);
	}
	return 0;
}
