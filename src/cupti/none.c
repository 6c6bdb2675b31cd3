/*
 * Stands for the CUPTI backend where the build found no CUPTI headers.
 */
#include "cupti/backend.h"
#include "cupti/driver_calls.h"
#include "recorder/state/log.h"
#include "recorder/state/settings.h"

#include <stdio.h>

void gm_cupti_start(void)
{
	if (gm_settings.backend != GM_BACKEND_CUPTI)
		return;
	gm_settings.backend = GM_BACKEND_PRELOAD;
	gm_log(GM_LOG_WARN, "this build lacks the CUPTI backend (there were no CUPTI headers): "
			    "recording by LD_PRELOAD");
}

bool gm_cupti_reports(unsigned layer)
{
	(void)layer;
	gm_cupti_start();
	return false;
}

unsigned gm_cupti_join(char *why, size_t bytes)
{
	snprintf(why, bytes, "this build lacks it (there were no CUPTI headers)");
	return 0;
}

bool gm_cupti_leave(void)
{
	return true;
}

void gm_cupti_listen(bool on)
{
	(void)on;
}
