/*
 * Stands for the CUPTI backend where the build found no CUPTI headers.
 */
#include "cupti/backend.h"
#include "recorder/state/log.h"
#include "recorder/state/settings.h"

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
