/*
 * Names of driver functions that are no rows of the table (unlisted.h).
 */
#include "recorder/calls/unlisted.h"
#include "recorder/state/captures.h"
#include "track/contexts.h"

#include <stdbool.h>
#include <string.h>

static bool begins_with(const char *name, const char *start)
{
	return !strncmp(name, start, strlen(start));
}

/*
 * cuGLCtxCreate and cuVDPAUCtxCreate are left out: every cudart asks for them, and nothing has
 * called them for years.
 */
void gm_unlisted_function(const char *name)
{
	static uint32_t capture_counted;

	if (begins_with(name, "cuStreamBegin") &&
	    !__atomic_exchange_n(&capture_counted, 1, __ATOMIC_RELAXED))
		gm_capture_enters(GM_ROLE_CAPTURE_BEGIN);
	if (begins_with(name, "cuCtxCreate") || begins_with(name, "cuDevicePrimaryCtxRetain") ||
	    begins_with(name, "cuGreenCtxCreate"))
		gm_track_context_untold();
}
