/*
 * Prints the table of CUDA functions, a line a row: name, layer, role, kind, majors of libcudart (bits).
 * For coverage.py.
 */
#include "api/api.h"

#include <stdio.h>

#define ROLE(name) [GM_ROLE_##name] = #name

static const char *const roles[GM_ROLES] = {
	ROLE(NOTHING),	    ROLE(ALLOC),	 ROLE(FREE),	       ROLE(REGISTER),
	ROLE(EXPORT),	    ROLE(POOL_CREATE),	 ROLE(POOL_IMPORT),    ROLE(POOL_DESTROY),
	ROLE(POOL_TRIM),    ROLE(POOL_SET),	 ROLE(VMM_RESERVE),    ROLE(VMM_ADDRESS_FREE),
	ROLE(VMM_MAP),	    ROLE(VMM_UNMAP),	 ROLE(VMM_MAP_ARRAY),  ROLE(VMM_RETAIN),
	ROLE(VMM_RELEASE),  ROLE(MULTICAST_BIND), ROLE(MULTICAST_UNBIND), ROLE(GRAPH_NODE),
	ROLE(GRAPH_FREE_NODE), ROLE(GRAPH_INSTANTIATE), ROLE(GRAPH_LAUNCH), ROLE(GRAPH_DESTROY),
	ROLE(GRAPH_EXEC_DESTROY), ROLE(STREAM_CREATE), ROLE(GRAPH_TRIM), ROLE(CTX_CREATE),  ROLE(CTX_RETAIN),
	ROLE(CTX_RELEASE),  ROLE(CTX_DESTROY),	 ROLE(GREEN_CREATE),   ROLE(GREEN_DESTROY),
	ROLE(DEVICE_RESET), ROLE(MODULE_LOAD),	 ROLE(MODULE_UNLOAD),  ROLE(MODULE_USE),
	ROLE(LIMIT),	    ROLE(MEM_INFO),	 ROLE(SYNC),	       ROLE(LAUNCH),
	ROLE(ROUTE),	    ROLE(CAPTURE_BEGIN), ROLE(CAPTURE_END),
};

static const char *const kinds[GM_KINDS] = {
	"", "device", "managed", "array", "async", "vmm", "graph", "pinned", "registered", "imported",
};

int main(void)
{
	unsigned i;

	for (i = 0; i < GM_FUNCTIONS; i++) {
		const struct gm_row *row = &gm_rows[i];

		printf("%s\t%s\t%s\t%s\t%u\n", row->name,
		       row->layer == GM_LAYER_RUNTIME ? "runtime" : "driver",
		       roles[row->role] ? roles[row->role] : "?", kinds[row->kind], row->majors);
	}
	return 0;
}
