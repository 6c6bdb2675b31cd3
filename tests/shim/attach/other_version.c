/*
 * A shim of another version, which this version of the tool is not to call.
 */
#include "store/attach_point.h"

#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT extern struct gm_attach_point gpumemtrace_attach_point;
struct gm_attach_point gpumemtrace_attach_point = {.magic = GM_ATTACH_MAGIC,
						   .version = GM_ATTACH_VERSION + 1,
						   .loaded = 1,
						   .late = 1};

EXPORT void gpumemtrace_attach_serve(void);
void gpumemtrace_attach_serve(void)
{
	abort();
}
